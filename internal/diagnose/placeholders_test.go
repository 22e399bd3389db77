package diagnose

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestRemediesNameTheProgram(t *testing.T) {
	t.Parallel()
	const run, python, ldd = "mpirun -n 4 <program>", "mpirun python <program> --deepspeed", "ldd <program> | grep mpi"
	for _, test := range []struct {
		name         string
		words        []string
		action, want string
	}{
		{"a program", []string{"mpirun", "-np", "2", "/app/solve", "--steps", "10"}, run, "mpirun -n 4 /app/solve --steps 10"},
		{"its libraries", []string{"mpirun", "/app/solve", "--steps", "10"}, ldd, "ldd /app/solve | grep mpi"},
		{"the libraries of a name", []string{"mpirun", "solve"}, ldd, ldd},
		{"a script of Python", []string{"mpirun", "python3", "train.py"}, python, "mpirun python3 train.py --deepspeed"},
		{"a program that is not of Python", []string{"mpirun", "solve"}, python, python},
		{"the libraries of Python", []string{"mpirun", "/usr/bin/python3", "train.py"}, ldd, ldd},
		{"a call in a script", []string{"bash", "-c", "cd /work\nmpirun -np 2 solve a.in\necho done"}, run, "mpirun -n 4 solve a.in"},
		{"two calls", []string{"bash", "-c", "mpirun prepare; mpirun solve"}, run, run},
		{"no call", []string{"python3", "train.py"}, run, run},
		{"a variable", []string{"bash", "-c", "mpirun solve $DATA"}, run, run},
		{"a script of a shell", []string{"mpirun", "sh", "-c", "solve a"}, run, run},
		{"a secret", []string{"mpirun", "solve", "--token=SECRET"}, run, run},
		{"a long command", []string{"mpirun", "solve", strings.Repeat("x", 200)}, run, run},
		{"a word with a blank", []string{"mpirun", "python3", "-c", "import solver"}, run, run},
		{"another command", []string{"mpirun", "solve"}, "kubectl get pods", "kubectl get pods"},
		{"mpi4py", []string{"mpirun", "-np", "4", "python3", "-u", "train.py", "--lr", "1"}, codes.ByMPI4Py, "mpirun -np 4 python3 -u -m mpi4py train.py --lr 1"},
		{"mpi4py, of a module", []string{"mpirun", "--mca", "btl", "self,tcp", "python", "-m", "train"}, codes.ByMPI4Py, "mpirun --mca btl self,tcp python -m mpi4py -m train"},
		{"mpi4py, with a secret option", []string{"mpirun", "-x", "A=SECRET", "python", "train.py"}, codes.ByMPI4Py, "mpirun ... python -m mpi4py train.py"},
		{"mpi4py, of another program", []string{"mpirun", "solve"}, codes.ByMPI4Py, codes.ByMPI4Py},
	} {
		job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Command = test.words })
		p := &input{&facts.Facts{Job: job, Evidence: jobstate.Evidence{Mask: func(text string) string { return strings.ReplaceAll(text, "SECRET", "***") }}}}
		if got := p.nameProgram(test.action); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
