package cli

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

// progress shows on standard error what a command waits for: on a terminal in one line that is overwritten, elsewhere in a
// line for each change.
type progress struct {
	f        *Factory
	started  time.Time
	terminal bool
	last     string
	shown    bool
}

func (f *Factory) newProgress() *progress {
	return &progress{f: f, started: f.Now(), terminal: onTerminal(f.ErrOut)}
}

// showJob shows the progress of a job.
func (p *progress) showJob(job jobs.Job) { p.show(phaseColour(job.Phase()), job.Progress()) }

// show shows a text.
func (p *progress) show(c colour, text string) {
	if p.terminal {
		elapsed := ", " + stopwatch(p.f.Now().Sub(p.started))
		if width := terminalWidth(p.f.ErrOut); width > 0 {
			text = shortened(text, max(1, width-1-len(elapsed))) // a line that wraps cannot be overwritten
		}
		fmt.Fprintf(p.f.ErrOut, "\r\x1b[K%s%s", paintOn(p.f.ErrOut, c, text), elapsed)
		p.shown = true
		return
	}
	if text != p.last {
		p.last = text
		say(p.f.ErrOut, "%s", text)
	}
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.f.ErrOut, "\r\x1b[K")
		p.shown = false
	}
}

// stopwatch returns a duration as minutes and seconds, such as 0:42 or 1:02:03.
func stopwatch(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
