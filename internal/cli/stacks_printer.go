package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/phrase"
)

// sortHosts sorts hosts by their first ranks. Those without ranks are last.
func sortHosts(hosts []agentapi.HostStacks) []agentapi.HostStacks {
	first := func(h agentapi.HostStacks) int32 {
		if len(h.Ranks) == 0 {
			return 1<<31 - 1
		}
		return h.Ranks[0].Rank
	}
	slices.SortStableFunc(hosts, func(a, b agentapi.HostStacks) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), strings.Compare(a.Host, b.Host))
	})
	return hosts
}

// shownStack is what ranks have in common whose stacks are shown together.
type shownStack struct {
	of    agentapi.RankStack
	ranks []int32
	hosts []string
}

// printStacks prints the stacks of ranks, and to notes which hosts cannot be asked. It returns whether there was a rank.
func printStacks(to, notes io.Writer, hosts []agentapi.HostStacks) bool {
	all := groupShown(hosts)
	for i, s := range all {
		if i > 0 {
			say(to, "")
		}
		say(to, "%s", heading(s))
		for n, thread := range s.of.Threads {
			indent := "  "
			if n > 0 {
				say(to, "  thread %d", thread.Thread)
				indent = "    "
			}
			for _, f := range thread.Frames {
				printFrame(to, indent, f)
			}
			if thread.More {
				say(to, "%s…", indent)
			}
		}
	}
	for _, h := range hosts {
		if h.Error != "" {
			say(notes, "note: %s: %s", logs.Clean(h.Host), logs.Clean(h.Error))
		}
	}
	return len(all) > 0
}

// printFrame prints a call, and the line of source code at which it is.
func printFrame(to io.Writer, indent string, f agentapi.Frame) {
	say(to, "%s%s", indent, logs.Clean(f.String()))
	if f.Source != "" {
		say(to, "%s    %s", indent, logs.Clean(f.Source))
	}
}

// groupShown puts ranks together that are shown alike: small groups first.
func groupShown(hosts []agentapi.HostStacks) (all []*shownStack) {
	groups := map[string]*shownStack{}
	for _, host := range hosts {
		for _, r := range host.Ranks {
			of := r
			of.Rank, of.Process = 0, 0
			of.Threads = slices.Clone(r.Threads)
			for i := range of.Threads {
				of.Threads[i].Thread = 0
			}
			key, _ := json.Marshal(of)
			group := groups[string(key)]
			if group == nil {
				group = &shownStack{of: r}
				groups[string(key)], all = group, append(all, group)
			}
			group.ranks = append(group.ranks, r.Rank)
			if !slices.Contains(group.hosts, host.Host) {
				group.hosts = append(group.hosts, host.Host)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *shownStack) int { return len(a.ranks) - len(b.ranks) })
	return all
}

// heading describes ranks that are shown together, such as "rank 1 on train-worker-0: busy, Python 3.9".
func heading(s *shownStack) string {
	const mostRanks, mostHosts = 16, 4
	slices.Sort(s.ranks)
	text := agentapi.RanksText(s.ranks, mostRanks)
	if len(s.hosts) <= mostHosts {
		text += " on " + strings.Join(s.hosts, ", ")
	} else {
		text += " on " + phrase.Count(len(s.hosts), "host")
	}
	var details []string
	if s.of.Doing != "" {
		details = append(details, string(s.of.Doing))
	}
	if s.of.For != "" {
		details = append(details, "waits for "+s.of.For)
	}
	if s.of.Python != "" {
		details = append(details, "Python "+s.of.Python)
	}
	if s.of.Inline != "" {
		details = append(details, agentapi.InlineProgram(s.of.Inline))
	}
	if s.of.Error != "" {
		details = append(details, "no stack: "+s.of.Error)
	}
	return logs.Clean(fmt.Sprintf("%s: %s", text, strings.Join(details, ", ")))
}
