package logstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// objects are the objects of a bucket by their addresses, and which ones were fetched.
type objects struct {
	mu      sync.Mutex
	data    map[string][]byte
	fetched []string
}

func (o *objects) fetch(_ context.Context, url string, most int) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fetched = append(o.fetched, url)
	data, has := o.data[url]
	if !has {
		return nil, errors.New("404 Not Found")
	}
	if most != logs.MaxPartData {
		return nil, fmt.Errorf("at most %d bytes", most)
	}
	return data, nil
}

// add adds an object with lines, one a minute from a minute on, and returns its entry in an index.
func (o *objects) add(url, pod string, minute int, texts ...string) logs.IndexedPart {
	var text []byte
	at := func(i int) time.Time { return recalledAt.Add(time.Duration(minute+i) * time.Minute) }
	for i, line := range texts {
		text = logs.AppendLine(text, logs.PodLine{Pod: pod, Time: at(i), Text: line})
	}
	o.data[url] = zipped(string(text))
	return logs.IndexedPart{URL: url, First: at(0), Last: at(len(texts) - 1), Lines: len(texts)}
}

func zipped(text string) []byte {
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
	return data.Bytes()
}

func storedLogs() (Stored, *objects) {
	o := &objects{data: map[string][]byte{}}
	index := logs.Index{Pods: []logs.IndexedPod{
		{Name: "l", Parts: []logs.IndexedPart{o.add("l1", "l", 0, "start", "[1,1]<stdout>:ERROR bad"), o.add("l2", "l", 10, "  more", "end")}},
		{Name: "w0", Parts: []logs.IndexedPart{o.add("w0", "w0", 5, "hello")}},
		{Name: "w1", Parts: []logs.IndexedPart{o.add("w1", "w1", 20, "bye", `{"time":"x","level":"INFO","logger":"mpi-agent"}`)}},
	}}
	return Stored{Index: index, Places: keptLines().Places, Fetch: o.fetch}, o
}

// TestStored: stored lines are filtered as those of pods, in the order of time, and only objects are fetched that may contain some.
func TestStored(t *testing.T) {
	t.Parallel()
	set := func(first int) Set { return Set{{First: first, Last: first}} }
	for name, test := range map[string]struct {
		options Options
		want    string
		fetched string
	}{
		"all":        {Options{}, "l:start l:ERROR bad w0:hello l:  more l:end w1:bye", "l1 l2 w0 w1"},
		"agents":     {Options{Filter: Filter{Agent: true}}, `l:start l:ERROR bad w0:hello l:  more l:end w1:bye w1:{"time":"x","level":"INFO","logger":"mpi-agent"}`, "l1 l2 w0 w1"},
		"a rank":     {Options{Filter: Filter{Ranks: set(1)}}, "l:ERROR bad w1:bye", "l1 l2 w0 w1"},
		"a worker":   {Options{Filter: Filter{Workers: set(0)}}, "w0:hello", "l1 l2 w0"},
		"a level":    {Options{Filter: Filter{Level: logs.LevelError}}, "l:ERROR bad", "l1 l2 w0 w1"},
		"the last":   {Options{Tail: new(int64(1)), Filter: Filter{Agent: true}}, `w0:hello l:end w1:{"time":"x","level":"INFO","logger":"mpi-agent"}`, "l2 w0 w1"},
		"none":       {Options{Tail: new(int64(0))}, "", ""},
		"since":      {Options{SinceTime: recalledAt.Add(11 * time.Minute)}, "l:end w1:bye", "l2 w1"},
		"until":      {Options{Until: recalledAt.Add(5 * time.Minute)}, "l:start l:ERROR bad w0:hello", "l1 w0"},
		"long since": {Options{Since: time.Second}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored, o := storedLogs()
			test.options.Hosts = Hosts{Slots: 1, Ranks: 2}
			var got []string
			stats, err := stored.Run(t.Context(), test.options, func(lines []Line) error {
				for _, line := range lines {
					got = append(got, line.Pod+":"+line.Text)
				}
				return nil
			})
			if err != nil || strings.Join(got, " ") != test.want || stats.Lines != len(got) {
				t.Errorf("lines %q, want %q: %v", strings.Join(got, " "), test.want, err)
			}
			if fetched := strings.Join(slices.Sorted(slices.Values(o.fetched)), " "); fetched != test.fetched {
				t.Errorf("fetched are %q, want %q", fetched, test.fetched)
			}
		})
	}
}

