package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Summarize adds the hosts, and the ranks there, to the summary of a launcher's own container, and judges what was the cause.
// sessions are the records of all rsh's of this run, and expected is the hostfile.
func Summarize(summary agentapi.Summary, sessions []records.Record, expected hostfile.Hosts, now time.Time) agentapi.Summary {
	summary.Role, summary.HostsExpected, summary.SlotsExpected = agentapi.RoleLauncher, expected.Others, expected.Slots
	all := records.ByHost(sessions)
	summary.NoInterface, summary.Binding = noInterface(summary, all), bindingOf(summary.Binding, all)
	summary.HostsIdle = idleHosts(sessions, expected, now)
	summary.ConnectSeconds = Seconds(connectTime(all))
	summary.Sessions = sessionsOf(sessions, now)
	for _, use := range records.Uses(sessions) {
		summary.HostsReached++
		summary.SlotsFound += expected.SlotsOf[use.Host]
	}
	for _, r := range all {
		if r.Worker != nil {
			summary.Ranks = append(summary.Ranks, r.Worker.Ranks...)
			summary.OOMKills += r.Worker.OOMKills
			summary.CPUSeconds += r.Worker.CPUSeconds
			summary.ThrottledSeconds += r.Worker.ThrottledSeconds
			summary.InitSeconds = max(summary.InitSeconds, r.Worker.InitSeconds)
		}
	}
	lost := inTrouble(all)
	judge(&summary, lost)
	for _, r := range lost[:min(len(lost), mostHosts)] {
		summary.Hosts = append(summary.Hosts, agentapi.HostTrouble{Host: hostfile.Short(r.Host), Code: r.Trouble, Message: r.Why, Seconds: r.Seconds})
	}
	summary.Ranks = summary.Ranks[:min(len(summary.Ranks), MostRankEnds)]
	return summary
}

// inTrouble returns the hosts that are lost, ending or not reached, and those behind others, by when their trouble began. What a host's own
// session reports takes precedence.
func inTrouble(all []records.Record) (found []records.Record) {
	for _, r := range all {
		if isEnding := r.Worker != nil && r.Worker.Ending; r.Trouble != "" && (r.Over || isEnding || r.Reached.IsZero()) {
			found = append(found, r)
		}
	}
	for _, r := range all {
		for _, other := range behind(r) {
			if !slices.ContainsFunc(found, func(r records.Record) bool { return hostfile.Short(r.Host) == hostfile.Short(other.Host) }) {
				found = append(found, other)
			}
		}
	}
	slices.SortStableFunc(found, records.CompareTrouble)
	return found
}

// behind returns the hosts in trouble that a worker's processes started something on, as its agent reported them: MPI's tree has such.
func behind(r records.Record) (found []records.Record) {
	if r.Worker == nil {
		return nil
	}
	for _, h := range r.Worker.Hosts {
		other := records.Record{
			Host: h.Host, Ancestors: r.Ancestors, Trouble: h.Code, Why: h.Message, Seconds: h.Seconds, Over: true, TroubleAt: time.UnixMilli(h.At), Worker: &agentapi.Summary{},
		}
		if h.Code == agentapi.ConnectionLost {
			other.Reached = other.TroubleAt
		}
		found = append(found, other)
	}
	return found
}

// LostHosts returns what a worker reports to the launcher of the hosts on which its processes started others: those that were lost or given
// up since a time, and those behind them. Programs may use ssh as well; sessions that have a summary had ranks.
func LostHosts(sessions []records.Record, since time.Time) (lost []agentapi.HostTrouble) {
	for _, r := range inTrouble(records.ByHost(sessions)) {
		if r.TroubleAt.IsZero() || r.TroubleAt.Before(since) || r.Trouble == agentapi.ConnectionLost && r.Worker == nil {
			continue
		}
		lost = append(lost, agentapi.HostTrouble{Host: hostfile.Short(r.Host), Code: r.Trouble, Message: r.Why, Seconds: r.Seconds, At: r.TroubleAt.UnixMilli()})
	}
	return lost[:min(len(lost), mostHosts)]
}

// noInterface returns the setting by which no rank uses an interface of its pod; nil if ranks of a pod do. own is the summary of the
// launcher's own container.
func noInterface(own agentapi.Summary, all []records.Record) *agentapi.InterfaceSetting {
	found := own.NoInterface
	if own.RanksSeen > 0 && found == nil {
		return nil
	}
	for _, r := range all {
		if r.Worker == nil || r.Worker.RanksSeen == 0 {
			continue
		}
		if r.Worker.NoInterface == nil {
			return nil
		}
		found = cmp.Or(found, r.Worker.NoInterface)
	}
	return found
}

