package status

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agent/connections"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func secretive() agentapi.Summary {
	return agentapi.Summary{Role: agentapi.RoleLauncher, Message: "hunter2", Hosts: []agentapi.HostTrouble{{Host: "hunter2"}}}
}

func secretUsage() *agentapi.Usage {
	return &agentapi.Usage{Pods: []agentapi.PodUsage{{Host: "hunter2"}}}
}

// TestStatusNeedsTheKey: the status, and where ranks are in their code, are only for clients that are in the pod and have the job's key.
// Others learn its health and numbers, and neither hosts, programs nor messages.
func TestStatusNeedsTheKey(t *testing.T) {
	const inPod, right = "127.0.0.1:5000", "Bearer secret"
	tests := map[string]struct {
		remote, authorization string
		want                  bool
	}{
		"the key":                    {inPod, right, true},
		"the key, IPv6":              {"[::1]:5000", right, true},
		"the key, IPv4 as IPv6":      {"[::ffff:127.0.0.1]:5000", right, true},
		"no key":                     {inPod, "", false},
		"an empty key":               {inPod, "Bearer ", false},
		"another job's key":          {inPod, "Bearer secreT", false},
		"a longer key":               {inPod, right + "s", false},
		"the key in another scheme":  {inPod, "Basic secret", false},
		"the key without a scheme":   {inPod, "secret", false},
		"another pod":                {"10.128.0.1:5000", "", false},
		"another pod, IPv6":          {"[fd00::7]:5000", "", false},
		"another pod with the key":   {"10.128.0.1:5000", right, false},
		"an unknown address":         {"", right, false},
		"an address that is invalid": {"nonsense", right, false},
	}
	stacks := func(*int32) []agentapi.RankStack { return []agentapi.RankStack{{Error: "hunter2"}} }
	for name, test := range tests {
		for kind, token := range map[string]string{"a server": "secret", "without a key": ""} {
			server := Server{Summary: secretive, Usage: secretUsage, Stacks: stacks, Token: token}.http()
			for path, private := range map[string]bool{"/healthz": false, "/metrics": false, "/status": true, "/stacks": true} {
				request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), httptest.NewRecorder()
				request.RemoteAddr = test.remote
				request.Header.Set("Authorization", test.authorization)
				server.Handler.ServeHTTP(answer, request)
				want, shows := http.StatusOK, private
				if private && (!test.want || token == "") {
					want, shows = http.StatusUnauthorized, false
				}
				body, header := answer.Body.String(), answer.Result().Header
				if answer.Code != want || strings.Contains(body, "hunter2") != shows || strings.Contains(body, "secret") {
					t.Errorf("%s, %s: %s is %d %s", kind, name, path, answer.Code, body)
				}
				if want == http.StatusUnauthorized && (header.Get("WWW-Authenticate") != "Bearer" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain")) {
					t.Errorf("%s, %s: %s has the header %v", kind, name, path, header)
				}
			}
		}
	}
}

// TestStatusOfOwnJob: a client with the key of another job does not get the status. Keys have the forms in which the operator writes them for
// jobs of both kinds, of which the first is also Trainer's.
func TestStatusOfOwnJob(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{
		"a job": mpitest.WriteKey(t), "another job": mpitest.WriteKey(t),
		"a job with RSA": mpitest.WritePEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)),
	}
	tokens := map[string]string{}
	for name, key := range keys {
		identity, err := protocol.ReadIdentity(key)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = identity.Token
	}
	for of, own := range tokens {
		server := httptest.NewServer(Server{Summary: secretive, Usage: secretUsage, Token: own}.http().Handler)
		address := strings.TrimPrefix(server.URL, "http://")
		for name, token := range tokens {
			var text, complaints strings.Builder
			code := Print(address, token, true, &text, &complaints)
			var got agentapi.Summary
			switch err := json.Unmarshal([]byte(text.String()), &got); {
			case name == of && (code != 0 || err != nil || got.Message != "hunter2" || got.Usage == nil):
				t.Errorf("the key of %s gets %d %s%s", of, code, text.String(), complaints.String())
			case name != of && (code != 1 || text.Len() > 0 || !strings.Contains(complaints.String(), "401")):
				t.Errorf("the key of %s gets from %s %d %s%s", name, of, code, text.String(), complaints.String())
			}
		}
		server.Close()
	}
}

