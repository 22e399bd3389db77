package progress

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// StallWatch remembers what was reported of ranks that make no progress.
type StallWatch struct {
	reported string
	// judged is what was judged last, without what changes often.
	judged string
	// failedAt is when a failed rank was first observed.
	failedAt time.Time
}

// Judge judges what the ranks do, and returns the line to write, or "". all are the job's hosts, own is what the ranks in the
// launcher's pod do, summary is that of all, and command is what CommandWatch returned.
func (w *StallWatch) Judge(all []records.Record, own agentapi.Activity, summary agentapi.Summary, command string, now time.Time) string {
	if len(summary.Ranks) > 0 && w.failedAt.IsZero() {
		w.failedAt = now
	}
	return w.next(cmp.Or(judgeStall(all, own, summary, w.failedAt, now), command))
}

// slowerText is the part of a judgment with the reason why ranks are slower than others.
var slowerText = regexp.MustCompile(` \(slower: [^)]*\)`)

// next returns the line to write after a judgment, or "". The figures of what slows ranks down change, and are reported once.
func (w *StallWatch) next(judged string) string {
	was, wasSlower := w.judged, slowerText.MatchString(w.reported)
	w.judged = slowerText.ReplaceAllString(judged, "")
	if w.judged == was && (wasSlower || w.judged == judged) {
		return ""
	}
	w.reported = judged
	switch judged {
	case "":
		return agentapi.StallOver
	}
	return judged
}

// Until the lack of progress is reported:
const (
	// waitingAfter is how long no rank makes progress, although not all of them sleep.
	waitingAfter = 30 * time.Second
	// behindAfter is how long ranks wait for few others that are busy: some programs compute a part on one rank only.
	behindAfter = time.Minute
	// idleAfter is how long all ranks sleep, a rank is alone, or one writes a file: programs may sleep on purpose, and a checkpoint takes its
	// time. idleDeviceAfter is the same for ranks
	// with a GPU, which may compute meanwhile.
	idleAfter, idleDeviceAfter = 2 * time.Minute, 10 * time.Minute
	// goneAfter is how long ranks continue after one failed: MPI needs a few seconds to end them.
	goneAfter = 20 * time.Second
)

// hasNoRanks reports whether MPI has started no rank on a host, and will not: it uses fewer slots than there are. All ranks start
// within seconds.
func hasNoRanks(r records.Record, now time.Time) bool {
	const started = time.Minute
	none := r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0
	return none && !r.Reached.IsZero() && now.Sub(r.Reached) >= started
}

// judgeStall decides whether ranks wait for each other, for one that is busy, or for one that is gone. failedAt is when the launcher
// first saw that a rank had failed, or zero; the other arguments are those of Judge. It returns the line for the log, without the
// agent's prefix; "" if nothing is wrong.
func judgeStall(all []records.Record, own agentapi.Activity, summary agentapi.Summary, failedAt, now time.Time) string {
	pods, stillSince := running(all, own, now)
	var ranks []agentapi.RankActivity
	for _, p := range pods {
		ranks = append(ranks, p.ranks...)
	}
	failed := summary.Ranks
	slow := findSlowPods(pods)
	switch {
	case len(ranks) == 0:
		return judgeLauncher(own, now)
	case len(failed) > 0 && !failedAt.IsZero() && now.Sub(failedAt) >= goneAfter:
		others := "1 other rank still runs"
		if len(ranks) > 1 {
			others = fmt.Sprintf("%d other ranks still run", len(ranks))
		}
		return fmt.Sprintf("%s, but %s, since %s", strings.TrimSuffix(outcome.RankEnded(failed[0]), "."), others, clockTime(failedAt))
	case stillSince == 0:
		return cmp.Or(judgeSlow(slow, pods, now), judgeGPUs(ranks, now))
	}
	n := count(ranks, stillSince)
	waited, since := now.Sub(n.since), clockTime(n.since)
	unanswered, doing := unansweredCall(all, own), doings(ranks)
	if summary.NoInterface != nil {
		doing += "; " + summary.NoInterface.String()
	}
	if unanswered != "" {
		doing += "; " + unanswered
	}
	switch {
	case n.busy == 0 && n.withDevice == 0 && (n.waiting > 0 || unanswered != "") && len(ranks) > 1 && waited >= max(n.patience, patience(ranks, unanswered)):
		return fmt.Sprintf("all %d ranks wait, since %s; %s", len(ranks), since, doing)
	case n.busy == 0 && (waited >= idleAfter || unanswered != "" && waited >= waitingAfter) && (n.withDevice == 0 || waited >= idleDeviceAfter):
		subject := "the only rank is idle"
		if len(ranks) > 1 {
			subject = fmt.Sprintf("all %d ranks are idle", len(ranks))
		}
		return fmt.Sprintf("%s, since %s; %s", subject, since, doing)
	case n.busy > 0 && n.sleeping == 0 && n.withDevice == 0 && !n.inKernel && n.waiting > 0 && waited >= max(n.patience, behindAfter):
		if text := judgeFew(ranks, n, slow, doing); text != "" {
			return text
		}
	}
	return cmp.Or(judgeSlow(slow, pods, now), judgeGPUs(ranks, now))
}

