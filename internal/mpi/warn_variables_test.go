package mpi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWarnCommandReferences: a reference to a variable that env has not is reported, but for those that a shell expands.
func TestWarnCommandReferences(t *testing.T) {
	t.Parallel()
	env := []corev1.EnvVar{{Name: "EPOCHS", Value: "3"}}
	for name, test := range map[string]struct {
		words []string
		from  []corev1.EnvFromSource
		want  string
	}{
		"none":         {[]string{"mpirun", "train"}, nil, ""},
		"known":        {[]string{"mpirun", "train", "$(EPOCHS)"}, nil, ""},
		"unknown":      {[]string{"mpirun", "train", "--epochs", "$(EPOCH)"}, nil, "command[3]: $(EPOCH) is not expanded, because env has no such variable; define it, or correct its name"},
		"of a shell":   {[]string{"sh", "-c", "mpirun -n $(nproc) train"}, nil, ""},
		"of an object": {[]string{"mpirun", "train", "$(EPOCH)"}, []corev1.EnvFromSource{{}}, ""},
	} {
		if got := strings.Join(mpi.WarnCommandReferences(test.words, env, test.from, field.NewPath("command")), "\n"); got != test.want {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
	}
}

func TestWarnReferences(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []corev1.EnvVar
		from []corev1.EnvFromSource
		want string
	}{
		"none":             {[]corev1.EnvVar{{Name: "A", Value: "x"}}, nil, ""},
		"an earlier one":   {[]corev1.EnvVar{{Name: "A", Value: "x"}, {Name: "B", Value: "$(A)/y"}}, nil, ""},
		"a later one":      {[]corev1.EnvVar{{Name: "B", Value: "$(A)/y"}, {Name: "A", Value: "x"}}, nil, "worker.spec.containers[0].env[0].value: $(A) is not expanded, because no such variable is defined before it; move A before it"},
		"an unknown one":   {[]corev1.EnvVar{{Name: "A", Value: "x"}, {Name: "B", Value: "$(A)$(HOME)"}}, nil, "env[1].value: $(HOME) is not expanded, because no such variable is defined before it; define HOME"},
		"itself":           {[]corev1.EnvVar{{Name: "PATH", Value: "/opt/bin:$(PATH)"}}, nil, "$(PATH) is not expanded"},
		"a dollar sign":    {[]corev1.EnvVar{{Name: "B", Value: "$$(A)"}}, nil, ""},
		"a Service":        {[]corev1.EnvVar{{Name: "B", Value: "$(KUBERNETES_SERVICE_HOST)"}}, nil, ""},
		"a local master":   {[]corev1.EnvVar{{Name: "MASTER_ADDR", Value: "localhost"}}, nil, "worker.spec.containers[0].env[0].value: MASTER_ADDR is localhost, which is another pod for the ranks of each pod"},
		"one of an object": {[]corev1.EnvVar{{Name: "B", Value: "$(A)"}}, []corev1.EnvFromSource{{}}, ""},
	} {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = field.NewPath("launcher"), field.NewPath("worker")
			main := &j.Workers.Template.Spec.Containers[0]
			main.Env, main.EnvFrom = test.env, test.from
		})
		got := strings.Join(mpi.Warnings(job), "\n")
		if !strings.Contains(got, test.want) || test.want == "" && (strings.Contains(got, "not expanded") || strings.Contains(got, "MASTER_ADDR")) {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
	}
}

// TestWarnLocalMaster: the address at which ranks meet may be each pod's own if there is only one pod with ranks.
func TestWarnLocalMaster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		workers      int32
		launcherRuns bool
		value        string
		want         string
	}{
		"one worker":                {1, false, "localhost", ""},
		"two workers":               {2, false, "127.0.0.1", "usually pi-worker-0.pi."},
		"a launcher and one worker": {1, true, "localhost", "usually pi-launcher.pi."},
		"a launcher that runs all":  {0, true, "localhost", ""},
		"a host":                    {2, false, "pi-worker-0", ""},
	} {
		job := mpitest.Job(test.workers, func(j *mpi.Job) { j.Launcher.RunsRanks = test.launcherRuns })
		got := strings.Join(job.WarnLocalMaster([]corev1.EnvVar{{Name: "MASTER_ADDR", Value: test.value}}, field.NewPath("env")), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
	}
}

// TestWarnPath: a PATH without the folders of programs is reported, also where a shell's variable was meant to add these.
func TestWarnPath(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  corev1.EnvVar
		want string
	}{
		"another variable":        {corev1.EnvVar{Name: "PATHS", Value: "/app"}, ""},
		"a shell's variable":      {corev1.EnvVar{Name: "PATH", Value: "/opt/conda/bin:$PATH"}, "worker.spec.containers[0].env[1].value: PATH replaces that of the image, because no shell expands $PATH here: write all folders"},
		"one in braces":           {corev1.EnvVar{Name: "PATH", Value: "${PATH}:/usr/bin"}, "no shell expands ${PATH} here"},
		"one folder":              {corev1.EnvVar{Name: "PATH", Value: "/opt/conda/bin"}, "worker.spec.containers[0].env[1].value: PATH replaces that of the image, and has no /usr/bin, so that"},
		"folders below":           {corev1.EnvVar{Name: "PATH", Value: "/usr/bin/app:/usr/local/bin"}, "has no /usr/bin"},
		"all folders":             {corev1.EnvVar{Name: "PATH", Value: "/opt/conda/bin:/usr/local/bin:/usr/bin:/bin"}, ""},
		"a slash at the end":      {corev1.EnvVar{Name: "PATH", Value: "/app:/usr/bin/"}, ""},
		"an older image":          {corev1.EnvVar{Name: "PATH", Value: "/bin:/app"}, ""},
		"a variable of env":       {corev1.EnvVar{Name: "PATH", Value: "/app:$(FOLDERS)"}, ""},
		"a value of elsewhere":    {corev1.EnvVar{Name: "PATH", ValueFrom: &corev1.EnvVarSource{}}, ""},
		"a dollar sign of a name": {corev1.EnvVar{Name: "PATH", Value: "/usr/bin:/a$$b"}, ""},
	} {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = field.NewPath("launcher"), field.NewPath("worker")
			j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FOLDERS", Value: "/usr/bin"}, test.env}
			j.Launcher.Template.Spec.Containers[0].Env = nil
		})
		got := strings.Join(mpi.Warnings(job), "\n")
		if !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "PATH") {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
		job.Launcher.Template.Spec.Containers[0].Env, job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{test.env}, nil
		if got := strings.Join(mpi.Warnings(job), "\n"); strings.Contains(got, "launcher.spec.containers[0].env[0].value: PATH") != (test.want != "") {
			t.Errorf("%s in the launcher: warns %q", name, got)
		}
	}
}
