package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/follow"
	"opendatahub.io/mpijob/internal/mpi"
)

// logPrinter writes lines of logs to standard output, and to standard error what is waited for: on a terminal in a line
// that goes when the next line of a log comes.
type logPrinter struct {
	f                   *Factory
	timestamps, colours bool
	// follows is set while more may come.
	follows bool
	json    *json.Encoder
	out     *bufio.Writer
	text    []byte

	mu       sync.Mutex
	job      Job
	progress *progress
	waiting  string
	// written is set once a line was: from then on only pods that have not started are told of.
	written bool
}

// print writes lines. It fails when nobody reads them any more.
func (p *logPrinter) print(lines []follow.Line) error {
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

func (p *logPrinter) write(line follow.Line) error {
	if p.json != nil {
		return p.json.Encode(asLogLine(line))
	}
	b := p.text[:0]
	if p.timestamps && !line.Time.IsZero() {
		b = line.Time.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z ")
	}
	before, after := "[", "] "
	if p.colours {
		before, after = speaker(line)+"[", "]\x1b[0m "
	}
	b = append(append(b, before...), line.Place.String()...)
	if line.Rank != follow.NoRank {
		b = strconv.AppendInt(append(b, " r"...), int64(line.Rank), 10)
	}
	p.text = append(append(append(b, after...), line.Text...), '\n')
	_, err := p.out.Write(p.text)
	return err
}

// speakers are colours that are told apart on dark and on light terminals (ECMA-48, SGR).
var speakers = []string{"\x1b[36m", "\x1b[35m", "\x1b[33m", "\x1b[34m", "\x1b[32m", "\x1b[31m", "\x1b[1;36m", "\x1b[1;35m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1;32m", "\x1b[1;31m"}

// speaker is the colour of whoever says a line: the same rank has the same each time.
func speaker(line follow.Line) string {
	switch {
	case line.Rank != follow.NoRank:
		return speakers[line.Rank%len(speakers)]
	case line.Place.Role == mpi.RoleWorker:
		return speakers[line.Place.Index%len(speakers)]
	}
	return "\x1b[1m"
}

// note tells something that is no line of a log.
func (p *logPrinter) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.end()
	say(p.f.ErrOut, "%s", p.f.paintOn(p.f.ErrOut, dim, "note: "+text))
}

// waits takes note of the pods that have not started.
func (p *logPrinter) waits(pods []follow.Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = waitingText(pods)
	p.tell()
}

// seen takes note of what the job's record says.
func (p *logPrinter) seen(report *v1alpha1.JobReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job.Report = report
	p.tell()
}

// tick shows what is waited for every second, until the context ends.
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
				p.tell()
			}
			p.mu.Unlock()
		}
	}
}

// tell says what is waited for, if anything is.
func (p *logPrinter) tell() {
	text := p.waiting
	if p.follows && !p.written && (p.progress.terminal || p.job.Phase() != mpi.PhaseRunning) {
		text = stage(p.job)
		if p.waiting != "" {
			text += "; " + p.waiting
		}
	}
	if text != "" && !hasEnded(p.job) {
		p.progress.show(phaseColour(p.job.Phase()), text)
	}
}

// end leaves the terminal as it should be, and returns the job as it was seen last.
func (p *logPrinter) end() Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.end()
	return p.job
}

// waitingText names the pods that have not started, those with the same reason together.
func waitingText(pods []follow.Waiting) string {
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
