package logstream

import (
	"strconv"
	"strings"
	"sync"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Hosts says how a job's ranks are spread over its pods. The zero value knows nothing of ranks.
type Hosts struct {
	// Slots is how many ranks a pod takes; 0 if that is unknown.
	Slots int
	// Ranks is how many there are at most.
	Ranks int
	// LauncherRuns is set where the launcher is the first host.
	LauncherRuns bool
}

// Place returns the pod of a rank if MPI fills one host after another, which is the default.
func (h Hosts) Place(rank int) (Place, bool) {
	if h.Slots <= 0 {
		return Place{}, false
	}
	host := rank / h.Slots
	if h.LauncherRuns {
		if host == 0 {
			return Place{Role: mpi.RoleLauncher}, true
		}
		host--
	}
	return Place{Role: mpi.RoleWorker, Index: host}, true
}

// only is the rank of a pod that has room for one alone.
func (h Hosts) only(at Place) int {
	if h.Slots != 1 || at.Role != mpi.RoleWorker {
		return NoRank
	}
	rank := at.Index
	if h.LauncherRuns {
		rank++
	}
	if rank >= h.Ranks {
		return NoRank
	}
	return rank
}

// atlas finds the places of ranks. The agents' lines about ranks on their pods take precedence over the default mapping.
type atlas struct {
	hosts Hosts
	mu    sync.RWMutex
	seen  map[int]Place
}

// read returns the place and the rank of a line, and its text without the rank's tag.
func (a *atlas) read(from Place, line string) (Place, int, string) {
	if rank, text, tagged := logs.Rank(line); tagged && (a.hosts.Ranks == 0 || rank < a.hosts.Ranks) {
		return a.place(rank, from), rank, text
	}
	if from.Role != mpi.RoleWorker {
		return from, NoRank, line
	}
	if rank, started, is := agentsRank(line); is {
		if started {
			a.learn(rank, from)
		}
		return from, rank, line
	}
	return from, a.hosts.only(from), line
}

func (a *atlas) place(rank int, otherwise Place) Place {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if at, seen := a.seen[rank]; seen {
		return at
	}
	if at, known := a.hosts.Place(rank); known {
		return at
	}
	return otherwise
}

func (a *atlas) learn(rank int, at Place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[int]Place{}
	}
	a.seen[rank] = at
}

// agentsRank reads the rank in a line of a worker's agent, and whether the line reports the start of the rank.
func agentsRank(line string) (rank int, started, is bool) {
	const field = `,"rank":`
	if !strings.HasPrefix(line, `{"time":`) {
		return 0, false, false
	}
	_, after, found := strings.Cut(line, field)
	if !found {
		return 0, false, false
	}
	digits := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if digits <= 0 {
		return 0, false, false
	}
	rank, err := strconv.Atoi(after[:digits])
	return rank, strings.Contains(line, `"msg":"rank started"`), err == nil
}
