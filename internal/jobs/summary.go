package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// The texts about a job that every interface shows. All of them are one line.

// Headline returns the job's phase and for how long it has been in it, or when it ended and how long it ran.
func (j Job) Headline(now time.Time) string {
	if j.Report == nil {
		return cmp.Or(j.runElsewhere(), "No report yet: the operator writes one within seconds if it is running")
	}
	status := j.Report.Status
	text := string(status.Phase)
	switch ran := RunDuration(status, now); {
	case status.CompletionTime != nil && ran != "":
		text += fmt.Sprintf(" %s ago, ran for %s", Since(*status.CompletionTime, now), ran)
	case status.CompletionTime != nil:
		text += fmt.Sprintf(" %s ago, never ran", Since(*status.CompletionTime, now))
	default:
		if long := inPhase(status, now); long != "" {
			text += " for " + long
		}
	}
	if j.Object == nil {
		text += "; the job is deleted, this is its report"
	}
	return text
}

// inPhase returns for how long a job has been in its phase; empty if unknown.
func inPhase(status v1alpha1.JobReportStatus, now time.Time) string {
	for _, t := range status.PhaseTimes {
		if t.Phase == status.Phase {
			return Since(t.Since, now)
		}
	}
	return ""
}

// Progress returns what the job is doing or waiting for, in a few words.
func (j Job) Progress() string {
	if j.Report == nil {
		return cmp.Or(j.runElsewhere(), "Waiting for the operator to report on the job")
	}
	status := j.Report.Status
	text := string(status.Phase)
	scheduling := status.Scheduling
	switch status.Phase {
	case v1alpha1.PhaseQueued:
		if scheduling != nil && scheduling.Queue != "" {
			text += " in " + scheduling.Queue
		}
		if scheduling != nil && scheduling.Position != nil {
			text += fmt.Sprintf(", position %d", *scheduling.Position)
		}
	case v1alpha1.PhaseGangScheduling, v1alpha1.PhasePending:
		if scheduling != nil && scheduling.Wanted > 0 {
			text += fmt.Sprintf(" %d/%d pods scheduled", scheduling.Placed, scheduling.Wanted)
		}
	case v1alpha1.PhaseInitializing:
		if scheduling != nil && scheduling.Wanted > 0 {
			text += fmt.Sprintf(" %d/%d pods scheduled,", scheduling.Placed, scheduling.Wanted)
		}
		text += " " + status.Workers.Summary + " workers ready"
	case v1alpha1.PhaseRunning:
		if training := TrainingText(status.Training); training != "" {
			text += ": " + training
		}
	}
	if reason := j.Reason(); reason != "-" && len(status.Findings) > 0 {
		text += " (" + reason + ")"
	}
	return strings.TrimSpace(text)
}

// Estimate returns when a waiting job is expected to start, or a running job to end, or why that is unknown, as its report has it; empty
// if the report has none.
func (j Job) Estimate() string {
	switch status := j.Status(); {
	case status.CompletionTime != nil:
		return ""
	case status.EndEstimate != nil:
		return status.EndEstimate.Message
	case status.Scheduling != nil && status.Scheduling.Estimate != nil:
		return status.Scheduling.Estimate.Message
	}
	return ""
}

// Reason returns one word for what is wrong with the job or what it waits for; "-" if nothing is wrong.
func (j Job) Reason() string {
	if j.Report == nil {
		return "NoReport"
	}
	status := j.Report.Status
	switch status.Phase {
	case v1alpha1.PhaseRunning, v1alpha1.PhaseSucceeded:
		if len(status.Findings) > 0 && status.Findings[0].Severity != v1alpha1.SeverityInfo {
			return status.Findings[0].Code
		}
		return "-"
	}
	if len(status.Findings) > 0 && status.Findings[0].Code != codes.Unknown {
		return status.Findings[0].Code
	}
	if s := status.Scheduling; s != nil && s.Position != nil {
		return fmt.Sprintf("Position%d", *s.Position)
	}
	return cmp.Or(status.Reason, "-")
}

// Age returns how long ago the job was created; "-" if unknown.
func (j Job) Age(now time.Time) string {
	switch {
	case j.Object != nil:
		return Since(j.Object.GetCreationTimestamp(), now)
	case j.Report != nil && j.Report.Status.StartTime != nil:
		return Since(*j.Report.Status.StartTime, now)
	}
	return "-"
}

// Since returns the time since a moment, such as 5m.
func Since(then metav1.Time, now time.Time) string {
	return duration.HumanDuration(max(0, now.Sub(then.Time)))
}

// RunDuration returns how long a job has run, or ran; empty if it never ran.
func RunDuration(status v1alpha1.JobReportStatus, now time.Time) string {
	if status.RunningTime == nil {
		return ""
	}
	if status.CompletionTime != nil {
		now = status.CompletionTime.Time
	}
	return Since(*status.RunningTime, now)
}

// FailureText returns where a failed job failed first; empty if unknown.
func FailureText(status v1alpha1.JobReportStatus) string {
	failure := status.Failure
	if failure == nil || failure.Pod == "" {
		return ""
	}
	text := "Failed first in pod " + failure.Pod
	if failure.Rank != nil {
		text += fmt.Sprintf(", rank %d", *failure.Rank)
	}
	at := slices.IndexFunc(status.Pods, func(pod v1alpha1.PodStatus) bool { return pod.Name == failure.Pod && pod.Node != "" })
	if at >= 0 {
		text += ", on node " + status.Pods[at].Node
	}
	if failure.ExitCode != nil {
		text += fmt.Sprintf(", with exit code %d", *failure.ExitCode)
		if signal := *failure.ExitCode - 128; signal > 0 && signal < 32 {
			text += fmt.Sprintf(" (signal %d)", signal)
		}
	}
	return text + "."
}

