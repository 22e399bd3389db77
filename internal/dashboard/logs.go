package dashboard

import (
	"context"
	"encoding/json"
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
	if job.Object != nil {
		if allowed, err := c.may(c.ctx, "get", corev1.Resource("pods/log"), job.Namespace); err != nil {
			return err
		} else if !allowed {
			return &forbiddenError{"you may not read the logs of pods in namespace " + job.Namespace + "; ask for the role view"}
		}
	}
	if download != "" {
		options.Follow = false
		return s.downloadLogs(c, job, options, download == downloadJSON, w)
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
	stored, closed, err := s.openStored(ctx, c.named(), job)
	switch {
	case isBusy(err):
		return logstream.Stats{}, err
	case err != nil:
		out.note(phrase.Sentence(unreadNote(err)))
	case stored != nil:
		defer closed()
		out.note(phrase.Sentence("These are the complete logs: " + job.CompleteLogsNotice()))
		options.Open = nil
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

// downloadLogs sends lines as a file: of text, or of JSON Lines as those of logs -o json. If lines may be missing, the first line of the file is
// a note.
func (s *Server) downloadLogs(c *call, job jobs.Job, options logstream.Options, asJSON bool, w http.ResponseWriter) error {
	stored, closed, storedErr := s.openStored(c.ctx, c.named(), job)
	if isBusy(storedErr) {
		return storedErr
	}
	file := newLogFile(w, job, asJSON)
	defer file.limitWrite()
	if stored != nil {
		defer closed()
		options.Open = nil
		err := file.note(job.CompleteLogsNote())
		if err == nil {
			_, err = stored.Run(c.ctx, options, file.lines)
		}
		return abortOn(err)
	}
	if storedErr != nil {
		if err := file.note(unreadNote(storedErr)); err != nil {
			return abortOn(err)
		}
	}
	if job.Object != nil {
		if job.Ended() {
			options.Kept = job.KeptLogs()
		}
		stats, err := logstream.Run(c.ctx, c.logs.Pods(job.Namespace), options, file.lines)
		if err != nil || stats.Runs > 0 || stats.Lines > 0 {
			return abortOn(err)
		}
	}
	if err := file.note(reportedNote(job)); err != nil {
		return abortOn(err)
	}
	return abortOn(file.lines(job.KeptLogs().Recall(options)))
}

// abortOn ends the connection if there is an error: the status was sent, and the file must not be taken for a whole one.
func abortOn(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// logFile writes a file with lines.
type logFile struct {
	w       io.Writer
	control *http.ResponseController
	// json is nil for a file of text.
	json *json.Encoder
}

func newLogFile(w http.ResponseWriter, job jobs.Job, asJSON bool) *logFile {
	f := &logFile{w: w, control: http.NewResponseController(w)}
	contentType, ending := "text/plain; charset=utf-8", "log"
	if asJSON {
		contentType, ending = "application/jsonl", "jsonl"
		f.json = json.NewEncoder(w)
		f.json.SetEscapeHTML(false)
	}
	w.Header().Set("Content-Type", contentType)
	// Names of Kubernetes objects need no quoting.
	w.Header().Set("Content-Disposition", `attachment; filename="`+job.Namespace+"-"+job.Name+"."+ending+`"`)
	f.unlimitWrite()
	return f
}

// limitWrite limits how long the client may take to receive what is written next.
func (f *logFile) limitWrite() { _ = f.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// unlimitWrite ends the limit: reading logs may find no line for long that a filter lets through.
func (f *logFile) unlimitWrite() { _ = f.control.SetWriteDeadline(time.Time{}) }

func (f *logFile) lines(lines []logstream.Line) error {
	f.limitWrite()
	defer f.unlimitWrite()
	for _, line := range lines {
		var err error
		if f.json != nil {
			err = f.json.Encode(line.Record())
		} else {
			err = printLine(f.w, line)
		}
		if err != nil {
			return err
		}
	}
	return f.control.Flush()
}

// note writes a text about the lines, if it is not empty.
func (f *logFile) note(text string) error {
	switch {
	case text == "":
		return nil
	case f.json != nil:
		return f.json.Encode(map[string]string{"note": phrase.Sentence(text)})
	}
	_, err := fmt.Fprintf(f.w, "# %s\n", phrase.Printable(phrase.Sentence(text)))
	return err
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
