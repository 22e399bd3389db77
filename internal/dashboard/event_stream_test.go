package dashboard_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// stream is a stream of server-sent events.
type stream struct {
	t      *testing.T
	body   io.ReadCloser
	lines  *bufio.Scanner
	cancel func()
}

type streamEvent struct{ name, id, data string }

func openStream(t *testing.T, token, path, lastID string) *stream {
	t.Helper()
	return openStreamAt(t, address, token, path, lastID)
}

// openStreamAt opens a stream of the server at a URL.
func openStreamAt(t *testing.T, url, token, path, lastID string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/"+path, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: status %d, %s", path, response.StatusCode, response.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	s := &stream{t, response.Body, lines, cancel}
	t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

// next returns the next event that is not a heartbeat.
func (s *stream) next() streamEvent {
	s.t.Helper()
	var event streamEvent
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			event.name = value
		case "id":
			event.id = value
		case "data":
			event.data = value
		case "":
			if event.name != "" {
				return event
			}
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return event
}
