package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/logstream"
)

// watched reports whether it was read.
type watched struct{ read bool }

func (w *watched) Read([]byte) (int, error) {
	w.read = true
	return 0, io.EOF
}

// TestRandomTokens sends many tokens that the API server does not accept: nothing is kept of them, and no body is read.
func TestRandomTokens(t *testing.T) {
	b := newBackend(t)
	server := newServerFor(t, b, Options{})
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	send := func(token string) int {
		body := &watched{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/jobs", body)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		if body.read {
			t.Fatal("a body was read before its sender was authenticated")
		}
		return w.Code
	}
	send("warm-up")
	before := heap()
	for i := range 10_000 {
		if code := send(fmt.Sprintf("random-%d", i)); code != http.StatusUnauthorized {
			t.Fatalf("status %d", code)
		}
	}
	if kept := len(server.users.byHash); kept != 0 {
		t.Errorf("%d tokens are kept", kept)
	}
	if after := heap(); after > before+16<<20 {
		t.Errorf("10,000 tokens took %d KiB", (after-before)>>10)
	}
	if requests := b.requests.Load(); requests != 0 {
		t.Errorf("%d requests were sent with tokens that are not accepted", requests)
	}
	reviews := b.reviews.Load()
	for _, token := range []string{strings.Repeat("a", maxBearer+1), "a b", `a"b`} {
		if code := send(token); code != http.StatusUnauthorized {
			t.Errorf("%.20s: status %d", token, code)
		}
	}
	if b.reviews.Load() != reviews {
		t.Error("a text that is not a token was sent to the API server")
	}
}

// TestUsersAreBounded logs in more users than have clients at once.
func TestUsersAreBounded(t *testing.T) {
	b := newBackend(t)
	server := newServerFor(t, b, Options{})
	const more = 10
	for i := range maxUsers + more {
		if w := request(t, server, fmt.Sprintf("user-u%d", i), http.MethodGet, "/glossary", ""); w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	if kept := len(server.users.byHash); kept != maxUsers || server.users.recent.Len() != maxUsers {
		t.Errorf("%d users are kept", kept)
	}
	reviews := b.reviews.Load()
	request(t, server, fmt.Sprintf("user-u%d", maxUsers+more-1), http.MethodGet, "/glossary", "")
	if b.reviews.Load() != reviews {
		t.Error("the token of the last user was verified again")
	}
	request(t, server, "user-u0", http.MethodGet, "/glossary", "")
	if b.reviews.Load() != reviews+1 {
		t.Error("the first user was kept")
	}
}

// TestTokensAreVerifiedAgain revokes the token of a user: it is refused once the last answer is too old.
func TestTokensAreVerifiedAgain(t *testing.T) {
	b := newBackend(t)
	now := time.Now()
	server, err := New(b.Config(), Options{}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	get := func() int { return request(t, server, "user-ada", http.MethodGet, "/glossary", "").Code }
	if code := get(); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	b.revoked.Store(true)
	if code := get(); code != http.StatusOK {
		t.Errorf("within %s: status %d", nameTTL, code)
	}
	now = now.Add(nameTTL)
	if code := get(); code != http.StatusUnauthorized || len(server.users.byHash) != 0 {
		t.Errorf("after %s: status %d, %d users", nameTTL, code, len(server.users.byHash))
	}
}

// TestRequestsInWork reaches the limits of a user and of all users: further requests are refused until later.
func TestRequestsInWork(t *testing.T) {
	b := newBackend(t)
	server := newServerFor(t, b, Options{})
	fill := func(l *limiter, user string, amount int64) {
		t.Helper()
		release, err := l.acquire(user, amount)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
	}
	expect := func(user, method, path, body string, want int) {
		t.Helper()
		w := request(t, server, "user-"+user, method, path, body)
		if w.Code != want || (want >= 400) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s %s by %s: status %d, Retry-After %q: %s", method, path, user, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	fill(server.requests, "ada", maxUserRequests)
	expect("ada", http.MethodGet, "/glossary", "", http.StatusTooManyRequests)
	expect("bob", http.MethodGet, "/glossary", "", http.StatusOK)
	fill(server.bodies, "bob", maxUserBodies)
	expect("bob", http.MethodPost, "/jobs", "{}", http.StatusTooManyRequests)
	expect("bob", http.MethodGet, "/glossary", "", http.StatusOK)
	for i := range maxRequests/maxUserRequests - 1 {
		fill(server.requests, fmt.Sprint("other", i), maxUserRequests)
	}
	expect("bob", http.MethodGet, "/glossary", "", http.StatusServiceUnavailable)
}

// TestServiceAccountsShareLimits: more service accounts do not get a tenant more of what all users share.
func TestServiceAccountsShareLimits(t *testing.T) {
	t.Parallel()
	l := newLimiter("requests", 3, 2)
	for _, test := range []struct {
		user string
		want bool
	}{
		{"system:serviceaccount:team:a", true},
		{"system:serviceaccount:team:b", true},
		{"system:serviceaccount:team:c", false},
		{"system:serviceaccount:other:a", true},
		{"ada", false},
	} {
		if _, err := l.acquire(test.user, 1); (err == nil) != test.want {
			t.Errorf("%s: %v", test.user, err)
		}
	}
}

// TestStreamsOfAUser opens streams until a user may open no more: another user still may.
func TestStreamsOfAUser(t *testing.T) {
	b := newBackend(t)
	server := newServerFor(t, b, Options{})
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	open := func(token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, listening.URL+"/api/v1/jobs/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode
	}
	for i := range maxUserStreams {
		// Several tokens do not help.
		if code := open(fmt.Sprintf("user-ada.%d", i%3)); code != http.StatusOK {
			t.Fatalf("stream %d: status %d", i, code)
		}
	}
	if code := open("user-ada.4"); code != http.StatusTooManyRequests {
		t.Errorf("one stream more: status %d", code)
	}
	if code := open("user-bob"); code != http.StatusOK {
		t.Errorf("another user: status %d", code)
	}
}

// TestSlowLogStreams lets a user open many streams of logs and read none of them: memory is bounded, and another user still
// reads logs.
func TestSlowLogStreams(t *testing.T) {
	b := newBackend(t)
	serveJob(b)
	const pods, limit = 2, 8 << 20
	for i := range pods {
		pod := jobPod(fmt.Sprintf("train-worker-%d", i), trainOwner)
		b.Put(pod)
		b.Log(pod.Name, false).Source = func(<-chan struct{}) []byte {
			return bytes.Repeat(fmt.Appendf(nil, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), strings.Repeat("x", 500)), 100)
		}
	}
	server := newServerFor(t, b, Options{})
	server.logLines = logstream.NewBudget(limit)
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	open := func(user string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, listening.URL+"/api/v1/namespaces/team/jobs/mpijob/train/logs?follow=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer user-"+user)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	for range maxUserStreams {
		if response := open("ada"); response.StatusCode != http.StatusOK {
			t.Fatalf("status %d", response.StatusCode)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); server.logLines.Used() < limit && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	t.Logf("%d KiB of lines wait, the heap has %d MiB", server.logLines.Used()>>10, stats.HeapAlloc>>20)
	if stats.HeapAlloc > 96<<20 {
		t.Errorf("%d slow streams take %d MiB", maxUserStreams, stats.HeapAlloc>>20)
	}
	if n, err := io.CopyN(io.Discard, open("bob").Body, 4<<20); err != nil {
		t.Errorf("another user reads %d bytes: %v", n, err)
	}
}
