package logstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/logs"
)

// mostLine is how many bytes of a line are kept.
const mostLine = 256 << 10

// stream reads the log of one run of a container.
type stream struct {
	follower *follower
	run      *run
	queue    *queue
	resume   Resume
	mask     *logs.Stream

	batch      []Line
	batchBytes int
	readTo     time.Time
	levels     levels
	// again is set once something was read, so that the next request asks for what comes after.
	again bool
}

// errGone says that the kubelet has removed the log.
var errGone = errors.New("its log was removed")

// errUntil says that the rest of the log is newer than what the options ask for.
var errUntil = errors.New("the rest of the log is newer")

// LogGone begins what a kubelet answers in place of the log of a container that was removed, and as if it were one
// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go).
const LogGone = "unable to retrieve container logs for "

// read reads the log from where it was left, and waits for more if it is to be followed. Without an error all of it was
// read, up to where the server has ended it.
func (s *stream) read(ctx context.Context, follow bool) error {
	s.resume.Again()
	body, err := s.follower.pods.GetLogs(s.run.pod, s.request(follow)).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	s.queue.opened()
	err = s.lines(ctx, bufio.NewReaderSize(body, 32<<10), follow)
	if pushErr := s.push(ctx); pushErr != nil {
		return pushErr
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// lines takes line after line, and pushes them. It returns with the error of the last: io.EOF at the end.
func (s *stream) lines(ctx context.Context, reader *bufio.Reader, follow bool) error {
	for {
		if s.isWorthPushing(reader) {
			if err := s.push(ctx); err != nil {
				return err
			}
		}
		line, err := ReadLine(reader, mostLine+logs.CutMargin)
		// A followed log that ends within a line was cut; it is read again.
		if err == nil || errors.Is(err, io.EOF) && !follow && len(line) > 0 {
			if gone := s.add(line); gone != nil {
				return gone
			}
		}
		if err != nil {
			return err
		}
	}
}

// request asks for the log as the user wants it, or after a cut for what comes since.
func (s *stream) request(follow bool) *corev1.PodLogOptions {
	options := s.follower.options
	request := &corev1.PodLogOptions{Container: s.run.container, Follow: follow, Previous: s.run.isPrevious(), Timestamps: true}
	switch {
	case s.again:
		request.SinceTime = &metav1.Time{Time: s.resume.From()}
		return request
	case !options.SinceTime.IsZero():
		request.SinceTime = &metav1.Time{Time: options.SinceTime}
	case options.Since > 0:
		request.SinceSeconds = new(int64((options.Since + time.Second - 1) / time.Second))
	}
	request.TailLines = options.Tail
	return request
}

// isWorthPushing reports whether lines should not wait for the next one: there are many, or the next may take a while.
func (s *stream) isWorthPushing(reader *bufio.Reader) bool {
	const mostLines, mostBytes = 256, 64 << 10
	if len(s.batch) >= mostLines || s.batchBytes >= mostBytes {
		return true
	}
	next, _ := reader.Peek(reader.Buffered())
	return bytes.IndexByte(next, '\n') < 0 && (len(s.batch) > 0 || s.readTo.After(s.queue.readTo))
}

func (s *stream) push(ctx context.Context) error {
	err := s.queue.push(ctx, s.batch, s.readTo)
	s.batch, s.batchBytes = s.batch[:0], 0
	return err
}

// add takes a line as the kubelet sends it, its time first.
func (s *stream) add(raw []byte) error {
	stamp, text, _ := bytes.Cut(raw, []byte(" "))
	var at time.Time
	err := at.UnmarshalText(stamp)
	switch {
	case err == nil:
		if !s.resume.IsNew(at) {
			return nil
		}
		if until := s.follower.options.Until; !until.IsZero() && at.After(until) {
			return errUntil
		}
		s.again = true
	case bytes.HasPrefix(raw, []byte(LogGone)):
		return errGone
	default:
		at, text = s.resume.Newest, raw
	}
	if at.After(s.readTo) {
		s.readTo = at
	}
	line := Line{Time: at, Pod: s.run.pod, Text: s.mask.LineWithin(string(text), mostLine)}
	line.Place, line.Rank, line.Text = s.follower.atlas.read(s.run.place, line.Text)
	filter := s.follower.options.Filter
	if filter.Level > logs.LevelNone || s.follower.options.Levels {
		line.Level = s.levels.of(line)
	}
	if s.follower.wants(s.run.place, line) {
		s.batch = append(s.batch, line)
		s.batchBytes += len(line.Text)
	}
	return nil
}

// levels are those of the last line of each rank.
type levels map[int]logs.Level

// of returns the level of the next line: its own, or that of the line before it where it goes on with that, as the lines of a traceback do.
func (l *levels) of(line Line) logs.Level {
	level := logs.LevelOf(line.Text)
	if level == logs.LevelNone && strings.HasPrefix(line.Text, " ") {
		return (*l)[line.Rank]
	}
	if *l == nil {
		*l = levels{}
	}
	(*l)[line.Rank] = level
	return level
}

// ReadLine reads up to the end of a line, which it leaves out, and drops what is beyond so many bytes. The line is good
// until the next read. With an error it is what came before that.
func ReadLine(reader *bufio.Reader, most int) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = reader.ReadSlice('\n')
		long = append(long, line[:min(len(line), max(0, most+64-len(long)))]...)
	}
	return bytes.TrimSuffix(long, []byte("\n")), err
}
