// Package startup measures the parts of a job's start by the status of its pods, and finds those that took unusually long.
package startup

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// podSteps are the steps of each pod, with the times at which they begin and end; zero if unknown.
var podSteps = []struct {
	name  v1alpha1.StartupStepName
	times func(pod *corev1.Pod) (from, to time.Time)
}{
	{v1alpha1.StepScheduled, func(pod *corev1.Pod) (from, to time.Time) {
		return pod.CreationTimestamp.Time, podstatus.ScheduledAt(pod)
	}},
	{v1alpha1.StepVolumes, func(pod *corev1.Pod) (from, to time.Time) {
		return podstatus.ScheduledAt(pod), podstatus.NetworkedAt(pod)
	}},
	{v1alpha1.StepInitContainers, func(pod *corev1.Pod) (from, to time.Time) {
		if len(pod.Status.InitContainerStatuses) == 0 {
			return from, to
		}
		return podstatus.NetworkedAt(pod), podstatus.InitializedAt(pod)
	}},
	{v1alpha1.StepContainers, func(pod *corev1.Pod) (from, to time.Time) {
		return times.Later(podstatus.NetworkedAt(pod), podstatus.InitializedAt(pod)), podstatus.StartedAt(pod)
	}},
	{v1alpha1.StepReady, func(pod *corev1.Pod) (from, to time.Time) {
		return podstatus.StartedAt(pod), podstatus.ReadyAt(pod)
	}},
}

// Measure returns the parts of the latest start of a job; nil until all of its pods have started. begun is when the job was
// created; zero if it has started before. The result only contains what the observation contains: keep the
// rest of an earlier one with Merge.
func Measure(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, mpiStatus v1alpha1.MPIStatus, begun time.Time) *v1alpha1.Startup {
	pods := seen.CurrentPods(job.Workers.Count)
	if len(pods) == 0 || len(pods) < int(job.Pods()) {
		return nil
	}
	var first, lastCreated, lastStarted time.Time
	var newest *corev1.Pod
	for _, pod := range pods {
		started := podstatus.StartedAt(pod)
		if started.IsZero() {
			return nil
		}
		first = times.Earlier(first, pod.CreationTimestamp.Time)
		lastStarted = times.Later(lastStarted, started)
		if newest == nil || pod.CreationTimestamp.After(lastCreated) {
			newest, lastCreated = pod, pod.CreationTimestamp.Time
		}
	}
	s := &v1alpha1.Startup{Since: metav1.NewTime(first.UTC().Truncate(time.Second)), Milliseconds: milliseconds(first, lastStarted)}
	if !begun.IsZero() {
		waited := milliseconds(begun, first)
		s.Steps = append(s.Steps, v1alpha1.StartupStep{Name: v1alpha1.StepAdmission, StartMilliseconds: -waited, Milliseconds: waited})
	}
	s.Steps = append(s.Steps, v1alpha1.StartupStep{
		Name: v1alpha1.StepPodsCreated, Milliseconds: milliseconds(first, lastCreated), Pod: newest.Name, Node: newest.Spec.NodeName,
	})
	for _, step := range podSteps {
		if slowest, known := slowestOf(step.name, pods, first, step.times); known {
			s.Steps = append(s.Steps, slowest)
		}
	}
	after := milliseconds(first, lastStarted)
	connects := connected(mpiStatus, seen, lastStarted)
	if connects > 0 {
		s.Steps = append(s.Steps, v1alpha1.StartupStep{Name: v1alpha1.StepConnected, StartMilliseconds: after, Milliseconds: connects})
	}
	if ms := mpiStatus.InitMilliseconds; ms > 0 {
		s.Steps = append(s.Steps, v1alpha1.StartupStep{Name: v1alpha1.StepMPIInit, StartMilliseconds: after + connects, Milliseconds: ms})
	}
	if n := len(seen.LauncherPods); n > 0 {
		launcher := seen.LauncherPods[n-1]
		if line := evidence.Logs[launcher.Name].FirstAt; !line.IsZero() {
			s.Steps = append(s.Steps, v1alpha1.StartupStep{
				Name: v1alpha1.StepFirstLine, StartMilliseconds: milliseconds(first, podstatus.StartedAt(launcher)),
				Milliseconds: milliseconds(podstatus.StartedAt(launcher), line), Pod: launcher.Name, Node: launcher.Spec.NodeName,
			})
			s.Milliseconds = milliseconds(first, line)
		}
	}
	return s
}

