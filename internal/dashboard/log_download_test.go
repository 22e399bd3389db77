package dashboard

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/logstream"
)

// TestSlowDownload: a response that a client does not read ends, and a download continues in which a filter lets through no line for
// longer than that.
func TestSlowDownload(t *testing.T) {
	b := newBackend(t)
	serveJob(b)
	b.Put(jobPod("train-worker-0", trainOwner))
	const limit = 3 * time.Second
	texts := []string{"skipped", "found"}
	b.Log("train-worker-0", false).Source = func(<-chan struct{}) []byte {
		if len(texts) == 0 {
			return nil
		}
		if texts[0] == "found" {
			time.Sleep(limit + time.Second)
		}
		line := fmt.Appendf(nil, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), texts[0])
		texts = texts[1:]
		return line
	}
	serving := newServerFor(t, b, Options{}).httpServer()
	if serving.WriteTimeout < requestTimeout || serving.WriteTimeout > 2*requestTimeout {
		t.Errorf("a response may take %s", serving.WriteTimeout)
	}
	serving.WriteTimeout = limit
	listening := httptest.NewUnstartedServer(nil)
	listening.Config, listening.EnableHTTP2 = serving, true
	listening.StartTLS()
	t.Cleanup(listening.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listening.URL+"/api/v1/namespaces/team/jobs/mpijob/train/logs?download=true&grep=found", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer user-ada")
	response, err := listening.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasSuffix(string(text), "] found\n") || response.ProtoMajor != 2 {
		t.Errorf("%s, the file has %q: %v", response.Proto, text, err)
	}
}

// TestLogsWithoutTheRight: neither a stream nor a download begins without the right to read logs.
func TestLogsWithoutTheRight(t *testing.T) {
	b := newBackend(t)
	b.mayNot.Store(true)
	serveJob(b)
	server := newServerFor(t, b, Options{})
	for _, query := range []string{"", "?download=true"} {
		w := request(t, server, "user-ada", http.MethodGet, "/namespaces/team/jobs/mpijob/train/logs"+query, "")
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"message":"you may not read the logs of pods in namespace team; ask for the role view"`) {
			t.Errorf("%s: status %d: %s", query, w.Code, w.Body)
		}
	}
}

// TestLogIsDownloaded downloads a log as text and as JSON, with filters.
func TestLogIsDownloaded(t *testing.T) {
	b := newBackend(t)
	serveJob(b)
	server := newServerFor(t, b, Options{})
	b.Put(jobPod("train-worker-0", trainOwner))
	began := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	log := b.Log("train-worker-0", false)
	for second, text := range []string{"[1,0]<stdout>:DEBUG <a> & \x1b[1mb", "no level", "ERROR bad"} {
		log.Say(began.Add(time.Duration(second)*time.Second), text)
	}
	const path = "/namespaces/team/jobs/mpijob/train/logs"

	text := request(t, server, "user-ada", http.MethodGet, path+"?download=true", "")
	want := "2026-11-21T13:00:00Z [worker-0 r0] DEBUG <a> & b\n2026-11-21T13:00:01Z [worker-0] no level\n2026-11-21T13:00:02Z [worker-0] ERROR bad\n"
	if diff := cmp.Diff(want, text.Body.String()); diff != "" {
		t.Error(diff)
	}
	if got := text.Header().Get("Content-Disposition"); got != `attachment; filename="team-train.log"` {
		t.Error(got)
	}

	lines := request(t, server, "user-ada", http.MethodGet, path+"?download=json&level=debug", "")
	if got, name := lines.Header().Get("Content-Type"), lines.Header().Get("Content-Disposition"); got != "application/jsonl" || name != `attachment; filename="team-train.jsonl"` {
		t.Errorf("%s, %s", got, name)
	}
	var records []logstream.Record
	for line := range strings.Lines(lines.Body.String()) {
		var record logstream.Record
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if at := began.Add(time.Duration(2*len(records)) * time.Second); record.Time == nil || !record.Time.Time.Equal(at) {
			t.Errorf("%v, want %s", record.Time, at)
		}
		record.Time = nil
		records = append(records, record)
	}
	wantRecords := []logstream.Record{
		{Pod: "train-worker-0", Role: "worker", Rank: new(0), Level: "debug", Text: "DEBUG <a> & b"},
		{Pod: "train-worker-0", Role: "worker", Level: "error", Text: "ERROR bad"},
	}
	if diff := cmp.Diff(wantRecords, records); diff != "" {
		t.Error(diff)
	}

	if w := request(t, server, "user-ada", http.MethodGet, path+"?download=xml", ""); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "use true for text, or json") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
