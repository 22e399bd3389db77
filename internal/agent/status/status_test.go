package status

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	server := statusServer(secretive, secretUsage)
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

// TestIdleClientsOfStatus: clients that hold connections open do not take the job's memory, and probes are answered beside
// them.
func TestIdleClientsOfStatus(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := statusServer(secretive, secretUsage)
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
