// Package profile finds out where the time of a container's ranks goes: it has a library preloaded into them, which counts their calls of
// MPI, and reads what it counted.
package profile

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Profiler profiles the ranks of a container, if its job asks for that.
type Profiler struct {
	folder, library string

	// launchOf returns the run of MPI's launcher to which a process of this container belongs; "" if it is unknown.
	launchOf func(pid int) string

	mu sync.Mutex
	// runs are the latest runs of MPI's launcher, by their name.
	runs map[string]*run
}

// run is what is known of the ranks of this container that belong to a run of MPI's launcher.
type run struct {
	// began is when the first of them had called MPI_Init, in milliseconds since 1970.
	began int64
	// sums are those over ranks that have ended, whose records are deleted.
	sums
}

// New returns the profiler of this container. It removes the records of the container's earlier runs. launchOf returns the run of MPI's
// launcher to which a process of this container belongs, for those that were not started through a connection; nil if there are none.
func New(launchOf func(pid int) string) *Profiler {
	p := &Profiler{folder: os.Getenv(agentapi.EnvProfile), library: agentapi.ProfileLibrary, launchOf: launchOf, runs: map[string]*run{}}
	if !filepath.IsAbs(p.folder) {
		p.folder = ""
		return p
	}
	for _, pattern := range []string{"*" + extension, "*.new"} {
		old, _ := filepath.Glob(filepath.Join(p.folder, pattern))
		for _, path := range old {
			_ = os.Remove(path)
		}
	}
	// Ranks may run as other users.
	if os.Mkdir(p.folder, 0o755) == nil {
		_ = os.Chmod(p.folder, 0o777|os.ModeSticky) //nolint:gosec // see above
	}
	return p
}

// extension is that of the file of a record.
const extension = ".profile"

const (
	// preload is the variable that lists libraries to load before all others (ld.so(8)).
	preload = "LD_PRELOAD"
	// sanitizer has the options of AddressSanitizer, of which the last one counts. Its shared library ends programs in which another one
	// comes before it, as a preloaded one does, unless anyOrder allows that. The order matters for functions of the C library alone.
	sanitizer, anyOrder = "ASAN_OPTIONS", "verify_asan_link_order=0"
)

// Env returns an environment in which programs are profiled: the library is preloaded, after those of the user.
func (p *Profiler) Env(env []string) []string {
	if p.folder == "" || !p.hasLibrary() {
		return env
	}
	return appendTo(appendTo(env, preload, p.library), sanitizer, anyOrder)
}

// appendTo returns an environment in which a list with colons has one more value.
func appendTo(env []string, list, value string) []string {
	if own := environ.Get(env, list); own != "" {
		value = own + ":" + value
	}
	return environ.Set(env, list, value)
}

func (p *Profiler) hasLibrary() bool {
	_, err := os.Stat(p.library)
	return err == nil
}

