package launcher

import (
	"testing"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestExitCodeOfADisruptedRun: a run ends with the code for disruptions if a worker was told to end, and only then: TrainJobs are started
// again after it without a limit.
func TestExitCodeOfADisruptedRun(t *testing.T) {
	ending := []records.Record{{Host: "pi-worker-0"}, {Host: "pi-worker-1", Worker: &agentapi.Summary{Ending: true}}}
	lost := []records.Record{{Host: "pi-worker-0", Trouble: agentapi.ConnectionLost, Worker: &agentapi.Summary{}}}
	for name, test := range map[string]struct {
		env      string
		code     int
		sessions []records.Record
		want     int
	}{
		"a worker was told to end":       {"75", 1, ending, 75},
		"the program failed by itself":   {"75", 3, lost, 3},
		"the program succeeded":          {"75", 0, ending, 0},
		"a program's own code":           {"75", 75, lost, 1},
		"its own code and a disruption":  {"75", 75, ending, 75},
		"its own code means nothing":     {"", 75, lost, 75},
		"another code is the program's":  {"1", 1, lost, 2},
		"the runtime asks for no code":   {"", 1, ending, 1},
		"the runtime asks for nonsense":  {"disrupted", 1, ending, 1},
		"the runtime asks for a success": {"0", 1, ending, 1},
		"no exit code is as large":       {"256", 1, ending, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(agentapi.EnvExitDisrupted, test.env)
			if got := exitCode(test.code, test.sessions); got != test.want {
				t.Errorf("the exit code is %d, want %d", got, test.want)
			}
		})
	}
}
