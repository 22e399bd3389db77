package process

import (
	"strconv"
	"testing"
)

func TestParseLoad(t *testing.T) {
	tests := map[string]struct {
		line string
		want Load
	}{
		"a line of the kernel": {"0.20 0.18 0.12 3/80 11206\n", Load{Newest: "11206", Runnable: 3}},
		"no file":              {"", Load{}},
		"cut off":              {"0.20 0.18 0.12 3/80", Load{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseLoad([]byte(test.line)); got != test.want {
				t.Errorf("the load is %+v, want %+v", got, test.want)
			}
		})
	}
	if got := ReadLoad(); got.Runnable < 1 {
		t.Errorf("this test runs, but the load is %+v", got)
	} else if _, err := strconv.Atoi(got.Newest); err != nil {
		t.Error(err)
	}
}

func TestCountCPUs(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3\n": 4, "0-1,4,6-7": 5, "": 0, "all": 0, "3-0": 0} {
		if got := countCPUs(list); got != want {
			t.Errorf("%q contains %d CPUs, want %d", list, got, want)
		}
	}
	if CPUs() < 1 {
		t.Error("the node has no CPU")
	}
}
