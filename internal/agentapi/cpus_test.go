package agentapi_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestManyCPUs: a list that names the same CPUs again and again takes no more memory than one with all that a machine can have.
func TestManyCPUs(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{
		"0-16383": 1 << 14, "0-8191,0-8191": 1 << 13, "0-16383,0": 0, strings.Repeat("0-16383,", 4095) + "0-16383": 0,
	} {
		if cpus, ok := agentapi.ParseCPUs(list); len(cpus) != want || ok != (want > 0) {
			t.Errorf("%.20s: got %d CPUs, %t; want %d", list, len(cpus), ok, want)
		}
	}
}

func TestCPUs(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"0": "0", "0-3,8\n": "0-3,8", "8,0-1,2": "0-2,8", "3,1": "1,3", "1,1-2": "1-2", "0-1,4-5": "0-1,4-5",
		"": "", "-": "", "3-1": "", "a": "", "0-99999999999": "", "0-16384": "", "-1": "", "0,": "", "0x1": "",
	} {
		cpus, ok := agentapi.ParseCPUs(list)
		if got := agentapi.FormatCPUs(cpus); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t; want %q", list, got, ok, want)
		}
	}
}

func TestCountCPUs(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"0": 1, "0-3\n": 4, "0-1,4,6-7": 5, "": 0, "all": 0, "3-0": 0} {
		if got := agentapi.CountCPUs(list); got != want {
			t.Errorf("%q contains %d CPUs, want %d", list, got, want)
		}
	}
}
