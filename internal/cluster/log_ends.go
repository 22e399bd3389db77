package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

const (
	// endsTimeout limits how long the logs of a job that ends are read: its pods are deleted after that.
	endsTimeout = 5 * time.Second
	// launcherLines is the number of lines that are read of the log of the launcher's latest attempt, which has the output of most ranks.
	// The other pods share otherLines.
	launcherLines, otherLines = 10_000, 40_000
	// maxReadOfLog is how many bytes are read of each log.
	maxReadOfLog = 2 << 20
	// otherBytes is how many bytes of the logs of the other pods are kept until they are compressed, leastBytes of each at least.
	otherBytes, leastBytes = 8 << 20, 8 << 10
	// leastLines is the number of lines that are read of each log at least.
	leastLines = 50
	// maxOmitted is the length of the reason why logs could not be read.
	maxOmitted = 400
)

// LogEnds reads the ends of the logs of all pods of a job, compressed to at most so many bytes. It returns nil if no pod has
// run. What cannot be read within 5 s is counted.
func (g *Gatherer) LogEnds(ctx context.Context, job mpi.Job, seen jobstate.Observed, most int) *v1alpha1.Logs {
	ctx, cancel := context.WithTimeout(ctx, endsTimeout)
	defer cancel()
	pods := podsToKeep(seen)
	ends := make([]logEnd, len(pods))
	var next atomic.Int32
	take := func() int { return int(next.Add(1)) - 1 }
	// In their order, so that the launcher's log is read even if there is no time for all.
	var all sync.WaitGroup
	for range min(len(pods), maxLogReads) {
		all.Go(func() {
			for i := take(); i < len(pods); i = take() {
				ends[i] = g.readRuns(ctx, job, pods[i], len(pods))
			}
		})
	}
	all.Wait()
	return g.packEnds(ends, most)
}

// packEnds returns what the report keeps of logs.
func (g *Gatherer) packEnds(ends []logEnd, most int) *v1alpha1.Logs {
	kept := &v1alpha1.Logs{}
	var read []logs.PodLog
	for _, end := range ends {
		if end.ran {
			kept.Pods++
			read = append(read, end.log)
		}
		if end.err != nil {
			kept.PodsUnread++
			if kept.Omitted == "" {
				kept.Omitted = phrase.Cut(phrase.OneLine(g.masker.Line(end.err.Error())), maxOmitted)
			}
		}
	}
	kept.Pods -= kept.PodsUnread
	if len(read) == 0 {
		return nil
	}
	packed := logs.Pack(read, most)
	kept.Data, kept.Size, kept.Lines, kept.PodsCut = packed.Data, int32(len(packed.Data)), int32(packed.Lines), int32(packed.Cut)
	return kept
}

// podsToKeep returns the launcher's attempts, latest first, the workers that failed, and the other workers.
func podsToKeep(seen jobstate.Observed) []keptPod {
	var pods []keptPod
	for pod := range podsIn(seen) {
		pods = append(pods, keptPod{pod: pod, isLauncher: len(pods) < len(seen.LauncherPods), isFirst: len(pods) == 0 && len(seen.LauncherPods) > 0})
	}
	slices.SortStableFunc(pods, func(a, b keptPod) int { return a.worth() - b.worth() })
	return pods
}

// keptPod is a pod whose log is kept.
type keptPod struct {
	pod        *corev1.Pod
	isLauncher bool
	// isFirst is set for the launcher's latest attempt.
	isFirst bool
}

// worth is lower for pods whose logs are more important.
func (p keptPod) worth() int {
	if p.isLauncher {
		return 0
	}
	if _, bad := EndedBadly(p.pod); bad {
		return 1
	}
	return 2
}

// share returns how many lines of the log of one of so many pods are read, and how many bytes of them are kept.
func (p keptPod) share(pods int) (lines, size int) {
	if p.isFirst {
		return launcherLines, logs.MaxPackedText
	}
	return min(max(otherLines/pods, leastLines), launcherLines), min(max(otherBytes/pods, leastBytes), logs.MaxPackedText)
}

// logEnd is the end of the log of a pod.
type logEnd struct {
	log logs.PodLog
	// ran is whether a container of the pod has run, and err why its log could not be read.
	ran bool
	err error
}

