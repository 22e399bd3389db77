package cost

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// LedgerKey is the key of a ledger in the data of its ConfigMap, which is in the operator's namespace.
const LedgerKey = "usage.json"

// UnreadableKey is the key of a damaged ledger that SetAside has moved. Its sums are not in the ledger.
const UnreadableKey = "unreadable.json"

// DeletedReportsName is the name of the ConfigMap that contains, by NamespaceKey, until when reports were deleted. All users may read it.
const DeletedReportsName = "mpijob-deleted-reports"

// Ledger contains what the jobs of a namespace reserved and used in a month whose reports were deleted.
type Ledger struct {
	// Lines are sums of a day, a user, a queue and labels.
	Lines []LedgerLine `json:"lines"`
	// Counted are the UIDs of reports that are part of the sums and may exist still. They must not be counted again.
	Counted []string `json:"counted,omitempty"`
}

// LedgerLine is a sum of a day in UTC.
type LedgerLine struct {
	// Day is a date such as 2026-11-05.
	Day   string `json:"day"`
	User  string `json:"user,omitempty"`
	Queue string `json:"queue,omitempty"`
	// Labels are those that the operator keeps, such as "project=x,team=a".
	Labels string `json:"labels,omitempty"`
	// Jobs is how many jobs ended on the day.
	Jobs             int              `json:"jobs,omitempty"`
	CPUCoreSeconds   int64            `json:"cpuCoreSeconds"`
	MemoryGiBSeconds int64            `json:"memoryGiBSeconds"`
	DeviceSeconds    map[string]int64 `json:"deviceSeconds,omitempty"`
	// Measured is how many of the jobs that ended on the day have a measured usage.
	Measured int `json:"measured,omitempty"`
	UsedSeconds
}

// LedgerEntry is a report that is added to ledgers.
type LedgerEntry struct {
	UID, User, Queue string
	// Labels are those that are kept.
	Labels      map[string]string
	Consumption *v1alpha1.Consumption
	// Used is what the job used, as UsedDays returns it.
	Used map[string]UsedSeconds
	// Began is when the job began, and Ended when it ended.
	Began, Ended time.Time
}

const (
	// maxLedgerBytes is the size of a ledger, of which a ConfigMap has room for 1 MiB.
	maxLedgerBytes = 800 << 10
	// maxUnreadableBytes is how much of a damaged ledger is kept next to one of maxLedgerBytes.
	maxUnreadableBytes = 200 << 10
	// maxLedgerDays is how many days before the end of a job its use is assigned to.
	maxLedgerDays = 1000
	// maxLineDevices is how many devices a line has; the others are summed up as otherDevices.
	maxLineDevices = 16
	otherDevices   = "(others)/device"
	// otherUsers is the user of the lines of a ledger that has no room for all users.
	otherUsers = "(others)"
)

// NamespaceKey returns a key for a namespace that does not disclose its name.
func NamespaceKey(namespace string) string {
	sum := sha256.Sum256([]byte(namespace))
	return hex.EncodeToString(sum[:8])
}

// LedgerName returns the name of the ConfigMap with the ledger of a namespace and a month such as 2026-11.
func LedgerName(namespace, month string) string {
	return fmt.Sprintf("mpijob-usage-%s-%s", month, NamespaceKey(namespace))
}

// ParseLedger reads a ledger from the data of its ConfigMap. Without data, it is empty.
func ParseLedger(data map[string]string) (l Ledger, err error) {
	if text := data[LedgerKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return Ledger{}, fmt.Errorf("%s: %w", LedgerKey, err)
		}
	}
	return l, nil
}

// SetAside moves a ledger that ParseLedger cannot read to UnreadableKey, in place of an earlier one, so that new sums can be written. A
// ConfigMap has no room for two large ledgers: the end of a large one is cut off.
func SetAside(data map[string]string) {
	text := data[LedgerKey]
	data[UnreadableKey] = strings.ToValidUTF8(text[:min(len(text), maxUnreadableBytes)], "")
	delete(data, LedgerKey)
}