// connected returns how long the launcher took to reach its workers, from the time on at which all had started: before, it only
// waited for them.
func connected(status v1alpha1.MPIStatus, seen jobstate.Observed, lastStarted time.Time) int64 {
	ms := status.ConnectMilliseconds
	if n := len(seen.LauncherPods); n > 0 && ms > 0 {
		if started := podstatus.StartedAt(seen.LauncherPods[n-1]); !started.IsZero() {
			ms = max(1, ms-milliseconds(started, lastStarted))
		}
	}
	return ms
}

// slowestOf returns a step of the slowest pod, of a start that began at a time; false if it is unknown for any pod.
func slowestOf(name v1alpha1.StartupStepName, pods []*corev1.Pod, began time.Time, of func(*corev1.Pod) (from, to time.Time)) (v1alpha1.StartupStep, bool) {
	slowest := v1alpha1.StartupStep{Name: name, Milliseconds: -1}
	var all []int64
	for _, pod := range pods {
		from, to := of(pod)
		if from.IsZero() || to.IsZero() {
			return slowest, false
		}
		took := milliseconds(from, to)
		all = append(all, took)
		if took > slowest.Milliseconds {
			slowest.StartMilliseconds, slowest.Milliseconds = milliseconds(began, from), took
			slowest.Pod, slowest.Node = pod.Name, pod.Spec.NodeName
		}
	}
	slices.Sort(all)
	slowest.MedianMilliseconds = all[(len(all)-1)/2]
	return slowest, true
}

// milliseconds returns the time between two times, which are of different clocks: never less than 0.
func milliseconds(from, to time.Time) int64 { return max(0, to.Sub(from).Milliseconds()) }

// Merge adds to the earlier measurement of a start what is known since: times of pods are lost when containers end or
// restart. A measurement of another start replaces it.
func Merge(before, now *v1alpha1.Startup) *v1alpha1.Startup {
	switch {
	case now == nil:
		return before
	case before == nil || !before.Since.Equal(&now.Since):
		return now
	}
	merged := *before
	merged.Steps = nil
	of := func(s *v1alpha1.Startup, name v1alpha1.StartupStepName) []v1alpha1.StartupStep {
		at := slices.IndexFunc(s.Steps, func(step v1alpha1.StartupStep) bool { return step.Name == name })
		if at < 0 {
			return nil
		}
		return s.Steps[at : at+1]
	}
	for _, name := range order {
		known := of(before, name)
		if known == nil {
			if known = of(now, name); name == v1alpha1.StepFirstLine && known != nil {
				merged.Milliseconds = now.Milliseconds
			}
		}
		merged.Steps = append(merged.Steps, known...)
	}
	return &merged
}

// order is the order in which the steps happen.
var order = []v1alpha1.StartupStepName{
	v1alpha1.StepAdmission, v1alpha1.StepPodsCreated, v1alpha1.StepScheduled, v1alpha1.StepVolumes, v1alpha1.StepInitContainers,
	v1alpha1.StepContainers, v1alpha1.StepReady, v1alpha1.StepConnected, v1alpha1.StepMPIInit, v1alpha1.StepFirstLine,
}

// Thresholds of a slow step: it takes long in all pods, or much longer in one pod than in the others.
const (
	slowStep       = 2 * time.Minute
	slowerBy       = 20 * time.Second
	slowerTimes    = 3
	slowConnection = 15 * time.Second
)

// Slow returns the step that took unusually long, the slowest of them; false if there is none. Waiting for admission is
// not one: it has findings of its own. Nor is the time until the first line, which is the program's.
func Slow(s *v1alpha1.Startup) (v1alpha1.StartupStep, bool) {
	var slowest v1alpha1.StartupStep
	if s == nil {
		return slowest, false
	}
	for _, step := range s.Steps {
		took, median := time.Duration(step.Milliseconds)*time.Millisecond, time.Duration(step.MedianMilliseconds)*time.Millisecond
		slow := false
		switch step.Name {
		case v1alpha1.StepAdmission, v1alpha1.StepFirstLine:
		case v1alpha1.StepConnected, v1alpha1.StepMPIInit:
			slow = took >= slowConnection
		case v1alpha1.StepPodsCreated:
			slow = took >= slowStep
		default:
			slow = took >= slowStep || took-median >= slowerBy && took >= slowerTimes*median
		}
		if slow && step.Milliseconds > slowest.Milliseconds {
			slowest = step
		}
	}
	return slowest, slowest.Name != ""
}