// readRuns reads the ends of the logs of a pod's main container: of its previous run, if there was one, and of its last. If it never
// ran, it reads that of the init container that failed.
func (g *Gatherer) readRuns(ctx context.Context, job mpi.Job, kept keptPod, pods int) (end logEnd) {
	containers := job.Workers.Template.Spec.Containers
	if kept.isLauncher {
		containers = job.Launcher.Template.Spec.Containers
	}
	if len(containers) == 0 {
		return logEnd{}
	}
	lines, size := kept.share(pods)
	for _, run := range runsToKeep(kept.pod, containers[0].Name) {
		read, err := g.readEndOf(ctx, run, lines)
		end.ran = true
		end.log.Cut = end.log.Cut || read.Cut
		end.log.Lines = append(end.log.Lines, read.Lines...)
		switch {
		case err == nil:
		case run.previous:
			end.log.Cut = true
		default:
			end.err = fmt.Errorf("pod %s: %w", kept.pod.Name, err)
		}
	}
	end.log = end.log.Last(size)
	return end
}

// runsToKeep returns the runs of a pod's main container, the oldest first.
func runsToKeep(pod *corev1.Pod, container string) (runs []source) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != container {
			continue
		}
		if c.LastTerminationState.Terminated != nil {
			runs = append(runs, source{pod: pod, container: container, previous: true})
		}
		if c.State.Running != nil || c.State.Terminated != nil {
			runs = append(runs, source{pod: pod, container: container})
		}
	}
	if len(runs) == 0 {
		if failed, has := failedInit(pod); has {
			runs = append(runs, failed)
		}
	}
	return runs
}

// readEndOf reads the last lines of a run, masked.
func (g *Gatherer) readEndOf(ctx context.Context, run source, lines int) (logs.PodLog, error) {
	select {
	case g.reads <- struct{}{}:
		defer func() { <-g.reads }()
	case <-ctx.Done():
		return logs.PodLog{}, errors.New("there was no time to read its log")
	}
	for {
		text, err := g.readTail(ctx, run, lines, maxReadOfLog)
		if err != nil {
			return logs.PodLog{}, err
		}
		if len(text) >= maxReadOfLog && lines > 1 {
			// The kubelet has sent the first bytes of these lines. The last ones are wanted.
			lines = max(lines/16, 1)
			continue
		}
		isWhole := len(text) < maxReadOfLog && bytes.Count(text, []byte("\n")) < lines
		return g.keepLines(run.pod.Name, text, isWhole), nil
	}
}

// readTail reads the first bytes of the last lines of a run.
func (g *Gatherer) readTail(ctx context.Context, run source, lines, most int) ([]byte, error) {
	stream, err := g.logs.Pods(run.pod.Namespace).GetLogs(run.pod.Name, &corev1.PodLogOptions{
		Container: run.container, Previous: run.previous, TailLines: new(int64(lines)), LimitBytes: new(int64(most)), Timestamps: true,
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("its log cannot be read: %w", err)
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, int64(most)))
	switch {
	case bytes.HasPrefix(text, []byte(logGone)):
		return nil, errors.New("its log was deleted")
	case err != nil:
		return nil, fmt.Errorf("its log cannot be read: %w", err)
	}
	return text, nil
}

// keepLines returns the lines of a log: printable, short, and without secrets and what the agent prints about the use of resources.
func (g *Gatherer) keepLines(pod string, text []byte, isWhole bool) logs.PodLog {
	kept := logs.PodLog{Cut: !isWhole}
	if len(text) == 0 {
		return kept
	}
	mask := g.masker.Stream(isWhole)
	var newest time.Time
	for raw := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		stamp, line, _ := strings.Cut(raw, " ")
		if at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(stamp)); err == nil {
			// The order of the log is kept if a clock was set back.
			if at.After(newest) {
				newest = at
			}
		} else {
			line = raw
		}
		if _, is := agentapi.ParseUsageLine(strings.TrimSpace(line)); is {
			continue
		}
		kept.Lines = append(kept.Lines, logs.PodLine{Pod: pod, Time: newest, Text: mask.LineWithin(line, logs.MaxPackedLine)})
	}
	return kept
}
