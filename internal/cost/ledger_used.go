package cost

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// UsedSeconds are what pods with ranks used, multiplied by seconds; nil is unknown.
type UsedSeconds struct {
	CPUCores  *int64 `json:"usedCpuCoreSeconds,omitempty"`
	MemoryGiB *int64 `json:"usedMemoryGiBSeconds,omitempty"`
	GPUs      *int64 `json:"usedGpuSeconds,omitempty"`
}

// UsedDays returns what a job used on each day in UTC, by dates such as 2026-11-05; nil if nothing was measured. The days add up to the whole, and
// there are at most maxLedgerDays.
func UsedDays(usage *v1alpha1.Usage) map[string]UsedSeconds {
	if _, measured := UsedBetween(usage, time.Time{}, time.Time{}); !measured {
		return nil
	}
	first, last := usage.Since.Time, usage.Until.Time
	for _, run := range usage.Earlier {
		if run.Since.Time.Before(first) {
			first = run.Since.Time
		}
		if run.Until.After(last) {
			last = run.Until.Time
		}
	}
	const day = 24 * time.Hour
	at, final := first.UTC().Truncate(day), last.UTC().Truncate(day)
	if oldest := final.Add(-(maxLedgerDays - 1) * day); at.Before(oldest) {
		at = oldest
	}
	days, before := map[string]UsedSeconds{}, UsedSeconds{}
	for ; !at.After(final); at = at.Add(day) {
		until := at.Add(day)
		if at.Equal(final) {
			until = time.Time{}
		}
		used, _ := UsedBetween(usage, time.Time{}, until)
		// The sums of seconds are rounded, and not those of each day.
		total := UsedSeconds{CPUCores: knownSeconds(used.CoreHours), MemoryGiB: knownSeconds(used.GiBHours), GPUs: knownSeconds(used.GPUHours)}
		days[at.Format(time.DateOnly)] = UsedSeconds{
			CPUCores: minus(total.CPUCores, before.CPUCores), MemoryGiB: minus(total.MemoryGiB, before.MemoryGiB), GPUs: minus(total.GPUs, before.GPUs),
		}
		before = total
	}
	return days
}

func (u UsedSeconds) isNone() bool { return u == UsedSeconds{} }

func (u UsedSeconds) plus(other UsedSeconds) UsedSeconds {
	return UsedSeconds{CPUCores: plus(u.CPUCores, other.CPUCores), MemoryGiB: plus(u.MemoryGiB, other.MemoryGiB), GPUs: plus(u.GPUs, other.GPUs)}
}

// hours returns a share of the figures.
func (u UsedSeconds) hours(share float64) Used {
	of := func(seconds *int64) *float64 {
		if seconds == nil {
			return nil
		}
		return new(share * float64(*seconds) / 3600)
	}
	return Used{CoreHours: of(u.CPUCores), GiBHours: of(u.MemoryGiB), GPUHours: of(u.GPUs)}
}

func knownSeconds(hours *float64) *int64 {
	if hours == nil || math.IsNaN(*hours) || math.IsInf(*hours, 0) {
		return nil
	}
	return new(toSeconds(*hours))
}

func plus(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// minus returns the growth of a figure; nil if it is unknown.
func minus(now, before *int64) *int64 {
	if now == nil || before == nil {
		return now
	}
	return new(max(0, *now-*before))
}

// maxLabelValues is how many values of each label a ledger has, and otherLabels is the value of all others.
const (
	maxLabelValues = 100
	otherLabels    = "(others)"
)

// labelsText returns labels as a line of a ledger has them, such as "project=x,team=a".
func labelsText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if labels[key] != "" {
			texts = append(texts, key+"="+labels[key])
		}
	}
	return strings.Join(texts, ",")
}

// Label returns the value of a label of the jobs of a line; empty if they have none, or if it was not kept.
func (l LedgerLine) Label(key string) string {
	for text := range strings.SplitSeq(l.Labels, ",") {
		if value, is := strings.CutPrefix(text, key+"="); is {
			return value
		}
	}
	return ""
}

// knownLabels are the values of labels in a ledger.
type knownLabels map[string]map[string]bool

func (l Ledger) knownLabels() knownLabels {
	known := knownLabels{}
	for _, line := range l.Lines {
		known.bounded(line.Labels)
	}
	return known
}

// bounded returns labels of which each has a value that is known, or one of the first maxLabelValues.
func (k knownLabels) bounded(labels string) string {
	if labels == "" {
		return ""
	}
	texts := strings.Split(labels, ",")
	for i, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		switch {
		case k[key][value]:
		case len(k[key]) >= maxLabelValues:
			texts[i] = key + "=" + otherLabels
		case k[key] == nil:
			k[key] = map[string]bool{value: true}
		default:
			k[key][value] = true
		}
	}
	return strings.Join(texts, ",")
}