// MostRankEnds is how many bad ends of ranks are kept: the first ones show the cause, the rest follow from it.
const MostRankEnds = 8

// mostHosts is how many hosts with trouble a summary names.
const mostHosts = 8

// connectTime is how long it took to reach all hosts that were asked for; 0 where one was not reached.
func connectTime(hosts []records.Record) time.Duration {
	var first, last time.Time
	for _, r := range hosts {
		if r.Reached.IsZero() {
			return 0
		}
		if first.IsZero() || r.Since.Before(first) {
			first = r.Since
		}
		if r.Reached.After(last) {
			last = r.Reached
		}
	}
	return last.Sub(first)
}

// LaunchTimes returns how a launch began; nil until all hosts of the hostfile are connected.
func LaunchTimes(sessions []records.Record, expected hostfile.Hosts) *agentapi.Launch {
	all := records.ByHost(sessions)
	took := connectTime(all)
	if expected.Others == 0 || took <= 0 || int32(len(records.Uses(sessions))) < expected.Others {
		return nil
	}
	launch := agentapi.Launch{ConnectSeconds: Seconds(took)}
	ranks := true
	for _, r := range all {
		launch.ConnectedAt = max(launch.ConnectedAt, r.Reached.UnixMilli())
		if r.Worker == nil || r.Worker.InitSeconds <= 0 {
			ranks = false
			continue
		}
		launch.InitSeconds = max(launch.InitSeconds, r.Worker.InitSeconds)
		launch.RanksAt = max(launch.RanksAt, r.Reached.Add(time.Duration(r.Worker.InitSeconds*float64(time.Second))).UnixMilli())
	}
	if !ranks {
		launch.RanksAt, launch.InitSeconds = 0, 0
	}
	return &launch
}

// Seconds returns a duration in seconds, rounded to milliseconds and at least 0.001, because 0 means unknown.
func Seconds(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(1, float64(d.Milliseconds())) / 1000
}

// judge names the cause: memory first, then a rank that failed by itself, then a host, and last ranks that were
// terminated, as MPI terminates all others when one has failed.
func judge(summary *agentapi.Summary, lost []records.Record) {
	sortByCause(summary.Ranks)
	first := 0
	if len(summary.Ranks) > 0 {
		first = afterwards(summary.Ranks[0])
	}
	switch {
	case len(summary.Ranks) > 0 && summary.Ranks[0].OOM:
		summary.Code, summary.Message = agentapi.OutOfMemory, RankEnded(summary.Ranks[0])
	case len(lost) > 0 && lost[0].Reached.IsZero():
		summary.Code, summary.Message = lost[0].Trouble, hostUnused(lost[0])
	case len(summary.Ranks) > 0 && (first < toldToEnd || len(lost) == 0):
		summary.Code, summary.Message = agentapi.RankFailed, RankEnded(summary.Ranks[0])
	case len(lost) > 0:
		summary.Code, summary.Message = lost[0].Trouble, hostLost(lost[0])
	}
}

// hostLost says how the connection to a host was lost.
func hostLost(r records.Record) string {
	return fmt.Sprintf("Host %s was lost: %s.", hostfile.Short(r.Host), r.Why)
}

// hostUnused reports why a host was not reached.
func hostUnused(r records.Record) string {
	return fmt.Sprintf("Host %s could not be used: %s.", hostfile.Short(r.Host), r.Why)
}

// idleHosts returns on how many hosts of a hostfile no rank ran, in any launch, although ranks ran on others or nothing was
// started on any. Ranks of a few seconds are not always observed: a host that was only used so long does not count. While it is
// unknown what a host did, so is which other hosts it reached.
func idleHosts(sessions []records.Record, expected hostfile.Hosts, now time.Time) (idle int32) {
	const observed = 10 * time.Second
	if len(sessions) == 0 {
		return expected.Others
	}
	uncertain := map[string]bool{}
	for _, r := range sessions {
		if !r.Reached.IsZero() && (r.Worker == nil || lasted(r, now) < observed) {
			uncertain[hostfile.Short(r.Host)] = true
		}
	}
	used, seen, unknown := false, int32(0), false
	for _, use := range records.Uses(sessions) {
		_, listed := expected.SlotsOf[use.Host]
		switch {
		case use.RanksSeen > 0:
			used = true
		case !listed:
			// Not one of the job's.
			continue
		case uncertain[use.Host]:
			unknown = true
		default:
			idle++
		}
		seen++
	}
	if !used {
		return 0
	}
	if !unknown {
		idle += max(0, expected.Others-seen)
	}
	return idle
}

