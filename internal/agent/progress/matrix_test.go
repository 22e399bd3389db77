package progress

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// does is what the kernel counts of a rank each second.
type does struct {
	user, system, queued time.Duration
	faults, wakes        int64
	wait                 string
	// ready is set if its thread is ready to run in each sample.
	ready bool
	// code is what it runs if it does not call the kernel.
	code CodeUse
	// gpu is what its GPU does; nil if it has none.
	gpu *GPUUse
}

// marked is a kernel with the marks of what each process runs.
type marked map[int]CodeUse

func (m marked) Used(pids []int) (CodeUse, bool) { return m[pids[0]], true }
func (marked) Clear([]int) bool                  { return true }

// TestStragglerMatrix takes what holds rank 2 up from the counters of the kernel to the line in the launcher's log, with MPI libraries that
// poll by system calls, as Open MPI does, or in their own code, as MPICH does, on quiet machines and on those whose cores are all busy.
// Ranks 0 and 1 are on pi-worker-0, ranks 2 and 3 on pi-worker-1; all others wait for rank 2.
func TestStragglerMatrix(t *testing.T) {
	const second = time.Second
	polling := map[string]does{
		"Open MPI": {user: 600 * time.Millisecond, system: 400 * time.Millisecond},
		"MPICH":    {user: second, code: CodeUse{MPI: true}},
	}
	computing := does{user: second, code: CodeUse{Other: true}}
	// share is how a process runs that has a part of a CPU.
	share := func(d does, of float64) does {
		ready := d.user + d.system
		d.user, d.system = time.Duration(float64(d.user)*of), time.Duration(float64(d.system)*of)
		d.queued, d.ready = d.queued+ready-d.user-d.system, ready > second/2
		return d
	}
	const quiet, busy = 1, 0.4
	since := regexp.MustCompile(`, since \d\d:\d\d:\d\d UTC`)
	for name, fault := range map[string]struct {
		// rank is what rank 2 does, unless it waits as the others do.
		rank  does
		waits bool
		// slowed is the share of a CPU that the pod of rank 2 has, 0 for that of the others, and counts are those of this pod each second.
		slowed float64
		counts Counts
		// want is the line, and busy that of a busy machine if it differs.
		want, busy string
	}{
		"endless loop": {rank: computing, want: "3 of 4 ranks wait for rank 2; busy: 2; polling: 0, 1, 3"},
		"sleep":        {rank: does{wait: "hrtimer_nanosleep"}, want: "all 4 ranks wait; sleeping: 2; polling: 0, 1, 3"},
		"lost message": {waits: true, want: "all 4 ranks wait; polling: 0, 1, 2, 3"},
		"file that never comes": {
			rank: does{user: time.Millisecond, system: 2 * time.Millisecond, wakes: 10, wait: "hrtimer_nanosleep"},
			want: "all 4 ranks wait; sleeping: 2; polling: 0, 1, 3",
		},
		"file that never comes, watched": {rank: does{wait: "poll_schedule_timeout"}, want: "all 4 ranks wait; blocked: 2; polling: 0, 1, 3"},
		// It looks like a rank that waits in MPI.
		"file that never comes, looked for without a pause": {
			rank: does{user: 400 * time.Millisecond, system: 600 * time.Millisecond, code: CodeUse{Other: true}},
			want: "all 4 ranks wait; polling: 0, 1, 2, 3",
		},
		"throttled pod": {
			rank: computing, slowed: 0.1, counts: Counts{Needed: 1000, Throttled: 900},
			want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 is throttled 90 % of the time); busy: 2; polling: 0, 1, 3",
		},
		"pod throttled to a hundredth of a CPU": {
			rank: computing, slowed: 0.01, counts: Counts{Needed: 1000, Throttled: 990},
			want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 is throttled 90 % of the time); busy: 2; polling: 0, 1, 3",
		},
		"major faults": {
			rank: does{user: 4 * time.Millisecond, system: 12 * time.Millisecond, faults: 150, wakes: 150, wait: "folio_wait_bit_common", code: CodeUse{Other: true}}, counts: Counts{Faults: 150},
			want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 has 150 major page faults per second); busy: 2; polling: 0, 1, 3",
		},
		"swap on a fast disk": {
			rank: does{user: 100 * time.Millisecond, system: 400 * time.Millisecond, faults: 9000, wakes: 9000, code: CodeUse{Other: true}}, counts: Counts{Faults: 9000},
			want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 has 9000 major page faults per second); busy: 2; polling: 0, 1, 3",
		},
		"slow node": {
			rank: computing, slowed: 0.3,
			want: "3 of 4 ranks wait for rank 2 (slower: the ranks of pi-worker-1 wait for a CPU 70 % of the time); busy: 2; polling: 0, 1, 3", busy: "3 of 4 ranks wait for rank 2; busy: 2; polling: 0, 1, 3",
		},
	} {
		for mpi, waits := range polling {
			for load, of := range map[string]float64{"quiet": quiet, "busy": busy} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, mpi, load), func(t *testing.T) {
					there := of
					if fault.slowed > 0 {
						there = min(of, fault.slowed)
					}
					rank, want := share(fault.rank, there), fault.want
					if fault.waits {
						rank = share(waits, there)
					}
					if load == "busy" && fault.busy != "" {
						want = fault.busy
					}
					got := judgedAfter(3*time.Minute, [][]does{{share(waits, of), share(waits, of)}, {rank, share(waits, there)}}, []Counts{{}, fault.counts})
					if got = since.ReplaceAllString(got, ""); got != want {
						t.Errorf("it is\n%s, want\n%s", got, want)
					}
				})
			}
		}
	}
}

