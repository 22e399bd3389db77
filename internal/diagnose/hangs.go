package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

var (
	// These are the lines of a launcher's agent about ranks that make no progress (agentapi.StallPrefix).
	allWait    = regexp.MustCompile(`^all (\d+ ranks) wait, since (\S+ UTC); (.+)$`)
	allIdle    = regexp.MustCompile(`^(all \d+ ranks are|the only rank is) idle, since (\S+ UTC); (.+)$`)
	waitForFew = regexp.MustCompile(`^(\d+ of \d+ ranks) wait for (ranks? (\d+)[\d, and more]*), since (\S+ UTC); (.+)$`)
	oneGone    = regexp.MustCompile(`^Rank (\d+) \(([^)]*)\) (.+), but (\d+ other ranks? still runs?), since (\S+ UTC)$`)
)

// stalled reports that ranks of a running job wait for each other, or for one that is gone, as the launcher's agent
// observed it.
func stalled(p *input) []Finding {
	launcher := p.launcher()
	if launcher == nil || p.outcome.Phase != v1alpha1.PhaseRunning || !podstatus.IsRunning(launcher.Pod) {
		return nil
	}
	text := LastStall(launcher.log.Lines)
	figures := map[string]string{}
	code := codes.RanksWaiting
	if gone := oneGone.FindStringSubmatch(text); gone != nil {
		code = codes.RankGone
		figures["rank"], figures["rankWho"] = gone[1], fmt.Sprintf("Rank %s (%s)", gone[1], gone[2])
		figures["message"] = fmt.Sprintf("it %s, and %s since %s", gone[3], gone[4], gone[5])
	} else if waiting := allWait.FindStringSubmatch(text); waiting != nil {
		figures["ranksNow"], figures["since"], figures["message"] = waiting[1], waiting[2], waiting[3]
		if words := firstError(launcher.log.Lines); words != nil && strings.HasPrefix(errorLines[0].pattern.FindString(words.message), words.message) {
			// Python's interpreter is still there when its program has ended: MPI waits for the other ranks.
			code = codes.RankGone
			figures["message"] = fmt.Sprintf("all %s wait since %s", waiting[1], waiting[2])
		}
	} else if idle := allIdle.FindStringSubmatch(text); idle != nil {
		code = codes.RanksIdle
		figures["ranksNow"], figures["since"], figures["message"] = phrase.Capital(idle[1]), idle[2], idle[3]
	} else if few := waitForFew.FindStringSubmatch(text); few != nil {
		code = codes.Straggler
		figures["ranksNow"], figures["rankWho"], figures["rank"], figures["since"], figures["message"] = few[1], few[2], few[3], few[4], few[5]
	} else {
		return nil
	}
	pod := *launcher
	var words []string
	if code == codes.RankGone {
		words = p.words(figures)
		if rank := figures["rank"]; rank != "" && figures["rankWho"] == "" {
			figures["rankWho"] = "Rank " + rank
		}
	}
	if figures["rank"] != "" {
		if host := p.hostOfText(figures["rank"]); host != nil {
			pod = *host
		}
	}
	entry := codes.Lookup(code)
	if code == codes.RankGone && figures["errorText"] != "" {
		// What to do about its error, in place of reading it.
		own := p.ownError(codes.Lookup(codes.ApplicationFailed), figures)
		entry.Remedies = slices.Concat(entry.Remedies[:1], own.Remedies, entry.Remedies[2:])
	}
	f := p.findAs(entry, []jobPod{pod}, figures)
	f.Evidence = append([]string{quoted(*launcher, agentapi.StallPrefix+text)}, words...)
	return []Finding{f}
}

// LastStall returns what the launcher's agent last wrote about ranks that make no progress, or "" if that is over.
func LastStall(lines []string) string {
	for _, line := range slices.Backward(lines) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), agentapi.StallPrefix)
		if found {
			return strings.TrimSuffix(text, agentapi.StallOver)
		}
	}
	return ""
}

// throttled reports that CPU limits slowed the ranks down, as the launcher's agent counted when its command ended.
func throttled(p *input) []Finding {
	// worth is the share from which it is worth a finding, and atLeast the seconds.
	const worth, atLeast = 0.2, 5
	s := p.launcherSummary()
	if s == nil || s.ThrottledSeconds < atLeast || s.ThrottledSeconds < worth*(s.CPUSeconds+s.ThrottledSeconds) {
		return nil
	}
	f := p.find(codes.CPUThrottled, p.pods[:1], map[string]string{
		"seconds": fmt.Sprintf("%.0f", s.ThrottledSeconds), "share": fmt.Sprintf("%.0f", 100*s.ThrottledSeconds/(s.CPUSeconds+s.ThrottledSeconds)),
	})
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: the ranks' containers used %.0f s of CPU time, and were stopped by their CPU limit for %.0f s.", s.CPUSeconds, s.ThrottledSeconds)}
	return []Finding{f}
}
