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

func TestParseLiveHeap(t *testing.T) {
	const first = "gc 1 @0.013s 4%: 0.03+1.2+0.01 ms clock, 0.06+0.4/0.9/0+0.02 ms cpu, 4->5->3 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
	const last = "gc 23 @61.2s 1%: 0.1+20+0.01 ms clock, 0.2+0.4/19/0+0.02 ms cpu, 71->74->38 MB, 76 MB goal, 1 MB stacks, 0 MB globals, 2 P (forced)\n"
	tests := map[string]struct {
		log  string
		want int64
	}{
		"the last collection counts":  {log: first + "{\"msg\":\"Starting workers\"}\n" + last + "{\"msg\":\"job changed\"}\n", want: 38 << 20},
		"a program that logs none":    {log: "{\"msg\":\"Starting workers\"}\n"},
		"the last line is incomplete": {log: first + last[:40], want: 3 << 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseLiveHeap([]byte(test.log)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
