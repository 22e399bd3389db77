package jobs

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestFetchTriesAgain: what a server refuses for a moment, cuts or does not end is asked for again, and what it refuses for good is not.
func TestFetchTriesAgain(t *testing.T) {
	t.Parallel()
	send := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "lines") }
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	reset := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		send(w)
	}
	stall := func(w http.ResponseWriter, r *http.Request) {
		send(w)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, test := range map[string]struct {
		answer   http.HandlerFunc
		failures int
		tries    int
		wrong    string
	}{
		"at once":         {reset, 0, 1, ""},
		"reset":           {reset, 2, 3, ""},
		"503":             {status(http.StatusServiceUnavailable), 2, 3, ""},
		"429":             {status(http.StatusTooManyRequests), 1, 2, ""},
		"cut":             {cut, 2, 3, ""},
		"stalled":         {stall, 1, 2, ""},
		"503 for long":    {status(http.StatusServiceUnavailable), 9, 3, "answers 503 Service Unavailable"},
		"cut for long":    {cut, 9, 3, "does not send all of an object: unexpected EOF"},
		"stalls for long": {stall, 9, 3, "does not send an object within 100ms"},
		"refused":         {status(http.StatusForbidden), 9, 1, "answers 403 Forbidden"},
		"moved":           {status(http.StatusFound), 9, 1, "answers 302 Found"},
		"large":           {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "more lines") }, 9, 1, "sends an object of more than 5 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if int(tries.Add(1)) <= test.failures {
					test.answer(w, r)
					return
				}
				send(w)
			}))
			defer server.Close()
			f := &fetcher{client: server.Client(), timeout: 100 * time.Millisecond, pause: time.Millisecond}
			f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			data, err := f.fetch(t.Context(), server.URL+"/part?X-Amz-Signature=5ec2e7", 5)
			switch {
			case int(tries.Load()) != test.tries:
				t.Errorf("%d tries, want %d: %v", tries.Load(), test.tries, err)
			case test.wrong == "" && (err != nil || string(data) != "lines"):
				t.Errorf("%q, %v", data, err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), "5ec2e7")):
				t.Errorf("%v, want %q", err, test.wrong)
			}
		})
	}
}

// TestFetchEndsWithItsContext: nothing is asked for again.
func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	f := &fetcher{client: server.Client(), timeout: time.Minute, pause: time.Hour}
	if _, err := f.fetch(ctx, server.URL, 5); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFetchFromAnUnknownAuthority: the error says what to do, and SSL_CERT_FILE names the certificates in place of those of the system. They
// are read once in a process.
func TestFetchFromAnUnknownAuthority(t *testing.T) {
	t.Parallel()
	if address := os.Getenv("MPIJOB_TEST_FETCH"); address != "" {
		data, err := NewFetch(nil, "")(t.Context(), address, 5)
		fmt.Println(string(data), err)
		return
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "lines") }))
	defer server.Close()
	_, err := NewFetch(x509.NewCertPool(), "name its CA")(t.Context(), server.URL+"?X-Amz-Signature=5ec2e7", 5)
	if err == nil || !strings.Contains(err.Error(), " is not trusted: ") || !strings.HasSuffix(err.Error(), "; name its CA") || strings.Contains(err.Error(), "5ec2e7") {
		t.Error(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+ca, "MPIJOB_TEST_FETCH="+server.URL)
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), "lines <nil>") {
		t.Errorf("%s: %v", output, err)
	}
}
