package cost

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func after(hours float64) time.Time {
	return begin.Add(time.Duration(hours * float64(time.Hour)))
}

func TestBetween(t *testing.T) {
	t.Parallel()
	// 2 cores for 10 hours, nothing for 10 hours, 4 cores and a GPU for 5 hours.
	stepped := &v1alpha1.Consumption{
		Until: metav1.NewTime(after(25)), CPUCoreSeconds: 40 * 3600, MemoryGiBSeconds: 10 * 3600, GPUSeconds: map[string]int64{"nvidia.com/gpu": 5 * 3600},
		Steps: []v1alpha1.ConsumptionStep{
			{Time: metav1.NewTime(after(0))},
			{Time: metav1.NewTime(after(10)), CPUCoreSeconds: 20 * 3600, MemoryGiBSeconds: 10 * 3600},
			{Time: metav1.NewTime(after(20)), CPUCoreSeconds: 20 * 3600, MemoryGiBSeconds: 10 * 3600},
		},
	}
	earlier := &v1alpha1.Consumption{Until: metav1.NewTime(after(10)), CPUCoreSeconds: 20 * 3600}
	for name, test := range map[string]struct {
		consumption  *v1alpha1.Consumption
		start        time.Time
		from, until  time.Time
		cores, gpus  float64
		wantEstimate bool
	}{
		"no report":                       {},
		"all":                             {consumption: stepped, cores: 40, gpus: 5},
		"before":                          {consumption: stepped, until: after(-1)},
		"after":                           {consumption: stepped, from: after(25)},
		"the first half":                  {consumption: stepped, until: after(5), cores: 10},
		"while nothing was held":          {consumption: stepped, from: after(12), until: after(18)},
		"over both":                       {consumption: stepped, from: after(9), until: after(21), cores: 2 + 4, gpus: 1},
		"the end":                         {consumption: stepped, from: after(24), cores: 4, gpus: 1},
		"no steps, all":                   {consumption: earlier, start: after(0), cores: 20},
		"no steps, a part":                {consumption: earlier, start: after(0), from: after(5), cores: 10, wantEstimate: true},
		"no steps, the part before a cut": {consumption: earlier, start: after(0), until: after(2), cores: 4, wantEstimate: true},
		"no steps, a longer period":       {consumption: earlier, start: after(0), from: after(-5), until: after(20), cores: 20},
		"no steps and no start":           {consumption: earlier, from: after(9), until: after(11), cores: 20},
		"no steps and a late start":       {consumption: earlier, start: after(99), from: after(9), cores: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			use, isEstimate := Between(test.consumption, test.start, test.from, test.until)
			if math.Abs(use.CoreHours-test.cores) > 1e-9 || math.Abs(use.DeviceHours["nvidia.com/gpu"]-test.gpus) > 1e-9 || isEstimate != test.wantEstimate {
				t.Errorf("%+v, estimated %t; want %g cores, %g GPUs, %t", use, isEstimate, test.cores, test.gpus, test.wantEstimate)
			}
			if use.IsNone() != (test.cores == 0 && test.gpus == 0) {
				t.Errorf("%+v is none: %t", use, use.IsNone())
			}
		})
	}
}

// TestPeriodsAddUp: for random reports, with and without steps, and random cuts, the parts are the whole, none is negative, and
// their prices add up, too.
func TestPeriodsAddUp(t *testing.T) {
	t.Parallel()
	rates := Rates{CoreHour: 0.03, GiBHour: 0.004, DeviceHours: map[string]float64{"a.example.com/gpu": 2.5}}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		consumption, start := randomConsumption(r)
		a, b, c := after(r.Float64()*120-10), after(r.Float64()*120-10), after(r.Float64()*120-10)
		if b.Before(a) {
			a, b = b, a
		}
		if c.Before(b) {
			b, c = c, b
		}
		if b.Before(a) {
			a, b = b, a
		}
		if r.IntN(4) == 0 {
			a, c = time.Time{}, time.Time{}
		}
		whole, _ := Between(consumption, start, a, c)
		first, _ := Between(consumption, start, a, b)
		second, _ := Between(consumption, start, b, c)
		if diff := cmp.Diff(whole, first.Plus(second), cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty(), cmpopts.IgnoreMapEntries(func(_ string, hours float64) bool { return math.Abs(hours) < 1e-9 })); diff != "" {
			t.Fatalf("seed %d: %+v cut at %s (-whole +parts)\n%s", seed, consumption, b, diff)
		}
		if sum := rates.Of(first) + rates.Of(second); math.Abs(sum-rates.Of(whole)) > 1e-6 {
			t.Fatalf("seed %d: the parts cost %g, the whole %g", seed, sum, rates.Of(whole))
		}
		for _, part := range []Use{first, second} {
			if part.CoreHours < -1e-9 || part.GiBHours < -1e-9 || part.DeviceHours["a.example.com/gpu"] < -1e-9 {
				t.Fatalf("seed %d: a part is negative: %+v", seed, part)
			}
		}
	}
}

// randomConsumption returns a consumption of up to 100 hours, sometimes without steps, and its start.
func randomConsumption(r *rand.Rand) (*v1alpha1.Consumption, time.Time) {
	c := &v1alpha1.Consumption{GPUSeconds: map[string]int64{}}
	hours := r.Float64() * 20
	start := after(hours)
	for range r.IntN(12) + 1 {
		step := v1alpha1.ConsumptionStep{Time: metav1.NewTime(after(hours).Truncate(time.Second)), CPUCoreSeconds: c.CPUCoreSeconds, MemoryGiBSeconds: c.MemoryGiBSeconds}
		if len(c.GPUSeconds) > 0 {
			step.GPUSeconds = maps.Clone(c.GPUSeconds)
		}
		c.Steps = append(c.Steps, step)
		hours += r.Float64() * 8
		c.CPUCoreSeconds += int64(r.IntN(3)) * r.Int64N(100000)
		c.MemoryGiBSeconds += int64(r.IntN(3)) * r.Int64N(100000)
		if r.IntN(2) == 0 {
			c.GPUSeconds["a.example.com/gpu"] += r.Int64N(100000)
		}
	}
	c.Until = metav1.NewTime(after(hours).Truncate(time.Second))
	if r.IntN(5) == 0 {
		c.Steps = nil
	}
	return c, start
}
