package status

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agent/connections"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func secretive() agentapi.Summary {
	return agentapi.Summary{Role: agentapi.RoleLauncher, Message: "hunter2", Hosts: []agentapi.HostTrouble{{Host: "hunter2"}}}
}

func secretUsage() *agentapi.Usage {
	return &agentapi.Usage{Pods: []agentapi.PodUsage{{Host: "hunter2"}}}
}

// TestStatusIsForThePod: whoever reaches the pod learns numbers, and neither hosts, programs nor messages.
func TestStatusIsForThePod(t *testing.T) {
	server := Server{Summary: secretive, Usage: secretUsage}.http()
	for remote, local := range map[string]bool{
		"127.0.0.1:5000": true, "[::1]:5000": true, "[::ffff:127.0.0.1]:5000": true, "10.128.0.1:5000": false, "[fd00::7]:5000": false, "nonsense": false, "": false,
	} {
		for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": http.StatusOK, "/status": map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[local]} {
			request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), httptest.NewRecorder()
			request.RemoteAddr = remote
			server.Handler.ServeHTTP(answer, request)
			if shown := strings.Contains(answer.Body.String(), "hunter2"); answer.Code != want || shown != (local && path == "/status") || shown != strings.Contains(answer.Body.String(), `"usage":{`) {
				t.Errorf("%s from %q: %d %s", path, remote, answer.Code, answer.Body)
			}
		}
	}
}

// TestStacksNeedTheKey: where ranks are in their code is only for clients in the pod that have the job's key.
func TestStacksNeedTheKey(t *testing.T) {
	asked := []string(nil)
	stacks := func(rank *int32) []agentapi.RankStack {
		asked = append(asked, fmt.Sprint(ptr.Deref(rank, -1)))
		return []agentapi.RankStack{{Rank: 1, Error: "hunter2"}}
	}
	tests := map[string]struct {
		remote, token, query string
		want                 int
	}{
		"the key":      {"127.0.0.1:5000", "Bearer secret", "", http.StatusOK},
		"a rank":       {"127.0.0.1:5000", "Bearer secret", "?rank=3", http.StatusOK},
		"no rank":      {"127.0.0.1:5000", "Bearer secret", "?rank=x", http.StatusBadRequest},
		"another key":  {"127.0.0.1:5000", "Bearer secreT", "", http.StatusForbidden},
		"no key":       {"127.0.0.1:5000", "", "", http.StatusForbidden},
		"another pod":  {"10.128.0.1:5000", "Bearer secret", "", http.StatusForbidden},
		"an empty key": {"127.0.0.1:5000", "Bearer ", "", http.StatusForbidden},
	}
	for name, test := range tests {
		for kind, server := range map[string]Server{"a server": {Stacks: stacks, Token: "secret"}, "without a key": {Stacks: stacks}, "without stacks": {Token: "secret"}} {
			asked = nil
			request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/stacks"+test.query, nil), httptest.NewRecorder()
			request.RemoteAddr = test.remote
			request.Header.Set("Authorization", test.token)
			server.http().Handler.ServeHTTP(answer, request)
			want := test.want
			if kind != "a server" {
				want = http.StatusForbidden
			}
			if shown := strings.Contains(answer.Body.String(), "hunter2"); answer.Code != want || shown != (want == http.StatusOK) || (len(asked) > 0) != shown {
				t.Errorf("%s, %s: %d %s, asked %v", kind, name, answer.Code, answer.Body, asked)
			}
		}
	}
	server := httptest.NewServer(Server{Stacks: stacks, Token: "secret"}.http().Handler)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	asked = nil
	if got, err := AskStacks(address, "secret", new(int32(3))); err != nil || len(got) != 1 || got[0].Rank != 1 || !slices.Equal(asked, []string{"3"}) {
		t.Errorf("the client got %+v, %v; asked %v", got, err, asked)
	}
	if _, err := AskStacks(address, "other", nil); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("the client got %v", err)
	}
}

// TestIdleClientsOfStatus: clients that hold connections open do not take the job's memory, and probes are answered beside
// them.
func TestIdleClientsOfStatus(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server{Summary: secretive, Usage: secretUsage}.http()
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := dial()
	defer first.Close()
	for range connections.Most + 10 {
		defer dial().Close()
	}
	begin := time.Now()
	_ = first.SetReadDeadline(begin.Add(3 * time.Second))
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) > 2*time.Second {
		t.Errorf("the oldest connection is open after %s: %v", time.Since(begin), err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("a probe gets %v, %v", response, err)
	}
	_ = response.Body.Close()
}

// TestNames lists the metrics of agents in testdata/names.yaml, for the tests of hack/monitoring.
func TestNames(t *testing.T) {
	names := map[string]string{}
	for _, s := range append(summarySeries(agentapi.Summary{Role: agentapi.RoleLauncher}), Counts{}.series()...) {
		names[s.name] = ""
	}
	mpitest.Golden(t, "names", names)
}
