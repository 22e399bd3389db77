package diagnose_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestTimeLimit: a line about a time limit explains the end of the ranks only if the command sets one for its only launch, and none failed before.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	const line = "[mpiexec@pi-launcher] APPLICATION TIMED OUT, TIMEOUT = 30s"
	const ruler = "\n--------------------------------------------------------------------------\n"
	const openMPI = ruler + "The user-provided time limit for job execution has been reached:\n\n  Timeout: 30 seconds\n\nThe job will now be aborted.  Please check your code and/or\nadjust/remove the job execution time limit (as specified by --timeout\ncommand line option or MPIEXEC_TIMEOUT environment variable)." + ruler
	killed := agentapi.RankEnd{Rank: 1, ExitCode: 137, Signal: 9}
	for name, test := range map[string]struct {
		log     string
		command string
		env     string
		rank    agentapi.RankEnd
		more    int32
		want    bool
	}{
		"an option":                {log: line, command: "mpirun --timeout 30 pi", rank: killed, want: true},
		"of Open MPI":              {log: openMPI, command: "mpirun --timeout 30 pi", rank: killed, want: true},
		"of Hydra":                 {log: line, command: "mpiexec -timeout 30 pi", rank: killed, want: true},
		"in the environment":       {log: line, command: "mpiexec pi", env: "MPIEXEC_TIMEOUT", rank: killed, want: true},
		"in a script":              {log: line, command: "export MPIEXEC_TIMEOUT=30\nmpiexec pi", rank: killed, want: true},
		"none is set":              {log: line, command: "mpiexec pi", rank: killed},
		"of an earlier run":        {log: line, command: "mpirun --timeout 30 warmup || true; mpirun pi", rank: killed},
		"of both runs":             {log: line, command: "mpirun warmup || true; mpirun pi", env: "MPIEXEC_TIMEOUT", rank: killed},
		"of one of many":           {log: line, command: "for i in 1 2; do mpirun --timeout 30 pi; done", more: 1, rank: killed},
		"an option of the program": {log: line, command: "mpirun pi --timeout 30", rank: killed},
		"a rank has failed":        {log: line, command: "mpirun --timeout 30 pi", rank: agentapi.RankEnd{Rank: 1, ExitCode: 3}},
		"a rank has crashed":       {log: line, command: "mpirun --timeout 30 pi", rank: agentapi.RankEnd{Rank: 1, ExitCode: 139, Signal: 11}},
		"a rank lacked memory":     {log: line, command: "mpirun --timeout 30 pi", rank: agentapi.RankEnd{Rank: 1, ExitCode: 137, Signal: 9, OOM: true}},
		"the program has an error": {log: "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no\n" + line, command: "mpirun --timeout 30 pi", rank: killed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := failed(255, test.log, mpich).with(func(s *scene) {
				main := &s.job.Launcher.Template.Spec.Containers[0]
				main.Command = []string{"sh", "-c", test.command}
				if test.env != "" {
					main.Env = []corev1.EnvVar{{Name: test.env, Value: "30"}}
				}
			}, launcherLeft(agentapi.Summary{
				Code: agentapi.RankFailed, ExitCode: new(int32(255)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Launches: 1 + test.more, Ranks: []agentapi.RankEnd{test.rank},
			}, 255)).findings()
			if got := strings.Contains(found[0].Summary, "The ranks did not fail"); got != test.want {
				t.Errorf("found %s: %s", found[0].Code, found[0].Summary)
			}
		})
	}
}