// names of the steps in texts.
var names = map[v1alpha1.StartupStepName]string{
	v1alpha1.StepAdmission: "admission", v1alpha1.StepPodsCreated: "creating pods", v1alpha1.StepScheduled: "scheduling",
	v1alpha1.StepVolumes: "volumes and network", v1alpha1.StepInitContainers: "init containers", v1alpha1.StepContainers: "images and containers",
	v1alpha1.StepReady: "readiness", v1alpha1.StepConnected: "connecting to all workers", v1alpha1.StepMPIInit: "starting ranks",
	v1alpha1.StepFirstLine: "first line of output",
}

// advice is what to do about a slow step.
var advice = map[v1alpha1.StartupStepName]string{
	v1alpha1.StepPodsCreated:    "Ask the cluster administrator whether the API server or an admission webhook is slow.",
	v1alpha1.StepScheduled:      "See the events of the pod: the scheduler reports what it waits for.",
	v1alpha1.StepVolumes:        "Check the storage class and the node: volumes are attached and mounted, and the network is set up.",
	v1alpha1.StepInitContainers: "See the logs of the init containers.",
	v1alpha1.StepContainers:     "Use a smaller image, or pull it onto the nodes in advance. Later starts on the same node are faster.",
	v1alpha1.StepReady:          "Check the readiness probe of the pod, and the load of its node.",
	v1alpha1.StepConnected:      "Check the cluster's DNS and network: names of new pods were resolved late, or connections were slow.",
	v1alpha1.StepMPIInit:        "Check the load of the workers' nodes, and the storage that the program is loaded from.",
}

// Text describes a start in one line; empty for nil.
func Text(s *v1alpha1.Startup) string {
	if s == nil {
		return ""
	}
	var parts []string
	for _, step := range s.Steps {
		if step.Milliseconds > 0 {
			parts = append(parts, names[step.Name]+" "+durationText(step.Milliseconds)+slowestPod(step))
		}
	}
	text := durationText(s.Milliseconds)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// slowestPod names the pod of a step if other pods were faster.
func slowestPod(step v1alpha1.StartupStep) string {
	if step.Pod == "" || step.MedianMilliseconds == 0 || step.Milliseconds == step.MedianMilliseconds {
		return ""
	}
	return " (" + step.Pod + ")"
}

// durationText returns a duration with as many digits as it needs.
func durationText(milliseconds int64) string {
	d := time.Duration(milliseconds) * time.Millisecond
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	return d.String()
}

// Finding returns the finding about the slowest step of a job's start; false if none took unusually long.
func Finding(namespace string, s *v1alpha1.Startup) (v1alpha1.Finding, bool) {
	step, slow := Slow(s)
	if !slow {
		return v1alpha1.Finding{}, false
	}
	values := map[string]string{"step": names[step.Name], "time": durationText(step.Milliseconds), "advice": advice[step.Name], "namespace": namespace, "pod": step.Pod}
	if step.Pod != "" {
		values["where"] = " in pod " + step.Pod
		if step.Node != "" {
			values["where"] += " on node " + step.Node
		}
	}
	if step.MedianMilliseconds > 0 {
		values["median"] = ", the median of all pods is " + durationText(step.MedianMilliseconds)
	}
	entry := codes.Lookup(codes.SlowStartupStep)
	f := v1alpha1.Finding{Code: entry.Code, Severity: entry.Severity, Summary: codes.Fill(entry.Summary, values)}
	if step.Pod != "" {
		f.Affected = []string{step.Pod}
	}
	for _, remedy := range entry.Remedies {
		if step.Pod != "" || remedy.Action == "" {
			f.Remedies = append(f.Remedies, codes.FillRemedy(remedy, values))
		}
	}
	return f, true
}
