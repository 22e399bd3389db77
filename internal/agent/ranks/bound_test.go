package ranks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestAddBound(t *testing.T) {
	t.Parallel()
	own := []int{0, 1, 2, 3}
	for name, test := range map[string]struct {
		own   []int
		ranks [][]int
		want  *agentapi.BoundRanks
	}{
		"each to a core":       {own, [][]int{{0}, {1}}, &agentapi.BoundRanks{CPUs: "0-1", Ranks: 2, Usable: 4}},
		"to the same core":     {own, [][]int{{2}, {2}}, &agentapi.BoundRanks{CPUs: "2", Ranks: 2, Usable: 4}},
		"one of two":           {own, [][]int{{0, 1, 2, 3}, {3}}, &agentapi.BoundRanks{CPUs: "3", Ranks: 1, Usable: 4}},
		"not bound":            {own, [][]int{{0, 1, 2, 3}, {0, 1, 2, 3}}, nil},
		"a pod with one core":  {[]int{5}, [][]int{{5}, {5}}, nil},
		"unknown":              {own, [][]int{nil}, nil},
		"nothing known at all": {nil, [][]int{{0}}, nil},
		"no ranks":             {own, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, addBound(test.own, test.ranks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAllowedCPUs: this process may run on some CPU.
func TestAllowedCPUs(t *testing.T) {
	t.Parallel()
	if cpus := allowedCPUs(1); len(cpus) == 0 {
		t.Error("none")
	}
}