// Get returns the profile of the container's ranks of the latest run until now; nil if its job does not ask for one.
func (p *Profiler) Get() *agentapi.Profile {
	switch {
	case p.folder == "":
		return nil
	case !p.hasLibrary():
		return &agentapi.Profile{NoLibrary: true}
	}
	var clock unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock) != nil {
		return &agentapi.Profile{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := map[string]*run{}
	for name, of := range p.runs {
		all[name] = &run{of.began, of.clone()}
	}
	for _, name := range p.files() {
		r, ok := readRecord(name)
		if !ok {
			continue
		}
		launch := r.launch
		if launch == "" && p.launchOf != nil {
			launch = p.launchOf(int(r.process))
		}
		began := now.Add(-time.Duration(max(0, clock.Nano()-int64(r.start)))).UnixMilli()
		kept := runIn(p.runs, launch, began)
		current := runIn(all, launch, kept.began)
		if r.end == 0 && process.Runs(int(r.process)) {
			current.add(r, uint64(clock.Nano()))
			continue
		}
		// What it did between the two looks counts.
		if last, ok := readRecord(name); ok {
			r = last
		}
		current.add(r, 0)
		if os.Remove(name) == nil {
			kept.add(r, 0)
		}
	}
	return latest(all)
}

// runIn returns a run, which is added if it is new. A known run keeps its begin: the clock may be set. Of many runs, the earliest one
// is dropped: one more than MaxProfileRuns are kept, so that it shows that there are more.
func runIn(runs map[string]*run, launch string, began int64) *run {
	if of := runs[launch]; of != nil {
		return of
	}
	of := &run{began, newSums()}
	runs[launch] = of
	if len(runs) > agentapi.MaxProfileRuns+1 {
		delete(runs, byBegin(runs)[0])
	}
	return of
}

// byBegin returns the names of runs, the earliest first.
func byBegin(runs map[string]*run) []string {
	return slices.SortedFunc(maps.Keys(runs), func(a, b string) int {
		return cmp.Or(cmp.Compare(runs[a].began, runs[b].began), strings.Compare(a, b))
	})
}

// latest returns the profile of the run that began last.
func latest(runs map[string]*run) *agentapi.Profile {
	names := byBegin(runs)
	if len(names) == 0 {
		return &agentapi.Profile{}
	}
	last := len(names) - 1
	p := runs[names[last]].profile()
	p.Launch, p.Began, p.Other = names[last], runs[names[last]].began, names[:last]
	return p
}

// mostFiles is how many ranks are read at once. Programs of the job can write into the folder.
const mostFiles = 4096

func (p *Profiler) files() []string {
	folder, err := os.Open(p.folder)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(mostFiles)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, extension) })
	slices.Sort(names)
	for i, name := range names {
		names[i] = filepath.Join(p.folder, name)
	}
	return names
}

// sums are what the ranks of a container did, in nanoseconds.
type sums struct {
	ranks map[int32]rankSum
	calls map[string]agentapi.CallProfile
	sizes [len(agentapi.MessageSizes) + 1]uint64
}

type rankSum struct{ elapsed, communication uint64 }

func newSums() sums {
	return sums{ranks: map[int32]rankSum{}, calls: map[string]agentapi.CallProfile{}}
}

func (s sums) clone() sums {
	s.ranks, s.calls = maps.Clone(s.ranks), maps.Clone(s.calls)
	return s
}

// mostRanks is how many ranks are kept. Programs choose the numbers of their ranks.
const mostRanks = 1024

// add adds a record: until a time of the monotonic clock, or until its last call if that is 0.
func (s *sums) add(r record, now uint64) {
	rank, known := s.ranks[r.rank]
	if !known && len(s.ranks) >= mostRanks {
		return
	}
	elapsed, communication := r.until(now)
	rank.elapsed = min(rank.elapsed+elapsed, longest)
	rank.communication = min(rank.communication+communication, rank.elapsed)
	s.ranks[r.rank] = rank
	for _, c := range r.calls {
		of, known := s.calls[c.Call]
		if !known && len(s.calls) >= agentapi.MaxProfileCalls {
			continue
		}
		s.calls[c.Call] = agentapi.CallProfile{
			Call: c.Call, Count: min(of.Count+c.Count, longest), Time: min(of.Time+c.Time, longest), Bytes: min(of.Bytes+c.Bytes, longest),
		}
	}
	for i, count := range r.sizes {
		s.sizes[i] = min(s.sizes[i]+count, longest)
	}
}

const millisecond = 1_000_000

func (s sums) profile() *agentapi.Profile {
	p := &agentapi.Profile{RankCount: int32(len(s.ranks))}
	for rank, of := range s.ranks {
		p.Ranks = append(p.Ranks, agentapi.RankProfile{Rank: rank, Elapsed: int64(of.elapsed / millisecond), Communication: int64(of.communication / millisecond)})
	}
	slices.SortFunc(p.Ranks, func(a, b agentapi.RankProfile) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, of := range s.calls {
		of.Time /= millisecond
		p.Calls = append(p.Calls, of)
	}
	agentapi.SortCalls(p.Calls)
	if s.sizes != (sums{}).sizes {
		for _, count := range s.sizes {
			p.Sizes = append(p.Sizes, int64(count))
		}
	}
	return p
}
