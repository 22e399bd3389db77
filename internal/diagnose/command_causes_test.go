package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestCausesInTheCommand: an error is explained by the words of the command from which it follows, and by no others.
func TestCausesInTheCommand(t *testing.T) {
	t.Parallel()
	const missing = "cat: /data/part-.csv: No such file or directory"
	script := func(text string) []string { return []string{"bash", "-c", text} }
	for name, test := range map[string]struct {
		of      mpi.Implementation
		command []string
		env     []corev1.EnvVar
		log     string
		// first is the begin of the first remedy; unless is what it must not begin with.
		first, unless string
	}{
		"a rank's variable in double quotes": {command: script("mpirun -n 2 bash -c \"cat /data/part-$OMPI_COMM_WORLD_RANK.csv\""), log: missing, first: "Write OMPI_COMM_WORLD_RANK so that the shell of each rank"},
		"with braces":                        {command: script("mpirun -n 2 bash -c \"cat /data/part-${OMPI_COMM_WORLD_RANK}.csv\""), log: missing, first: "Write OMPI_COMM_WORLD_RANK so that the shell of each rank"},
		"with a backslash":                   {command: script("mpirun -n 2 bash -c \"cat /data/part-\\$OMPI_COMM_WORLD_RANK.csv\""), log: missing, unless: "Write"},
		"the variable of another MPI":        {of: mpi.MPICH, command: script("mpirun -n 2 bash -c 'cat /data/part-$OMPI_COMM_WORLD_RANK.csv'"), log: missing, first: "Write PMI_RANK in place of OMPI_COMM_WORLD_RANK: MPICH sets"},
		"of another MPI, without a script":   {command: []string{"mpirun", "bash", "-c", "cat /data/part-$PMI_RANK.csv"}, log: missing, first: "Write OMPI_COMM_WORLD_RANK in place of PMI_RANK"},
		"the MPI's own, without a script":    {command: []string{"mpirun", "bash", "-c", "cat /data/part-$OMPI_COMM_WORLD_RANK.csv"}, log: missing, unless: "Write"},
		"a variable that nothing sets":       {command: script("mpirun cat /data/part-$SHARD.csv"), log: missing, first: "Set SHARD: it was empty, so that /data/part-$SHARD.csv became /data/part-.csv."},
		"one that the template sets":         {command: script("mpirun cat /data/part-$SHARD.csv"), env: []corev1.EnvVar{{Name: "SHARD", Value: "1"}}, log: missing, unless: "Set SHARD"},
		"one that the script sets":           {command: script("SHARD=\nmpirun cat /data/part-$SHARD.csv"), log: missing, unless: "Set SHARD"},
		"one with a default in the script":   {command: script(": ${SHARD:=}\nmpirun cat /data/part-$SHARD.csv"), log: missing, unless: "Set SHARD"},
		"a shell with many options":          {command: []string{"bash", "-euo", "pipefail", "-c", "mpirun -n 2 bash -c \"cat /data/part-$OMPI_COMM_WORLD_RANK.csv\""}, log: missing, first: "Write OMPI_COMM_WORLD_RANK so that the shell of each rank"},
		"another file":                       {command: script("mpirun cat /data/part-$SHARD.csv"), log: "cat: /data/part-7.csv: No such file or directory", unless: "Set SHARD"},
		"variables next to each other":       {command: script("mpirun cat /data/$A$B.csv"), log: "cat: /data/part.csv: No such file or directory", unless: "Set A"},
		"a script that reads another one":    {command: script("source env.sh\nmpirun cat /data/part-$SHARD.csv"), log: missing, unless: "Set SHARD"},
		"a module in a very long error":      {command: []string{"mpirun", "python3", "main.py"}, env: []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/opt/modules"}}, log: "RuntimeError: " + strings.Repeat("word ", 60) + "No module named 'x'", first: "Set PYTHONPATH in the workers as well"},
		"a file that is a variable":          {command: script("mpirun cat $FILE"), log: missing, unless: "Set FILE"},

		"arguments in one word":   {command: []string{"mpirun", "python3", "train.py", "--epochs 5 --batch-size 200"}, log: "train.py: error: unrecognized arguments: --epochs 5 --batch-size 200", first: "Write each argument as an element of the list: \"--epochs 5 --batch-size 200\" is one argument"},
		"an option and its value": {command: []string{"mpirun", "python3", "train.py", "--lr 0.1"}, log: "train.py: error: unrecognized arguments: --lr 0.1", first: "Write each argument as an element"},
		"an argument of words":    {command: []string{"mpirun", "python3", "train.py", "--epoch", "5"}, log: "train.py: error: unrecognized arguments: --epoch 5", first: "Correct the arguments"},

		"a module of the launcher's path": {command: []string{"mpirun", "python3", "main.py"}, env: []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/opt/modules"}}, log: "ModuleNotFoundError: No module named 'heat'", first: "Set PYTHONPATH in the workers as well"},
		"a module without such a path":    {command: []string{"mpirun", "python3", "main.py"}, log: "ModuleNotFoundError: No module named 'heat'", first: "Install heat in the image"},
		"Hydra, which passes it on":       {of: mpi.MPICH, command: []string{"mpirun", "python3", "main.py"}, env: []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/opt/modules"}}, log: "ModuleNotFoundError: No module named 'heat'", first: "Install heat in the image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := failed(1, test.log).with(func(s *scene) {
				if s.job.Implementation = mpi.OpenMPI; test.of != "" {
					s.job.Implementation = test.of
				}
				main := &s.job.Launcher.Template.Spec.Containers[0]
				main.Command, main.Args, main.Env = test.command, nil, test.env
			}, launcherLeft(agentapi.Summary{
				Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Launches: 1, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 1, Program: "bash"}},
			}, 1)).findings()
			got := found[0].Remedies[0].Text
			if !strings.HasPrefix(got, test.first) || test.unless != "" && strings.HasPrefix(got, test.unless) {
				t.Errorf("the first remedy is %q", got)
			}
		})
	}
}

