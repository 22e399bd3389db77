package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// logLimit is the maximum amount read from the end of a log.
type logLimit struct{ lines, bytes int64 }

// readLogs reads the ends of the relevant logs in parallel, and the training progress and figures that they contain.
func (g *Gatherer) readLogs(ctx context.Context, job mpi.Job, seen jobstate.Observed, most logLimit) (map[string]jobstate.Log, v1alpha1.Training, []curves.Line) {
	read := map[string]jobstate.Log{}
	var printed figures
	speaker := outputPod(job, seen)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, source := range sources(job, seen) {
		if speaker != nil && source.pod.Name == speaker.Name {
			source.figures = &printed
		}
		all.Go(func() {
			log, err := g.readLog(ctx, job.Namespace, source, most)
			if err != nil && len(log.Lines) == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			read[source.pod.Name] = log
		})
	}
	all.Wait()
	if speaker != nil {
		log := read[speaker.Name]
		if training, told := logs.LastTraining(log.Lines); told {
			training.At = metav1.NewTime(cmp.Or(printed.progressAt, log.LastAt))
			return read, training, printed.lines
		}
	}
	return read, v1alpha1.Training{}, printed.lines
}

// figures are what a program has printed of its progress.
type figures struct {
	lines []curves.Line
	// progressAt is when the last line with progress was written, zero if that is unknown.
	progressAt time.Time
}

// outputPod returns the pod with the program's output: that of the launcher's latest attempt, or of rank 0 if the job
// has no launcher; nil if it does not exist.
func outputPod(job mpi.Job, seen jobstate.Observed) *corev1.Pod {
	switch n := len(seen.LauncherPods); {
	case n > 0:
		return seen.LauncherPods[n-1]
	case job.Launcher.None && len(seen.Workers) > 0:
		return seen.Workers[0].Pod
	}
	return nil
}

// source is a log to read.
type source struct {
	pod       *corev1.Pod
	container string
	// previous is whether to read the log of the previous run, which failed.
	previous bool
	// message is the termination message of the run.
	message string
	// figures is set to those in the log, unless it is nil.
	figures *figures
}

// sources returns the logs to read: first that of the launcher's latest failed attempt, or of its latest, then those
// of failed workers in the order of their failures. If nothing but the logs of sshd shows which workers a job used that has
// succeeded, those of workers follow. The last are those of initializers that failed, and of an init container for which a pod waits.
func sources(job mpi.Job, seen jobstate.Observed) []source {
	var pods []*corev1.Pod
	for _, try := range slices.Backward(seen.LauncherPods) {
		if _, bad := EndedBadly(try); bad {
			pods = append(pods, try)
			break
		}
	}
	if n := len(seen.LauncherPods); n > 0 && len(pods) == 0 {
		pods = append(pods, seen.LauncherPods[n-1])
	}
	launchers := len(pods)
	if job.Launcher.None && len(seen.Workers) > 0 {
		// If the job has no launcher, rank 0 prints its output.
		pods = append(pods, seen.Workers[0].Pod)
	}
	for _, worker := range seen.Workers[min(len(pods)-launchers, len(seen.Workers)):] {
		if _, bad := EndedBadly(worker.Pod); bad {
			pods = append(pods, worker.Pod)
		}
	}
	slices.SortStableFunc(pods[launchers:], func(a, b *corev1.Pod) int {
		first, _ := EndedBadly(a)
		second, _ := EndedBadly(b)
		return first.Compare(second)
	})
	if len(pods) == launchers && !job.UsesAgent() {
		pods = append(pods, workersOfSuccess(seen)...)
	}
	var found []source
	for i, pod := range pods[:min(len(pods), jobstate.MaxLogPods)] {
		containers := job.Workers.Template.Spec.Containers
		if i < launchers {
			containers = job.Launcher.Template.Spec.Containers
		}
		if len(containers) == 0 {
			continue
		}
		if s, has := sourceOf(pod, containers[0].Name); has {
			found = append(found, s)
		} else if s, has := failedInit(pod); has {
			found = append(found, s)
		}
	}
	return withRunningInit(withInitializers(found, seen), seen)
}

// withInitializers adds the logs of initializers that failed, if there is room for them.
func withInitializers(found []source, seen jobstate.Observed) []source {
	for _, pod := range seen.Initializers {
		for _, c := range pod.Status.ContainerStatuses {
			if s, has := failedRun(pod, c); has && (s.previous || c.State.Terminated.ExitCode != 0) && len(found) < jobstate.MaxLogPods {
				found = append(found, s)
				break
			}
		}
	}
	return found
}

// withRunningInit adds the log of the init container for which the first of the job's pods waits, if there is one, and room for it. When the
// launcher has given up, the pod is being deleted.
func withRunningInit(found []source, seen jobstate.Observed) []source {
	for _, pod := range seen.AllPods() {
		c := podstatus.RunningInit(pod)
		if c == nil {
			continue
		}
		if len(found) < jobstate.MaxLogPods && !slices.ContainsFunc(found, func(other source) bool { return other.pod.Name == pod.Name }) {
			found = append(found, source{pod: pod, container: c.Name})
		}
		break
	}
	return found
}

// workersOfSuccess returns the workers of a job whose launcher has succeeded.
func workersOfSuccess(seen jobstate.Observed) (pods []*corev1.Pod) {
	n := len(seen.LauncherPods)
	if n == 0 || podstatus.EffectivePhase(seen.LauncherPods[n-1]) != corev1.PodSucceeded {
		return nil
	}
	for _, worker := range seen.Workers {
		pods = append(pods, worker.Pod)
	}
	return pods
}

