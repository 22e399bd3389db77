package cluster

import (
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Usage returns what a running job's agents reported last of its usage: its first worker's agent writes it into its log. It returns nil
// if the log contains none, or cannot be read within 5 s.
func (g *Gatherer) Usage(ctx context.Context, job mpi.Job, seen jobstate.Observed) *agentapi.Usage {
	containers := job.Workers.Template.Spec.Containers
	if len(seen.Workers) == 0 || len(containers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	select {
	case g.reads <- struct{}{}:
		defer func() { <-g.reads }()
	case <-ctx.Done():
		return nil
	}
	// A session writes some lines, and a rank two. A kubelet returns the first bytes of these lines, not the last: of those of many hours, it
	// would return the same usage again and again. The latest two reports, of usage.LineSize at most, are far smaller.
	const latest = 2*agentapi.MaxUsagePause + time.Minute
	lines, most, seconds := int64(1000), int64(1<<20), int64(latest/time.Second)
	stream, err := g.logs.Pods(job.Namespace).GetLogs(seen.Workers[0].Pod.Name, &corev1.PodLogOptions{
		Container: containers[0].Name, TailLines: &lines, LimitBytes: &most, SinceSeconds: &seconds,
	}).Stream(ctx)
	if err != nil {
		return nil
	}
	defer stream.Close()
	log, _ := io.ReadAll(io.LimitReader(stream, most))
	used := lastUsage(log)
	if used != nil && used.Stall != nil {
		// They quote the program's code.
		used.Stall.Lines = g.masker.Tail([]byte(strings.Join(used.Stall.Lines, "\n")), len(used.Stall.Lines))
	}
	return used
}

// lastUsage returns the last usage in the log of a worker's agent; nil if there is none.
func lastUsage(log []byte) *agentapi.Usage {
	for len(log) > 0 {
		start := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
		if used, is := agentapi.ParseUsageLine(string(bytes.TrimSpace(log[start:]))); is {
			return &used
		}
		log = log[:start]
	}
	return nil
}

// withoutUsage returns a log without the lines that lastUsage reads: they are long, and show nothing of a failure.
func withoutUsage(log []byte) []byte {
	if !bytes.Contains(log, []byte(`"msg":"`+agentapi.UsageMessage+`"`)) {
		return log
	}
	var rest []byte
	for line := range bytes.Lines(log) {
		if _, is := agentapi.ParseUsageLine(string(bytes.TrimSpace(line))); !is {
			rest = append(rest, line...)
		}
	}
	return rest
}
