package progress

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// StallWatch remembers what was reported of ranks that make no progress.
type StallWatch struct {
	reported string
	// failedAt is when a failed rank was first observed.
	failedAt time.Time
}

// Judge judges what the ranks do, and returns the line to write, or "". The arguments are those of judgeStall.
func (w *StallWatch) Judge(all []records.Record, own agentapi.Activity, failed []agentapi.RankEnd, now time.Time) string {
	if len(failed) > 0 && w.failedAt.IsZero() {
		w.failedAt = now
	}
	return w.next(judgeStall(all, own, failed, w.failedAt, now))
}

// next returns the line to write after a judgment, or "".
func (w *StallWatch) next(judged string) string {
	was := w.reported
	w.reported = judged
	switch judged {
	case was:
		return ""
	case "":
		return agentapi.StallOver
	}
	return judged
}

// waitingAfter is how long no rank makes progress until that is reported, and goneAfter how long ranks continue after one
// failed: MPI needs a few seconds to end them.
const waitingAfter, goneAfter = 30 * time.Second, 20 * time.Second

// hasNoRanks reports whether MPI has started no rank on a host, and will not: it uses fewer slots than there are. All ranks start
// within seconds.
func hasNoRanks(r records.Record, now time.Time) bool {
	const started = time.Minute
	none := r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0
	return none && !r.Reached.IsZero() && now.Sub(r.Reached) >= started
}

// judgeStall decides whether ranks wait for each other or for one that is gone. all are the job's hosts, own is what the
// ranks in the launcher's pod do, and failedAt is when the launcher first saw that a rank had failed, or zero. It returns
// the line for the log, without the agent's prefix; "" if nothing is wrong.
func judgeStall(all []records.Record, own agentapi.Activity, failed []agentapi.RankEnd, failedAt, now time.Time) string {
	var ranks []agentapi.RankActivity
	quietSince := int64(0)
	quiet := true
	add := func(a agentapi.Activity) {
		ranks = append(ranks, a.Ranks...)
		quiet = quiet && a.QuietSince > 0
		quietSince = max(quietSince, a.QuietSince)
	}
	for _, r := range all {
		switch {
		case r.Over, hasNoRanks(r, now):
		case r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0:
			// Its ranks have not started, or have not been sampled.
			quiet = false
		default:
			add(*r.Worker.Activity)
		}
	}
	if len(own.Ranks) > 0 {
		add(own)
	}
	switch {
	case len(ranks) == 0:
		return ""
	case len(failed) > 0 && !failedAt.IsZero() && now.Sub(failedAt) >= goneAfter:
		others := "1 other rank still runs"
		if len(ranks) > 1 {
			others = fmt.Sprintf("%d other ranks still run", len(ranks))
		}
		return fmt.Sprintf("%s, but %s, since %s", strings.TrimSuffix(outcome.RankEnded(failed[0]), "."), others, clockTime(failedAt))
	case len(ranks) < 2 || !quiet || now.Sub(time.Unix(quietSince, 0)) < waitingAfter:
		return ""
	}
	byDoing := map[agentapi.Doing][]string{}
	for _, r := range ranks {
		byDoing[r.Doing] = append(byDoing[r.Doing], strconv.Itoa(int(r.Rank)))
	}
	if len(byDoing[agentapi.Sleeping]) == len(ranks) {
		// Programs may sleep on purpose.
		return ""
	}
	var parts []string
	for _, doing := range []agentapi.Doing{agentapi.Sleeping, agentapi.Blocked, agentapi.Polling} {
		if numbers := byDoing[doing]; len(numbers) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", doing, outcome.Some(numbers)))
		}
	}
	return fmt.Sprintf("all %d ranks wait, since %s; %s", len(ranks), clockTime(time.Unix(quietSince, 0)), strings.Join(parts, "; "))
}

func clockTime(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }
