package agentapi

import (
	"cmp"
	"slices"
	"strings"
)

// EnvProfile is set in pods of a job that has its communication profiled. Its value is ProfileFolder: the folder in which the
// library that is preloaded into the ranks keeps a record of each.
const EnvProfile = "MPI_AGENT_PROFILE"

// EnvLaunch identifies the run of MPI's launcher to which a rank on a worker belongs, in jobs that have their communication profiled.
const EnvLaunch = "MPI_AGENT_LAUNCH"

// Paths of the profile in a pod. ProfileLibrary is a part of the agent's image.
const (
	ProfileFolder  = Run + "/profile"
	ProfileLibrary = Path + "/lib/libmpi-profile.so"
)

// Profile is where the time of ranks goes: of those of a container, or of a job. Times are in milliseconds.
type Profile struct {
	// NoLibrary is set if the agent's image does not have the library, so that nothing is known of ranks.
	NoLibrary bool `json:"noLibrary,omitempty"`
	// Launch is the run of MPI's launcher that the profile describes, the latest one of a container; "" if it is unknown. Other lists
	// earlier runs of the container, at most MaxProfileRuns. A job has neither, hosts that were added up have both.
	Launch string   `json:"launch,omitempty"`
	Other  []string `json:"other,omitempty"`
	// Began is when the first rank of the run had called MPI_Init, in milliseconds since 1970; 0 if there is none.
	Began int64 `json:"began,omitempty"`
	// Runs is how many runs of MPI's launcher have ranks that were profiled, of which the profile describes the one that began last. Only a
	// job has it.
	Runs int32 `json:"runs,omitempty"`
	// Ranks are those of a container, by number, or some of a job: at most MaxProfileRanks. RankCount is the number of ranks that were
	// profiled.
	Ranks     []RankProfile `json:"ranks,omitempty"`
	RankCount int32         `json:"rankCount,omitempty"`
	// Elapsed and Communication are the sums over all ranks, and MaxComputation is the longest time of a rank outside of communication.
	// A container has none of them.
	Elapsed        int64 `json:"elapsed,omitempty"`
	Communication  int64 `json:"communication,omitempty"`
	MaxComputation int64 `json:"maxComputation,omitempty"`
	// Late is the rank that others wait for, nil if there is none. Only a job has one.
	Late *LateRank `json:"late,omitempty"`
	// Calls are the functions of MPI in which ranks were, those with the most time first: at most MaxProfileCalls.
	Calls []CallProfile `json:"calls,omitempty"`
	// Sizes are the numbers of calls by the size of their message: up to MessageSizes, and above.
	Sizes []int64 `json:"sizes,omitempty"`
}

// Limits of a Profile. MaxProfileRuns is how many runs before the latest one are counted. MaxCallName is the length of the longest name of a function, without "MPI_".
const (
	MaxProfileRanks = 32
	MaxProfileRuns  = 32
	MaxProfileCalls = 64
	MaxJobCalls     = 12
	MaxCallName     = 21
)

// MessageSizes are the upper limits of classes of sizes, in bytes. One more class has no limit.
var MessageSizes = [...]int64{64, 1 << 10, 16 << 10, 256 << 10, 4 << 20}

// RankProfile is how long a rank ran between MPI_Init and MPI_Finalize, and how much of that in functions of MPI.
type RankProfile struct {
	Rank          int32 `json:"rank"`
	Elapsed       int64 `json:"ms"`
	Communication int64 `json:"in"`
}

// Computation returns the rank's time outside of communication.
func (r RankProfile) Computation() int64 { return max(0, r.Elapsed-r.Communication) }

// CallProfile is what all ranks did in a function of MPI.
type CallProfile struct {
	// Call is its name without "MPI_".
	Call  string `json:"call"`
	Count int64  `json:"count"`
	Time  int64  `json:"ms"`
	// Bytes is the size of the data that the ranks contributed: sent, or passed to a collective function.
	Bytes int64 `json:"bytes,omitempty"`
}

// SortCalls sorts calls as in a Profile.
func SortCalls(calls []CallProfile) {
	slices.SortFunc(calls, func(a, b CallProfile) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Count, a.Count), strings.Compare(a.Call, b.Call))
	})
}

// LateRank is a rank that the others wait for, of several the one with the least time in functions of MPI.
type LateRank struct {
	Rank int32 `json:"rank"`
	// Waited is how much longer the median of the others was in functions of MPI.
	Waited int64 `json:"ms"`
}

// In returns which of some ranks the others wait for: the LateRank, and those that ran for as long and were hardly longer in functions of MPI. Nobody
// waits for one that is nil.
func (l *LateRank) In(ranks []RankProfile) (late []int32) {
	// near is the part of Waited for which they were longer there at most, and shorter the part of the time for which they ran less.
	const near, shorter = 4, 10
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(ranks, func(r RankProfile) bool { return r.Rank == l.Rank })
	if i < 0 {
		return []int32{l.Rank}
	}
	for _, r := range ranks {
		longer := r.Communication - ranks[i].Communication
		if longer >= 0 && longer < max(1, l.Waited/near) && r.Elapsed >= ranks[i].Elapsed-ranks[i].Elapsed/shorter {
			late = append(late, r.Rank)
		}
	}
	return late
}