// TestStacks: a client gets the stacks of all ranks or of one.
func TestStacks(t *testing.T) {
	asked := []string(nil)
	stacks := func(rank *int32) []agentapi.RankStack {
		asked = append(asked, fmt.Sprint(ptr.Deref(rank, -1)))
		return []agentapi.RankStack{{Rank: 1}}
	}
	server := httptest.NewServer(Server{Stacks: stacks, Token: "secret"}.http().Handler)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for _, rank := range []*int32{nil, new(int32(3))} {
		if got, err := AskStacks(address, "secret", rank); err != nil || len(got) != 1 || got[0].Rank != 1 {
			t.Errorf("the client got %+v, %v", got, err)
		}
	}
	if err := get(address, stacksPath+"?rank=x", "secret", nil); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a rank that is no number: %v", err)
	}
	if _, err := AskStacks(address, "other", nil); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a client with another key got %v", err)
	}
	if !slices.Equal(asked, []string{"-1", "3"}) {
		t.Errorf("asked for %v", asked)
	}
}

// TestMetricsAreNumbers: metrics have no labels, so that they contain no names.
func TestMetricsAreNumbers(t *testing.T) {
	request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil), httptest.NewRecorder()
	Server{Summary: secretive, Counters: func() Counts { return Counts{} }}.http().Handler.ServeHTTP(answer, request)
	number := regexp.MustCompile(`^mpi_agent_[a-z_]+ [-+.e0-9]+$`)
	for line := range strings.Lines(answer.Body.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "# ") && !number.MatchString(line) {
			t.Errorf("a line is %q", line)
		}
	}
}

// TestMetricsCostLittle: however often they are asked for, reading them takes at most a twentieth of a core.
func TestMetricsCostLittle(t *testing.T) {
	tests := map[string]struct {
		cost time.Duration
		most int
	}{"cheap": {0, 60}, "dear": {250 * time.Millisecond, 12}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := 0
				server := Server{Summary: func() agentapi.Summary {
					read++
					time.Sleep(test.cost)
					return agentapi.Summary{RanksSeen: int32(read)}
				}}.http().Handler
				for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
					answer := httptest.NewRecorder()
					server.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
					if want := fmt.Sprintf("mpi_agent_ranks_seen_total %d\n", read); !strings.Contains(answer.Body.String(), want) {
						t.Fatalf("there is no %q in %s", want, answer.Body)
					}
				}
				if read > test.most || read < test.most-2 {
					t.Errorf("they were read %d times in a minute, want %d", read, test.most)
				}
			})
		})
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

// full is a container of which the kernel counts everything.
func full() Container {
	c := Container{OOMKills: 2, RanksFailed: 12, Reading: usage.Reading{
		Counters: map[agentapi.Metric]usage.Counter{}, Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{},
	}}
	for _, metric := range agentapi.Metrics() {
		switch metric {
		case agentapi.MetricMemory, agentapi.MetricGPU, agentapi.MetricGPUMemory:
			c.Reading.Gauges[metric] = 1500
		default:
			c.Reading.Counters[metric] = usage.Counter{Count: 6e6, Of: 1, PerSecond: true}
		}
		c.Reading.Limits[metric] = 4000
	}
	c.Reading.GPUs = &usage.GPUs{Power: 250500, Temperature: 61, Slowed: 1, Lost: 2, Errors: 3}
	return c
}

// TestContainerMetrics: what the kernel counts of the container is served in the units of Prometheus, for each source of its own.
func TestContainerMetrics(t *testing.T) {
	server := Server{Summary: func() agentapi.Summary {
		return agentapi.Summary{Role: agentapi.RoleLauncher, OOMKills: 7, Ranks: make([]agentapi.RankEnd, 5)} // of workers, too
	}, Container: full}
	text := string(server.readNumbers())
	for _, want := range []string{
		"ranks_failed_total 12", "oom_kills_total 2", "cpu_seconds_total 6000", "cpu_throttled_seconds_total 6", "cpu_limit_cores 4", "major_page_faults_total 100000",
		"cpu_pressure_seconds_total 6000", "io_bytes_total 6.144e+09", "network_bytes_total 6.144e+09", "memory_working_set_bytes 1.572864e+09", "gpus_busy 1.5", "gpus 4",
		"gpu_memory_used_bytes 1.572864e+09", "gpu_memory_bytes 4.194304e+09",
		"gpu_power_watts 250.5", "gpu_temperature_celsius 61", "gpus_slowed 1", "gpus_lost 2", "gpu_memory_errors 3",
	} {
		if !strings.Contains(text, "\nmpi_agent_"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	server.Container = func() Container { return Container{} }
	if text := string(server.readNumbers()); strings.Contains(text, "gpu") || strings.Contains(text, "cpu_seconds") || !strings.Contains(text, "\nmpi_agent_ranks_failed_total 0\n") {
		t.Errorf("without a cgroup there is\n%s", text)
	}
}

// TestNames lists the metrics of agents in testdata/names.yaml, for the tests of hack/monitoring.
func TestNames(t *testing.T) {
	names := map[string]string{}
	for _, s := range slices.Concat(summarySeries(agentapi.Summary{Role: agentapi.RoleLauncher}), full().series(), Counts{}.series()) {
		names[s.name] = ""
	}
	mpitest.Golden(t, "names", names)
}
