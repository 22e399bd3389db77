package diagnose

import (
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
)

// goesOn reports whether all ranks only seem to wait or to be idle, as programs do that sleep between their steps.
func (p *input) goesOn(code codes.Code, figures map[string]string) bool {
	return (code == codes.RanksIdle || code == codes.RanksWaiting) && figures["afterMPI"] == "" && p.advancedSince(figures["since"])
}

// advancedSince reports whether the program goes on although its ranks seem to wait since a time of the day in UTC: a step, epoch or figure that
// it prints has changed since then, and the last such change is not longer ago than is usual for it. Lines that repeat the same figures are
// no progress.
func (p *input) advancedSince(clock string) bool {
	const leastPatience = 2 * time.Minute
	last := p.Evidence.Advance.Last
	since, known := latestAt(clock, p.Seen.Now)
	if !known || !last.After(since) {
		return false
	}
	return p.Seen.Now.Sub(last) <= max(2*p.Evidence.Advance.Longest, leastPatience)
}

// latestAt returns the latest time before now at a time of the day, such as "11:07:32 UTC", as agents write it.
func latestAt(clock string, now time.Time) (at time.Time, known bool) {
	of, err := time.Parse(agentapi.ClockFormat, clock)
	if err != nil {
		return at, false
	}
	year, month, day := now.UTC().Date()
	at = time.Date(year, month, day, of.Hour(), of.Minute(), of.Second(), 0, time.UTC)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at, true
}
