package cli

import (
	"fmt"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/mpi"
)

// progress tells on standard error what is waited for: on a terminal in one line that is written over every second,
// elsewhere with a line for each change.
type progress struct {
	f        *Factory
	began    time.Time
	terminal bool
	said     string
	shown    bool
}

func (f *Factory) newProgress() *progress {
	return &progress{f: f, began: f.Now(), terminal: onTerminal(f.ErrOut)}
}

// tell shows how a job is.
func (p *progress) tell(job Job) { p.show(phaseColour(job.Phase()), stage(job)) }

// show shows a text.
func (p *progress) show(c colour, text string) {
	if p.terminal {
		fmt.Fprintf(p.f.ErrOut, "\r\x1b[K%s, %s", p.f.paintOn(p.f.ErrOut, c, text), stopwatch(p.f.Now().Sub(p.began)))
		p.shown = true
		return
	}
	if text != p.said {
		p.said = text
		say(p.f.ErrOut, "%s", text)
	}
}

// end leaves the line, so that what follows stands alone.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.f.ErrOut, "\r\x1b[K")
		p.shown = false
	}
}

// stage says in few words what a job does or waits for.
func stage(job Job) string {
	if job.Report == nil {
		return "Waiting for the operator to see the job"
	}
	status := job.Report.Status
	text := string(status.Phase)
	waits := status.Scheduling
	switch mpi.Phase(status.Phase) {
	case mpi.PhaseQueued:
		if waits != nil && waits.Queue != "" {
			text += " in " + waits.Queue
		}
		if waits != nil && waits.Position != nil {
			text += fmt.Sprintf(", number %d", *waits.Position)
		}
	case "GangScheduling", mpi.PhasePending:
		if waits != nil && waits.Wanted > 0 {
			text += fmt.Sprintf(" %d/%d pods placed", waits.Placed, waits.Wanted)
		}
	case mpi.PhaseInitializing:
		if waits != nil && waits.Wanted > 0 {
			text += fmt.Sprintf(" %d/%d pods placed,", waits.Placed, waits.Wanted)
		}
		text += " " + status.Workers.Summary + " workers ready"
	case mpi.PhaseRunning:
		if training := progressOf(status.Training); training != "" {
			text += ": " + training
		}
	}
	if word := why(job); word != "-" && len(status.Findings) > 0 {
		text += " (" + word + ")"
	}
	return strings.TrimSpace(text)
}

// stopwatch is a time as minutes and seconds, such as 0:42 or 1:02:03.
func stopwatch(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