// TrainingText returns the training progress in the report; empty if there is none.
func TrainingText(t *v1alpha1.Training) string {
	if t == nil {
		return ""
	}
	var parts []string
	for _, value := range []struct{ name, text string }{{"epoch", t.Epoch}, {"step", t.Step}, {"loss", t.Loss}, {"accuracy", t.Accuracy}, {"progress", t.Progress}} {
		if value.text != "" {
			parts = append(parts, value.name+" "+value.text)
		}
	}
	return strings.Join(parts, ", ")
}

// ReservedText returns what the job's pods have reserved by their requests over time, in hours, or in seconds if that is little; empty
// if there is nothing.
func ReservedText(used *v1alpha1.Consumption) string {
	if used == nil {
		return ""
	}
	var parts []string
	add := func(seconds int64, unit, of string) {
		switch {
		case seconds <= 0:
		case seconds < 36: // 0.01 hours
			parts = append(parts, phrase.Count(seconds, unit+"second")+of)
		default:
			parts = append(parts, strconv.FormatFloat(float64(seconds)/3600, 'f', 2, 64)+" "+unit+"hours"+of)
		}
	}
	add(used.CPUCoreSeconds, "core ", "")
	add(used.MemoryGiBSeconds, "GiB ", " of memory")
	for _, name := range slices.Sorted(maps.Keys(used.GPUSeconds)) {
		add(used.GPUSeconds[name], "", " of "+name)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " (requests multiplied by time)"
}

// RanksText returns the MPI of a job and where its ranks run; empty for another framework.
func RanksText(status v1alpha1.JobReportStatus) string {
	m := status.MPI
	if m.Implementation == "" {
		return ""
	}
	where := phrase.Count(status.Workers.Wanted, "worker")
	if m.Ranks > int64(status.Workers.Wanted)*int64(m.SlotsPerWorker) {
		where += " and the launcher"
	}
	return fmt.Sprintf("%s, %s: %d each on %s", MPIText(status), phrase.Count(m.Ranks, "rank"), m.SlotsPerWorker, where)
}

// mpiNames are the names of MPI libraries in status.run.mpiVersions, by the name of the implementation in a job.
var mpiNames = map[string]string{string(mpi.OpenMPI): "Open MPI", string(mpi.MPICH): "MPICH", string(mpi.IntelMPI): "Intel MPI"}

// MPIText returns the MPI libraries that ran, with their versions; before they are known the one that the job names. If another
// one ran, both.
func MPIText(status v1alpha1.JobReportStatus) string {
	named := status.MPI.Implementation
	if status.Run == nil || len(status.Run.MPIVersions) == 0 {
		return named
	}
	versions := status.Run.MPIVersions
	text := strings.Join(versions, ", ")
	if !slices.ContainsFunc(versions, func(version string) bool { return strings.HasPrefix(version, mpiNames[named]+" ") }) {
		text += " (the job names " + named + ")"
	}
	return text
}

// Summary returns what the user wrote about the job's pods; for a deleted job what its report contains, without the command
// (see CommandText).
func (j Job) Summary() kinds.Summary {
	if j.Object == nil {
		run := ptr.Deref(j.Status().Run, v1alpha1.Run{})
		return kinds.Summary{Image: run.Image, Runtime: run.Runtime, Worker: corev1.ResourceRequirements{Requests: run.Requests, Limits: run.Limits}}
	}
	return editorFor(j.Kind).Summarize(j.Object)
}

// PodSummary returns Summary with what the job leaves to its runtime: the image and the resources that its report has.
func (j Job) PodSummary() kinds.Summary {
	summary, run := j.Summary(), ptr.Deref(j.Status().Run, v1alpha1.Run{})
	summary.Image = cmp.Or(summary.Image, run.Image)
	if len(summary.Worker.Requests)+len(summary.Worker.Limits) == 0 {
		summary.Worker.Requests, summary.Worker.Limits = run.Requests, run.Limits
	}
	return summary
}

// CommandText returns the job's command as it is written in a shell; for a deleted job as its report contains it, masked.
func (j Job) CommandText() string {
	if j.Object == nil {
		return ptr.Deref(j.Status().Run, v1alpha1.Run{}).Command
	}
	return phrase.QuoteCommand(j.Summary().Command)
}

// Creator returns the user who created the job; empty if unknown.
func (j Job) Creator() string {
	if j.Object == nil {
		return ptr.Deref(j.Status().Run, v1alpha1.Run{}).Creator
	}
	return j.Object.GetAnnotations()[mpi.AnnotationCreator]
}

// CreatorText returns who created the job, as " by ada". If no user was recorded, it names the field manager that the job's report
// contains; it is empty if that is unknown, too.
func (j Job) CreatorText() string {
	if creator := j.Creator(); creator != "" {
		return " by " + creator
	}
	if manager := ptr.Deref(j.Status().Run, v1alpha1.Run{}).FieldManager; manager != "" {
		return fmt.Sprintf(" (the user was not recorded; field manager: %q)", manager)
	}
	return ""
}

// ResourcesText returns the requests of a container, and its limits where they differ.
func ResourcesText(r corev1.ResourceRequirements) string {
	names := map[corev1.ResourceName]bool{}
	for name := range r.Requests {
		names[name] = true
	}
	for name := range r.Limits {
		names[name] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		request, requested := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !requested, limited && request.Cmp(limit) == 0:
			parts = append(parts, fmt.Sprintf("%s %s", name, limit.String()))
		case limited:
			parts = append(parts, fmt.Sprintf("%s %s (limit %s)", name, request.String(), limit.String()))
		default:
			parts = append(parts, fmt.Sprintf("%s %s", name, request.String()))
		}
	}
	return strings.Join(parts, ", ")
}
