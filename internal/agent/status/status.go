// Package status serves and prints the state of an agent.
package status

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"opendatahub.io/mpijob/internal/agent/connections"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Server serves the state of an agent. Every client that reaches the pod gets its health, for which the kubelet asks, and numbers, which
// Prometheus scrapes. The status and the stacks of ranks, with names of hosts, programs and files, are for clients that are in the pod and
// send the token. With hostNetwork, pods of others also connect from the loopback interface. A program of such a pod that listens at the
// port before the agent receives the token from this job's clients, and cannot use it from other nodes.
type Server struct {
	Summary func() agentapi.Summary
	// Usage returns the usage that the status contains. It is not asked for numbers.
	Usage func() *agentapi.Usage
	// Container returns what was counted in the agent's own container; nil serves none of it.
	Container func() Container
	// Counters returns what a worker has counted; nil for a launcher.
	Counters func() Counts
	// Stacks returns where the ranks of the pod are in their code: of one rank, or of all if it is nil. Nil serves none.
	Stacks func(rank *int32) []agentapi.RankStack
	// Token is that of the job's key (protocol.Identity). If it is "", nobody gets the status and the stacks.
	Token string
}

// Serve serves at an address.
func (s Server) Serve(log *slog.Logger, address string) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err == nil {
		err = s.http().Serve(listener)
	}
	// With hostNetwork another agent may use the port. Ranks run without the status.
	log.Warn("status is not served", "error", err)
}

func (s Server) http() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+statusPath, s.private(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := s.Summary()
		status.Usage = s.Usage()
		_ = json.NewEncoder(w).Encode(status)
	}))
	numbers := numbers{read: s.readNumbers}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(numbers.get())
	})
	if s.Stacks != nil {
		mux.HandleFunc("GET "+stacksPath, s.private(s.serveStacks))
	}
	// The memory is the job's: if there are too many connections, the oldest are closed.
	var open connections.Limited
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10,
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(conn)
			case http.StateClosed, http.StateHijacked:
				open.Remove(conn)
			case http.StateActive, http.StateIdle:
			}
		},
	}
}

const statusPath, stacksPath = "/status", "/stacks"

// private serves clients in the pod that have the job's key.
func (s Server) private(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		token, isToken := strings.CutPrefix(request.Header.Get("Authorization"), bearer)
		isJob := isToken && s.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
		if !isJob || !isLocal(request.RemoteAddr) {
			w.Header().Set("WWW-Authenticate", strings.TrimSpace(bearer))
			http.Error(w, "this is for clients in the pod that have the job's key: run mpi-agent status or mpi-agent stacks there", http.StatusUnauthorized)
			return
		}
		serve(w, request)
	}
}

// bearer begins the header of a client with a token (RFC 6750).
const bearer = "Bearer "

// numbers are the metrics as text. Reading them takes the job's CPU time, a quarter of a second with the records of 1,000 hosts, and every
// client that reaches the pod can ask for them. They are read again when they are older than numbersAge, and so rarely that this takes at
// most one part in numbersShare of a core.
type numbers struct {
	read func() []byte

	mu   sync.Mutex
	text []byte
	// until is how long the text is served.
	until time.Time
}

const (
	numbersAge   = time.Second
	numbersShare = 20
)

// get returns the metrics.
func (n *numbers) get() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if begin := time.Now(); !begin.Before(n.until) {
		n.text = n.read()
		end := time.Now()
		n.until = end.Add(max(numbersAge, numbersShare*end.Sub(begin)))
	}
	return n.text
}

func (s Server) readNumbers() []byte {
	all := summarySeries(s.Summary())
	if s.Container != nil {
		all = append(all, s.Container().series()...)
	}
	if s.Counters != nil {
		all = append(all, s.Counters().series()...)
	}
	var text bytes.Buffer
	for _, one := range all {
		one.write(&text)
	}
	return text.Bytes()
}

// serveStacks serves where the ranks of the pod are in their code.
func (s Server) serveStacks(w http.ResponseWriter, request *http.Request) {
	var rank *int32
	if text := request.URL.Query().Get("rank"); text != "" {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			http.Error(w, "the rank must be a number", http.StatusBadRequest)
			return
		}
		rank = new(int32(number))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(agentapi.LimitStacks(s.Stacks(rank), agentapi.MaxStacks))
}

// AskStacks asks the launcher's agent of this pod where its ranks are in their code: one rank, or all if it is nil.
func AskStacks(address, token string, rank *int32) (ranks []agentapi.RankStack, err error) {
	path := stacksPath
	if rank != nil {
		path += "?rank=" + strconv.Itoa(int(*rank))
	}
	return ranks, get(address, path, token, &ranks)
}

