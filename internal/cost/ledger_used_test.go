package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// usageOf is what a job used from hour to hour of 5 November: half a core, two GiB, and no GPU.
func usageOf(since, until int) *v1alpha1.Usage {
	at := func(hour int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 5, hour, 0, 0, 0, time.UTC))
	}
	return &v1alpha1.Usage{Since: at(since), Until: at(until), Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricCPU, Mean: 500}, {Metric: v1alpha1.MetricMemory, Mean: 2048}}}
}

// TestLedgersKeepWhatWasUsed: the used hours of a job are kept by day beside those that it reserved, also those before and after the times for
// which it held resources. What was not measured is unknown, and not 0.
func TestLedgersKeepWhatWasUsed(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 5, hour, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		usage    *v1alpha1.Usage
		want     string
		measured int
	}{
		"a day":           {usageOf(1, 3), "2026-11-05: 3600 14400", 1},
		"two days":        {usageOf(22, 26), "2026-11-05: 3600 14400, 2026-11-06: 3600 14400", 1},
		"before it began": {usageOf(-10, 3), "2026-11-05: 23400 93600", 1},
		"earlier runs": {func() *v1alpha1.Usage {
			usage := usageOf(10, 12)
			usage.Earlier = []v1alpha1.EarlierUsage{{Since: metav1.NewTime(at(2)), Until: metav1.NewTime(at(3)), CPUCoreSeconds: 100, MemoryGiBSeconds: 10}}
			return usage
		}(), "2026-11-05: 3700 14410", 1},
		"nothing": {nil, "", 0},
	} {
		e := LedgerEntry{
			UID: "a", User: "ann", Labels: map[string]string{"team": "blue"}, Began: at(0), Ended: at(27), Used: UsedDays(test.usage),
			Consumption: &v1alpha1.Consumption{Until: metav1.NewTime(at(27)), CPUCoreSeconds: 27 * 3600},
		}
		var got []string
		var total Used
		measured := 0
		for _, line := range ledgersOf(e)["2026-11"].Lines {
			if line.GPUs != nil || line.Label("team") != "blue" || line.Label("tea") != "" {
				t.Errorf("%s: the line is %+v", name, line)
			}
			if line.CPUCores != nil {
				got = append(got, fmt.Sprintf("%s: %d %d", line.Day, *line.CPUCores, *line.MemoryGiB))
			}
			// Parts of a day add up.
			for _, period := range [][2]time.Time{{{}, at(6)}, {at(6), at(25)}, {at(25), {}}} {
				used, jobs := line.UsedBetween(period[0], period[1])
				total, measured = total.plus(used), measured+jobs
			}
		}
		if text := strings.Join(got, ", "); text != test.want || measured != test.measured {
			t.Errorf("%s: %s of %d jobs are kept, want %s of %d", name, text, measured, test.want, test.measured)
		}
		whole, _ := UsedBetween(test.usage, time.Time{}, time.Time{})
		if (whole.CoreHours == nil) != (total.CoreHours == nil) || whole.CoreHours != nil && math.Abs(*whole.CoreHours-*total.CoreHours) > 1e-3 {
			t.Errorf("%s: the parts of the sums are %+v", name, total)
		}
	}
}

// TestLabelsAreBounded: a ledger has a hundred values of each label, and the jobs with others are summed up. A ledger whose
// users have no room keeps the labels.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	var entries []LedgerEntry
	for i := range 20_000 {
		end := time.Date(2026, 11, 1+i%30, 12, 0, 0, 0, time.UTC)
		entries = append(entries, LedgerEntry{
			UID: fmt.Sprint(i), User: fmt.Sprintf("%s-%d", strings.Repeat("u", 50), i), Labels: map[string]string{"team": fmt.Sprint("team-", i%300), "x": "y"}, Ended: end,
			Consumption: &v1alpha1.Consumption{Until: metav1.NewTime(end), CPUCoreSeconds: 60},
		})
	}
	l := &Ledger{}
	for batch := range slices.Chunk(entries, 5000) {
		l.Add("2026-11", batch, none)
	}
	text, err := l.Text()
	if err != nil || len(text) > 1<<20 {
		t.Fatalf("the ledger has %d bytes: %v", len(text), err)
	}
	kept, err := ParseLedger(map[string]string{LedgerKey: text})
	if err != nil {
		t.Fatal(err)
	}
	teams, jobs := map[string]int{}, 0
	for _, line := range kept.Lines {
		teams[line.Label("team")] += line.Jobs
		jobs += line.Jobs
		if line.Label("x") != "y" {
			t.Errorf("the line is %+v", line)
		}
	}
	if len(teams) != maxLabelValues+1 || jobs != 20_000 || teams["team-7"] != 67 || teams[otherLabels] < 13_000 {
		t.Errorf("%d jobs of %d teams are kept: %v", jobs, len(teams), teams)
	}
	// Labels are dropped before users.
	labelled := Ledger{}
	for i := range 6000 {
		labelled.Lines = append(labelled.Lines, LedgerLine{Day: "2026-11-30", User: fmt.Sprint("user-", i%9), Queue: "q", Labels: fmt.Sprintf("team=%0100d", i), Jobs: 1})
	}
	if text, err = labelled.Text(); err != nil {
		t.Fatal(err)
	}
	if kept, err = ParseLedger(map[string]string{LedgerKey: text}); err != nil || len(kept.Lines) != 9 || kept.Lines[0].Queue != "q" || kept.Lines[0].Labels != "" {
		t.Errorf("%d lines are kept: %.200s, %v", len(kept.Lines), text, err)
	}
	// Both are dropped if there is no room.
	for i := range 100_000 {
		l.Lines = append(l.Lines, LedgerLine{Day: "2026-11-30", User: fmt.Sprint(i), Labels: fmt.Sprintf("team=%d", i), Jobs: 1})
	}
	if text, err := l.Text(); err != nil || len(text) > 1<<20 {
		t.Errorf("the ledger has %d bytes: %v", len(text), err)
	}
}
