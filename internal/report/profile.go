package report

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
)

// profile returns where the time of the job's ranks went: what its agents reported last with its usage. What was reported before is kept,
// as in usage. missing is whether agents reported that they cannot profile ranks.
func (m maker) profile() (best *v1alpha1.Profile, noLibrary bool) {
	best = m.before.Profile.DeepCopy()
	reported := func(of agentapi.Usage) {
		if of.Profile == nil || m.readUsage(of) == nil {
			return
		}
		noLibrary = noLibrary || of.Profile.NoLibrary
		if next := readProfile(*of.Profile, time.Unix(of.Until, 0)); next != nil {
			best = laterProfile(best, next, of.Since)
		}
	}
	if m.evidence.Usage != nil {
		reported(*m.evidence.Usage)
	}
	for summary := range m.launcherSummaries() {
		if summary.Usage != nil {
			reported(*summary.Usage)
		}
		break // earlier runs are over
	}
	return best, noLibrary
}

// laterProfile returns the later one of two profiles; since is when the run of the next one began. A launcher's last message has room for
// few ranks and calls: those of a report of the same run are kept, if it has more of them.
func laterProfile(before, next *v1alpha1.Profile, since int64) *v1alpha1.Profile {
	switch {
	case before == nil:
		return next
	case next.Until.Before(&before.Until):
		return before
	case before.Until.Unix() < since || before.Ranks != next.Ranks || !before.Since.Equal(next.Since):
		return next
	}
	if len(next.PerRank) < len(before.PerRank) {
		next.PerRank = before.PerRank
	}
	for _, call := range before.Calls {
		same := func(c v1alpha1.ProfileCall) bool { return c.Call == call.Call }
		if len(next.Calls) < len(before.Calls) && !slices.ContainsFunc(next.Calls, same) {
			next.Calls = append(next.Calls, call)
		}
	}
	return next
}

// readProfile returns what agents reported as the API keeps it; nil if no rank was profiled. Programs of the job can write what agents
// report: it is bounded.
func readProfile(told agentapi.Profile, until time.Time) *v1alpha1.Profile {
	const mostRanks, latestBegin = 1 << 20, 1 << 43
	if told.RankCount <= 0 || told.RankCount > mostRanks {
		return nil
	}
	p := &v1alpha1.Profile{
		Until: *at(until), Ranks: told.RankCount, Milliseconds: figure(told.Elapsed),
		CommunicationMilliseconds: min(figure(told.Communication), figure(told.Elapsed)),
	}
	if told.Began > 0 && told.Began < latestBegin {
		p.Since, p.Runs = at(time.UnixMilli(told.Began)), min(max(1, told.Runs), agentapi.MaxProfileRuns+1)
	}
	p.CommunicationPercent = percent(p.CommunicationMilliseconds, p.Milliseconds)
	if most := figure(told.MaxComputation) * int64(told.RankCount); most > 0 {
		p.ImbalancePercent = percent(most-(p.Milliseconds-p.CommunicationMilliseconds), most)
	}
	if late := told.Late; late != nil && late.Rank >= 0 {
		p.LateRank = &v1alpha1.LateRank{Rank: late.Rank, WaitedMilliseconds: figure(late.Waited)}
	}
	for _, call := range told.Calls[:min(len(told.Calls), agentapi.MaxJobCalls)] {
		name := "MPI_" + call.Call
		known := slices.ContainsFunc(p.Calls, func(c v1alpha1.ProfileCall) bool { return c.Call == name })
		if isName := strings.Trim(call.Call, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""; isName && len(call.Call) <= agentapi.MaxCallName && !known {
			p.Calls = append(p.Calls, v1alpha1.ProfileCall{Call: name, Count: figure(call.Count), Milliseconds: figure(call.Time), Bytes: max(0, call.Bytes)})
		}
	}
	if len(told.Sizes) == len(agentapi.MessageSizes)+1 {
		for i, count := range told.Sizes {
			sizes := v1alpha1.MessageSizes{Count: figure(count)}
			if i < len(agentapi.MessageSizes) {
				sizes.UpToBytes = new(agentapi.MessageSizes[i])
			}
			p.MessageSizes = append(p.MessageSizes, sizes)
		}
	}
	for _, rank := range told.Ranks[:min(len(told.Ranks), agentapi.MaxProfileRanks)] {
		if rank.Rank >= 0 {
			p.PerRank = append(p.PerRank, v1alpha1.RankProfile{
				Rank: rank.Rank, Milliseconds: figure(rank.Elapsed), CommunicationMilliseconds: min(figure(rank.Communication), figure(rank.Elapsed)),
			})
		}
	}
	return p
}

// percent returns a part in percent, from 0 to 100.
func percent(part, whole int64) int32 {
	if whole <= 0 {
		return 0
	}
	return int32(max(0, min(100, (100*float64(part)+float64(whole)/2)/float64(whole))))
}

// startedWithoutProfile reports whether the job's pods were created when it did not ask for a profile.
func (m maker) startedWithoutProfile() bool {
	pods := m.seen.AllPods()
	asks := func(v corev1.EnvVar) bool { return v.Name == agentapi.EnvProfile }
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.Env, asks) })
	})
}

// profileMissing returns the finding that the job asks for a profile and has none; false if it has one, does not ask, or still runs without
// an agent that reported why.
func (m maker) profileMissing(status v1alpha1.JobReportStatus, noLibrary bool) (v1alpha1.Finding, bool) {
	if !m.job.Profile || status.Profile != nil {
		return v1alpha1.Finding{}, false
	}
	entry := codes.Lookup(codes.ProfileMissing)
	isMissing := func(f v1alpha1.Finding) bool { return f.Code == entry.Code }
	if i := slices.IndexFunc(m.before.Findings, isMissing); i >= 0 {
		return m.before.Findings[i], true
	}
	why := ""
	switch {
	case noLibrary:
		why = "The image of the agent does not contain the library that counts the calls of MPI."
	case !m.job.UsesAgent():
		why = "Its ranks are started without the agent."
	case status.Phase == v1alpha1.PhaseSucceeded && m.startedWithoutProfile():
		why = "The job asked for one after its pods had been created."
	case status.Phase == v1alpha1.PhaseSucceeded && status.Usage != nil:
		why = "No rank has counted its calls: the program is statically linked with MPI, sets LD_PRELOAD for itself, or does not use MPI."
	default:
		return v1alpha1.Finding{}, false
	}
	finding := v1alpha1.Finding{Code: entry.Code, Severity: entry.Severity, Summary: codes.Fill(entry.Summary, map[string]string{"why": why})}
	for _, remedy := range entry.Remedies {
		finding.Remedies = append(finding.Remedies, codes.FillRemedy(remedy, nil))
	}
	return finding, true
}
