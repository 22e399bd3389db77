package agent

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/internal/agentapi"
)

// ignoredCode is the exit code of a launcher whose command succeeded although every rank ran on the launcher: the result looks right,
// but the job did not use its workers.
const ignoredCode = 125

// verdict completes the summary of a run that has ended, and returns the job's exit code. all are its launches, and code is that of
// the job's command, the process command.
func verdict(summary *agentapi.Summary, all []launch, expected hostfile, command, code int) int {
	addMissed(summary, all, command, code)
	if code == 0 {
		// What did not matter to the program is no finding.
		summary.Code, summary.Message = "", ""
		if l, end, lost := lostFailure(all, command); lost {
			code, summary.Code = int(end.ExitCode), agentapi.RankFailed
			summary.Message = fmt.Sprintf("%s %s did not notice, and reported success. The job is failed so that its result is not used.", rankEnded(end), l.name)
		} else if hostfileIgnored(*summary, expected) {
			code, summary.Code = ignoredCode, agentapi.HostfileIgnored
			summary.Message = fmt.Sprintf("The command succeeded, but all of the %d ranks that it started ran on the launcher and none on the job's %d workers. "+
				"The MPI in this image did not read the job's list of hosts (%s): is it the implementation that the job names, and does the command not name "+
				"hosts of its own? The job is failed so that this is not taken for a result.", summary.RanksSeen, expected.others, agentapi.Hostfile)
		}
	}
	summary.ExitCode, summary.Launches = new(int32(code)), int32(len(all))
	if code != 0 {
		summary.HostsIdle = 0
	}
	return code
}

// addMissed adds the rank whose end was not observed, if it is the cause. code is that of the job's command, the process command.
func addMissed(summary *agentapi.Summary, all []launch, command, code int) {
	if len(all) != 1 || summary.Code != "" && summary.Code != agentapi.RankFailed {
		return
	}
	l := all[0]
	if l.pid == command {
		l.code = code
	}
	if end, missed := l.missed(l.code); missed {
		summary.Ranks = slices.Insert(summary.Ranks, 0, end)
		summary.Ranks = summary.Ranks[:min(len(summary.Ranks), mostRankEnds)]
		summary.Code, summary.Message = agentapi.RankFailed, rankEnded(end)
	}
}

// hostfileIgnored reports whether ranks ran, none on a worker, and more than a launcher that is a host itself takes.
func hostfileIgnored(summary agentapi.Summary, expected hostfile) bool {
	return expected.others > 0 && summary.HostsReached == 0 && summary.RanksSeen > expected.ownSlots
}

// lostFailure returns the rank whose failure an MPI launcher has lost: it succeeded although the rank failed. command is the
// process of the job's command, which succeeded; false means that none was lost. A script that starts a launcher may handle
// its failure, so that only what the launcher itself returned counts.
func lostFailure(all []launch, command int) (launch, agentapi.RankEnd, bool) {
	for _, l := range all {
		if end, failed := l.cause(); failed && !l.tolerant && (l.pid == command || l.over && l.code == 0) {
			return l, end, true
		}
	}
	return launch{}, agentapi.RankEnd{}, false
}
