package sampler

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/nvidia"
	"opendatahub.io/mpijob/internal/agent/ranks"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestGPUs: only the GPUs count that the container may use.
func TestGPUs(t *testing.T) {
	t.Parallel()
	machine := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(machine, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, busy := range []string{"80\n", "30\n", "99\n"} {
		device := "sys/class/drm/renderD" + strconv.Itoa(128+i)
		write(device+"/device/gpu_busy_percent", busy)
		write(device+"/device/mem_info_vram_used", "1073741824\n")
		write(device+"/device/mem_info_vram_total", "4294967296\n")
	}
	write("sys/class/drm/renderD131/device/vendor", "0x10de\n")
	write("dev/dri/renderD128", "")
	write("dev/dri/renderD129", "")
	write("dev/dri/renderD131", "")
	r := usage.Reading{Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}
	readGPUs(machine, &r)
	want := usage.Reading{
		Gauges: map[agentapi.Metric]int64{agentapi.MetricGPU: 1100, agentapi.MetricGPUMemory: 2048},
		Limits: map[agentapi.Metric]int64{agentapi.MetricGPU: 2000, agentapi.MetricGPUMemory: 8192},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	r = usage.Reading{Gauges: map[agentapi.Metric]int64{}}
	if readGPUs(t.TempDir(), &r); len(r.Gauges) > 0 {
		t.Errorf("a machine without GPUs has %v", r.Gauges)
	}
}

// gpus is a reader of devices.
type gpus []nvidia.Device

func (gpus) Run(<-chan struct{})        {}
func (g gpus) Devices() []nvidia.Device { return g }

// TestGPUsOfNVIDIA: a reading contains the GPUs that were read last.
func TestGPUsOfNVIDIA(t *testing.T) {
	t.Parallel()
	s := New(ranks.New(slog.New(slog.DiscardHandler), t.TempDir()), gpus{{Busy: 500, Used: 4, Memory: 80}, {Minor: 1, Busy: 250, Used: 1, Memory: 80}})
	s.root, s.machine = t.TempDir(), t.TempDir()
	if got := s.ranks.GPUs()[1]; got != 250 {
		t.Errorf("ranks with the second GPU know that it is busy for %d thousandths of the time", got)
	}
	got := s.Read()
	delete(got.Gauges, agentapi.MetricMemory)
	if diff := cmp.Diff(map[agentapi.Metric]int64{agentapi.MetricGPU: 750, agentapi.MetricGPUMemory: 5}, got.Gauges); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[agentapi.Metric]int64{agentapi.MetricGPU: 2000, agentapi.MetricGPUMemory: 160}, got.Limits); diff != "" {
		t.Error(diff)
	}
}

// TestNoGPUsAreMeasured: a container whose pod requests no GPUs measures none that it sees.
func TestNoGPUsAreMeasured(t *testing.T) {
	t.Setenv(agentapi.EnvMeasureGPUs, "false")
	s := New(ranks.New(slog.New(slog.DiscardHandler), t.TempDir()), gpus{{Busy: 500, Used: 4, Memory: 80}})
	s.root, s.machine = t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		"sys/class/drm/renderD128/device/gpu_busy_percent": "30\n", "sys/class/drm/renderD128/device/mem_info_vram_total": "1048576\n", "dev/dri/renderD128": "",
	} {
		path := filepath.Join(s.machine, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Read()
	if _, has := got.Limits[agentapi.MetricGPU]; has || got.GPUs != nil || s.ranks.GPUs != nil {
		t.Errorf("GPUs are measured: %v", got)
	}
}

// TestSampler: a sampler measures this container and its ranks, also if it is asked before the first period is over.
func TestSampler(t *testing.T) {
	of := ranks.New(slog.New(slog.NewTextHandler(io.Discard, nil)), t.TempDir())
	s := New(of, gpus{})
	if u, measured := s.Usage(); measured {
		t.Errorf("measured before the start: %+v", u)
	}
	done := make(chan struct{})
	defer close(done)
	s.Start(done)
	s.Start(done)
	command := exec.Command("sh", "-c", "sh -c 'while :; do :; done'; true")
	command.Env = append(os.Environ(), "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	defer func() { _ = exec.Command("pkill", "-P", strconv.Itoa(command.Process.Pid)).Run() }()
	go of.Watch(done)
	of.Look()
	deadline := time.Now().Add(30 * time.Second)
	for {
		u, measured := s.Usage()
		if measured && len(u.Ranks) == 1 && u.Ranks[0].Rank == 3 && u.Ranks[0].CPU > 50 && u.Metrics[0].Metric == agentapi.MetricCPU && u.Metrics[0].Max > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: %+v", measured, u)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestOff: a user can keep the agent from measuring.
func TestOff(t *testing.T) {
	for value, off := range map[string]bool{"": false, "true": false, "false": true, "False": true} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(agentapi.EnvMeasure, value)
			s := New(ranks.New(slog.New(slog.DiscardHandler), t.TempDir()), gpus{})
			done := make(chan struct{})
			defer close(done)
			s.Start(done)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.began.IsZero() != off {
				t.Errorf("it began at %v", s.began)
			}
		})
	}
}

// BenchmarkPeriods measures this container with all of its processes for ReportPeriod. The metric is the share of a core that this takes.
func BenchmarkPeriods(b *testing.B) {
	of := ranks.New(slog.New(slog.NewTextHandler(io.Discard, nil)), b.TempDir())
	command := exec.Command("sleep", "600")
	command.Env = append(os.Environ(), "OMPI_COMM_WORLD_RANK=0")
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	for len(of.Uses()) == 0 {
		of.Scan()
	}
	s := New(of, gpus{})
	s.began = time.Now()
	s.last = s.read(s.began)
	for b.Loop() {
		for range ReportPeriod / usage.Period {
			s.began = s.began.Add(usage.Period) // as if the period had passed
			s.sample()
		}
		s.measureRanks()
		s.Usage()
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(ReportPeriod), "%core")
}