// sourceOf returns the run of a container with the most relevant log; false if it never ran.
func sourceOf(pod *corev1.Pod, container string) (source, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != container {
			continue
		}
		if failed, has := failedRun(pod, c); has {
			return failed, true
		}
		return source{pod: pod, container: container}, c.State.Running != nil
	}
	return source{}, false
}

// failedInit returns the run of the init container that failed, for which the others wait; false if there is none.
func failedInit(pod *corev1.Pod) (source, bool) {
	for _, c := range pod.Status.InitContainerStatuses {
		if failed, has := failedRun(pod, c); has && (c.State.Terminated == nil || c.State.Terminated.ExitCode != 0) {
			return failed, true
		}
	}
	return source{}, false
}

// failedRun returns the latest run of a container that has ended, or the one before if only that failed; false if none has ended.
func failedRun(pod *corev1.Pod, c corev1.ContainerStatus) (source, bool) {
	now, last := c.State.Terminated, c.LastTerminationState.Terminated
	switch {
	case now != nil && (now.ExitCode != 0 || last == nil || last.ExitCode == 0):
		return source{pod: pod, container: c.Name, message: now.Message}, true
	case last != nil && last.ExitCode != 0:
		return source{pod: pod, container: c.Name, previous: true, message: last.Message}, true
	}
	return source{}, false
}

// LastRun reads the end of the log of the container of a pod that failed first.
func (g *Gatherer) LastRun(ctx context.Context, pod *corev1.Pod) (jobstate.Log, error) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended == nil || ended.ExitCode == 0 {
				continue
			}
			run, _ := sourceOf(pod, c.Name)
			return g.readLog(ctx, pod.Namespace, run, logLimit{lines: jobstate.MaxLogLines, bytes: 4 << 20})
		}
	}
	return jobstate.Log{}, nil
}

// readLog reads the end of a log, masked. If the log was deleted, it returns the termination message instead, unless
// an agent wrote it. An empty log has no lines and no error.
func (g *Gatherer) readLog(ctx context.Context, namespace string, s source, most logLimit) (jobstate.Log, error) {
	select {
	case g.reads <- struct{}{}:
		defer func() { <-g.reads }()
	case <-ctx.Done():
		return jobstate.Log{}, ctx.Err() //nolint:wrapcheck // the log is left out
	}
	stream, err := g.logs.Pods(namespace).GetLogs(s.pod.Name, &corev1.PodLogOptions{
		Container: s.container, Previous: s.previous, TailLines: &most.lines, LimitBytes: &most.bytes, Timestamps: true,
	}).Stream(ctx)
	var text []byte
	var first, last time.Time
	if err == nil {
		end, isWhole := readEnd(stream, most.bytes)
		if s.figures != nil {
			log := string(end)
			*s.figures = figures{lines: logs.Points(log), progressAt: logs.ProgressAt(log, jobstate.MaxLogLines)}
		}
		text, first, last = stripTimes(end)
		if int64(bytes.Count(end, []byte("\n"))) >= most.lines || !isWhole {
			// There may be earlier lines.
			first = time.Time{}
		}
		_ = stream.Close()
		if last.IsZero() && bytes.HasPrefix(text, []byte(logGone)) {
			text, err = nil, errors.New(logGone+s.pod.Name)
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		if _, agents := agentapi.ParseSummary(s.message); agents {
			return jobstate.Log{}, err
		}
		text = []byte(s.message)
	}
	return jobstate.Log{Lines: g.masker.Tail(withoutUsage(text), jobstate.MaxLogLines), LastAt: last, FirstAt: first}, err
}

// logGone is the prefix of the kubelet's answer, sent in place of a log, for a deleted container
// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go).
const logGone = "unable to retrieve container logs for "

// readEnd returns the end of what a stream has within a number of bytes, from the start of a line to the end of one: of a secret in a line of
// which a part is missing, the rest may not be recognized. Lines can have any length. isWhole is false if the stream may have more.
func readEnd(stream io.Reader, most int64) (end []byte, isWhole bool) {
	const keep = 1 << 20
	cut := false
	limited := &io.LimitedReader{R: stream, N: most}
	chunk := make([]byte, 64<<10)
	for {
		n, err := limited.Read(chunk)
		end = append(end, chunk[:n]...)
		if len(end) > 2*keep {
			end, cut = append([]byte(nil), end[len(end)-keep:]...), true
		}
		if err != nil {
			break
		}
	}
	if _, whole, found := bytes.Cut(end, []byte("\n")); cut && found {
		end = whole
	}
	if last := bytes.LastIndexByte(end, '\n'); limited.N <= 0 && last >= 0 {
		end = end[:last+1]
	}
	return end, !cut && limited.N > 0
}

// stripTimes removes the timestamp that the kubelet adds to each line, and returns the first one of a line that is not an agent's, and the
// last one.
func stripTimes(log []byte) (lines []byte, first, last time.Time) {
	var text bytes.Buffer
	for line := range bytes.Lines(log) {
		stamp, rest, found := bytes.Cut(line, []byte(" "))
		if at, err := time.Parse(time.RFC3339Nano, string(bytes.TrimSpace(stamp))); err == nil {
			if last, line = at, rest; first.IsZero() && !bytes.HasPrefix(rest, []byte(agentapi.LinePrefix)) {
				first = at
			}
			if !found {
				line = []byte("\n")
			}
		}
		text.Write(line)
	}
	return text.Bytes(), first, last
}
