// Package steps tells the person at the terminal what is being done and how
// long it has taken.
package steps

import (
	"fmt"
	"io"
	"time"
)

// Log prints one line per step, with the time since the log began.
type Log struct {
	out   io.Writer
	now   func() time.Time
	began time.Time
}

// New returns a log that begins now. The clock is a parameter so that tests
// are free of it; programs pass time.Now.
func New(out io.Writer, now func() time.Time) *Log {
	return &Log{out: out, now: now, began: now()}
}

// Step prints a line such as " 12.3s  compile ./cmd/operator". A terminal that
// went away is no reason to stop, so errors of the writer are not reported.
func (l *Log) Step(format string, args ...any) {
	elapsed := l.now().Sub(l.began).Seconds()
	_, _ = fmt.Fprintf(l.out, "%6.1fs  %s\n", elapsed, fmt.Sprintf(format, args...))
}
