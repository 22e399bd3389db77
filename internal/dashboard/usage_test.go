package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/jobs"
)

// TestTotalCountsOmittedLines: a page shows the first lines of many, with the sum of all.
func TestTotalCountsOmittedLines(t *testing.T) {
	t.Parallel()
	lines := make([]jobs.UsageLine, maxUsageLines+500)
	for i := range lines {
		lines[i] = jobs.UsageLine{Jobs: 1, CoreHours: 2, GiBHours: 4, GPUHours: 8, Currency: "EUR", Cost: new(0.5)}
	}
	lines[0].Currency, lines[1].Cost = "USD", nil
	lines[2].Measured, lines[2].UsedCoreHours, lines[1200].Measured, lines[1200].UsedCoreHours = 1, new(0.5), 1, new(1.0)
	want := UsageTotal{Jobs: 1500, CoreHours: 3000, GiBHours: 6000, GPUHours: 12_000, Measured: 2, UsedCoreHours: new(1.5), Costs: map[string]float64{"EUR": 749, "USD": 0.5}}
	for all, omitted := range map[bool]int{false: 500, true: 0} {
		found := usageOf(lines, all)
		if diff := cmp.Diff(want, found.Total); diff != "" || found.Omitted != omitted || len(found.Lines)+omitted != len(lines) {
			t.Errorf("all=%t: %d lines, %d omitted, the total is wrong (-want +got):\n%s", all, len(found.Lines), found.Omitted, diff)
		}
	}
}