// TestMemoryLimitOfTheNamespace: a limit that is not in the pod template is not the job's own.
func TestMemoryLimitOfTheNamespace(t *testing.T) {
	t.Parallel()
	const ofContainer, ofPod = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits.memory", "spec.mpiReplicaSpecs[Worker].template.spec.resources.limits.memory"
	for name, test := range map[string]struct {
		own, pods bool
		action    string
	}{"of a LimitRange": {action: ofContainer}, "of the template": {own: true, action: ofContainer}, "of the pod": {pods: true, action: ofPod}, "of both": {own: true, pods: true, action: ofContainer}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")}
			found := failed(137, "rank 1 has loaded month 3").with(worker(1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled"), func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: limits}
			}), func(s *scene) {
				s.job.Workers.Template.Spec.Containers[0].Resources.Limits = nil
				if test.own {
					s.job.Workers.Template.Spec.Containers[0].Resources.Limits = limits
				}
				if test.pods {
					s.job.Workers.Template.Spec.Resources = &corev1.ResourceRequirements{Limits: limits}
				}
			}).findings()
			got, isOwn := found[0], test.own || test.pods
			if got.Code != codes.OutOfMemory || !strings.Contains(got.Summary, "(96 MiB)") || strings.Contains(got.Remedies[0].Text, "LimitRange") == isOwn || !got.Remedies[0].Rerun {
				t.Errorf("found %s with the first remedy %+v", got.Summary, got.Remedies[0])
			}
			if got.Remedies[0].Action != test.action || slices.ContainsFunc(got.Evidence, func(line string) bool { return strings.Contains(line, "no memory limit") }) == isOwn {
				t.Errorf("the remedy is for %s with %q", got.Remedies[0].Action, got.Evidence)
			}
		})
	}
}

// TestSpawnWithoutSlots: mpirun has the slots for its ranks; the program has none for those that it starts.
func TestSpawnWithoutSlots(t *testing.T) {
	t.Parallel()
	const ruler = "--------------------------------------------------------------------------\n"
	const full = ruler + "All nodes which are allocated for this job are already filled.\n" + ruler
	const spawn = "Traceback (most recent call last):\n  File \"/scripts/manager.py\", line 8, in <module>\n    workers = MPI.COMM_SELF.Spawn(\"python3\", maxprocs=4)\nmpi4py.MPI.Exception: MPI_ERR_SPAWN: could not spawn processes"
	for name, test := range map[string]struct {
		log, want string
		ranks     []agentapi.RankEnd
	}{
		"by the program": {full + spawn, "The program starts more processes by MPI_Comm_spawn (manager.py, line 8)", []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}}},
		"by mpirun":      {full, "mpirun requested", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := failed(1, test.log).with(launcherLeft(agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, HostsReached: 4, Ranks: test.ranks}, 1)).findings()
			if found[0].Code != codes.NotEnoughSlots || !strings.HasPrefix(found[0].Summary, test.want) {
				t.Errorf("found %s: %s", found[0].Code, found[0].Summary)
			}
		})
	}
}

// TestStartOfPodsIsExplained: what the kubelet reports names the field, and a startup probe that has not succeeded yet stops nothing.
func TestStartOfPodsIsExplained(t *testing.T) {
	t.Parallel()
	found := starting(2, mpitest.Waiting("CreateContainerConfigError", `missing value for "POD_NAME"`)).findings()
	if got := found[0]; got.Code != codes.ContainerCreateFailed || !strings.Contains(got.Summary, "subPathExpr refers to $(POD_NAME)") || !strings.Contains(got.Remedies[0].Action, "name: POD_NAME") {
		t.Errorf("found %s: %s with the remedies %+v", got.Code, got.Summary, got.Remedies)
	}
	found = failed(143, "rank 0 of 8").with(
		event("Pod", "pi-worker-0", "Unhealthy", "Startup probe failed: dial tcp 10.244.0.9:2222: connect: connection refused"),
		event("Pod", "pi-worker-0", "Killing", "Stopping container file-browser"),
	).findings()
	if found[0].Code == codes.ProbeFailed {
		t.Errorf("found %s: %s", found[0].Code, found[0].Summary)
	}
}

// TestHostileCommands: commands of the largest size that the kernel accepts take neither long nor much memory.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	const longest = 128 << 10
	fill := func(part string) string { return strings.Repeat(part, longest/len(part)) }
	for name, test := range map[string]struct{ words, log string }{
		"documents without an end": {fill("python<<A\n"), "Traceback (most recent call last):\n  File \"<stdin>\", line 1, in <module>\nValueError: x"},
		"many variables":           {"abc" + fill("$a"), "FileNotFoundError: [Errno 2] No such file or directory: 'abc'"},
		"many libraries":           {fill("a=CDLL("), "mpirun noticed that process rank 1 with PID 18 on node pi-worker-1 exited on signal 11 (Segmentation fault)."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := failed(139, test.log).with(func(s *scene) {
				main := &s.job.Launcher.Template.Spec.Containers[0]
				main.Command, main.Args = []string{"bash", "-c", "true"}, []string{test.words, test.words, test.words, test.words, test.words, test.words, test.words, test.words}
			}).findings()
			if len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}
