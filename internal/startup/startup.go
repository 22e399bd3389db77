// Package startup measures the parts of a job's start by the status of its pods, and finds those that took unusually long.
package startup

import (
	"fmt"
	"math"
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

// Launch is what the launcher's agent reported about the start of ranks, when the launcher had ended. Unknown values are zero.
type Launch struct {
	// Started is when the launcher's command was started, and Connecting when MPI first tried to connect to a worker.
	Started, Connecting time.Time
	// ConnectMilliseconds and InitMilliseconds are as in v1alpha1.MPIStatus.
	ConnectMilliseconds, InitMilliseconds int64
}

// maxLaunch is the longest time that MPI is believed to have taken to begin: programs of the job can write what agents report.
const maxLaunch = 24 * time.Hour

// isKnown reports whether both times are known, and of a pod of the launcher.
func (l Launch) isKnown(launcher *corev1.Pod) bool {
	started := podstatus.StartedAt(launcher)
	return !started.IsZero() && !l.Started.Before(started) && l.Started.Sub(started) < maxLaunch &&
		!l.Connecting.Before(l.Started) && l.Connecting.Sub(l.Started) < maxLaunch
}

// Measure returns the parts of the latest start of a job; nil until all of its pods have started. begun is when the job was
// created; zero if it has started before. The result only contains what the observation contains: keep the
// rest of an earlier one with Merge.
func Measure(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, launch Launch, begun time.Time) *v1alpha1.Startup {
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
	measureLaunch(s, seen, evidence, launch, first, lastStarted)
	return s
}

// measureLaunch adds what happens from the start of the launcher's command on. Connecting to workers counts from when all pods had
// started: before, the launcher only waits for them.
func measureLaunch(s *v1alpha1.Startup, seen jobstate.Observed, evidence jobstate.Evidence, launch Launch, first, lastStarted time.Time) {
	if len(seen.LauncherPods) == 0 {
		return
	}
	launcher := seen.LauncherPods[len(seen.LauncherPods)-1]
	begun, connecting := podstatus.StartedAt(launcher), podstatus.StartedAt(launcher)
	if launch.isKnown(launcher) {
		begun, connecting = launch.Started, launch.Connecting
		s.Steps = append(s.Steps, v1alpha1.StartupStep{
			Name: v1alpha1.StepLaunch, StartMilliseconds: milliseconds(first, begun), Milliseconds: milliseconds(begun, connecting), Pod: launcher.Name, Node: launcher.Spec.NodeName,
		})
	}
	connected := times.Later(connecting, lastStarted)
	if ms := launch.ConnectMilliseconds; ms > 0 {
		took := max(1, ms-milliseconds(connecting, connected))
		s.Steps = append(s.Steps, v1alpha1.StartupStep{Name: v1alpha1.StepConnected, StartMilliseconds: milliseconds(first, connected), Milliseconds: took})
		connected = connected.Add(time.Duration(took) * time.Millisecond)
	}
	if ms := launch.InitMilliseconds; ms > 0 {
		s.Steps = append(s.Steps, v1alpha1.StartupStep{Name: v1alpha1.StepMPIInit, StartMilliseconds: milliseconds(first, connected), Milliseconds: ms})
	}
	if line := evidence.Logs[launcher.Name].FirstAt; !line.IsZero() {
		s.Steps = append(s.Steps, v1alpha1.StartupStep{
			Name: v1alpha1.StepFirstLine, StartMilliseconds: milliseconds(first, begun), Milliseconds: milliseconds(begun, line), Pod: launcher.Name, Node: launcher.Spec.NodeName,
		})
		s.Milliseconds = milliseconds(first, line)
	}
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
	isExact := of(now, v1alpha1.StepLaunch) != nil
	for _, name := range order {
		known := of(before, name)
		if known == nil || name == v1alpha1.StepFirstLine && isExact && of(now, name) != nil {
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
	v1alpha1.StepContainers, v1alpha1.StepReady, v1alpha1.StepLaunch, v1alpha1.StepConnected, v1alpha1.StepMPIInit, v1alpha1.StepFirstLine,
}

// Thresholds of a slow step: it takes long in all pods, or much longer in one pod than in the others.
const (
	slowStep       = 2 * time.Minute
	slowerBy       = 20 * time.Second
	slowerTimes    = 3
	slowConnection = 15 * time.Second
)

// Slow returns the step that took unusually long, the slowest of them; false if there is none. Waiting for admission is
// not one: it has findings of its own. Nor are the times until MPI starts and until the first line, which are the program's.
func Slow(s *v1alpha1.Startup) (v1alpha1.StartupStep, bool) {
	var slowest v1alpha1.StartupStep
	if s == nil {
		return slowest, false
	}
	for _, step := range s.Steps {
		took, median := time.Duration(step.Milliseconds)*time.Millisecond, time.Duration(step.MedianMilliseconds)*time.Millisecond
		slow := false
		switch step.Name {
		case v1alpha1.StepAdmission, v1alpha1.StepLaunch, v1alpha1.StepFirstLine:
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
	v1alpha1.StepReady: "readiness", v1alpha1.StepLaunch: "starting MPI", v1alpha1.StepConnected: "connecting to all workers", v1alpha1.StepMPIInit: "starting ranks",
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

// Bar is a part of a start in a waterfall. Its times are in milliseconds since the first pod was created.
type Bar struct {
	Text       string
	Start, End int64
}

// Bars returns the parts of a start that took some time, in their order. The time until the first line is that of the program alone, if it
// is known when its ranks started.
func Bars(s *v1alpha1.Startup) []Bar {
	if s == nil {
		return nil
	}
	var bars []Bar
	ranks := int64(math.MinInt64)
	for _, step := range s.Steps {
		bar := Bar{Text: names[step.Name], Start: step.StartMilliseconds, End: step.StartMilliseconds + step.Milliseconds}
		switch step.Name {
		case v1alpha1.StepMPIInit:
			ranks = bar.End
		case v1alpha1.StepFirstLine:
			bar.Start = min(bar.End, max(bar.Start, ranks))
		default:
			bar.Text += slowestPod(step)
		}
		if bar.End > bar.Start {
			bars = append(bars, bar)
		}
	}
	return bars
}

// Waterfall draws a start in lines of at most width characters: what each part took, and when that was. It is empty if the lines are too
// short, or a start had fewer than two parts that took some time.
func Waterfall(s *v1alpha1.Startup, width int) []string {
	const least, most = 10, 40
	bars := Bars(s)
	if len(bars) < 2 {
		return nil
	}
	from, to, longest := bars[0].Start, bars[0].End, 0
	for _, bar := range bars {
		from, to, longest = min(from, bar.Start), max(to, bar.End), max(longest, len(bar.Text))
	}
	const time = len("1h59m59s")
	columns := min(most, width-longest-time-4)
	if columns < least {
		return nil
	}
	at := func(ms int64) int { return int(int64(columns) * (ms - from) / (to - from)) }
	lines := make([]string, 0, len(bars))
	for _, bar := range bars {
		start := min(at(bar.Start), columns-1)
		drawn := strings.Repeat(" ", start) + strings.Repeat("█", max(1, at(bar.End)-start))
		lines = append(lines, fmt.Sprintf("%-*s  %*s  %s", longest, bar.Text, time, durationText(bar.End-bar.Start), drawn))
	}
	return lines
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
