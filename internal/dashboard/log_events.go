package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
)

// LogEvent is an event of a stream of logs.
type LogEvent struct {
	Lines []LogLine `json:"lines,omitempty"`
	// Waiting are the pods that have not started, and why; null if that has not changed.
	Waiting []string `json:"waiting"`
	Note    string   `json:"note,omitempty"`
	// Done is set when there are no more lines; Untagged is the number of lines that were left out because their rank is
	// unknown.
	Done     bool `json:"done,omitempty"`
	Untagged int  `json:"untagged,omitempty"`
}

// LogLine is a line of a log.
type LogLine struct {
	// Time is empty if unknown.
	Time string `json:"t,omitempty"`
	Pod  string `json:"p"`
	// Place is launcher, launcher#2 or worker-2.
	Place string `json:"w"`
	// Rank is -1 if unknown.
	Rank  int    `json:"r"`
	Level string `json:"l,omitempty"`
	Text  string `json:"x"`
}

func asLogLine(line logstream.Line) LogLine {
	shown := LogLine{Pod: line.Pod, Place: line.Place.String(), Rank: line.Rank, Level: line.Level.String(), Text: phrase.Printable(line.Text)}
	if !line.Time.IsZero() {
		shown.Time = line.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return shown
}

// logWriter sends log events. Its methods may be called by several goroutines.
type logWriter struct {
	mu      sync.Mutex
	out     *events
	sent    logPosition
	resumed resumption
	failed  error
}

// maxLines is the maximum number of lines in an event.
const maxLines = 1000

func (o *logWriter) lines(lines []logstream.Line) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(lines) > 0 && o.failed == nil {
		event := LogEvent{}
		n := min(len(lines), maxLines)
		for _, line := range lines[:n] {
			if o.resumed.isNew(line) {
				event.Lines = append(event.Lines, asLogLine(line))
				o.sent.advance(line)
			}
		}
		lines = lines[n:]
		if len(event.Lines) > 0 {
			o.failed = o.out.send("log", o.sent.id(), event)
		}
	}
	return o.failed
}

// reportedNote describes the lines in the report of a job without pods.
func reportedNote(job jobs.Job) string {
	kept := job.KeptLogs()
	missing := after(": ", kept.Note)
	switch {
	case len(kept.Lines) > 0:
		return phrase.Sentence("The pods are deleted. These are the last log lines in the job's report" + missing)
	case job.Report == nil || job.Report.Status.CompletionTime == nil && job.Object != nil:
		return "No pod has run yet."
	}
	return phrase.Sentence("The pods and their logs are deleted, and the job's report has no log lines" + missing)
}

// reported sends the lines in a job's report.
func (o *logWriter) reported(job jobs.Job, options logstream.Options) {
	o.note(reportedNote(job))
	for part := range slices.Chunk(job.KeptLogs().Recall(options), maxLines) {
		event := LogEvent{}
		for _, line := range part {
			event.Lines = append(event.Lines, asLogLine(line))
		}
		o.event(event)
	}
}

func (o *logWriter) waits(waiting []logstream.Waiting) {
	event := LogEvent{Waiting: []string{}}
	for _, pod := range waiting {
		event.Waiting = append(event.Waiting, pod.Place.String()+": "+pod.Reason)
	}
	o.event(event)
}

func (o *logWriter) note(text string) { o.event(LogEvent{Note: text}) }

func (o *logWriter) event(event LogEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = o.out.send("log", "", event)
	}
}

func (o *logWriter) fail(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.fail(err)
}

// beats sends heartbeats until the context ends, and cancels it when the client has left.
func (o *logWriter) beats(ctx context.Context, cancel func()) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			o.mu.Lock()
			if o.failed == nil {
				o.failed = o.out.beat()
			}
			failed := o.failed
			o.mu.Unlock()
			if failed != nil {
				cancel()
				return
			}
		}
	}
}
