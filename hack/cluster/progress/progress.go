// Package progress tells a person at a terminal, or a log, what is being done
// and for how long.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reporter writes the steps of one command. A terminal gets a last line that
// moves; anything else gets a line per finished step and a sign of life every
// 15 seconds.
type Reporter struct {
	out      io.Writer
	terminal bool
	start    time.Time

	mu      sync.Mutex
	active  []*Step
	drawn   bool
	lastSay time.Time
	stop    chan struct{}
	stopped chan struct{}
}

// Step is one thing being done. Steps may overlap.
type Step struct {
	reporter *Reporter
	name     string
	detail   string
	start    time.Time
	ended    bool
}

const (
	redraw = 200 * time.Millisecond
	say    = 15 * time.Second
)

// New returns a reporter that writes to out until Close.
func New(out io.Writer) *Reporter {
	r := &Reporter{
		out: out, terminal: isTerminal(out), start: time.Now(),
		stop: make(chan struct{}), stopped: make(chan struct{}), lastSay: time.Now(),
	}
	go r.run()
	return r
}

// Close ends the moving line.
func (r *Reporter) Close() {
	close(r.stop)
	<-r.stopped
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
}

// Elapsed is the time since New.
func (r *Reporter) Elapsed() time.Duration { return time.Since(r.start) }

// Say writes a line of its own.
func (r *Reporter) Say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	r.print(format+"\n", args...)
	r.draw()
}

// Step begins a step.
func (r *Reporter) Step(format string, args ...any) *Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Step{reporter: r, name: fmt.Sprintf(format, args...), start: time.Now()}
	r.active = append(r.active, s)
	r.draw()
	return s
}

// Detail says how far the step is.
func (s *Step) Detail(format string, args ...any) {
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	s.detail = fmt.Sprintf(format, args...)
}

// Done ends the step with what came of it, which may be empty.
func (s *Step) Done(format string, args ...any) {
	s.end("ok", fmt.Sprintf(format, args...))
}

// End ends the step as failed if err is not nil, else as done, and returns
// err. The error's text is left to the caller, who shows it once.
func (s *Step) End(err error) error {
	if err != nil {
		s.end("FAILED", "")
		return err
	}
	s.end("ok", "")
	return nil
}

func (s *Step) end(mark, result string) {
	r := s.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	r.active = slices.DeleteFunc(r.active, func(other *Step) bool { return other == s })
	r.clear()
	line := fmt.Sprintf("%-6s %s", mark, s.name)
	if result != "" {
		line += ": " + result
	}
	r.print("%s (%s)\n", line, Elapsed(time.Since(s.start)))
	r.draw()
}

func (r *Reporter) run() {
	defer close(r.stopped)
	interval := redraw
	if !r.terminal {
		interval = time.Second
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.mu.Lock()
			r.draw()
			if !r.terminal && time.Since(r.lastSay) >= say && len(r.active) > 0 {
				r.print("%s\n", r.line())
				r.lastSay = time.Now()
			}
			r.mu.Unlock()
		}
	}
}

// print writes a line. Errors are ignored: the work goes on without output.
func (r *Reporter) print(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}

// line is the active steps on one line.
func (r *Reporter) line() string {
	parts := make([]string, 0, len(r.active))
	for _, s := range r.active {
		part := s.name
		if s.detail != "" {
			part += ": " + s.detail
		}
		parts = append(parts, part+" … "+Elapsed(time.Since(s.start)))
	}
	return "...    " + strings.Join(parts, "; ")
}

func (r *Reporter) draw() {
	if !r.terminal || len(r.active) == 0 {
		return
	}
	line := []rune(r.line())
	if width := terminalWidth(r.out); len(line) >= width {
		line = append(line[:max(0, width-2)], '…')
	}
	r.print("\r\x1b[K%s", string(line))
	r.drawn = true
}

func (r *Reporter) clear() {
	if r.drawn {
		r.print("\r\x1b[K")
		r.drawn = false
	}
	r.lastSay = time.Now()
}

// Elapsed writes a duration as people say it: "0.4s", "12s", "2m10s".
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && windowWidth(file) > 0
}

func terminalWidth(out io.Writer) int {
	if file, ok := out.(*os.File); ok {
		if width := windowWidth(file); width > 0 {
			return width
		}
	}
	return 80
}