// lasted is how long a session has lasted: until its end or until now.
func lasted(r records.Record, now time.Time) time.Duration {
	if r.Over {
		return time.Duration(r.Seconds) * time.Second
	}
	return now.Sub(r.Reached)
}

// ignoredCode is the exit code of a launcher whose command succeeded although every rank ran on the launcher: the result looks right,
// but the job did not use its workers.
const ignoredCode = 125

// Verdict completes the summary of a run that has ended, and returns the job's exit code. all are its launches, and code is that of
// the job's command, the process command.
func Verdict(summary *agentapi.Summary, all []Launch, expected hostfile.Hosts, command, code int) int {
	addMissed(summary, all, command, code)
	if code == 0 {
		// What did not matter to the program is no finding.
		summary.Code, summary.Message = "", ""
		if l, end, lost := lostFailure(all, command); lost {
			code, summary.Code = int(end.ExitCode), agentapi.RankFailed
			summary.Message = fmt.Sprintf("%s %s did not notice, and reported success. The job is failed so that its result is not used.", RankEnded(end), l.Name)
		} else if hostfileIgnored(*summary, expected) {
			code, summary.Code = ignoredCode, agentapi.HostfileIgnored
			summary.Message = fmt.Sprintf("The command succeeded, but all of the %d ranks that it started ran on the launcher and none on the job's %d workers. "+
				"The MPI in this image did not read the job's list of hosts (%s): is it the implementation that the job names, and does the command not name "+
				"hosts of its own? The job is failed so that this is not taken for a result.", summary.RanksSeen, expected.Others, agentapi.Hostfile)
		}
	}
	summary.ExitCode, summary.Launches = new(int32(code)), int32(len(all))
	summary.MPISucceeded = code != 0 && summary.Signal == 0 && len(all) > 0 && !slices.ContainsFunc(all, func(l Launch) bool { return !l.succeeded(command) })
	summary.LaterSucceeded = code == 0 && laterSucceeded(all, command)
	if code != 0 {
		summary.HostsIdle = 0
	}
	return code
}

// laterSucceeded reports whether ranks of a launch failed and the last launch, which may be the process command itself, succeeded. The command has
// ended with 0.
func laterSucceeded(all []Launch, command int) bool {
	if len(all) < 2 {
		return false
	}
	hasFailed := func(l Launch) bool { _, failed := l.Cause(); return failed }
	last := all[len(all)-1]
	succeeded := !hasFailed(last) && (last.PID == command || last.Over && last.Code == 0)
	return succeeded && slices.ContainsFunc(all[:len(all)-1], hasFailed)
}

// succeeded reports whether a launcher is known to have ended with 0, while the process command, which started it, went on.
func (l *Launch) succeeded(command int) bool {
	_, failed := l.Cause()
	return !failed && l.PID != command && l.Over && l.Code == 0
}

// addMissed adds the rank whose end was not observed, if it is the cause. code is that of the job's command, the process command.
func addMissed(summary *agentapi.Summary, all []Launch, command, code int) {
	if len(all) != 1 || summary.Code != "" && summary.Code != agentapi.RankFailed {
		return
	}
	l := all[0]
	if l.PID == command {
		l.Code = code
	}
	if end, missed := l.missed(l.Code); missed {
		summary.Ranks = slices.Insert(summary.Ranks, 0, end)
		summary.Ranks = summary.Ranks[:min(len(summary.Ranks), MostRankEnds)]
		summary.Code, summary.Message = agentapi.RankFailed, RankEnded(end)
	}
}

// hostfileIgnored reports whether ranks ran, none on a worker, and more than a launcher that is a host itself takes.
func hostfileIgnored(summary agentapi.Summary, expected hostfile.Hosts) bool {
	return expected.Others > 0 && summary.HostsReached == 0 && summary.RanksSeen > expected.OwnSlots
}

// lostFailure returns the rank whose failure an MPI launcher has lost: it succeeded although the rank failed. command is the
// process of the job's command, which succeeded; false means that none was lost. A script that starts a launcher may handle
// its failure, so that only what the launcher itself returned counts.
func lostFailure(all []Launch, command int) (Launch, agentapi.RankEnd, bool) {
	for _, l := range all {
		if end, failed := l.Cause(); failed && !l.Tolerant && (l.PID == command || l.Over && l.Code == 0) {
			return l, end, true
		}
	}
	return Launch{}, agentapi.RankEnd{}, false
}
