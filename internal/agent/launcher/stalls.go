package launcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/stacks"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// stackTime is how long the line about a lack of progress may wait for the stacks of the ranks, and stackAge how long they are used
	// for further lines.
	stackTime, stackAge = 8 * time.Second, 30 * time.Second
	// mostStackHosts is the number of hosts that are asked, and mostStackLines that of places that are written.
	mostStackHosts, mostStackLines = 64, 8
)

// stallReport writes that ranks make no progress, with the places in their code. The stacks are read for this only.
type stallReport struct {
	// stacks returns the stacks of the ranks.
	stacks func() []agentapi.HostStacks
	write  func(text string)
	// pending is a line that waits for stacks; "" if none does.
	pending string
	// answers carries the stacks, while they are asked for.
	answers chan []agentapi.HostStacks
	asking  bool
	// places are the latest ones, and at is when they were read.
	places []string
	at     time.Time
	// ended are the ranks whose program has ended since there is no progress. A host on a busy machine may not answer later, but
	// the program of a rank does not begin again.
	ended map[int32]bool
}

// report writes a line about a lack of progress, at once or when the stacks are known. Ranks that continue have no place.
func (r *stallReport) report(text string, now time.Time) {
	switch {
	case text == agentapi.StallOver:
		r.pending, r.ended = "", nil
		r.write(agentapi.StallPrefix + text)
	case now.Sub(r.at) < stackAge:
		r.writeWithPlaces(text)
	default:
		r.pending = text
		if r.asking {
			return
		}
		r.asking = true
		go func() { r.answers <- r.stacks() }()
	}
}

// add takes the answer, and writes the line that waits for it.
func (r *stallReport) add(hosts []agentapi.HostStacks, now time.Time) {
	if r.ended == nil {
		r.ended = map[int32]bool{}
	}
	for _, host := range hosts {
		for _, rank := range host.Ranks {
			r.ended[rank.Rank] = rank.Error == agentapi.NoPythonCode || rank.Error != "" && r.ended[rank.Rank]
		}
	}
	r.asking, r.places, r.at = false, placesOf(hosts, r.ended), now
	if r.pending != "" {
		r.writeWithPlaces(r.pending)
		r.pending = ""
	}
}

// writeWithPlaces writes all lines at once: the operator may read the log at any time.
func (r *stallReport) writeWithPlaces(text string) {
	lines := []string{agentapi.StallPrefix + text}
	for _, place := range r.places {
		lines = append(lines, agentapi.StackPrefix+place)
	}
	r.write(strings.Join(lines, "\n"))
}

// placesOf describes where ranks are in their code, those whose program has ended first, and then those in the smallest groups.
func placesOf(hosts []agentapi.HostStacks, ended map[int32]bool) (places []string) {
	groups := agentapi.GroupStacks(hosts)
	for _, group := range groups[:min(len(groups), mostStackLines)] {
		places = append(places, group.String())
	}
	var over []int32
	for _, rank := range slices.Sorted(maps.Keys(ended)) {
		if ended[rank] {
			over = append(over, rank)
		}
	}
	if len(over) > 0 && len(groups) > 0 {
		const most = 4
		places = append([]string{agentapi.RanksText(over, most) + ": " + agentapi.ProgramEnded}, places...)
	}
	return places
}

// newStallReport returns the report of the supervisor's job.
func (s *supervisor) newStallReport() *stallReport {
	return &stallReport{stacks: s.stacks, answers: make(chan []agentapi.HostStacks, 1), write: func(text string) {
		fmt.Fprintln(s.stderr, text)
		s.keepStall(text, time.Now())
	}}
}

// keepStall keeps what was written about a lack of progress, for the operator: the log's last lines are those of the program if it prints much.
func (s *supervisor) keepStall(text string, now time.Time) {
	s.stall.Store(agentapi.NewStall(now, strings.Split(text, "\n")))
	select {
	case s.stallChanges <- struct{}{}:
	default:
	}
}

// stacks reads the stacks of the ranks in this pod, and asks the other hosts.
func (s *supervisor) stacks() (all []agentapi.HostStacks) {
	if own := s.ranks.Stacks(nil); len(own) > 0 {
		name, _ := os.Hostname()
		all = append(all, agentapi.HostStacks{Host: hostfile.Short(name), Ranks: own})
	}
	identity, err := protocol.ReadIdentity("")
	if err != nil {
		return all
	}
	ctx, cancel := context.WithTimeout(context.Background(), stackTime)
	defer cancel()
	defer s.ranks.LookedInto()
	stacks.Ask(ctx, identity, hostsToAsk(records.ByHost(records.Read(s.folder))), nil, func(answer agentapi.HostStacks) { all = append(all, answer) })
	return all
}

// hostsToAsk returns the hosts with ranks: of many, those first whose ranks do something else than wait for a message.
func hostsToAsk(all []records.Record) (hosts []stacks.Host) {
	all = slices.DeleteFunc(slices.Clone(all), func(r records.Record) bool {
		return r.Over || r.Reached.IsZero() || r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0
	})
	waits := func(r records.Record) int {
		if slices.ContainsFunc(r.Worker.Activity.Ranks, func(a agentapi.RankActivity) bool { return a.Doing == agentapi.Busy || a.Doing == agentapi.Sleeping }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b records.Record) int { return cmp.Compare(waits(a), waits(b)) })
	for _, r := range all[:min(len(all), mostStackHosts)] {
		hosts = append(hosts, stacks.Host{Name: r.Host, Port: r.Port})
	}
	return hosts
}
