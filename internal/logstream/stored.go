package logstream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"opendatahub.io/mpijob/internal/logs"
)

// maxFetches is how many objects are fetched at once.
const maxFetches = 16

// Stored are the complete logs of a job that has ended, as an administrator's bucket keeps them.
type Stored struct {
	Index logs.Index
	// Places are those of the pods by name.
	Places map[string]Place
	// Fetch returns the object at an address of the index, which has at most some bytes.
	Fetch func(ctx context.Context, url string, most int) ([]byte, error)
}

// Run gives the lines to a sink as the function Run gives those of pods: in the order of time, and filtered. It only fetches objects that
// may contain lines that are asked for.
func (s Stored) Run(ctx context.Context, options Options, sink func([]Line) error) (Stats, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if options.Since > 0 {
		options.SinceTime = time.Now().Add(-options.Since)
	}
	if options.Open != nil {
		// The objects of all pods count as one log: few are read at once.
		closed, err := options.Open()
		if err != nil {
			return Stats{}, err
		}
		defer closed()
	}
	f := &follower{options: options, merger: newMerger(options.Budget), atlas: atlas{hosts: options.Hosts}, cancel: cancel}
	fetches := make(chan struct{}, maxFetches)
	var all sync.WaitGroup
	for _, pod := range s.Index.Pods {
		at := s.Places[pod.Name]
		if !options.Filter.reads(at) {
			continue
		}
		f.runs++
		reader := &storedReader{stored: s, follower: f, pod: pod, place: at, queue: f.merger.addStored(), fetches: fetches}
		all.Go(func() {
			defer reader.queue.end()
			if err := reader.read(ctx); err != nil {
				cancel(err)
			}
		})
	}
	f.merger.close()
	return f.deliver(ctx, sink, &all)
}

// storedReader reads the stored lines of one pod.
type storedReader struct {
	stored   Stored
	follower *follower
	pod      logs.IndexedPod
	place    Place
	queue    *queue
	fetches  chan struct{}
	levels   levels
	batch    []Line
	// skip is how many lines are left out because only the last ones are asked for.
	skip int
}

func (r *storedReader) read(ctx context.Context) error {
	options := r.follower.options
	if options.Tail != nil {
		for _, part := range r.pod.Parts {
			r.skip += part.Lines
		}
		r.skip = max(0, r.skip-int(*options.Tail))
	}
	for _, part := range r.pod.Parts {
		switch {
		case r.skip >= part.Lines:
			r.skip -= part.Lines
			continue
		case part.Last.Before(options.SinceTime):
			r.skip = 0
			continue
		case !options.Until.IsZero() && part.First.After(options.Until):
			return nil
		}
		r.queue.reached(part.First)
		data, err := r.fetch(ctx, part)
		if err != nil {
			return err
		}
		if err := r.readPart(ctx, data); err != nil {
			return err
		}
	}
	return nil
}

// fetch returns the compressed data of a part.
func (r *storedReader) fetch(ctx context.Context, part logs.IndexedPart) ([]byte, error) {
	select {
	case r.fetches <- struct{}{}:
		defer func() { <-r.fetches }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	data, err := r.stored.Fetch(ctx, part.URL, logs.MaxPartData)
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", r.pod.Name, err)
	}
	return data, nil
}

func (r *storedReader) readPart(ctx context.Context, data []byte) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read the log of pod %s: %w", r.pod.Name, err)
	}
	const buffer, most = 32 << 10, logs.MaxStoredLine + 1<<10
	reader := bufio.NewReaderSize(zip, buffer)
	for {
		raw, err := ReadLine(reader, most)
		switch {
		case errors.Is(err, io.EOF):
			return r.push(ctx)
		case err != nil:
			return fmt.Errorf("read the log of pod %s: %w", r.pod.Name, err)
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		line, err := logs.ParseLine(string(raw))
		if err != nil {
			return fmt.Errorf("read the log of pod %s: %w", r.pod.Name, err)
		}
		const mostLines = 256
		if r.add(line); len(r.batch) >= mostLines {
			if err := r.push(ctx); err != nil {
				return err
			}
		}
	}
}

// add adds a line if it is asked for.
func (r *storedReader) add(stored logs.PodLine) {
	options := r.follower.options
	line := Line{Time: stored.Time, Pod: r.pod.Name}
	line.Place, line.Rank, line.Text = r.follower.atlas.read(r.place, stored.Text)
	line.Level = r.levels.of(line)
	if line.Time.Before(options.SinceTime) || !options.Until.IsZero() && line.Time.After(options.Until) {
		return
	}
	if r.follower.wants(r.place, line) {
		r.batch = append(r.batch, line)
	}
}

func (r *storedReader) push(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	err := r.queue.push(ctx, r.batch, r.batch[len(r.batch)-1].Time)
	r.batch = r.batch[:0]
	return err
}
