package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/codes"
)

// Mistakes in programs, in commands and in what they need.

func breakByException(m *mutant, r *rand.Rand) {
	name := pick(r, "learning_rate", "shard_7", "wandb_key", "n_heads", "checkpoint")
	upper := strings.ToUpper(name)
	step := r.IntN(900)
	index := 2 + r.IntN(9)
	module := pick(r, "torch", "pandas", "horovod.torch", "transformers", "sklearn.linear_model", "wandb", "h5py", "apex")
	mistake := pick(r,
		[]string{"config = {}\n    print(config['" + name + "'])", "", "KeyError", name},
		[]string{"raise ValueError('" + name + " must be positive')", "", "ValueError", name + " must be positive"},
		[]string{name + ".step()", "Define or import", "NameError", name},
		[]string{"comm." + name + "()", "", "AttributeError", name},
		[]string{fmt.Sprintf("[1, 2][%d]", index), "", "IndexError", "list index out of range"},
		[]string{"1 / 0", "", "ZeroDivisionError"},
		[]string{"assert comm.Get_size() == 64, 'expected 64 " + name + "'", "", "AssertionError", "expected 64 " + name},
		[]string{"import " + module, "Install", "No module named", strings.Split(module, ".")[0]},
		[]string{"open('/data/" + name + ".npz')", "/data/" + name + ".npz", "/data/" + name + ".npz"},
		[]string{"open('/etc/" + name + "', 'w')", "may write to", "/etc/" + name, "ermission"},
		[]string{"print(os.environ['" + upper + "'])", upper, upper},
		[]string{"json.loads('{" + name + "}')", "", "JSONDecodeError"},
		[]string{"int('" + name + "')", "", "invalid literal", name},
		[]string{fmt.Sprintf("class TrainingDiverged(Exception): pass\n    raise TrainingDiverged('loss is nan after step %d')", step), "", "TrainingDiverged", "loss is nan"},
	)
	m.python(r, mistake[0])
	m.expects(codes.ApplicationFailed, mistake[2:]...)
	if mistake[1] != "" {
		m.advises(mistake[1])
	}
}

func breakByExit(m *mutant, r *rand.Rand) {
	code, rank := 1+r.IntN(120), r.IntN(4)
	if r.IntN(2) == 0 {
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--exit", fmt.Sprintf("%d:%d", rank, code))
		m.what = fmt.Sprintf("rank %d exits with %d", rank, code)
		m.isOf(rank)
	} else {
		launcher(m.job).Command = []string{"sh", "-c", strings.Join(mpiCommand(m.sample, "ranks"), " ") + fmt.Sprintf("; echo evaluation failed >&2; exit %d", code)}
		m.what = fmt.Sprintf("the launcher's shell exits with %d after mpirun", code)
		m.truth.Pod = "-launcher-"
	}
	m.expects(codes.ApplicationFailed, fmt.Sprintf("exit code %d", code))
}

func breakBySignal(m *mutant, r *rand.Rand) {
	if r.IntN(2) == 0 {
		rank := r.IntN(4)
		m.use(pick(r, "openmpi", "openmpi5", "mpich", "intelmpi"))
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--segv", fmt.Sprint(rank))
		m.what = fmt.Sprintf("rank %d crashes", rank)
		m.expects(codes.SegmentationFault, "signal 11")
		m.isOf(rank)
		return
	}
	kind := pick(r, "SEGV", "ABRT", "BUS", "ILL")
	code := map[string]codes.Code{"SEGV": codes.SegmentationFault, "ABRT": codes.Aborted, "BUS": codes.BusError, "ILL": codes.IllegalInstruction}[kind]
	m.python(r, "import signal", "os.kill(os.getpid(), signal.SIG"+kind+")")
	m.expects(code)
}

func breakByMPICall(m *mutant, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		m.python(r, "comm.send(1, dest=99)")
		m.expects(codes.ApplicationFailed, "MPI_ERR_RANK")
	case 1:
		m.python(r, "comm.Bcast(bytearray(4), root=-7)")
		m.expects(codes.ApplicationFailed, "MPI_ERR_ROOT")
	case 2:
		code := 2 + r.IntN(50)
		m.python(r, fmt.Sprintf("comm.Abort(%d)", code))
		m.expects(codes.ApplicationFailed, "MPI_A", fmt.Sprint(code))
		m.truth.Codes = append(m.truth.Codes, codes.Aborted)
	default:
		rank := r.IntN(4)
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--abort", fmt.Sprint(rank))
		m.what = fmt.Sprintf("rank %d calls MPI_Abort(1)", rank)
		m.expects(codes.ApplicationFailed, "MPI_A")
		m.truth.Codes = append(m.truth.Codes, codes.Aborted)
		m.isOf(rank)
	}
}

