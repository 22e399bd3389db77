package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestOwnErrors: the remedies of a program's own error follow from what it reports. All kinds of errors are tried.
func TestOwnErrors(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for log, want := range map[string]struct{ kind, remedy string }{
		"ModuleNotFoundError: No module named 'torch.distributed'":                                                                                             {"module", "Install torch.distributed in the image"},
		"ImportError: cannot import name 'Dataset' from 'datasets' (/opt/datasets.py)":                                                                         {"module", "Install the module"},
		"/work/run.sh: line 2: ./prog: cannot execute binary file: Exec format error":                                                                          {"program", "build it for the CPU"},
		"OSError: [Errno 8] Exec format error: './prog'":                                                                                                       {"program", "build it for the CPU"},
		"python3: can't open file '/work/train.py': [Errno 2] No such file or directory":                                                                       {"file", "Check the path of /work/train.py."},
		"FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'":                                                                                   {"file", "Check the path of data.csv."},
		"cat: /data/shard-3: No such file or directory":                                                                                                        {"file", "Check the path of /data/shard-3."},
		"terminate called after throwing an instance of 'std::filesystem'\n  what():  filesystem error: cannot open file: No such file or directory [/data/x]": {"file", "Check the path of the file."},
		"OSError: [Errno 30] Read-only file system: '/tmp/x'":                                                                                                  {"read-only", "mount one where /tmp/x is to be"},
		"PermissionError: [Errno 13] Permission denied: '/results/out.csv'":                                                                                    {"permission", "If /results/out.csv is on a volume"},
		"mkdir: cannot create directory '/results/1': Permission denied":                                                                                       {"permission", "If /results/1 is on a volume"},
		"OSError: [Errno 28] No space left on device: '/scratch/part-0'":                                                                                       {"space", "Write less"},
		"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array":                                                                   {"memory", "Allocate less at once"},
		"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc":                                                           {"memory", "Allocate less at once"},
		"KeyError: 'MASTER_ADDR'":                          {"variable", "If MASTER_ADDR is an environment variable"},
		"/work/run.sh: line 4: DATA_DIR: unbound variable": {"variable", "If DATA_DIR is an environment variable"},
		"EOFError: EOF when reading a line":                {"input", "A pod has no standard input"},
		"requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /":                     {"network", "If jobs are isolated"},
		"Traceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\nsocket.gaierror: [Errno -2] Name or service not known": {"network", "Check the address"},
		"train.py: error: unrecognized arguments: --epoch":                                                                                 {"arguments", "Correct the arguments"},
		"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)":                                                          {"text", "Check what the program reads"},
		"sh: 1: cd: can't cd to /workspace/run":                                                                                            {"file", "Check the path of /workspace/run."},
		"sh: 1: Syntax error: Unterminated quoted string":                                                                                  {"script", "Correct the shell script"},
		"/work/run.sh: line 3: syntax error near unexpected token `done'":                                                                  {"script", "Correct the shell script"},
		"SyntaxError: invalid syntax":                                                                                                      {"source", "Correct the script"},
		"OSError: [Errno 24] Too many open files: '/data/1'":                                                                               {"files", "Open fewer files"},
		"ValueError: shard 2 has no rows":                                                                                                  {"", "This is an error of the program itself."},
		"KeyError: 'loss'":                                                                                                                 {"", "This is an error of the program itself."},
	} {
		tried[want.kind] = true
		found := failed(1, log).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, want.remedy) }) {
			t.Errorf("%q: found %+v", log, found)
			continue
		}
		if last := found[0].Remedies[len(found[0].Remedies)-1].Text; !strings.Contains(last, "Read its output") || len(found[0].Remedies) == 1 == (want.kind != "") {
			t.Errorf("%q: remedies are %+v", log, found[0].Remedies)
		}
		for _, f := range found {
			sound(t, f)
		}
	}
	for _, kind := range codes.OwnErrors {
		if !tried[kind.Name] {
			t.Errorf("no error of the kind %q was tried", kind.Name)
		}
	}
}

// TestFileOfTheLauncher: a file that a rank does not find is on a volume that only the launcher mounts.
func TestFileOfTheLauncher(t *testing.T) {
	t.Parallel()
	mount := func(template *corev1.PodTemplateSpec, at string) {
		template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "code", MountPath: at}}
	}
	const log = "[1,1]<stderr>:python3: can't open file '/work/src/train.py': [Errno 2] No such file or directory"
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		want   string
	}{
		"only the launcher mounts it": {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work/") }, "Mount volume code in the workers as well: /work/src/train.py is on it"},
		"both mount it":               {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work"); mount(&j.Workers.Template, "/work/src") }, "Check the path of /work/src/train.py."},
		"it is beside the volume":     {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work/s") }, "Check the path of /work/src/train.py."},
	} {
		found := failed(2, log, test.change).findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.Contains(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestOthersThatMPIEnded: it is said that MPI ended other ranks only if ranks were started.
func TestOthersThatMPIEnded(t *testing.T) {
	t.Parallel()
	const ended = "MPI then ended all other ranks."
	for name, test := range map[string]struct {
		scene scene
		want  bool
	}{
		"no MPI":                {failed(1, "ValueError: no"), false},
		"mpirun reports it":     {failed(1, "ValueError: no\n--------------------------------------------------------------------------\nPrimary job  terminated normally, but 1 process returned"), true},
		"a rank is known":       {failed(1, "[1,1]<stderr>:ValueError: no"), true},
		"the agent saw no rank": {failed(1, "ValueError: no").with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4, HostsIdle: 4}, 1)), false},
		"the agent saw ranks":   {failed(1, "ValueError: no").with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4}, 1)), true},
	} {
		found := test.scene.findings()
		if len(found) == 0 || strings.Contains(found[0].Summary, ended) != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestMessagesOfMPI: a message of Open MPI that no table knows is quoted, unless it only sums up, or the program says more.
func TestMessagesOfMPI(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	conflict := ruler + "Your job has requested more processes than the ppr for\nthis topology can support:\n\n  App: ranks\n\nPlease revise the conflict and try again." + ruler
	ended := ruler + "Primary job  terminated normally, but 1 process returned\na non-zero exit code." + ruler
	const quoted = "Your job has requested more processes than the ppr for this topology can support"
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"alone":                   {conflict, true},
		"after a summary":         {ended + conflict, true},
		"only a summary":          {ended, false},
		"the program says more":   {conflict + "ValueError: no", false},
		"cut off":                 {strings.TrimSuffix(conflict, ruler), false},
		"without another message": {"step 1", false},
	} {
		found := failed(1, test.log).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || strings.Contains(found[0].Summary, quoted) != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
