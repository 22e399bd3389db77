package ranks

import (
	"testing"
	"time"
)

func TestPauseBetweenLooks(t *testing.T) {
	tests := map[string]struct {
		look           time.Duration
		runnable, cpus int
		want           time.Duration
	}{
		"as often as possible":                      {50 * time.Microsecond, 1, 64, lookSoonest},
		"a look takes longer":                       {time.Millisecond, 1, 64, 20 * time.Millisecond},
		"a container that is throttled":             {100 * time.Millisecond, 1, 64, lookEagerly},
		"every CPU is busy":                         {50 * time.Microsecond, 64, 64, lookSoonest},
		"threads wait for CPUs":                     {50 * time.Microsecond, 12, 2, 6 * lookSoonest},
		"many threads wait for CPUs":                {50 * time.Microsecond, 400, 2, lookEagerly},
		"threads wait for CPUs, and looks are long": {time.Millisecond, 4, 2, 40 * time.Millisecond},
		"the load is unknown":                       {50 * time.Microsecond, 0, 2, lookSoonest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pauseBetweenLooks(test.look, test.runnable, test.cpus); got != test.want {
				t.Errorf("the pause is %s, want %s", got, test.want)
			}
		})
	}
}