// get gets JSON from the agent of this pod, as a client with a token. The whole client of net/http would make the agent 6 % larger.
func get(address, path, token string, into any) error {
	const timeout = 10 * time.Second
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nAuthorization: %s%s\r\n\r\n", path, bearer, token)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(into)
}

// LocalAddress is the address of the status of this pod's agent.
func LocalAddress() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(agentapi.StatusPort)) }

// isLocal reports whether a client runs in the pod.
func isLocal(remote string) bool {
	address, err := netip.ParseAddrPort(remote)
	return err == nil && address.Addr().Unmap().IsLoopback()
}

// Container is what was counted in the agent's own container. The summary of a launcher also counts what workers reported.
type Container struct {
	// Reading is what the kernel counts.
	Reading usage.Reading
	// OOMKills are the processes that the kernel killed for lack of memory, RanksFailed the ranks that ended badly.
	OOMKills, RanksFailed int64
}

// series returns the series of a container, without those of what its kernel does not count, or of GPUs that it does not have.
func (c Container) series() []series {
	const perKiB, perMiB = 1.0 / (1 << 10), 1.0 / (1 << 20)
	all := []series{
		{"mpi_agent_ranks_failed_total", "counter", "Ranks of this container that ended badly.", float64(c.RanksFailed)},
		{"mpi_agent_oom_kills_total", "counter", "Processes of this container that the kernel killed for lack of memory.", float64(c.OOMKills)},
		{"mpi_agent_cpu_limit_cores", "gauge", "This container's CPU limit, 0 for none.", float64(c.Reading.Limits[agentapi.MetricCPU]) / 1000},
	}
	for _, counter := range []struct {
		metric     agentapi.Metric
		per        float64
		name, help string
	}{
		{agentapi.MetricCPU, 1000, "cpu_seconds_total", "CPU time of this container."},
		{agentapi.MetricThrottled, 1e6, "cpu_throttled_seconds_total", "Time for which the CPU limit stopped this container's processes, added up over CPUs."},
		{agentapi.MetricMajorFaults, 60, "major_page_faults_total", "Page faults of this container that read from a disk."},
		{agentapi.MetricCPUPressure, 1000, "cpu_pressure_seconds_total", "Time in which a process of this container waited for a CPU."},
		{agentapi.MetricMemoryPressure, 1000, "memory_pressure_seconds_total", "Time in which a process of this container waited for memory."},
		{agentapi.MetricIOPressure, 1000, "io_pressure_seconds_total", "Time in which a process of this container waited for reads and writes."},
		{agentapi.MetricIO, perKiB, "io_bytes_total", "Bytes that this container has read from disks and written to them."},
		{agentapi.MetricNetwork, perKiB, "network_bytes_total", "Bytes that this pod has received and sent; with hostNetwork, that its node has."},
	} {
		if count, known := c.Reading.Counters[counter.metric]; known {
			all = append(all, series{"mpi_agent_" + counter.name, "counter", counter.help, count.Count / counter.per})
		}
	}
	gauge := func(values map[agentapi.Metric]int64, metric agentapi.Metric, per float64, name, help string) {
		if value, known := values[metric]; known {
			all = append(all, series{"mpi_agent_" + name, "gauge", help, float64(value) / per})
		}
	}
	gauge(c.Reading.Gauges, agentapi.MetricMemory, perMiB, "memory_working_set_bytes", "Memory in use, without cached files that the kernel can drop.")
	gauge(c.Reading.Gauges, agentapi.MetricGPU, 1000, "gpus_busy", "GPUs in use: the sum of the shares of time in which each is busy.")
	gauge(c.Reading.Limits, agentapi.MetricGPU, 1000, "gpus", "GPUs of this container of which the use is measured.")
	gauge(c.Reading.Gauges, agentapi.MetricGPUMemory, perMiB, "gpu_memory_used_bytes", "Memory of these GPUs in use.")
	gauge(c.Reading.Limits, agentapi.MetricGPUMemory, perMiB, "gpu_memory_bytes", "Memory of these GPUs.")
	if gpus := c.Reading.GPUs; gpus != nil {
		if gpus.Temperature > 0 { // parts of GPUs have none
			all = append(
				all,
				series{"mpi_agent_gpu_power_watts", "gauge", "Power of the GPUs of NVIDIA of this container.", float64(gpus.Power) / 1000},
				series{"mpi_agent_gpu_temperature_celsius", "gauge", "Temperature of the hottest GPU of NVIDIA of this container.", float64(gpus.Temperature)},
			)
		}
		all = append(
			all,
			series{"mpi_agent_gpus_slowed", "gauge", "GPUs of NVIDIA of this container that run slower because of heat or of a limit of their power.", float64(gpus.Slowed)},
			series{"mpi_agent_gpus_lost", "gauge", "GPUs of NVIDIA of this container that the driver cannot reach.", float64(gpus.Lost)},
			series{"mpi_agent_gpu_memory_errors", "gauge", "Errors in the memory of the GPUs of NVIDIA of this container that could not be corrected, since the driver was loaded.", float64(gpus.Errors)},
		)
	}
	return all
}