// patience is how long ranks may wait until this is reported, unless a call of one is not answered: longer if one waits for its files.
func patience(ranks []agentapi.RankActivity, unanswered string) time.Duration {
	if unanswered == "" && slices.ContainsFunc(ranks, agentapi.RankActivity.WaitsForStorage) {
		return idleAfter
	}
	return waitingAfter
}

// judgeFew names the ranks that keep all others waiting, if they are few or all in the pods that something slows down, and returns the line for
// the log; "" if they are many.
func judgeFew(ranks []agentapi.RankActivity, n tally, slow slowPods, doing string) string {
	// few is the share of ranks, of which the others wait for one at least, that are named.
	const few = 8
	why := slow.why
	if n.busy != slow.count(agentapi.Busy) {
		why = ""
	}
	if why == "" && n.busy > max(1, len(ranks)/few) {
		return ""
	}
	return waitText(n.waiting, len(ranks), numbers(ranks, agentapi.Busy), why, clockTime(n.since), doing)
}

// waitText says that some of the ranks wait for others, and why these are slower, if that is known.
func waitText(waiting, all int, busy []string, why, since, doing string) string {
	word := "rank"
	if len(busy) > 1 {
		word = "ranks"
	}
	if why != "" {
		why = " (slower: " + why + ")"
	}
	return fmt.Sprintf("%d of %d ranks wait for %s %s%s, since %s; %s", waiting, all, word, outcome.Some(busy), why, since, doing)
}

// judgeSlow decides whether ranks that exchange data wait most of the time for those of the pods that something slows down, and returns the line
// for the log; "" if they do not. Ranks that compute in turn with those of other pods are not slower without such a reason.
func judgeSlow(slow slowPods, pods []pod, now time.Time) string {
	busy, others := awaitedRanks(slow, pods)
	latest, total := int64(0), len(others)
	for _, p := range slow.pods {
		latest, total = max(latest, p.slow.Since), total+len(p.ranks)
	}
	since := time.Unix(latest, 0)
	if slow.why == "" || len(busy) == 0 || len(others) == 0 || now.Sub(since) < behindAfter {
		return ""
	}
	var all, names []string
	for _, r := range busy {
		names = append(names, strconv.Itoa(int(r.Rank)))
	}
	for _, r := range others {
		all = append(all, strconv.Itoa(int(r.Rank)))
	}
	return waitText(len(others), total, names, slow.why, clockTime(since), "mostly waiting: "+outcome.Some(all))
}

// judgeGPUs names the ranks, if they are few, whose GPUs are idle while those of all others are busy: a GPU that waits for those of other ranks is in a
// kernel of NCCL. It returns the line for the log, or "".
func judgeGPUs(ranks []agentapi.RankActivity, now time.Time) string {
	// few is the share of ranks, of which one at least, that are named.
	const few = 8
	var idle []string
	since := int64(0)
	for _, r := range ranks {
		if r.GPUIdleSince == 0 && r.GPUBusySince == 0 {
			return ""
		}
		if since = max(since, r.GPUIdleSince, r.GPUBusySince); r.GPUIdleSince > 0 {
			idle = append(idle, strconv.Itoa(int(r.Rank)))
		}
	}
	others := len(ranks) - len(idle)
	if len(idle) == 0 || others == 0 || len(idle) > max(1, len(ranks)/few) || now.Sub(time.Unix(since, 0)) < idleAfter {
		return ""
	}
	text, rest := "the GPU of rank %s is idle while ", "that of 1 other rank is busy"
	if len(idle) > 1 {
		text = "the GPUs of ranks %s are idle while "
	}
	if others > 1 {
		rest = fmt.Sprintf("those of %d other ranks are busy", others)
	}
	return fmt.Sprintf(text+rest+", since %s; %s", outcome.Some(idle), clockTime(time.Unix(since, 0)), doings(ranks))
}

