package usage

import (
	"cmp"
	"maps"
	"slices"

	"opendatahub.io/mpijob/internal/agentapi"
)

// jobProfile adds up the profiles of the ranks of all hosts that took part in the run of MPI's launcher that began last; nil if no host has
// one.
func jobProfile(hosts []agentapi.HostUsage) *agentapi.Profile {
	var job *agentapi.Profile
	last, began, runs := lastRun(hosts)
	ranks, calls := map[int32]agentapi.RankProfile{}, map[string]agentapi.CallProfile{}
	for _, h := range hosts {
		p := h.Usage.Profile
		if p == nil {
			continue
		}
		if job == nil {
			job = &agentapi.Profile{Began: began, Runs: int32(len(runs))}
		}
		job.NoLibrary = job.NoLibrary || p.NoLibrary
		if p.Launch != last {
			continue
		}
		for _, r := range p.Ranks {
			of := ranks[r.Rank]
			ranks[r.Rank] = agentapi.RankProfile{Rank: r.Rank, Elapsed: of.Elapsed + r.Elapsed, Communication: of.Communication + r.Communication}
		}
		addOmittedRanks(job, p)
		for _, c := range p.Calls {
			of := calls[c.Call]
			calls[c.Call] = agentapi.CallProfile{Call: c.Call, Count: of.Count + c.Count, Time: of.Time + c.Time, Bytes: of.Bytes + c.Bytes}
		}
		for i, count := range p.Sizes {
			if job.Sizes == nil {
				job.Sizes = make([]int64, len(p.Sizes))
			}
			job.Sizes[i] += count
		}
	}
	if job == nil {
		return nil
	}
	for _, r := range ranks {
		job.Ranks = append(job.Ranks, r)
		job.Elapsed += r.Elapsed
		job.Communication += r.Communication
		job.MaxComputation = max(job.MaxComputation, r.Computation())
	}
	slices.SortFunc(job.Ranks, func(a, b agentapi.RankProfile) int { return cmp.Compare(a.Rank, b.Rank) })
	job.RankCount, job.Late = job.RankCount+int32(len(job.Ranks)), lateRank(job.Ranks)
	job.Ranks = profileRanks(job.Ranks, job.Late, agentapi.MaxProfileRanks)
	for _, c := range calls {
		job.Calls = append(job.Calls, c)
	}
	agentapi.SortCalls(job.Calls)
	job.Calls = job.Calls[:min(len(job.Calls), agentapi.MaxJobCalls)]
	return job
}

// addOmittedRanks adds the ranks that the profile of several hosts counts and does not have.
func addOmittedRanks(job, of *agentapi.Profile) {
	omitted := of.RankCount - int32(len(of.Ranks))
	if omitted <= 0 {
		return
	}
	job.RankCount, job.MaxComputation = job.RankCount+omitted, max(job.MaxComputation, of.MaxComputation)
	job.Elapsed, job.Communication = job.Elapsed+of.Elapsed, job.Communication+of.Communication
	for _, r := range of.Ranks {
		job.Elapsed, job.Communication = job.Elapsed-r.Elapsed, job.Communication-r.Communication
	}
}

// joinRuns names the runs of hosts in the profile of their sum, as in that of a container.
func joinRuns(p *agentapi.Profile, hosts []agentapi.HostUsage) {
	if p == nil {
		return
	}
	last, _, runs := lastRun(hosts)
	runs = slices.DeleteFunc(runs, func(run string) bool { return run == last })
	p.Launch, p.Other = last, runs[:min(len(runs), agentapi.MaxProfileRuns)]
}

// lastRun returns the name of the run that began last, when it began on the first of its hosts, and the names of all runs.
func lastRun(hosts []agentapi.HostUsage) (name string, began int64, runs []string) {
	begins, all := map[string]int64{}, map[string]bool{}
	for _, h := range hosts {
		p := h.Usage.Profile
		if p == nil || len(p.Ranks) == 0 {
			continue
		}
		if first, known := begins[p.Launch]; !known || p.Began < first {
			begins[p.Launch] = p.Began
		}
		for _, run := range slices.Concat(p.Other, []string{p.Launch}) {
			all[run] = true
		}
	}
	for _, run := range slices.Sorted(maps.Keys(begins)) {
		if begins[run] >= began {
			name, began = run, begins[run]
		}
	}
	return name, began, slices.Sorted(maps.Keys(all))
}

