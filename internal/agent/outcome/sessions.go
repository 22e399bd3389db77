package outcome

import (
	"cmp"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// sessionsOf returns the sessions of which there are records; nil if there are none. Those that are open end now.
func sessionsOf(all []records.Record, now time.Time) *agentapi.Sessions {
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, func(a, b records.Record) int { return a.Since.Compare(b.Since) }).Since
	sessions := agentapi.Sessions{Count: int32(len(all)), First: first.UnixMilli()}
	for _, r := range all {
		sessions.List = append(sessions.List, timesOf(r, first, now))
	}
	slices.SortStableFunc(sessions.List, func(a, b agentapi.Session) int {
		return cmp.Or(-cmp.Compare(min(1, len(a.Code)), min(1, len(b.Code))), -cmp.Compare(ranksAt(a), ranksAt(b)))
	})
	sessions.List = sessions.List[:min(len(sessions.List), agentapi.MaxSessions)]
	return &sessions
}

// timesOf returns the times of the session of a record.
func timesOf(r records.Record, first, now time.Time) agentapi.Session {
	s := agentapi.Session{Host: hostfile.Short(r.Host), At: r.Since.Sub(first).Milliseconds(), Code: r.Trouble}
	begin, end := r.Since, now
	if !r.Reached.IsZero() {
		begin, s.Connected = r.Reached, max(1, r.Reached.Sub(r.Since).Milliseconds())
	}
	if r.Over {
		end = begin.Add(time.Duration(r.Seconds) * time.Second)
	}
	if r.Worker != nil && r.Worker.InitSeconds > 0 && s.Connected > 0 {
		s.Ranks = s.Connected + int64(1000*r.Worker.InitSeconds+0.5)
	}
	// The seconds of a record are whole.
	s.End = max(s.Connected, s.Ranks, end.Sub(r.Since).Milliseconds())
	return s
}

// ranksAt returns when the ranks of a session started, or else when its host was connected, in milliseconds since the first session began.
func ranksAt(s agentapi.Session) int64 { return s.At + cmp.Or(s.Ranks, s.Connected) }