// judgeLauncher judges a launcher's command that has started no rank yet.
func judgeLauncher(own agentapi.Activity, now time.Time) string {
	if own.Unanswered == nil {
		return ""
	}
	since := time.Unix(own.Unanswered.Since, 0)
	if now.Sub(since) < waitingAfter {
		return ""
	}
	return fmt.Sprintf("%s, since %s", unansweredCall(nil, own), clockTime(since))
}

// tally is how many ranks do what.
type tally struct {
	busy, sleeping, waiting int
	// withDevice are those that are not busy and have a GPU, which may compute.
	withDevice int
	// inKernel is set if one is busy whose GPU is, too: both may wait in NCCL.
	inKernel bool
	// patience is how long they wait at least until this is reported: longer with idle GPUs, whose use is measured less often.
	patience time.Duration
	// since is when the last one that is not busy began to wait, and the last pod to be still.
	since time.Time
}

// count counts the ranks of pods that are still since a time, in seconds since 1970.
func count(ranks []agentapi.RankActivity, stillSince int64) tally {
	var n tally
	since := stillSince
	for _, r := range ranks {
		switch r.Doing {
		case agentapi.Busy:
			n.busy++
			n.inKernel = n.inKernel || r.GPUBusySince > 0
			continue
		case agentapi.Sleeping:
			n.sleeping++
		default:
			n.waiting++
		}
		since = max(since, r.Since, r.GPUIdleSince)
		switch {
		case r.GPUIdleSince > 0:
			n.patience = idleAfter
		case r.Device:
			n.withDevice++
		}
	}
	n.since = time.Unix(since, 0)
	return n
}

// unansweredCall names the pod that has tried for the longest time to open a connection, and the address that does not answer; "" if
// there is none.
func unansweredCall(all []records.Record, own agentapi.Activity) string {
	who, longest := "the launcher", own.Unanswered
	for _, r := range all {
		if r.Over || r.Worker == nil || r.Worker.Activity == nil {
			continue
		}
		if call := r.Worker.Activity.Unanswered; call != nil && (longest == nil || call.Since < longest.Since) {
			who, longest = hostfile.Short(r.Host), call
		}
	}
	if longest == nil {
		return ""
	}
	return fmt.Sprintf("%s gets no answer from %s", who, longest.Address)
}

// running returns the hosts on which ranks run, and since when none of their pods has sent or received anything, in seconds since 1970; 0 if
// one does, or this is unknown.
func running(all []records.Record, own agentapi.Activity, now time.Time) (pods []pod, stillSince int64) {
	still := true
	add := func(host string, a agentapi.Activity) {
		p := pod{host: host, ranks: a.Ranks}
		if a.Slow != nil {
			p.slow = *a.Slow
		}
		pods = append(pods, p)
		still = still && a.StillSince > 0
		stillSince = max(stillSince, a.StillSince)
	}
	for _, r := range all {
		switch {
		case r.Over, hasNoRanks(r, now):
		case r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0:
			// Its ranks have not started, or have not been sampled.
			still = false
		default:
			add(hostfile.Short(r.Host), *r.Worker.Activity)
		}
	}
	if len(own.Ranks) > 0 {
		add("the launcher's pod", own)
	}
	if !still {
		return pods, 0
	}
	return pods, stillSince
}

// doings lists the ranks by what they do, such as "sleeping: 1; polling: 0, 2", with what the first one waits for of which that is known.
func doings(ranks []agentapi.RankActivity) string {
	var parts []string
	for _, doing := range []agentapi.Doing{agentapi.Busy, agentapi.Sleeping, agentapi.Blocked, agentapi.Polling} {
		if found := numbers(ranks, doing); len(found) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", doing, outcome.Some(found)))
		}
	}
	if i := slices.IndexFunc(ranks, func(r agentapi.RankActivity) bool { return r.For != "" }); i >= 0 {
		parts = append(parts, fmt.Sprintf("rank %d waits for %s", ranks[i].Rank, ranks[i].For))
	}
	return strings.Join(parts, "; ")
}

// numbers returns the numbers of the ranks that do something.
func numbers(ranks []agentapi.RankActivity, doing agentapi.Doing) (found []string) {
	for _, r := range ranks {
		if r.Doing == doing {
			found = append(found, strconv.Itoa(int(r.Rank)))
		}
	}
	return found
}

func clockTime(at time.Time) string { return at.UTC().Format(agentapi.ClockFormat) }
