package dashboard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// position is how far the log of each pod was sent: the time of the last line, and how many lines of that time. It is the ID
// of a log event, so that a stream continues after a lost connection, also on another replica: no line twice, and none lost.
type logPosition map[string]podPosition

type podPosition struct {
	Time  int64 `json:"t"` // in nanoseconds
	Count int   `json:"n"`
}

func parsePosition(id string) logPosition {
	data, err := base64.RawURLEncoding.DecodeString(id)
	var position logPosition
	if err != nil || json.Unmarshal(data, &position) != nil || position == nil {
		return logPosition{}
	}
	return position
}

func (p logPosition) id() string {
	data, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// start returns from when on logs have to be read again; zero for the beginning. The API takes whole seconds.
func (p logPosition) start() time.Time {
	var first int64
	for _, pod := range p {
		if first == 0 || pod.Time < first {
			first = pod.Time
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return time.Unix(0, first).Add(-time.Second).Truncate(time.Second)
}

// resumption leaves out the lines that were sent before.
type resumption struct {
	sent logPosition
	// again counts the lines at the last time of each pod that were read again.
	again map[string]int
}

// isNew reports whether a line was not sent before.
func (r *resumption) isNew(line logstream.Line) bool {
	before, known := r.sent[line.Pod]
	if !known {
		return true
	}
	switch at := line.Time.UnixNano(); {
	case at < before.Time:
		return false
	case at == before.Time:
		r.again[line.Pod]++
		return r.again[line.Pod] > before.Count
	}
	return true
}

// advance records a line as sent.
func (p logPosition) advance(line logstream.Line) {
	at := line.Time.UnixNano()
	switch last := p[line.Pod]; {
	case at == last.Time:
		p[line.Pod] = podPosition{at, last.Count + 1}
	case at > last.Time:
		p[line.Pod] = podPosition{at, 1}
	}
}

// logOptions reads the options of a stream from the parameters of a URL. It returns jobs.InvalidError with all errors.
func logOptions(values url.Values) (logstream.Options, error) {
	options := logstream.Options{Container: values.Get("container"), Follow: values.Get("follow") == "true", Previous: values.Get("previous") == "true", Levels: true}
	filter := &options.Filter
	filter.Launcher = values.Get("launcher") == "true"
	var errs []jobs.FieldError
	parse := func(name string, read func(string) error) {
		if text := values.Get(name); text != "" {
			if err := read(text); err != nil {
				errs = append(errs, jobs.FieldError{Field: name, Reason: err.Error()})
			}
		}
	}
	var err error
	parse("ranks", func(text string) error { filter.Ranks, err = logstream.ParseSet(text); return err })
	parse("workers", func(text string) error { filter.Workers, err = logstream.ParseSet(text); return err })
	parse("level", func(text string) error { filter.Level, err = logs.ParseLevel(text); return err })
	parse("grep", func(text string) error {
		if len(text) > 1000 {
			return errors.New("is longer than 1000 characters")
		}
		filter.Grep, err = regexp.Compile(text)
		return err
	})
	parse("since", func(text string) error {
		options.Since, err = time.ParseDuration(text)
		if err == nil && options.Since <= 0 {
			return fmt.Errorf("%s is not allowed; use a duration such as 10m", text)
		}
		return err
	})
	parse("from", func(text string) error { options.SinceTime, err = parseTime(text); return err })
	parse("to", func(text string) error {
		if options.Until, err = parseTime(text); err == nil && options.Until.Before(options.SinceTime) {
			return errors.New("is before the start of the range")
		}
		return err
	})
	parse("tail", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is not allowed; use 0 or more", text)
		}
		options.Tail = &n
		return nil
	})
	if options.Follow && options.Previous {
		errs = append(errs, jobs.FieldError{Field: "previous", Reason: "cannot be combined with follow"})
	}
	if len(errs) > 0 {
		return options, jobs.Invalid(errs...)
	}
	return options, nil
}

func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%s is not a time; use a value such as 2026-11-21T13:00:00Z", text)
	}
	return at, nil
}