// profileRanks returns at most a number of ranks: those that others wait for, and those that differ most from the others.
func profileRanks(ranks []agentapi.RankProfile, late *agentapi.LateRank, most int) []agentapi.RankProfile {
	isLate := map[int32]bool{}
	for _, rank := range late.In(ranks) {
		isLate[rank] = true
	}
	return someOf(ranks, most, func(r agentapi.RankProfile) []int64 { return []int64{r.Computation(), r.Communication} },
		func(r agentapi.RankProfile) bool { return isLate[r.Rank] })
}

// lateRank returns the rank that the others may wait for: the one with the least time in functions of MPI, if the median of the others has
// much more. At most half of the ranks are late with it ([agentapi.LateRank.In]), as those of a slow node. It returns nil if there is none: the
// ranks have about the same time, or many different ones. Ranks that ran for a shorter time than others, as in one of several programs, had less
// time to wait, and do not count.
func lateRank(ranks []agentapi.RankProfile) *agentapi.LateRank {
	// least is the least difference, in milliseconds, and share the least part of the time.
	const least, share = 1000, 10
	longest := int64(0)
	for _, r := range ranks {
		longest = max(longest, r.Elapsed)
	}
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(r agentapi.RankProfile) bool { return r.Elapsed < longest-longest/share })
	if len(ranks) < 2 {
		return nil
	}
	sorted := slices.SortedStableFunc(slices.Values(ranks), func(a, b agentapi.RankProfile) int {
		return cmp.Compare(a.Communication, b.Communication)
	})
	first := sorted[0]
	for number := 1; number <= max(1, len(sorted)/2); number++ {
		others := sorted[number:]
		median := others[len(others)/2]
		late := agentapi.LateRank{Rank: first.Rank, Waited: median.Communication - first.Communication}
		if late.Waited < least || late.Waited < max(first.Elapsed, median.Elapsed)/share {
			continue
		}
		// The next one is late as well if it is nearer to the first than to the others.
		next := others[0].Communication - first.Communication
		last := sorted[number-1]
		if next >= late.Waited/2 && slices.Contains(late.In([]agentapi.RankProfile{first, last}), last.Rank) {
			return &late
		}
	}
	return nil
}

// isWholeProfile reports whether the profile of a host can be added up. Any process of the job can write one.
func isWholeProfile(p *agentapi.Profile) bool {
	const most, mostRanks, mostRuns, longestName = 1 << 50, 4096, 2 * agentapi.MaxProfileRuns, 64
	const allRanks = 1 << 20
	figure := func(values ...int64) bool {
		return !slices.ContainsFunc(values, func(v int64) bool { return v < 0 || v > most })
	}
	return p == nil || figure(p.Began, p.Elapsed, p.Communication, p.MaxComputation) && p.RankCount <= allRanks && len(p.Other) <= mostRuns && len(p.Launch) <= longestName &&
		!slices.ContainsFunc(p.Other, func(run string) bool { return len(run) > longestName }) && len(p.Ranks) <= mostRanks && len(p.Calls) <= agentapi.MaxProfileCalls &&
		(len(p.Sizes) == 0 || len(p.Sizes) == len(agentapi.MessageSizes)+1) && figure(p.Sizes...) &&
		!slices.ContainsFunc(p.Ranks, func(r agentapi.RankProfile) bool { return r.Rank < 0 || !figure(r.Elapsed, r.Communication) }) &&
		!slices.ContainsFunc(p.Calls, func(c agentapi.CallProfile) bool {
			return len(c.Call) > agentapi.MaxCallName || !figure(c.Count, c.Time, c.Bytes)
		})
}
