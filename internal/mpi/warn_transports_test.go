package mpi_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestWarnTransport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command string
		env     string
		job     func(*mpi.Job)
		want    string
	}{
		"none selected":            {command: "mpirun train"},
		"without tcp":              {command: "mpirun --mca btl ^tcp train", want: `spec.containers[0].command: btl "^tcp" leaves Open MPI without a transport between the pods`},
		"without tcp, as variable": {command: "mpirun train", env: "OMPI_MCA_btl=^tcp", want: `spec.containers[0].env: btl "^tcp"`},
		"the old Infiniband":       {command: "mpirun -mca btl ^openib train"},
		"shared memory only":       {command: "mpirun -mca btl self,vader train", want: `btl "self,vader"`},
		"in a script":              {command: `sh -c mpirun --mca btl "self,sm" train`, want: `btl "self,sm"`},
		"with tcp":                 {command: "mpirun --mca btl self,vader,tcp train"},
		"the command wins":         {command: "mpirun --mca btl tcp,self train", env: "OMPI_MCA_btl=^tcp"},
		"with UCX":                 {command: "mpirun --mca pml ucx --mca btl ^vader,tcp,openib,uct train"},
		"with UCX, as variable":    {command: "mpirun --mca btl ^tcp train", env: "OMPI_MCA_pml=ucx"},
		"a variable of a shell":    {command: "sh -c mpirun --mca btl $BTL train"},
		"another MPI":              {command: "mpirun --mca btl ^tcp train", job: func(j *mpi.Job) { j.Implementation = mpi.MPICH }},
		"one pod":                  {command: "mpirun --mca btl ^tcp train", job: func(j *mpi.Job) { j.Workers.Count = 1 }},
	} {
		job := mpitest.Job(2)
		job.Fields.LauncherTemplate = field.NewPath("template")
		container := &job.Launcher.Template.Spec.Containers[0]
		container.Command = strings.Fields(test.command)
		if script, is := strings.CutPrefix(test.command, "sh -c "); is {
			container.Command = []string{"sh", "-c", script}
		}
		if name, value, is := strings.Cut(test.env, "="); is {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
		if test.job != nil {
			test.job(&job)
		}
		got := slices.DeleteFunc(mpi.Warnings(job), func(w string) bool { return !strings.Contains(w, "btl") })
		if text := strings.Join(got, "\n"); !strings.Contains(text, test.want) || test.want == "" && text != "" {
			t.Errorf("%s: warns %q, want %q", name, text, test.want)
		}
	}
}