// TestStoredIsDamaged: objects that are missing or damaged are errors that name their pod, and so is a sink that fails.
func TestStoredIsDamaged(t *testing.T) {
	t.Parallel()
	errFull := errors.New("no space")
	for name, test := range map[string]struct {
		data  []byte
		sink  error
		wrong string
	}{
		"missing": {nil, nil, "read the log of pod w0: 404 Not Found"},
		"no gzip": {[]byte("text"), nil, "read the log of pod w0: "},
		"no line": {zipped("text\n"), nil, "read the log of pod w0: the complete logs are damaged"},
		"cut":     {zipped(strings.Repeat("2026-11-21T10:00:00.000000000Z [w0] x\n", 10))[:30], nil, "read the log of pod w0: "},
		"sink":    {zipped(""), errFull, "no space"},
	} {
		stored, o := storedLogs()
		if o.data["w0"] = test.data; test.data == nil {
			delete(o.data, "w0")
		}
		_, err := stored.Run(t.Context(), Options{}, func([]Line) error { return test.sink })
		if err == nil || !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
}

// TestManyStoredLines: the lines of many pods are merged in the order of time, each once.
func TestManyStoredLines(t *testing.T) {
	t.Parallel()
	const pods, parts, each = 40, 3, 200
	o := &objects{data: map[string][]byte{}}
	stored := Stored{Places: map[string]Place{}, Fetch: o.fetch}
	for p := range pods {
		pod := logs.IndexedPod{Name: fmt.Sprintf("w%d", p)}
		stored.Places[pod.Name] = Place{Role: mpi.RoleWorker, Index: p}
		for i := range parts {
			texts := make([]string, each)
			for j := range texts {
				texts[j] = fmt.Sprint("line ", i*each+j)
			}
			pod.Parts = append(pod.Parts, o.add(fmt.Sprintf("%d-%d", p, i), pod.Name, i*each, texts...))
		}
		stored.Index.Pods = append(stored.Index.Pods, pod)
	}
	var newest time.Time
	next := map[string]int{}
	_, err := stored.Run(t.Context(), Options{}, func(lines []Line) error {
		for _, line := range lines {
			if line.Time.Before(newest) || line.Text != fmt.Sprint("line ", next[line.Pod]) {
				return fmt.Errorf("%s of %s comes after %s and line %d", line.Text, line.Pod, newest, next[line.Pod]-1)
			}
			newest = line.Time
			next[line.Pod]++
		}
		return nil
	})
	for pod, lines := range next {
		if lines != parts*each {
			t.Errorf("%d lines of %s", lines, pod)
		}
	}
	if err != nil || len(next) != pods {
		t.Errorf("lines of %d pods: %v", len(next), err)
	}
}

// TestStoredLinesWaitForSlowObjects: lines are in order although an object takes long to fetch, and those before it do not wait for it.
func TestStoredLinesWaitForSlowObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 2 * time.Minute
		stored, o := storedLogs()
		stored.Fetch = func(ctx context.Context, url string, most int) ([]byte, error) {
			if url == "w0" {
				time.Sleep(slow)
			}
			return o.fetch(ctx, url, most)
		}
		began := time.Now()
		var got []string
		_, err := stored.Run(t.Context(), Options{}, func(lines []Line) error {
			for _, line := range lines {
				if got = append(got, line.Text); line.Text == "ERROR bad" && time.Since(began) >= slow {
					t.Error("the first lines wait for a later one")
				}
			}
			return nil
		})
		if want := "start|ERROR bad|hello|  more|end|bye"; err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q, want %q: %v", strings.Join(got, "|"), want, err)
		}
	})
}

// TestStoredLinesOfAFilter: an object of whose lines none is asked for keeps later lines of other pods waiting no longer than it is read.
func TestStoredLinesOfAFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored, _ := storedLogs()
		began := time.Now()
		stats, err := stored.Run(t.Context(), Options{Filter: Filter{Grep: regexp.MustCompile("bye")}}, func([]Line) error { return nil })
		if took := time.Since(began); err != nil || stats.Lines != 1 || took > 0 {
			t.Errorf("%d lines in %s: %v", stats.Lines, took, err)
		}
	})
}
