package process

import (
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	tests := map[string]struct {
		stat string
		want time.Duration
		fail bool
	}{
		"as the kernel writes it":            {stat: "4242 (operator) S 1 4242 4242 0 -1 4194560 900 0 0 0 150 25 7 8 20 0 9 0 1 2 3\n", want: 1750 * time.Millisecond},
		"a name with spaces and parentheses": {stat: "7 (a) b (c d) R 1 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0\n", want: 70 * time.Millisecond},
		"too short":                          {stat: "7 (a) R 1 7", fail: true},
		"empty":                              {fail: true},
		"no number":                          {stat: "7 (a) R 1 7 7 0 -1 0 0 0 0 0 x 4 0 0\n", fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseCPU([]byte(test.stat))
			if got != test.want || (err != nil) != test.fail {
				t.Errorf("got %v, %v; want %v, an error: %v", got, err, test.want, test.fail)
			}
		})
	}
}

func TestParsePeakMemory(t *testing.T) {
	tests := map[string]struct {
		status string
		want   int64
		fail   bool
	}{
		"as the kernel writes it": {status: "Name:\toperator\nVmPeak:\t 1300000 kB\nVmHWM:\t   48128 kB\nVmRSS:\t   40000 kB\n", want: 48128 << 10},
		"of a process that ended": {status: "Name:\toperator\nState:\tZ (zombie)\n", fail: true},
		"no number":               {status: "VmHWM:\t much kB\n", fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parsePeakMemory([]byte(test.status))
			if got != test.want || (err != nil) != test.fail {
				t.Errorf("got %v, %v; want %v, an error: %v", got, err, test.want, test.fail)
			}
		})
	}
}