func breakByMemory(m *mutant, r *rand.Rand) {
	rank := r.IntN(4)
	// A half more, which the report proposes, is enough for the first one.
	limit, takes := 256, 270
	if r.IntN(2) == 0 {
		limit, takes = pick(r, 128, 200, 256), 700
	}
	m.both(func(pod *corev1.PodSpec) {
		pod.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(fmt.Sprintf("%dMi", limit))
	})
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--memory", fmt.Sprintf("%d:%d", rank, takes), "--sleep", "1")
	m.what = fmt.Sprintf("rank %d takes %d MiB, the limit is %d MiB", rank, takes, limit)
	m.expects(codes.OutOfMemory, fmt.Sprintf("%d MiB", limit))
	m.advises("limits.memory")
	m.truth.curable = takes == 270
}

func breakProgram(m *mutant, r *rand.Rand) {
	wrong := pick(r, typo(r, "ranks"), "/opt/app/"+pick(r, "train", "solver", "lmp_mpi"), "./"+pick(r, "a.out", "simulate"))
	launcher(m.job).Command = mpiCommand(m.sample, wrong)
	m.what = "mpirun starts " + wrong
	m.expects(codes.ProgramMissing, wrong)
}

func breakLauncher(m *mutant, r *rand.Rand) {
	wrong := pick(r, typo(r, "mpirun"), "horovodrun", "deepspeed", "/usr/local/bin/mpirun", "mpirun_rsh", "conda", "bash -c")
	launcher(m.job).Command[0] = wrong
	m.what = "the launcher runs " + wrong
	m.expects(codes.ProgramMissing, strings.Fields(wrong)[0])
	m.truth.Codes = append(m.truth.Codes, codes.MPINotInPath)
	m.truth.Pod = "-launcher-"
}

func breakScript(m *mutant, r *rand.Rand) {
	content := ""
	choice := r.IntN(5)
	if choice == 0 && m.job.Spec.MPIImplementation != kubeflow.MPIImplementationOpenMPI {
		// Hydra starts such a script with sh, so that this is no mistake there.
		choice = 4
	}
	switch choice {
	case 0:
		content = "echo starting\nranks\n"
		m.expects(codes.ProgramMissing, "/app/run.sh", "#!")
		m.truth.Codes = append(m.truth.Codes, codes.ApplicationFailed)
	case 1:
		interpreter := "/usr/bin/" + pick(r, "zsh", "perl6", "python2.6")
		content = "#!" + interpreter + "\nranks\n"
		m.expects(codes.ProgramMissing, interpreter)
	case 2:
		content = "#!/bin/sh\r\nranks\r\n"
		m.expects(codes.WindowsLineEnds, "/app/run.sh")
		m.advises("sed -i")
	case 3:
		number := fmt.Sprint(r.IntN(99))
		content = "#!/bin/sh\nset -e\nls /nothing-here-" + number + "\nranks\n"
		m.expects(codes.ApplicationFailed, "nothing-here-"+number)
	default:
		content = "#!/bin/sh\nif [ -z \"$DATA\" ]; then echo \"DATA is not set\" >&2; exit 3; fi\nranks\n"
		m.expects(codes.ApplicationFailed, "exit code 3", "DATA is not set")
	}
	m.objects = append(m.objects, configMap("", "script", "run.sh", content))
	m.mount(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "script"}, DefaultMode: new(int32(0o755)),
	}}, "/app")
	launcher(m.job).Command = mpiCommand(m.sample, "/app/run.sh")
	m.what = fmt.Sprintf("mpirun starts a script: %q", content)
}

func breakRanks(m *mutant, r *rand.Rand) {
	n := 5 + r.IntN(60)
	// Hydra starts more ranks than slots, so that this is no mistake there.
	if m.sample == "mpich" || m.sample == "intelmpi" {
		m.use(pick(r, "openmpi", "openmpi5"))
	}
	launcher(m.job).Command[2] = fmt.Sprint(n)
	m.what = fmt.Sprintf("%d ranks, 4 slots", n)
	m.expects(codes.NotEnoughSlots, fmt.Sprintf("%d ranks", n), "2 slots each")
	m.advises("4 ranks")
}

