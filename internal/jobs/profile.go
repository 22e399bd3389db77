package jobs

import (
	"fmt"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
)

// ProfileText describes in a line where the time of a job's ranks went; "" if it is unknown.
func ProfileText(profile *v1alpha1.Profile) string {
	if profile == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d %% of the time in MPI", profile.CommunicationPercent)}
	switch most := profile.CommunicationMilliseconds / 2; {
	case OpenCalls(profile) > most:
		parts[0] += ", most of it in calls that have not returned"
	case len(profile.Calls) > 0 && profile.Calls[0].Milliseconds >= max(1, most):
		parts[0] += ", most of it in " + profile.Calls[0].Call
	}
	if profile.ImbalancePercent >= noticedImbalance {
		parts = append(parts, fmt.Sprintf("imbalance %d %%", profile.ImbalancePercent))
	}
	if late := LateRankText(profile); late != "" {
		parts = append(parts, late)
	}
	if runs := RunsText(profile); runs != "" {
		parts = append(parts, "the latest of "+runs)
	}
	return strings.Join(parts, "; ")
}

// RunsText returns the number of runs of MPI's launcher, such as "3 runs", of which the profile is the latest; "" if there is only one.
func RunsText(profile *v1alpha1.Profile) string {
	switch runs := profile.Runs; {
	case runs <= 1:
		return ""
	case runs > agentapi.MaxProfileRuns:
		return fmt.Sprintf("more than %d runs", agentapi.MaxProfileRuns)
	default:
		return fmt.Sprintf("%d runs", runs)
	}
}

// OpenCalls returns the time in milliseconds in calls of MPI that have not returned, or did not when their ranks were killed: it is part of the
// time in MPI, and of no call. It is 0 if it is at most a tenth of the time in MPI, as in any running job, or if the profile does not list all
// calls.
func OpenCalls(profile *v1alpha1.Profile) int64 {
	const noticed = 10
	if len(profile.Calls) >= agentapi.MaxJobCalls {
		return 0
	}
	open := profile.CommunicationMilliseconds
	for _, call := range profile.Calls {
		open -= call.Milliseconds
	}
	if open <= profile.CommunicationMilliseconds/noticed {
		return 0
	}
	return open
}

// noticedImbalance is the imbalance in percent from which it is worth a mention in a line.
const noticedImbalance = 10

// LateRankText describes the rank that the others may wait for, or several, by the time that each spends in MPI; "" if there is none.
func LateRankText(profile *v1alpha1.Profile) string {
	const most = 4
	late := profile.LateRank
	if late == nil {
		return ""
	}
	return fmt.Sprintf("the others may wait for %s: they were in MPI for %s more", agentapi.RanksText(lateRanks(profile), most), TimeText(late.WaitedMilliseconds))
}

// lateRanks returns the ranks that the others may wait for, in the order of their numbers.
func lateRanks(profile *v1alpha1.Profile) []int32 {
	late := agentapi.LateRank{Rank: profile.LateRank.Rank, Waited: profile.LateRank.WaitedMilliseconds}
	var ranks []agentapi.RankProfile
	for _, r := range profile.PerRank {
		ranks = append(ranks, agentapi.RankProfile{Rank: r.Rank, Elapsed: r.Milliseconds, Communication: r.CommunicationMilliseconds})
	}
	return late.In(ranks)
}

// NoProfileText returns why the report of a job has no profile; "" if it has.
func NoProfileText(job Job, now time.Time) string {
	status := job.Status()
	if status.Profile != nil {
		return ""
	}
	for _, finding := range status.Findings {
		if finding.Code == codes.ProfileMissing {
			return finding.Summary
		}
	}
	if !AsksForProfile(job) {
		return "The job has no communication profile: create it with --profile, or with the annotation mpi.opendatahub.io/profile."
	}
	if without := NoUsageText(status, now); without != "" {
		return "The job has no communication profile. Profiles are reported with the usage. " + without
	}
	if !job.Ended() {
		return "The job has no communication profile yet: no rank has counted a call of MPI so far."
	}
	return "The job has no communication profile: no rank has counted a call of MPI."
}

// AsksForProfile reports whether the ranks of a job are to be profiled; false if its annotations are unknown.
func AsksForProfile(job Job) bool {
	written, err := job.Written()
	if err != nil {
		return false
	}
	asks, _ := mpi.ParseProfile(written.GetAnnotations())
	return asks
}

// CanProfile reports whether the ranks of a job can be profiled: the job has an MPI, and an agent that starts them.
func CanProfile(job Job) bool {
	written, err := job.Written()
	switch {
	case err != nil || job.Status().MPI.Implementation == "":
		return false
	case job.Kind != kubeflow.Kind:
		return true // the ranks of TrainJobs with MPI are always started by agents
	}
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, &typed); err != nil {
		return false
	}
	converted, _ := mpijob.Kind{}.Convert(&typed)
	return converted.UsesAgent()
}

// TimeText returns a time in milliseconds with three digits and a unit.
func TimeText(milliseconds int64) string {
	switch seconds := float64(milliseconds) / 1000; {
	case milliseconds < 1000:
		return fmt.Sprintf("%d ms", milliseconds)
	case seconds < 10:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds < 100:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%.0f s", seconds)
	default:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
}

// BytesText returns a size with its unit, rounded to three digits.
func BytesText(bytes int64) string {
	size, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for size >= 1000 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return fmt.Sprintf("%.3g %s", size, units[0])
}

// MessageSizeRows are the sizes of messages that occur: the range of each, the number of calls, and their share in percent.
func MessageSizeRows(profile *v1alpha1.Profile) (rows [][3]string) {
	total, from := int64(0), ""
	for _, sizes := range profile.MessageSizes {
		total += sizes.Count
	}
	for _, sizes := range profile.MessageSizes {
		name := "over " + from
		if sizes.UpToBytes != nil {
			from = BytesText(*sizes.UpToBytes)
			name = "up to " + from
		}
		if sizes.Count > 0 {
			rows = append(rows, [3]string{name, fmt.Sprint(sizes.Count), fmt.Sprintf("%.0f %%", 100*float64(sizes.Count)/float64(total))})
		}
	}
	return rows
}
