package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestOwnSetting: a variable of the job's own that can cause a finding is named, and those of runtimes are not.
func TestOwnSetting(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind             string
		launcher, worker []corev1.EnvVar
		want, evidence   string
	}{
		"none":            {"MPIJob", nil, []corev1.EnvVar{{Name: "A", Value: "b"}}, "", ""},
		"of the workers":  {"MPIJob", nil, []corev1.EnvVar{{Name: "UCX_TLS", Value: "rc"}}, "Remove UCX_TLS=rc from the pod template of the worker.", "The pod template of the worker sets UCX_TLS=rc."},
		"of both":         {"MPIJob", []corev1.EnvVar{{Name: "UCX_TLS", Value: "rc"}}, []corev1.EnvVar{{Name: "UCX_TLS", Value: "rc"}}, "Remove UCX_TLS=rc from the pod templates.", "The pod templates set UCX_TLS=rc."},
		"of a TrainJob":   {"TrainJob", []corev1.EnvVar{{Name: "UCX_TLS", Value: "rc"}}, nil, "Remove UCX_TLS=rc from the pod template of the launcher.", "The pod template of the launcher sets UCX_TLS=rc."},
		"of the operator": {"TrainJob", []corev1.EnvVar{{Name: "UCX_TLS", Value: "/etc/mpi/x"}}, nil, "", ""},
	} {
		pod := func(env []corev1.EnvVar) (template corev1.PodTemplateSpec) {
			template.Spec.Containers = []corev1.Container{{Env: env}}
			return template
		}
		job := mpi.Job{Kind: test.kind}
		job.Launcher.Template, job.Workers.Template = pod(test.launcher), pod(test.worker)
		p := &input{&facts.Facts{Job: job}}
		figures := map[string]string{}
		entry, evidence := p.ownSetting(codes.UCXTransportMissing, figures)
		got := ""
		for _, remedy := range entry.Remedies {
			if text := codes.FillRemedy(remedy, figures).Text; strings.HasPrefix(text, "Remove UCX_TLS=") {
				got, _, _ = strings.Cut(text, " It replaces")
			}
		}
		if got != test.want || strings.Join(evidence, " ") != test.evidence {
			t.Errorf("%s: got %q with %q", name, got, evidence)
		}
	}
}

// TestSettingInCommand: a variable that the launcher's command gives to the ranks is named, too.
func TestSettingInCommand(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"mpirun -x UCX_TLS=rc -n 2 pi":                 "rc",
		"mpirun -genv UCX_TLS rc -n 2 pi":              "rc",
		"mpirun -n 2 -env UCX_TLS rc pi":               "rc",
		"export UCX_TLS=rc; mpirun -n 2 pi":            "rc",
		"UCX_TLS='rc,sm' mpirun -n 2 pi":               "rc,sm",
		"mpirun -x 'UCX_TLS=rc' -n 2 pi":               "rc",
		"mpirun -genv UCX_TLS=rc -n 2 pi":              "rc",
		"mpirun --env UCX_TLS rc -n 2 pi":              "rc",
		"env UCX_TLS=rc mpirun -n 2 pi":                "rc",
		"mpirun -genv MY_UCX_TLS rc -n 2 pi":           "",
		"mpirun -genvlist UCX_TLS,A -n 2 pi":           "",
		"mpirun -x UCX_TLS -n 2 pi":                    "",
		"mpirun -x MY_UCX_TLS=rc -n 2 pi --UCX_TLS=rc": "",
	} {
		job := mpi.Job{Kind: "MPIJob"}
		job.Launcher.Template.Spec.Containers = []corev1.Container{{Command: []string{"sh", "-c", command}}}
		figures := map[string]string{}
		entry, evidence := (&input{&facts.Facts{Job: job}}).ownSetting(codes.UCXTransportMissing, figures)
		if want == "" {
			if len(evidence) > 0 {
				t.Errorf("%q: %q", command, evidence)
			}
			continue
		}
		if first := codes.FillRemedy(entry.Remedies[0], figures); !strings.HasPrefix(first.Text, "Remove UCX_TLS="+want+" from the launcher's command.") || len(first.Changes) > 0 ||
			strings.Join(evidence, "") != "The launcher's command sets UCX_TLS="+want+"." {
			t.Errorf("%q: %+v with %q", command, first, evidence)
		}
	}
}

