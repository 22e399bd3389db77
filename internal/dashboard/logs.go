package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
)

// streamLogs sends the lines of a job's pods as they come, or as a file with the parameter download: true for text, json for JSON Lines.
func (s *Server) streamLogs(c *call, w http.ResponseWriter) error {
	options, err := logOptions(c.URL.Query())
	if err != nil {
		return err
	}
	download := c.URL.Query().Get("download")
	job, err := c.findOrUID()
	if err != nil {
		return err
	}
	options.Selector, options.Place, options.Hosts = labels.Set(job.PodLabels()).String(), c.jobs.OwnPlace(c.ctx, job), job.Hosts()
	s.bound(c, &options)
	if download != "" {
		options.Follow = false
		return s.downloadLogs(c, job, options, download == downloadJSON, w)
	}
	if job.Object != nil {
		if allowed, err := c.may(c.ctx, "get", corev1.Resource("pods/log"), job.Namespace); err != nil || !allowed {
			return errors.Join(err, jobs.Invalid(jobs.FieldError{Reason: "you may not read the logs of pods in namespace " + job.Namespace + "; ask for the role view"}))
		}
	}
	out := &logWriter{out: newEvents(w), sent: parsePosition(c.Header.Get("Last-Event-ID"))}
	out.resumed = resumption{sent: maps.Clone(out.sent), again: map[string]int{}}
	if from := out.sent.start(); !from.IsZero() && from.After(options.SinceTime) {
		options.SinceTime, options.Since, options.Tail = from, 0, nil
	}
	options.Waits, options.Says = out.waits, out.note
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	go out.beats(ctx, cancel)
	stats, err := s.readLogs(ctx, c, job, options, out)
	if c.ctx.Err() != nil || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return out.fail(err)
	}
	out.event(LogEvent{Done: true, Untagged: stats.WithoutRank})
	return nil
}

// bound makes reading logs stay within the limits of memory of a user and of all.
func (s *Server) bound(c *call, options *logstream.Options) {
	name := c.named()
	options.Budget, options.Open = s.logLines, func() (func(), error) { return s.logs.acquire(name, 1) }
}

// readLogs sends the complete logs of a job that has ended, if there are any; else the lines of pods, or those in the report if the pods are
// deleted.
func (s *Server) readLogs(ctx context.Context, c *call, job jobs.Job, options logstream.Options, out *logWriter) (logstream.Stats, error) {
	if stored, has, err := s.stored(ctx, job); err != nil {
		out.note(phrase.Sentence(err.Error()))
	} else if has {
		out.note(phrase.Sentence("These are the complete logs, " + job.CompleteLogsText() + after(": ", job.CompleteLogsNote())))
		return stored.Run(ctx, options, out.lines)
	}
	if job.Object == nil {
		out.reported(job, options)
		return logstream.Stats{}, nil
	}
	if job.Ended() {
		options.Follow, options.Kept = false, job.KeptLogs()
	}
	if options.Follow {
		over := make(chan struct{})
		options.Over = over
		go func() {
			c.jobs.AwaitEnd(ctx, job, nil)
			close(over)
		}()
	}
	stats, err := logstream.Run(ctx, c.logs.Pods(job.Namespace), options, out.lines)
	if err == nil && stats.Runs == 0 && len(out.sent) == 0 {
		out.reported(job, options)
	}
	return stats, err
}

// downloadLogs sends lines as a file: of text, or of JSON Lines as those of logs -o json.
func (s *Server) downloadLogs(c *call, job jobs.Job, options logstream.Options, asJSON bool, w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	contentType, ending, writeLine := "text/plain; charset=utf-8", "log", printLine
	if asJSON {
		contentType, ending = "application/jsonl", "jsonl"
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		writeLine = func(_ io.Writer, line logstream.Line) error { return encoder.Encode(line.Record()) }
	}
	w.Header().Set("Content-Type", contentType)
	// Names of Kubernetes objects need no quoting.
	w.Header().Set("Content-Disposition", `attachment; filename="`+job.Namespace+"-"+job.Name+"."+ending+`"`)
	write := func(lines []logstream.Line) error {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		for _, line := range lines {
			if err := writeLine(w, line); err != nil {
				return err
			}
		}
		return nil
	}
	// A file has no place for a note that the complete logs cannot be read.
	if stored, has, err := s.stored(c.ctx, job); has && err == nil {
		if _, err := stored.Run(c.ctx, options, write); err != nil {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	kept := func() error { return write(job.KeptLogs().Recall(options)) }
	if job.Object == nil {
		return kept()
	}
	if job.Ended() {
		options.Kept = job.KeptLogs()
	}
	stats, err := logstream.Run(c.ctx, c.logs.Pods(job.Namespace), options, write)
	if err != nil {
		// The status was sent: end the connection, so that the file is not taken for a complete one.
		panic(http.ErrAbortHandler)
	}
	if stats.Runs == 0 && stats.Lines == 0 {
		return kept()
	}
	return nil
}

// printLine prints a line as text: its time, its pod with its rank, and what was printed.
func printLine(w io.Writer, line logstream.Line) error {
	at := "-"
	if !line.Time.IsZero() {
		at = line.Time.UTC().Format(time.RFC3339Nano)
	}
	_, err := fmt.Fprintf(w, "%s [%s%s] %s\n", at, line.Place, rankTag(line.Rank), phrase.Printable(line.Text))
	return err
}

func rankTag(rank int) string {
	if rank == logstream.NoRank {
		return ""
	}
	return " r" + strconv.Itoa(rank)
}
