package cgroup_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

func TestReadUsage(t *testing.T) {
	t.Parallel()
	perSecond := func(count float64) usage.Counter { return usage.Counter{Count: count, PerSecond: true} }
	tests := map[string]struct {
		files map[string]string
		want  usage.Reading
	}{
		"version 2": {
			map[string]string{
				"cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 40\nnr_throttled 30\nthrottled_usec 500000\n",
				"cpu.max":  "150000 100000\n", "memory.events": "oom_kill 0\n", "memory.current": "104857600\n", "memory.max": "209715200\n",
				"memory.stat":  "anon 1\ninactive_file 10485760\npgmajfault 7\n",
				"cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
				"io.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
				"io.stat":      "8:0 rbytes=1024 wbytes=2048 rios=1 wios=2 dbytes=9 dios=9\n8:16 rbytes=1024 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
			},
			usage.Reading{
				Counters: map[agentapi.Metric]usage.Counter{
					agentapi.MetricCPU: perSecond(2500), agentapi.MetricThrottled: {Count: 500_000, Of: 3000}, agentapi.MetricMajorFaults: perSecond(420),
					agentapi.MetricCPUPressure: perSecond(3), agentapi.MetricIOPressure: perSecond(5), agentapi.MetricIO: perSecond(4),
				},
				Gauges: map[agentapi.Metric]int64{agentapi.MetricMemory: 90},
				Limits: map[agentapi.Metric]int64{agentapi.MetricCPU: 1500, agentapi.MetricMemory: 200},
			},
		},
		"version 2 without limits and pressure": {
			map[string]string{"cpu.stat": "usage_usec 1000\n", "cpu.max": "max 100000\n", "memory.events": "oom_kill 0\n", "memory.current": "1048576\n", "memory.max": "max\n", "memory.stat": ""},
			usage.Reading{
				Counters: map[agentapi.Metric]usage.Counter{agentapi.MetricCPU: perSecond(1), agentapi.MetricMajorFaults: perSecond(0)},
				Gauges:   map[agentapi.Metric]int64{agentapi.MetricMemory: 1}, Limits: map[agentapi.Metric]int64{},
			},
		},
		"version 1": {
			map[string]string{
				"cpuacct/cpuacct.usage": "2500000000\n", "cpu/cpu.stat": "nr_periods 40\nnr_throttled 30\nthrottled_time 500000000\n",
				"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n",
				"memory/memory.usage_in_bytes": "104857600\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
				"memory/memory.stat":                              "inactive_file 1\ntotal_inactive_file 10485760\ntotal_pgmajfault 7\n",
				"blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 3072\n8:0 Write 1024\n8:0 Total 4096\nTotal 4096\n",
			},
			usage.Reading{
				Counters: map[agentapi.Metric]usage.Counter{
					agentapi.MetricCPU: perSecond(2500), agentapi.MetricThrottled: {Count: 500_000, Of: 3000}, agentapi.MetricMajorFaults: perSecond(420), agentapi.MetricIO: perSecond(4),
				},
				Gauges: map[agentapi.Metric]int64{agentapi.MetricMemory: 90}, Limits: map[agentapi.Metric]int64{agentapi.MetricCPU: 1500},
			},
		},
		"version 1 without a CPU limit, in one folder": {
			map[string]string{"cpu/cpuacct.usage": "1000000\n", "cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
			usage.Reading{
				Counters: map[agentapi.Metric]usage.Counter{agentapi.MetricCPU: perSecond(1), agentapi.MetricThrottled: {Of: 1}},
				Gauges:   map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{},
			},
		},
		"no cgroup": {nil, usage.Reading{Counters: map[agentapi.Metric]usage.Counter{}, Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range test.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newReading()
			cgroup.ReadUsage(root, &r)
			if diff := cmp.Diff(test.want, r); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestThrottledShare: the share of the time that processes needed in which the CPU limit stopped them, whatever the number of periods in
// which it stopped any.
func TestThrottledShare(t *testing.T) {
	t.Parallel()
	const before = "usage_usec 1000000\nnr_periods 100\nnr_throttled 10\nthrottled_usec 200000\n"
	for name, test := range map[string]struct {
		after string
		want  float64
	}{
		// Four ranks that poll and the agent, with a limit of 4 CPUs: the limit is used up a moment before the end of nearly each period.
		"for a moment of each period": {"usage_usec 41000000\nnr_periods 200\nnr_throttled 105\nthrottled_usec 600000\n", 10},
		// A process with a tenth of a CPU.
		"nearly always": {"usage_usec 2000000\nnr_periods 200\nnr_throttled 110\nthrottled_usec 9200000\n", 900},
		// 16 threads on as many CPUs, with a limit of 4 CPUs.
		"on many CPUs":     {"usage_usec 41000000\nnr_periods 200\nnr_throttled 110\nthrottled_usec 120200000\n", 750},
		"nothing was used": {before, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(stat string, second int) usage.Reading {
				root := t.TempDir()
				for path, text := range map[string]string{"cpu.stat": stat, "cpu.max": "400000 100000\n", "memory.events": "oom_kill 0\n"} {
					if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				r := newReading()
				r.At = time.Unix(int64(second), 0)
				cgroup.ReadUsage(root, &r)
				return r
			}
			sample, _ := usage.NewSample(read(before, 0), read(test.after, 10))
			if got := sample.Values[agentapi.MetricThrottled]; math.Abs(got-test.want) > 1 {
				t.Errorf("%g thousandths, want %g", got, test.want)
			}
		})
	}
}

// TestSummaryOfSeparateFolders: version 1 may count the CPU time in a folder of its own.
func TestSummaryOfSeparateFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{"cpuacct/cpuacct.usage": "2500000000\n", "cpu/cpu.stat": "throttled_time 500000000\n"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var summary agentapi.Summary
	cgroup.Tell(root, &summary)
	if summary.CPUSeconds != 2.5 || summary.ThrottledSeconds != 0.5 {
		t.Errorf("%g s and %g s, want 2.5 s and 0.5 s", summary.CPUSeconds, summary.ThrottledSeconds)
	}
}

func newReading() usage.Reading {
	return usage.Reading{Counters: map[agentapi.Metric]usage.Counter{}, Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}
}

// BenchmarkReadUsage reads the cgroup of this machine, of its version.
func BenchmarkReadUsage(b *testing.B) {
	for b.Loop() {
		r := newReading()
		cgroup.ReadUsage(cgroup.Root, &r)
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(usage.Period), "%core")
}