// TestUndefinedInScript: a variable is undefined if neither the pod template nor the script sets it.
func TestUndefinedInScript(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"mpirun -n $NPROCS pi":                            "NPROCS",
		"mpirun -n ${NPROCS} pi":                          "NPROCS",
		"mpirun -n $SET pi":                               "",
		"N=4; mpirun -n $N pi":                            "",
		"for n in 1 2; do mpirun -n $n pi; done":          "",
		"mpirun -n ${N:-2} pi":                            "",
		"echo $HOME\nmpirun -n 2 pi":                      "",
		"read N < /data/ranks\nmpirun -n $N pi":           "",
		"mpirun -n $(cat /data/ranks) pi":                 "",
		": ${N:=2}\nmpirun -n $N pi":                      "",
		"while getopts n: N; do :; done; mpirun -n $N pi": "",
		"mapfile -t N < /data/ranks\nmpirun -n $N pi":     "",
		"printf -v N %d 4; mpirun -n $N pi":               "",
		"((N = 2)); mpirun -n $N pi":                      "",
		"export N\nmpirun -n $N pi":                       "N",
		"mpirun --wdir $HOME -x PATH=$PATH -n 4 $PROGRAM": "PROGRAM",
		"mpirun -x DATA=$SOURCE/x -n 4 \"${PROGRAM}\"":    "PROGRAM",
		"mpirun -x DATA=$SOURCE/x -n 4 pi":                "SOURCE",
		"mpirun -x LD_LIBRARY_PATH=$LD_LIBRARY_PATH pi $OMPI_MCA_btl $REDIS_SERVICE_HOST $REDIS_PORT": "",
		". /opt/intel/setvars.sh\nmpirun -n $NPROCS pi":                                               "",
		"cd /a && source env.sh; mpirun -n $NPROCS pi":                                                "",
		"./prepare; mpirun -n $NPROCS pi":                                                             "NPROCS",
		"set -e\nprepare\nexport A\nmpirun -n $RANKS pi":                                              "RANKS",
	} {
		for _, shell := range [][]string{{"sh", "-ec"}, {"bash", "-euo", "pipefail", "-c"}} {
			job := mpi.Job{}
			job.Launcher.Template.Spec.Containers = []corev1.Container{{Command: append(shell, script), Env: []corev1.EnvVar{{Name: "SET"}}}}
			if got := (&input{&facts.Facts{Job: job}}).undefinedInScript(); got != want {
				t.Errorf("%q: %q, want %q", script, got, want)
			}
		}
	}
}

// TestOptionsOfTheJobsMPI: remedies that have Open MPI pass a variable on are written as the job's MPI does it.
func TestOptionsOfTheJobsMPI(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		implementation mpi.Implementation
		action, want   string
	}{
		{mpi.OpenMPI, "mpirun -x DATA <program>", "mpirun -x DATA <program>"},
		{mpi.MPICH, "mpirun -x DATA <program>", "mpirun -genvlist DATA <program>"},
		{mpi.IntelMPI, "mpirun -x PORT=29501 <program>", "mpirun -genv PORT 29501 <program>"},
		{mpi.MPICH, "grep -x DATA", "grep -x DATA"},
	} {
		remedy := v1alpha1.Remedy{Action: test.action}
		(&input{&facts.Facts{Job: mpi.Job{Implementation: test.implementation}}}).adaptRemedy(&remedy)
		if remedy.Action != test.want {
			t.Errorf("%s: %q, want %q", test.implementation, remedy.Action, test.want)
		}
	}
}
