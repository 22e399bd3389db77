package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
)

// logPrinter prints log lines to standard output, and progress to standard error: on a terminal in a line that is cleared
// before the next log line.
type logPrinter struct {
	f                   *Factory
	timestamps, colours bool
	// follows is set while the job may write more.
	follows bool
	json    *json.Encoder
	out     *bufio.Writer
	text    []byte

	mu       sync.Mutex
	job      jobs.Job
	progress *progress
	waiting  string
	// written is set after the first line. From then on only pods that have not started are shown as progress.
	written bool
}

// print prints lines. It fails if the output is closed.
func (p *logPrinter) print(lines []logstream.Line) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(lines) > 0 {
		p.progress.end()
		p.written = true
	}
	for _, line := range lines {
		if err := p.write(line); err != nil {
			return err
		}
	}
	return p.out.Flush()
}

func (p *logPrinter) write(line logstream.Line) error {
	if p.json != nil {
		return p.json.Encode(line.Record())
	}
	b := p.text[:0]
	if p.timestamps && !line.Time.IsZero() {
		b = line.Time.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z ")
	}
	before, after := "", " "
	if p.colours {
		before, after = rankColour(line), "\x1b[0m "
	}
	b = appendOrigin(append(b, before...), line)
	p.text = append(append(append(b, after...), line.Text...), '\n')
	_, err := p.out.Write(p.text)
	return err
}

// appendOrigin appends where a line was printed, such as [worker-2 r5].
func appendOrigin(b []byte, line logstream.Line) []byte {
	b = append(append(b, '['), line.Place.String()...)
	if line.Rank != logstream.NoRank {
		b = strconv.AppendInt(append(b, " r"...), int64(line.Rank), 10)
	}
	return append(b, ']')
}

// rankColours are readable on dark and light terminals (ECMA-48, SGR).
var rankColours = []string{"\x1b[36m", "\x1b[35m", "\x1b[33m", "\x1b[34m", "\x1b[32m", "\x1b[31m", "\x1b[1;36m", "\x1b[1;35m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1;32m", "\x1b[1;31m"}

// rankColour returns the colour of a line's rank, worker or launcher.
func rankColour(line logstream.Line) string {
	switch {
	case line.Rank != logstream.NoRank:
		return rankColours[line.Rank%len(rankColours)]
	case line.Place.Role == mpi.RoleWorker:
		return rankColours[line.Place.Index%len(rankColours)]
	}
	return "\x1b[1m"
}

// note prints a note about the logs.
func (p *logPrinter) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.end()
	say(p.f.ErrOut, "%s", paintOn(p.f.ErrOut, dim, "note: "+text))
}

// usualWaits are reasons for which every pod waits before it starts.
var usualWaits = []string{"ContainerCreating", "PodInitializing", "Pending"}

// waits sets the pods that have not started.
func (p *logPrinter) waits(pods []logstream.Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.progress.terminal {
		// Elsewhere each change is a line, and a job of many pods has many changes.
		pods = slices.DeleteFunc(slices.Clone(pods), func(pod logstream.Waiting) bool { return slices.Contains(usualWaits, pod.Reason) })
	}
	p.waiting = waitingText(pods)
	p.showProgress()
}

// seen sets the job's report.
func (p *logPrinter) seen(report *v1alpha1.JobReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job.Report = report
	p.showProgress()
}

// tick shows the progress every second until the context ends.
func (p *logPrinter) tick(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.mu.Lock()
			if p.progress.terminal && ctx.Err() == nil {
				p.showProgress()
			}
			p.mu.Unlock()
		}
	}
}

// showProgress shows what the job waits for, if anything.
func (p *logPrinter) showProgress() {
	text := p.waiting
	if p.follows && !p.written && (p.progress.terminal || p.job.Phase() != v1alpha1.PhaseRunning) {
		text = p.job.Progress()
		if p.waiting != "" {
			text += "; " + p.waiting
		}
	}
	if text != "" && !p.job.Ended() {
		p.progress.show(phaseColour(p.job.Phase()), text)
	}
}

// end clears the progress and returns the job with its last report.
func (p *logPrinter) end() jobs.Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.end()
	return p.job
}

// waitingText returns the pods that have not started, grouped by reason.
func waitingText(pods []logstream.Waiting) string {
	const most = 4
	var reasons []string
	names := map[string][]string{}
	for _, pod := range pods {
		if names[pod.Reason] == nil {
			reasons = append(reasons, pod.Reason)
		}
		names[pod.Reason] = append(names[pod.Reason], pod.Place.String())
	}
	var parts []string
	for _, reason := range reasons {
		of := names[reason]
		text := strings.Join(of[:min(len(of), most)], ", ")
		if more := len(of) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", text, reason))
	}
	if len(parts) == 0 {
		return ""
	}
	return "waiting for " + strings.Join(parts, ", ")
}
