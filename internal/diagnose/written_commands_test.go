package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestFoldedScript: a script whose lines YAML has joined never starts MPI.
func TestFoldedScript(t *testing.T) {
	check(t, map[string]expect{
		"workers-idle-folded-script": {codes.WorkersIdle, reportedSuccess("", "sh", "-c", "set -e export INTERVALS=100000000 mpirun pi echo finished\n").with(
			launcherLeft(agentapi.Summary{ExitCode: new(int32(0)), HostsExpected: 2, HostsIdle: 2}, 0))},
	})
}

// TestWarnedAtCreation: what the job was warned about when it was created is the cause of what follows from it, and the first remedy.
func TestWarnedAtCreation(t *testing.T) {
	none := launcherLeft(agentapi.Summary{ExitCode: new(int32(0)), HostsExpected: 2, HostsIdle: 2}, 0)
	check(t, map[string]expect{
		"warned-script-in-many-words":  {codes.WorkersIdle, reportedSuccess("", "bash", "-c", "mpirun", "-n", "2", "pi").with(none)},
		"warned-python-without-mpirun": {codes.WorkersIdle, reportedSuccess("", "python3", "train.py").with(none)},
		"warned-own-master-address": {codes.ApplicationFailed, failed(1, "torch.distributed.DistNetworkError: The client socket has timed out after 600s while trying to connect to (127.0.0.1, 29500).", func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MASTER_ADDR", Value: "127.0.0.1"}}
		})},
		// The error has nothing to do with the address.
		"warned-of-something-else": {codes.ApplicationFailed, failed(1, "ValueError: no data", func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MASTER_ADDR", Value: "127.0.0.1"}}
		})},
	})
}

// TestWarningThatExplains: a warning is the first remedy only of what it can explain.
func TestWarningThatExplains(t *testing.T) {
	ownAddress := func(j *mpi.Job) {
		j.Lifecycle.Deadline = new(int64(600))
		j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MASTER_ADDR", Value: "127.0.0.1"}}
	}
	ownName := func(j *mpi.Job) { j.Workers.Template.Spec.Hostname = "trainer" }
	const unresolved = "ssh: Could not resolve hostname %s: Name or service not known"
	for name, test := range map[string]struct {
		in   scene
		code codes.Code
		want bool
	}{
		"a deadline without progress":      {failed(143, "loading", ownAddress).with(stoppedByDeadline), codes.DeadlineExceeded, true},
		"a deadline at epoch 3":            {failed(143, "epoch 3/10", ownAddress).with(stoppedByDeadline, printed(v1alpha1.Training{Epoch: "3/10"})), codes.DeadlineExceeded, false},
		"the name that has no effect":      {failed(1, fmt.Sprintf(unresolved, "trainer.pi"), sshd, ownName), codes.NameUnresolved, true},
		"the name of a worker":             {failed(1, fmt.Sprintf(unresolved, "pi-worker-0.pi.ns.svc"), sshd, ownName), codes.NameUnresolved, false},
		"a name that only begins with it":  {failed(1, fmt.Sprintf(unresolved, "trainer-7"), sshd, ownName), codes.NameUnresolved, false},
		"a port that refuses, of a worker": {failed(1, "ssh: connect to host pi-worker-0.pi.ns.svc port 22: Connection refused", sshd, ownName), codes.ConnectionRefused, false},
	} {
		found := test.in.findings()
		if len(found) == 0 || found[0].Code != test.code {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		if told := strings.HasPrefix(found[0].Remedies[0].Text, "As the warning at the job's creation says"); told != test.want {
			t.Errorf("%s: the first remedy is %q", name, found[0].Remedies[0].Text)
		}
	}
}

// TestFirstContainerIsAnother: the containers of a worker are named where the first one is not that of the program.
func TestFirstContainerIsAnother(t *testing.T) {
	const log = ruler + "The value of the MCA parameter \"plm_rsh_agent\" was set to a path\nthat could not be found:\n\n  plm_rsh_agent: ssh : rsh\n\nPlease either unset the parameter, or check that the path is correct" + ruler
	check(t, map[string]expect{
		"first-container-is-an-exporter": {codes.SSHMissing, failed(243, log, func(j *mpi.Job) {
			spec := &j.Workers.Template.Spec
			spec.Containers = append([]corev1.Container{{Name: "metrics-exporter", Command: []string{"sh", "-c", "while true; do sleep 5; done"}}}, spec.Containers...)
		})},
	})
}

// TestDashOfADocument: an option with a typographic dash is taken as the program.
func TestDashOfADocument(t *testing.T) {
	const log = ruler + "mpirun was unable to find the specified executable file, and therefore\ndid not launch the job.  This error was first reported for process\nrank 0; it may have occurred for other processes as well.\n\nNOTE: A common cause for this error is misspelling a mpirun command\n      line parameter option (remember that mpirun interprets the first\n      unrecognized command line token as the executable).\n\nNode:       pi-worker-1\nExecutable: \u2013np" + ruler
	check(t, map[string]expect{"dash-of-a-document": {codes.ProgramMissing, failed(134, log)}})
}
