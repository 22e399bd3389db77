package logstream

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Line is a line of a pod's log.
type Line struct {
	// Time is when it was written, by the clock of the pod's node.
	Time time.Time
	// Pod is the name of the pod whose log contains the line.
	Pod string
	// Place is where it was said: that of its rank where that is known, which mostly speaks through the launcher; else
	// the pod's own.
	Place Place
	// Rank is the rank that wrote the line; NoRank if that is unknown.
	Rank int
	// Level is the level of the line. It is set only if the Options require it.
	Level logs.Level
	// Text is the line without the tag of its rank, with secrets masked.
	Text string
}

// Record is a line in the form in which programs read it: of logs -o json, and of a download from the dashboard. Time, rank and level
// are omitted if unknown.
type Record struct {
	Time  *metav1.MicroTime `json:"time,omitempty"`
	Pod   string            `json:"pod"`
	Role  string            `json:"role"`
	Index int               `json:"index"`
	Rank  *int              `json:"rank,omitempty"`
	Level string            `json:"level,omitempty"`
	Text  string            `json:"text"`
}

// Record returns the record of the line.
func (l Line) Record() Record {
	r := Record{Pod: l.Pod, Role: string(l.Place.Role), Index: l.Place.Index, Level: l.Level.String(), Text: l.Text}
	if l.Rank != NoRank {
		r.Rank = &l.Rank
	}
	if !l.Time.IsZero() {
		r.Time = &metav1.MicroTime{Time: l.Time.UTC()}
	}
	return r
}

// NoRank is the rank of a line without a known rank.
const NoRank = -1

// Place is one of a job's pods, as people number them.
type Place struct {
	Role mpi.Role
	// Index is a worker's number from 0, or the launcher's try.
	Index int
}

// String is worker-2, launcher, or launcher#2 for its second try.
func (p Place) String() string {
	switch {
	case p.Role == mpi.RoleWorker:
		return fmt.Sprintf("worker-%d", p.Index)
	case p.Index > 0:
		return fmt.Sprintf("%s#%d", p.Role, p.Index+1)
	}
	return string(p.Role)
}
