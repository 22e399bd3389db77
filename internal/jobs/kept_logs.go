package jobs

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// FailureLogs returns the last log lines of the launcher and of the failed pods of a job that has failed, with the places of the pods in its report
// and of the launcher's pods whose lines it has.
func (j Job) FailureLogs() logstream.Kept {
	kept := logstream.Kept{Places: map[string]logstream.Place{}}
	if failure := j.Status().Failure; failure != nil {
		kept.Lines = logstream.ParseTail(failure.LogTail)
	}
	for _, line := range kept.Lines {
		if strings.HasPrefix(line.Pod, j.Name+"-launcher-") {
			kept.Places[line.Pod] = logstream.Place{Role: mpi.RoleLauncher}
		}
	}
	for _, pod := range j.Status().Pods {
		kept.Places[pod.Name] = logstream.Place{Role: mpi.Role(pod.Role), Index: int(pod.Index)}
	}
	return kept
}

// KeptLogs returns the log lines in the job's report: those of all pods, as they were when the job ended, and the last lines of pods that
// failed and were deleted before.
func (j Job) KeptLogs() logstream.Kept {
	kept := j.FailureLogs()
	all := j.Status().Logs
	if all == nil {
		return kept
	}
	var lines []logs.PodLine
	var notes []string
	if len(all.Data) > 0 {
		var err error
		if lines, err = logs.Unpack(all.Data); err != nil {
			notes = append(notes, err.Error())
		}
	}
	if all.PodsCut > 0 {
		notes = append(notes, fmt.Sprintf("only the last log lines of %s are kept", phrase.Count(int(all.PodsCut), "pod")))
	}
	if all.PodsUnread > 0 {
		notes = append(notes, fmt.Sprintf("the logs of %s could not be read when the job ended", phrase.Count(int(all.PodsUnread), "pod")))
	}
	if all.Omitted != "" {
		notes = append(notes, all.Omitted)
	}
	has := map[string]bool{}
	for _, line := range lines {
		has[line.Pod] = true
	}
	kept.Lines = slices.DeleteFunc(kept.Lines, func(line logs.PodLine) bool { return has[line.Pod] })
	kept.Lines = append(kept.Lines, lines...)
	kept.Note = strings.Join(notes, "; ")
	return kept
}