// Counts are what a worker has counted.
type Counts struct {
	// Accepted, Refused and Dropped are connections, Sessions and ranks those that are open and run now.
	Accepted, Refused, Dropped, Sessions int64
	Ranks                                int
}

// series is one Prometheus time series. The client library would double the agent's size, for a dozen numbers.
type series struct {
	name, kind, help string
	value            float64
}

func (s series) write(w io.Writer) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", s.name, s.help, s.name, s.kind, s.name, s.value)
}

func summarySeries(s agentapi.Summary) []series {
	all := []series{
		{"mpi_agent_ranks_seen_total", "counter", "Processes with a rank that were seen in this container.", float64(s.RanksSeen)},
		{"mpi_agent_memory_peak_bytes", "gauge", "Most memory that this container has used.", float64(s.MemoryPeak)},
		{"mpi_agent_memory_limit_bytes", "gauge", "This container's memory limit, 0 for none.", float64(s.MemoryLimit)},
	}
	if s.Role == agentapi.RoleLauncher {
		all = append(
			all,
			series{"mpi_agent_hosts_expected", "gauge", "Hosts of the hostfile.", float64(s.HostsExpected)},
			series{"mpi_agent_hosts_reached", "gauge", "Hosts that the launcher has started something on.", float64(s.HostsReached)},
			series{"mpi_agent_slots_expected", "gauge", "Slots of the hostfile.", float64(s.SlotsExpected)},
			series{"mpi_agent_slots_found", "gauge", "Slots of the hosts that the launcher has started something on.", float64(s.SlotsFound)},
			series{"mpi_agent_connect_seconds", "gauge", "Time from the first attempt to connect to a host until all were reached, 0 until then.", s.ConnectSeconds},
			series{"mpi_agent_init_seconds", "gauge", "Time from a command's start on a worker until the first rank's process ran there, of the slowest worker, 0 until then.", s.InitSeconds},
		)
	}
	return all
}

func (c Counts) series() []series {
	return []series{
		{"mpi_agent_connections_total", "counter", "Connections of this job's pods.", float64(c.Accepted)},
		{"mpi_agent_connections_refused_total", "counter", "Connections that did not prove that they belong to this job.", float64(c.Refused)},
		{"mpi_agent_connections_dropped_total", "counter", "Connections closed unproven to make room for others.", float64(c.Dropped)},
		{"mpi_agent_sessions_active", "gauge", "Programs that clients have started and that run.", float64(c.Sessions)},
		{"mpi_agent_ranks_running", "gauge", "Ranks that run in this container.", float64(c.Ranks)},
	}
}

// Print gets the status of this pod's agent with the token, and prints it: as JSON, or as text for users.
func Print(address, token string, asJSON bool, stdout, stderr io.Writer) int {
	var s agentapi.Summary
	if err := get(address, statusPath, token, &s); err != nil {
		fmt.Fprintln(stderr, "mpi-agent: the agent of this pod does not answer:", err)
		return 1
	}
	if asJSON {
		_ = json.NewEncoder(stdout).Encode(s)
		return 0
	}
	fmt.Fprintf(stdout, "%s\n", s.Role)
	if s.Role == agentapi.RoleLauncher {
		fmt.Fprintf(stdout, "  hosts   %d of %d reached\n  slots   %d of %d found\n", s.HostsReached, s.HostsExpected, s.SlotsFound, s.SlotsExpected)
	} else {
		fmt.Fprintf(stdout, "  ranks   %d seen\n  refused %d connections\n", s.RanksSeen, s.Refused)
	}
	limit := "no limit"
	if s.MemoryLimit > 0 {
		limit = "of " + outcome.Mebibytes(s.MemoryLimit)
	}
	fmt.Fprintf(stdout, "  memory  at most %s used, %s\n", outcome.Mebibytes(s.MemoryPeak), limit)
	for _, h := range s.Hosts {
		fmt.Fprintf(stdout, "  host %s: %s\n", h.Host, h.Message)
	}
	for _, r := range s.Ranks {
		fmt.Fprintf(stdout, "  %s\n", outcome.RankEnded(r))
	}
	if s.Message != "" {
		fmt.Fprintf(stdout, "%s\n", s.Message)
	}
	return 0
}