// TestStragglersWithGPUs: a rank is named whose GPU is idle while those of all others are busy, as in NCCL, whatever its CPU does. Ranks whose GPUs are all
// idle are judged as others, and those whose GPUs may compute are not.
func TestStragglersWithGPUs(t *testing.T) {
	const second, minute = time.Second, time.Minute
	since := regexp.MustCompile(`, since \d\d:\d\d:\d\d UTC`)
	all, none, some := &GPUUse{Least: 1000, Most: 1000}, &GPUUse{}, &GPUUse{Least: 300, Most: 300}
	spins, computes := does{user: 900 * time.Millisecond, system: 100 * time.Millisecond, gpu: all}, does{wait: "poll_schedule_timeout", gpu: all}
	waits, loads := does{wait: "poll_schedule_timeout", gpu: none}, does{user: second, code: CodeUse{Other: true}, gpu: none}
	// oneOfTwo has two GPUs open, of which one computes.
	partly, oneOfTwo := does{user: second, code: CodeUse{Other: true}, gpu: some}, does{wait: "poll_schedule_timeout", gpu: &GPUUse{Most: 1000}}
	for name, test := range map[string]struct {
		ranks []does
		run   time.Duration
		want  string
	}{
		"one waits":                  {[]does{spins, waits, spins, spins}, 3 * minute, "the GPU of rank 1 is idle while those of 3 other ranks are busy; busy: 0, 2, 3; blocked: 1"},
		"one waits, others blocked":  {[]does{computes, computes, computes, waits}, 3 * minute, "the GPU of rank 3 is idle while those of 3 other ranks are busy; blocked: 0, 1, 2, 3"},
		"one loads data":             {[]does{spins, loads, spins, spins}, 3 * minute, "the GPU of rank 1 is idle while those of 3 other ranks are busy; busy: 0, 1, 2, 3"},
		"one of two":                 {[]does{spins, waits}, 3 * minute, "the GPU of rank 1 is idle while that of 1 other rank is busy; busy: 0; blocked: 1"},
		"two of sixteen":             {append([]does{waits, loads}, slices.Repeat([]does{spins}, 14)...), 3 * minute, "the GPUs of ranks 0, 1 are idle while those of 14 other ranks are busy; busy: 1, 2, 3, 4 and 11 more; blocked: 0"},
		"for a minute":               {[]does{spins, waits, spins, spins}, minute, ""},
		"two of four":                {[]does{spins, waits, waits, spins}, 3 * minute, ""},
		"all GPUs are busy":          {[]does{spins, computes, spins, spins}, 5 * minute, ""},
		"one GPU is used a little":   {[]does{spins, partly, spins, spins}, 3 * minute, ""},
		"the GPU of one is unknown":  {[]does{spins, oneOfTwo, spins, spins}, 3 * minute, ""},
		"the GPU of none is used":    {[]does{waits, waits, waits, waits}, 3 * minute, "all 4 ranks wait; blocked: 0, 1, 2, 3"},
		"of none, for a minute":      {[]does{waits, waits, waits, waits}, minute, ""},
		"all wait for one on a CPU":  {[]does{waits, loads, waits, waits}, 3 * minute, "3 of 4 ranks wait for rank 1; busy: 1; blocked: 0, 2, 3"},
		"all wait for one on a GPU":  {[]does{waits, partly, waits, waits}, 3 * minute, "3 of 4 ranks wait for rank 1; busy: 1; blocked: 0, 2, 3"},
		"one in NCCL, others do not": {[]does{waits, spins, waits, waits}, 5 * minute, ""},
		"all compute on their GPUs":  {[]does{computes, computes}, 5 * minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pods [][]does
			for _, rank := range test.ranks {
				pods = append(pods, []does{rank})
			}
			if got := since.ReplaceAllString(judgedAfter(test.run, pods, make([]Counts, len(pods))), ""); got != test.want {
				t.Errorf("it is\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// judgedAfter returns how a job is judged whose ranks do something for a time, each pod with its counts.
func judgedAfter(run time.Duration, pods [][]does, counts []Counts) string {
	start := time.Unix(1000, 0)
	followers := make([]Follower, len(pods))
	hosts := make([]records.Record, len(pods))
	now := start
	for ; now.Sub(start) <= run; now = now.Add(SamplePeriod) {
		seconds := now.Sub(start).Seconds()
		rank := 0
		for i, ranks := range pods {
			kernel, used := marked{}, []RankUsage{}
			for _, d := range ranks {
				pid := 100 + rank
				part := func(of time.Duration) time.Duration { return time.Duration(float64(of) * seconds) }
				u := Usage{At: now, User: part(d.user), System: part(d.system), Queued: part(d.queued), Faults: int64(float64(d.faults) * seconds), Sleeps: int64(float64(d.wakes) * seconds), Wait: d.wait, Device: d.gpu != nil, GPU: d.gpu}
				if d.ready {
					u.Ready = map[int]int64{pid: u.Sleeps}
				}
				maps.Copy(kernel, marked{pid: d.code})
				used = append(used, RankUsage{Rank: int32(rank), Processes: []int{pid}, Used: u, Known: true})
				rank++
			}
			pod := Counts{Needed: counts[i].Needed * seconds, Throttled: counts[i].Throttled * seconds, Faults: counts[i].Faults * seconds}
			activity := followers[i].Sample(now, used, Network{}, pod, kernel)
			hosts[i] = records.Record{Host: fmt.Sprintf("pi-worker-%d.pi.ns.svc", i), Reached: start, Worker: &agentapi.Summary{Activity: &activity}}
		}
	}
	return judgeStall(hosts, agentapi.Activity{}, agentapi.Summary{}, time.Time{}, now.Add(-SamplePeriod))
}