// Text returns the ledger as ParseLedger reads it. If it is too large, it has no labels, which are any text of the jobs' users. If users
// and queues alone are too large, those of each day are summed up, with their labels if there is room.
func (l Ledger) Text() (string, error) {
	data, err := json.Marshal(l)
	for _, keep := range []struct{ users, labels bool }{{users: true}, {labels: true}, {}} {
		if err != nil || len(data) <= maxLedgerBytes {
			break
		}
		days := Ledger{Counted: l.Counted}
		for _, line := range l.Lines {
			if !keep.users {
				line.User, line.Queue = otherUsers, ""
			}
			if !keep.labels {
				line.Labels = ""
			}
			days.add(line)
		}
		data, err = json.Marshal(days)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", LedgerKey, err)
	}
	return string(data), nil
}

// Months returns the months in which a job reserved something or ended, in order.
func (e LedgerEntry) Months() []string {
	months := map[string]bool{}
	for _, line := range e.lines() {
		months[monthOf(line)] = true
	}
	return slices.Sorted(maps.Keys(months))
}

func monthOf(line LedgerLine) string { return line.Day[:len("2006-01")] }

// lines returns what a job reserved and used on each day. The lines of all days add up to the whole.
func (e LedgerEntry) lines() []LedgerLine {
	var lines []LedgerLine
	last := e.Ended
	if c := e.Consumption; c != nil && c.Until.After(last) {
		last = c.Until.Time
	}
	first := cmp.Or(e.Began, last)
	if c := e.Consumption; c != nil && len(c.Steps) > 0 && c.Steps[0].Time.Time.Before(first) {
		first = c.Steps[0].Time.Time
	}
	const day = 24 * time.Hour
	final := last.UTC().Truncate(day)
	start := first.UTC().Truncate(day)
	if oldest := final.Add(-maxLedgerDays * day); start.Before(oldest) {
		start = oldest
	}
	until := func(when time.Time) Use {
		use, _ := Between(e.Consumption, e.Began, time.Time{}, when)
		return use
	}
	counted, labels := LedgerLine{}, labelsText(e.Labels)
	used := clampDays(e.Used, start.Format(time.DateOnly), final.Format(time.DateOnly))
	for at := start; !at.After(final); at = at.Add(day) {
		use := until(at.Add(day))
		if at.Equal(final) {
			use = Consumed(e.Consumption)
		}
		// The sums of seconds are rounded, and not those of each day.
		total := LedgerLine{CPUCoreSeconds: toSeconds(use.CoreHours), MemoryGiBSeconds: toSeconds(use.GiBHours), DeviceSeconds: map[string]int64{}}
		line := LedgerLine{
			Day: at.Format(time.DateOnly), User: e.User, Queue: e.Queue, Labels: labels, UsedSeconds: used[at.Format(time.DateOnly)],
			CPUCoreSeconds: total.CPUCoreSeconds - counted.CPUCoreSeconds, MemoryGiBSeconds: total.MemoryGiBSeconds - counted.MemoryGiBSeconds,
		}
		for name, hours := range use.DeviceHours {
			total.DeviceSeconds[name] = toSeconds(hours)
			line.addDevice(name, total.DeviceSeconds[name]-counted.DeviceSeconds[name])
		}
		counted = total
		if at.Equal(e.Ended.UTC().Truncate(day)) {
			line.Jobs, line.Measured = 1, min(1, len(e.Used))
		}
		if line.Jobs > 0 || line.CPUCoreSeconds > 0 || line.MemoryGiBSeconds > 0 || len(line.DeviceSeconds) > 0 || !line.isNone() {
			lines = append(lines, line)
		}
	}
	return lines
}

// clampDays adds what was used before the first day or after the last one to these.
func clampDays(used map[string]UsedSeconds, first, last string) map[string]UsedSeconds {
	days := map[string]UsedSeconds{}
	for day, seconds := range used {
		day = min(max(day, first), last)
		days[day] = days[day].plus(seconds)
	}
	return days
}

func toSeconds(hours float64) int64 { return int64(math.Round(hours * 3600)) }

// Add adds the part of reports in a month, except those that are counted already, and returns whether that changed the ledger. Of the
// reports that were counted before, those are remembered that exist.
func (l *Ledger) Add(month string, entries []LedgerEntry, exists func(uid string) bool) (changed bool) {
	given := map[string]bool{}
	for _, e := range entries {
		given[e.UID] = true
	}
	known := map[string]bool{}
	kept := l.Counted[:0:0]
	for _, uid := range l.Counted {
		known[uid] = true
		if given[uid] || exists(uid) {
			kept = append(kept, uid)
		}
	}
	l.Counted = kept
	labels := l.knownLabels()
	for _, e := range entries {
		if known[e.UID] {
			continue
		}
		known[e.UID] = true
		for _, line := range e.lines() {
			if monthOf(line) == month {
				line.Labels = labels.bounded(line.Labels)
				l.add(line)
				changed = true
			}
		}
		l.Counted = append(l.Counted, e.UID)
	}
	return changed
}

