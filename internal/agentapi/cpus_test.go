package agentapi_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

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
