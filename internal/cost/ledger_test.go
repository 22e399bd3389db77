package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func none(string) bool { return false }

// ledgersOf returns the ledgers of entries, by month.
func ledgersOf(entries ...LedgerEntry) map[string]*Ledger {
	months := map[string]*Ledger{}
	for _, e := range entries {
		for _, month := range e.Months() {
			if months[month] == nil {
				months[month] = &Ledger{}
			}
			months[month].Add(month, []LedgerEntry{e}, none)
		}
	}
	return months
}

// TestLedgersKeepTheWhole: the lines of the days of random jobs add up to what the jobs reserved, in whole seconds, and those of
// each day to what they reserved on it.
func TestLedgersKeepTheWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		c, start := randomConsumption(r)
		e := LedgerEntry{UID: "a", User: "ann", Queue: "gpu", Consumption: c, Began: start, Ended: c.Until.Time}
		var cores, memory, gpus int64
		jobs := 0
		for _, sums := range ledgersOf(e) {
			for _, line := range sums.Lines {
				cores, memory, gpus, jobs = cores+line.CPUCoreSeconds, memory+line.MemoryGiBSeconds, gpus+line.DeviceSeconds["a.example.com/gpu"], jobs+line.Jobs
				day, err := time.Parse(time.DateOnly, line.Day)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := Between(c, start, day, day.AddDate(0, 0, 1))
				got, _ := line.Between(day, day.AddDate(0, 0, 1))
				if math.Abs(got.CoreHours-want.CoreHours)*3600 > 1.01 || math.Abs(got.GiBHours-want.GiBHours)*3600 > 1.01 {
					t.Errorf("seed %d: on %s, %+v is kept, want %+v", seed, line.Day, got, want)
				}
			}
		}
		if cores != c.CPUCoreSeconds || memory != c.MemoryGiBSeconds || gpus != c.GPUSeconds["a.example.com/gpu"] || jobs != 1 {
			t.Errorf("seed %d: %d, %d and %d seconds of %d jobs are kept, want those of %+v", seed, cores, memory, gpus, jobs, c)
		}
	}
}

// TestReportsCountOnce: a report that is counted is not counted again while it exists. Reports that are gone are forgotten.
func TestReportsCountOnce(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 5, 0, 0, 0, 0, time.UTC)
	entry := func(uid string) LedgerEntry {
		return LedgerEntry{UID: uid, Ended: day.Add(time.Hour), Began: day, Consumption: &v1alpha1.Consumption{Until: metav1.NewTime(day.Add(time.Hour)), CPUCoreSeconds: 3600}}
	}
	l := &Ledger{}
	for i, step := range []struct {
		entries []string
		exist   []string
		changed bool
		cores   int64
		counted []string
	}{
		{[]string{"a", "b"}, []string{"a", "b", "c"}, true, 7200, []string{"a", "b"}},
		{[]string{"a", "b"}, []string{"a", "b", "c"}, false, 7200, []string{"a", "b"}},
		{[]string{"b", "c", "c"}, []string{"b", "c"}, true, 10800, []string{"b", "c"}},
		{[]string{"d"}, nil, true, 14400, []string{"d"}},
		{[]string{"d"}, nil, false, 14400, []string{"d"}},
	} {
		var entries []LedgerEntry
		for _, uid := range step.entries {
			entries = append(entries, entry(uid))
		}
		changed := l.Add("2026-11", entries, func(uid string) bool { return slices.Contains(step.exist, uid) })
		if changed != step.changed || l.Lines[0].CPUCoreSeconds != step.cores || !slices.Equal(l.Counted, step.counted) {
			t.Errorf("step %d: changed %t, %+v, want %+v", i, changed, l, step)
		}
	}
}

// TestLedgersAreBounded: with very many users and devices, sums of days are kept, and nothing is lost.
func TestLedgersAreBounded(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	for i := range 10_000 {
		end := time.Date(2026, 11, 1+i%30, 12, 0, 0, 0, time.UTC)
		l.Add("2026-11", []LedgerEntry{{
			UID: fmt.Sprint(i), User: fmt.Sprintf("%s-%d", strings.Repeat("u", 50), i), Began: end.Add(-time.Hour), Ended: end,
			Consumption: &v1alpha1.Consumption{Until: metav1.NewTime(end), CPUCoreSeconds: 3600, GPUSeconds: map[string]int64{fmt.Sprintf("example.com/%d", i%500): 10}},
		}}, none)
	}
	text, err := l.Text()
	if err != nil || len(text) > 1<<20 {
		t.Fatalf("the ledger has %d bytes: %v", len(text), err)
	}
	kept, err := ParseLedger(map[string]string{LedgerKey: text})
	if err != nil {
		t.Fatal(err)
	}
	var cores, devices int64
	jobs := 0
	for _, line := range kept.Lines {
		cores, jobs = cores+line.CPUCoreSeconds, jobs+line.Jobs
		for _, seconds := range line.DeviceSeconds {
			devices += seconds
		}
	}
	if cores != 36_000_000 || devices != 100_000 || jobs != 10_000 {
		t.Errorf("%d core seconds, %d device seconds and %d jobs are kept in %d lines", cores, devices, jobs, len(kept.Lines))
	}
}

// TestSetAside: a ConfigMap has room for a damaged ledger and a new one, and its texts are UTF-8.
func TestSetAside(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"small": `{"lines":[`, "large": strings.Repeat("x", maxUnreadableBytes-1) + strings.Repeat("ä", maxLedgerBytes)} {
		data := map[string]string{LedgerKey: text, UnreadableKey: "before"}
		SetAside(data)
		kept, isLedger := data[UnreadableKey], data[LedgerKey] != ""
		if isLedger || kept == "" || !strings.HasPrefix(text, kept) || len(kept)+maxLedgerBytes > 1<<20 || !utf8.ValidString(kept) {
			t.Errorf("%s: %d bytes are set aside, and a ledger remains: %t", name, len(kept), isLedger)
		}
	}
}

// TestPeriodsOfALineAddUp: also those that begin within a day.
func TestPeriodsOfALineAddUp(t *testing.T) {
	t.Parallel()
	line := LedgerLine{Day: "2026-11-05", Jobs: 3, CPUCoreSeconds: 24 * 3600, DeviceSeconds: map[string]int64{"nvidia.com/gpu": 48 * 3600}}
	at := func(hour int) time.Time { return time.Date(2026, 11, 5, hour, 0, 0, 0, time.UTC) }
	for _, cut := range []int{-30, 0, 1, 12, 13, 24, 50} {
		before, jobsBefore := line.Between(time.Time{}, at(cut))
		after, jobsAfter := line.Between(at(cut), time.Time{})
		if sum := before.Plus(after); math.Abs(sum.CoreHours-24) > 1e-9 || math.Abs(sum.DeviceHours["nvidia.com/gpu"]-48) > 1e-9 || jobsBefore+jobsAfter != 3 {
			t.Errorf("cut at %d h: %+v of %d jobs and %+v of %d jobs", cut, before, jobsBefore, after, jobsAfter)
		}
	}
}

func TestDeletedUntil(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", ",": "0001-01-01T00:00:00Z", "nonsense": "0001-01-01T00:00:00Z", "2026-11-05T10:00:00Z,": "2026-11-05T10:00:00Z",
		"2026-11-05T10:00:00Z,2026-11-06T10:00:00Z": "2026-11-06T10:00:00Z", "2026-11-05T10:00:00Z,2026-11-01T10:00:00Z": "2026-11-05T10:00:00Z",
	} {
		if got := DeletedUntil(text).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%q is until %s, want %s", text, got, want)
		}
	}
}