func (l *Ledger) add(line LedgerLine) {
	i, found := slices.BinarySearchFunc(l.Lines, line, func(a, b LedgerLine) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.User, b.User), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Labels, b.Labels))
	})
	if !found {
		line.DeviceSeconds = maps.Clone(line.DeviceSeconds)
		l.Lines = slices.Insert(l.Lines, i, line)
		return
	}
	have := &l.Lines[i]
	have.Jobs += line.Jobs
	have.Measured += line.Measured
	have.UsedSeconds = have.plus(line.UsedSeconds)
	have.CPUCoreSeconds += line.CPUCoreSeconds
	have.MemoryGiBSeconds += line.MemoryGiBSeconds
	for _, name := range slices.Sorted(maps.Keys(line.DeviceSeconds)) {
		have.addDevice(name, line.DeviceSeconds[name])
	}
}

func (l *LedgerLine) addDevice(name string, seconds int64) {
	if seconds <= 0 {
		return
	}
	if l.DeviceSeconds == nil {
		l.DeviceSeconds = map[string]int64{}
	}
	if _, known := l.DeviceSeconds[name]; !known && len(l.DeviceSeconds) >= maxLineDevices {
		name = otherDevices
	}
	l.DeviceSeconds[name] += seconds
}

// Between returns the part of a line in a period, and how many of its jobs count there; a zero time is no limit. What was reserved on a
// day is spread evenly over it. Periods add up.
func (l LedgerLine) Between(from, until time.Time) (use Use, jobs int) {
	share, counts := l.share(from, until)
	if counts {
		jobs = l.Jobs
	}
	use = Use{CoreHours: share * float64(l.CPUCoreSeconds) / 3600, GiBHours: share * float64(l.MemoryGiBSeconds) / 3600}
	for name, seconds := range l.DeviceSeconds {
		if share > 0 {
			use.addDevice(name, share*float64(seconds)/3600)
		}
	}
	return use, jobs
}

// UsedBetween returns the used part of a line in a period, and how many of its jobs with a measured usage count there, like Between.
func (l LedgerLine) UsedBetween(from, until time.Time) (used Used, measured int) {
	share, counts := l.share(from, until)
	if counts {
		measured = l.Measured
	}
	if share == 0 {
		return Used{}, measured
	}
	return l.hours(share), measured
}

// share returns how much of the line's day is in a period, and whether the middle of the day is.
func (l LedgerLine) share(from, until time.Time) (share float64, middle bool) {
	start, err := time.Parse(time.DateOnly, l.Day)
	if err != nil {
		return 0, false
	}
	end := start.AddDate(0, 0, 1)
	noon := start.Add(12 * time.Hour)
	middle = !noon.Before(from) && (until.IsZero() || noon.Before(until))
	if from.Before(start) {
		from = start
	}
	if until.IsZero() || until.After(end) {
		until = end
	}
	return max(0, until.Sub(from).Hours()/24), middle
}

// Ends are the ends of the latest jobs of a namespace whose reports were deleted: [0] of those that succeeded, [1] of those that failed.
type Ends [2]time.Time

// ParseEnds reads a value of the ConfigMap of deleted reports. A part that is no time is zero.
func ParseEnds(text string) (ends Ends) {
	for i, part := range strings.SplitN(text, ",", len(ends)) {
		if end, err := time.Parse(time.RFC3339, part); err == nil {
			ends[i] = end
		}
	}
	return ends
}

// Text returns the ends as ParseEnds reads them.
func (e Ends) Text() string {
	var texts []string
	for _, end := range e {
		text := ""
		if !end.IsZero() {
			text = end.UTC().Format(time.RFC3339)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

// DeletedUntil reads until when reports of a namespace were deleted, from a value of the ConfigMap of deleted reports; zero if none were.
func DeletedUntil(text string) time.Time {
	ends := ParseEnds(text)
	if ends[1].After(ends[0]) {
		return ends[1]
	}
	return ends[0]
}
