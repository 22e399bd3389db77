// Package sampler measures what a container uses over time.
package sampler

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/nvidia"
	"opendatahub.io/mpijob/internal/agent/ranks"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Sampler measures a container every usage.Period, from Start on.
type Sampler struct {
	// root is the cgroup's folder, and machine that of the files of the machine: "/".
	root, machine string
	ranks         *ranks.Ranks
	gpus          GPUs
	// measuresGPUs is set unless agentapi.EnvMeasureGPUs is false.
	measuresGPUs bool
	start        sync.Once

	mu     sync.Mutex
	began  time.Time
	last   usage.Reading
	series usage.Series
	used   map[int32]agentapi.RankUse
}

// GPUs reads GPUs until done is closed. Devices returns what it read last.
type GPUs interface {
	Run(done <-chan struct{})
	Devices() []nvidia.Device
}

// New returns a sampler of this container, with the ranks that run in it and its GPUs of NVIDIA.
func New(of *ranks.Ranks, gpus GPUs) *Sampler {
	measuresGPUs := !strings.EqualFold(os.Getenv(agentapi.EnvMeasureGPUs), "false")
	if measuresGPUs {
		of.GPUs = func() map[int]int64 { return nvidia.BusyByNumber(gpus.Devices()) }
	}
	return &Sampler{root: cgroup.Root, machine: "/", ranks: of, gpus: gpus, measuresGPUs: measuresGPUs, used: map[int32]agentapi.RankUse{}}
}

// Start begins to measure, until done is closed, unless the user does not want it. Only the first call has an effect.
func (s *Sampler) Start(done <-chan struct{}) {
	s.start.Do(func() {
		if strings.EqualFold(os.Getenv(agentapi.EnvMeasure), "false") {
			return
		}
		s.mu.Lock()
		s.began = time.Now()
		s.last = s.read(s.began)
		s.mu.Unlock()
		if s.measuresGPUs {
			go s.gpus.Run(done)
		}
		go func() {
			ticker := time.NewTicker(usage.Period)
			defer ticker.Stop()
			for samples := 0; ; samples++ {
				select {
				case <-done:
					return
				case <-ticker.C:
					s.sample()
				}
				if samples%int(ReportPeriod/usage.Period) == 0 {
					s.mu.Lock()
					s.measureRanks()
					s.mu.Unlock()
				}
			}
		}()
	})
}

// mostRanks is how many ranks are measured. Programs choose the numbers of their ranks.
const mostRanks = 1024

// ReportPeriod is the time between two reports of a worker to the launcher. Ranks are measured as often, and then.
const ReportPeriod = 30 * time.Second

// Usage returns what the container used from Start until now; false if it did not start, or a moment ago.
func (s *Sampler) Usage() (agentapi.Usage, bool) {
	s.sample()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		return agentapi.Usage{}, false
	}
	s.measureRanks()
	u, measured := s.series.Usage()
	for _, use := range s.used {
		u.Ranks = append(u.Ranks, use)
	}
	slices.SortFunc(u.Ranks, func(a, b agentapi.RankUse) int { return cmp.Compare(a.Rank, b.Rank) })
	return u, measured
}

// sample adds a sample, unless the last one is recent.
func (s *Sampler) sample() {
	const recent = 2 * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		return
	}
	// Times follow from the monotonic clock: a clock that is set does not move the samples.
	now := s.began.Add(time.Since(s.began))
	if now.Sub(s.last.At) < recent {
		return
	}
	reading := s.read(now)
	if sample, ok := usage.NewSample(s.last, reading); ok {
		s.series.Add(sample, reading.Limits)
	}
	s.last = reading
}

// measureRanks reads what ranks have used. It is done less often, because it reads every process. s.mu is held.
func (s *Sampler) measureRanks() {
	for _, use := range s.ranks.Uses() {
		before, known := s.used[use.Rank]
		if !known && len(s.used) >= mostRanks {
			continue
		}
		use.Memory = max(use.Memory, before.Memory)
		s.used[use.Rank] = use
	}
}

// Read returns what the kernel counts for the container now, also before Start.
func (s *Sampler) Read() usage.Reading { return s.read(time.Now()) }

// read reads what the kernel counts.
func (s *Sampler) read(now time.Time) usage.Reading {
	r := usage.Reading{At: now, Counters: map[agentapi.Metric]usage.Counter{}, Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}
	cgroup.ReadUsage(s.root, &r)
	r.Counters[agentapi.MetricNetwork] = usage.Counter{Count: float64(ranks.NetworkBytes()) / 1024, PerSecond: true}
	if s.measuresGPUs {
		readGPUs(s.machine, &r)
		nvidia.Add(s.gpus.Devices(), &r)
	}
	return r
}

// readGPUs reads the GPUs of AMD that the container may use (Linux, Documentation/gpu/amdgpu/thermal.rst). The kernel shows those of
// the machine: the container has a device file for its own.
func readGPUs(machine string, r *usage.Reading) {
	devices, _ := filepath.Glob(filepath.Join(machine, "sys/class/drm/renderD*"))
	count, busy, memory, total := int64(0), int64(0), int64(0), int64(0)
	for _, device := range devices {
		share, known := integer(filepath.Join(device, "device/gpu_busy_percent"))
		if _, err := os.Stat(filepath.Join(machine, "dev/dri", filepath.Base(device))); err != nil || !known {
			continue
		}
		used, _ := integer(filepath.Join(device, "device/mem_info_vram_used"))
		size, _ := integer(filepath.Join(device, "device/mem_info_vram_total"))
		count, busy, memory, total = count+1, busy+10*share, memory+used>>20, total+size>>20
	}
	if count > 0 {
		r.Gauges[agentapi.MetricGPU], r.Limits[agentapi.MetricGPU] = busy, 1000*count
		r.Gauges[agentapi.MetricGPUMemory], r.Limits[agentapi.MetricGPUMemory] = memory, total
	}
}

// integer reads a file of one number.
func integer(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