// streamLogs sends the lines of a job's pods as they come, or as a file with the parameter download.
func (s *Server) streamLogs(c *call, w http.ResponseWriter) error {
	options, err := logOptions(c.URL.Query())
	if err != nil {
		return err
	}
	job, err := c.findOrUID()
	if err != nil {
		return err
	}
	options.Selector, options.Place, options.Hosts = labels.Set(job.PodLabels()).String(), c.jobs.OwnPlace(c.ctx, job), job.Hosts()
	if c.URL.Query().Get("download") == "true" {
		options.Follow = false
		return c.downloadLogs(job, options, w)
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
	stats, err := c.readLogs(ctx, job, options, out)
	if c.ctx.Err() != nil || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return out.fail(err)
	}
	out.event(LogEvent{Done: true, Untagged: stats.WithoutRank})
	return nil
}

// readLogs sends the lines of pods; the lines in the report if the pods are deleted.
func (c *call) readLogs(ctx context.Context, job jobs.Job, options logstream.Options, out *logWriter) (logstream.Stats, error) {
	if job.Object == nil {
		out.reported(job, options)
		return logstream.Stats{}, nil
	}
	if job.Ended() {
		options.Follow = false
	}
	if options.Follow {
		over := make(chan struct{})
		options.Over = over
		go func() {
			c.jobs.AwaitEnd(ctx, job, nil)
			close(over)
		}()
	}
	stats, err := logstream.Run(ctx, c.clientset.CoreV1().Pods(job.Namespace), options, out.lines)
	if err == nil && stats.Runs == 0 && len(out.sent) == 0 {
		out.reported(job, options)
	}
	return stats, err
}

// downloadLogs sends lines as a text file.
func (c *call) downloadLogs(job jobs.Job, options logstream.Options, w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// Names of Kubernetes objects need no quoting.
	w.Header().Set("Content-Disposition", `attachment; filename="`+job.Namespace+"-"+job.Name+`.log"`)
	write := func(lines []logstream.Line) error {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		for _, line := range lines {
			at := "-"
			if !line.Time.IsZero() {
				at = line.Time.UTC().Format(time.RFC3339Nano)
			}
			if _, err := fmt.Fprintf(w, "%s [%s%s] %s\n", at, line.Place, rankTag(line.Rank), phrase.Printable(line.Text)); err != nil {
				return err
			}
		}
		return nil
	}
	if job.Object == nil {
		return write(recall(job, options))
	}
	_, err := logstream.Run(c.ctx, c.clientset.CoreV1().Pods(job.Namespace), options, write)
	if err != nil {
		// The status was sent: end the connection, so that the file is not taken for a complete one.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func rankTag(rank int) string {
	if rank == logstream.NoRank {
		return ""
	}
	return " r" + strconv.Itoa(rank)
}

// recall returns the lines in a job's report.
func recall(job jobs.Job, options logstream.Options) []logstream.Line {
	failure := job.Status().Failure
	if failure == nil {
		return nil
	}
	options.Hosts = job.Hosts()
	places := map[string]logstream.Place{}
	for _, pod := range job.Status().Pods {
		places[pod.Name] = logstream.Place{Role: mpi.Role(pod.Role), Index: int(pod.Index)}
	}
	return logstream.Recall(failure.LogTail, places, options)
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

func asLogLine(line logstream.Line) LogLine {
	shown := LogLine{Pod: line.Pod, Place: line.Place.String(), Rank: line.Rank, Level: line.Level.String(), Text: phrase.Printable(line.Text)}
	if !line.Time.IsZero() {
		shown.Time = line.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return shown
}

// reported sends the lines in a job's report.
func (o *logWriter) reported(job jobs.Job, options logstream.Options) {
	lines := recall(job, options)
	switch {
	case len(lines) > 0:
		o.note("The pods are deleted. These are the last log lines in the job's report.")
	case job.Report == nil || job.Report.Status.CompletionTime == nil && job.Object != nil:
		o.note("No pod has run yet.")
	default:
		o.note("The pods and their logs are deleted. Reports only contain the logs of failed jobs.")
	}
	event := LogEvent{}
	for _, line := range lines {
		event.Lines = append(event.Lines, asLogLine(line))
	}
	o.event(event)
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