func breakOption(m *mutant, r *rand.Rand) {
	wrong := pick(r, "--npernod", "--mapby", "-nn", "--bindto")
	launcher(m.job).Command = slices.Insert(launcher(m.job).Command, 1, wrong, "2")
	m.what = "mpirun has the option " + wrong
	m.expects(codes.LaunchRefused, strings.TrimLeft(wrong, "-"))
	m.truth.Codes = append(m.truth.Codes, codes.ApplicationFailed, codes.ProgramMissing)
}

func breakVariable(m *mutant, r *rand.Rand) {
	var set corev1.EnvVar
	switch r.IntN(4) {
	case 0:
		set = corev1.EnvVar{Name: "PATH", Value: pick(r, "/opt/conda/bin", "$PATH:/opt/app/bin", "/app")}
		m.expects(codes.ProgramMissing)
		m.truth.Codes = append(m.truth.Codes, codes.MPINotInPath)
		m.advises("PATH")
	case 1:
		m.python(r, "pass")
		set = corev1.EnvVar{Name: "OMPI_MCA_btl", Value: "^tcp"}
		m.expects(codes.NoTransport, "btl")
		m.advises("btl")
	case 2:
		m.python(r, "pass")
		name := pick(r, "eth7", "ib0", "ens192")
		set = corev1.EnvVar{Name: "OMPI_MCA_btl_tcp_if_include", Value: name}
		m.expects(codes.NoTransport, name)
		m.advises("btl_tcp_if_include")
	default:
		m.python(r, "steps = int(os.environ['STEPS'])")
		set = corev1.EnvVar{Name: "STEPS", Value: pick(r, "100k", "ten", "1e3")}
		m.expects(codes.ApplicationFailed, set.Value)
	}
	if set.Name != "STEPS" {
		m.truth.Rank = nil
	}
	m.both(func(pod *corev1.PodSpec) { pod.Containers[0].Env = append(pod.Containers[0].Env, set) })
	m.what = "variable " + set.Name + "=" + set.Value
}

func breakShell(m *mutant, r *rand.Rand) {
	run := strings.Join(mpiCommand(m.sample, "ranks"), " ")
	mistake := pick(r,
		[]string{"if true; then " + run, "", "yntax error"},
		[]string{"cd /workspace/project && " + run, "", "/workspace/project"},
		[]string{"set -eu; echo $MODEL_DIR; " + run, "MODEL_DIR", "MODEL_DIR"},
		[]string{"source /opt/conda/bin/activate && " + run, "", "/opt/conda/bin/activate"},
		[]string{"cat /config/train.yaml && " + run, "", "/config/train.yaml"},
	)
	launcher(m.job).Command = []string{"bash", "-c", mistake[0]}
	m.what = mistake[0]
	m.expects(codes.ApplicationFailed, mistake[2])
	if strings.Contains(mistake[0], "activate") {
		m.truth.Codes = append(m.truth.Codes, codes.ProgramMissing)
	}
	if mistake[1] != "" {
		m.advises(mistake[1])
	}
	m.truth.Pod = "-launcher-"
}

func breakByHang(m *mutant, r *rand.Rand) {
	rank := r.IntN(4)
	if r.IntN(2) == 0 {
		// The others wait for the rank in a barrier: nothing shows from outside who is at fault.
		launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--wait", fmt.Sprint(rank))
		m.what = fmt.Sprintf("rank %d waits for a message that nobody sends", rank)
		m.waits(codes.RanksWaiting, "All 4 ranks wait")
		m.truth.after = 30 * time.Second
		return
	}
	launcher(m.job).Command = mpiCommand(m.sample, "ranks", "--loop", fmt.Sprint(rank))
	m.what = fmt.Sprintf("rank %d computes for ever, the others wait", rank)
	m.waits(codes.Straggler, "3 of 4 ranks wait")
	m.isOf(rank)
	m.truth.after = time.Minute
}

// breakFile: ranks wait for a file that is never written.
func breakFile(m *mutant, r *rand.Rand) {
	name := "/tmp/" + pick(r, "data.ready", "shard-0.done", "go")
	launcher(m.job).Command = mpiCommand(m.sample, "sh", "-c", "until [ -e "+name+" ]; do sleep 1; done; exec ranks")
	m.what = "all ranks wait for the file " + name
	m.waits(codes.RanksIdle, "idle since")
	// It is reported after two minutes, because a program may sleep on purpose.
	m.truth.after = 2 * time.Minute
}

// breakTTL: the job is deleted as soon as it has failed.
func breakTTL(m *mutant, r *rand.Rand) {
	breakByExit(m, r)
	m.job.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(0))
	m.job.Spec.RunPolicy.BackoffLimit = new(int32(0))
	m.what += ", and the job is deleted at once"
}
