package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/migrate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/preview"
)

// carriedOut returns what is wrong with the changes of the findings' remedies: each must fit the job of the scene, change it, leave it valid, and
// end what its specification alone shows of the problem.
func carriedOut(s scene, found []diagnose.Finding) (wrong []string) {
	for _, f := range found {
		for _, remedy := range f.Remedies {
			if len(remedy.Changes) == 0 {
				continue
			}
			for _, problem := range carriedOutOnce(s.job, f, remedy) {
				wrong = append(wrong, fmt.Sprintf("%s: carrying out %q, %v: %s", f.Code, remedy.Text, remedy.Changes, problem))
			}
		}
	}
	return wrong
}

func carriedOutOnce(of mpi.Job, f diagnose.Finding, remedy v1alpha1.Remedy) []string {
	written, err := writtenOf(of)
	if err != nil {
		return []string{err.Error()}
	}
	if written == nil {
		return nil
	}
	job := written.object
	changes, can := jobs.RemedyChanges(jobs.FromObject(job), remedy)
	if !can {
		return []string{"it cannot be applied to the job"}
	}
	changed := job.DeepCopy()
	if err := jobs.Apply(changed, changes...); err != nil {
		return []string{err.Error()}
	}
	before, errorsBefore := written.preview(job)
	after, errorsAfter := written.preview(changed)
	var problems []string
	for _, err := range errorsAfter {
		if !slices.ContainsFunc(errorsBefore, func(known *field.Error) bool { return known.Error() == err.Error() }) {
			problems = append(problems, "the job is invalid: "+err.Error())
		}
	}
	if len(errorsAfter) > 0 {
		return problems
	}
	for _, note := range after.Notes {
		if len(errorsBefore) == 0 && !slices.Contains(before.Notes, note) && strings.Contains(note, ": ") {
			problems = append(problems, "it causes the warning "+note)
		}
	}
	if n, m := warningsAbout(before.Notes, changes), warningsAbout(after.Notes, changes); m > 0 && m >= n {
		problems = append(problems, fmt.Sprintf("the job has the same warnings about what was changed: %q", after.Notes))
	}
	healthy := scene{job: after.Job, seen: jobstate.Observed{
		Launcher: mpitest.Launcher(after.Job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(after.Job, 0, corev1.PodRunning)}, Workers: mpitest.Workers(after.Job, corev1.PodRunning),
	}}
	for _, other := range healthy.findings() {
		if other.Code == f.Code {
			problems = append(problems, "the specification alone still shows it")
		}
	}
	return problems
}

// ofCommands are parts of the warnings about a command that remedies with a changed command end. Others can stay, such as that about a pipe.
var ofCommands = []string{"is none of this job", "is one word, which MPI takes", "the shell runs only", "as the program, because"}

// warningsAbout returns how many warnings name a field or a variable that one of the changes sets.
func warningsAbout(warnings []string, changes []jobs.Change) (n int) {
	for _, warning := range warnings {
		ends := func(c jobs.Change) bool {
			if strings.HasSuffix(c.Field, ".command") {
				return slices.ContainsFunc(ofCommands, func(part string) bool { return strings.Contains(warning, part) })
			}
			return strings.Contains(warning, strings.TrimPrefix(c.Field, "env."))
		}
		if slices.ContainsFunc(changes, ends) {
			n++
		}
	}
	return n
}

// written is a job as its user has written it, and how it is checked.
type written struct {
	object  *unstructured.Unstructured
	preview func(*unstructured.Unstructured) (preview.Preview, field.ErrorList)
}

// writtenOf returns the MPIJob or TrainJob of a job; nil for a TrainJob whose runtime would have to be another than those that are shipped.
func writtenOf(job mpi.Job) (*written, error) {
	settings := plan.Settings{NetworkPolicies: true, AgentImage: "agent", Delivery: plan.InitContainer}
	if main := &job.Launcher.Template.Spec.Containers[0]; job.Kind == mpi.KindTrainJob && len(main.Command)+len(main.Args) == 0 {
		// The runtimes have no command.
		job.Launcher.Template = *job.Launcher.Template.DeepCopy()
		job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "train"}
	}
	object, err := mpiJobOf(job)
	if err != nil {
		return nil, err
	}
	if job.Kind != mpi.KindTrainJob {
		return &written{object, func(of *unstructured.Unstructured) (preview.Preview, field.ErrorList) {
			return preview.MPIJob(of, settings)
		}}, nil
	}
	used, err := runtimeOf(job.Implementation)
	if err != nil {
		return nil, err
	}
	result, errs := migrate.ToTrainJob(object.Object, migrate.Options{Runtime: trainjob.RuntimeRef{Name: used.Name, Kind: trainjob.ClusterRuntimeKind}})
	if len(errs) > 0 {
		return nil, nil
	}
	return &written{&unstructured.Unstructured{Object: result.Object}, func(of *unstructured.Unstructured) (preview.Preview, field.ErrorList) {
		decoded, errs := preview.DecodeTrainJob(of)
		if len(errs) > 0 {
			return preview.Preview{}, errs
		}
		return preview.TrainJob(decoded, used, settings)
	}}, nil
}

// runtimeOf returns the runtime that is shipped for an MPI.
func runtimeOf(implementation mpi.Implementation) (used trainjob.Runtime, err error) {
	shipped, err := jobs.ShippedFor(implementation)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(shipped.Object.Object, &used)
	}
	return used, err
}

// makeTrainJob makes a job a TrainJob.
func makeTrainJob(job *mpi.Job) {
	job.Kind, job.External, job.Fields = mpi.KindTrainJob, true, fieldsOfTrainJobs()
}

var fieldsOfTrainJobs = sync.OnceValue(func() mpi.Fields {
	used, err := runtimeOf(mpi.OpenMPI)
	if err != nil {
		panic(err)
	}
	return trainjob.Convert(trainjob.TrainJob{}, used).Fields
})

// mpiJobOf returns the MPIJob of a job, as its user has written it.
func mpiJobOf(job mpi.Job) (*unstructured.Unstructured, error) {
	object := &kubeflow.MPIJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: kubeflow.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker: new(job.SlotsPerWorker), MPIImplementation: kubeflow.MPIImplementation(job.Implementation), SSHAuthMountPath: job.SSHMountPath,
			RunLauncherAsWorker: new(job.Launcher.RunsRanks), LauncherCreationPolicy: kubeflow.LauncherCreationPolicyAtStartup,
			RunPolicy: kubeflow.RunPolicy{ActiveDeadlineSeconds: job.Lifecycle.Deadline, BackoffLimit: job.Lifecycle.BackoffLimit},
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: {RestartPolicy: kubeflow.RestartPolicy(job.Launcher.RestartPolicy), Template: job.Launcher.Template},
			},
		},
	}
	if job.Launcher.AfterWorkers {
		object.Spec.LauncherCreationPolicy = kubeflow.LauncherCreationPolicyWaitForWorkersReady
	}
	if job.Workers.Count > 0 {
		object.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker] = &kubeflow.ReplicaSpec{
			Replicas: new(job.Workers.Count), RestartPolicy: kubeflow.RestartPolicy(job.Workers.RestartPolicy), Template: job.Workers.Template,
		}
	}
	if job.Launch != "" {
		object.Annotations = map[string]string{mpi.AnnotationLaunch: job.Launch}
	}
	if job.Queue != "" {
		object.Labels = map[string]string{mpi.LabelQueue: job.Queue}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: fields}, err
}

// forUsers are the codes whose remedies neither change the job, nor start it again, nor are a command, and why. A new code has to get one of these,
// or a line here.
var forUsers = map[codes.Code]string{
	codes.AdmissionDenied:       "only the message of the webhook tells what it demands",
	codes.BusError:              "the volume has to be added to those that the pods have",
	codes.CountOverflow:         "it is an argument of the program",
	codes.DataTypeUnsupported:   "it is in the program's code",
	codes.GangImpossible:        "only the user knows the setting that was meant",
	codes.IllegalInstruction:    "the image has to be built again",
	codes.InvalidImageName:      "only the user knows the image",
	codes.JobInvalid:            "only the user knows the value that was meant",
	codes.LockedMemoryLimit:     "an administrator sets the limit on the nodes",
	codes.MPINotAwaited:         "the script has to be changed by its author",
	codes.QueueNeedsRequests:    "only the user knows what the program needs",
	codes.RemoteCommandFailed:   "the image has to be built again",
	codes.SecurityContextDenied: "which fields it needs depends on the image",
	codes.SidecarRunning:        "what adds the container is unknown",
	codes.WrongGPU:              "it is in the program's code",
}

// TestRemediesCanBeCarriedOut: each code has a remedy that a program can carry out, in its definition or in a golden file, or a reason why it has none.
func TestRemediesCanBeCarriedOut(t *testing.T) {
	can := map[codes.Code]bool{}
	for _, entry := range codes.Entries() {
		if entry.IsFinding() {
			can[entry.Code] = can[entry.Code] || slices.ContainsFunc(entry.Remedies, isMachineReadable)
		}
	}
	for _, found := range goldenFindings(t) {
		for _, f := range found {
			can[f.Code] = can[f.Code] || slices.ContainsFunc(f.Remedies, isMachineReadable)
		}
	}
	for code, is := range can {
		switch why := forUsers[code]; {
		case !is && why == "":
			t.Errorf("%s has no remedy that a program can carry out: add one, or say in forUsers why there is none", code)
		case is && why != "":
			t.Errorf("%s has such a remedy by now: remove it from forUsers", code)
		}
	}
	for code := range forUsers {
		if _, known := can[code]; !known {
			t.Errorf("%s is no code of a finding", code)
		}
	}
}

func isMachineReadable(r v1alpha1.Remedy) bool { return r.Rerun || codes.IsCommand(r.Action) }

// TestCarriedOutFindsWrongRemedies: the check of remedies above finds those that do not fit the job, change nothing, make it invalid, or leave what its
// specification shows.
func TestCarriedOutFindsWrongRemedies(t *testing.T) {
	t.Parallel()
	const pod = "spec.mpiReplicaSpecs[Launcher].template.spec."
	trainJob := func(change func(*mpi.Job)) func(*mpi.Job) {
		return func(job *mpi.Job) {
			makeTrainJob(job)
			change(job)
		}
	}
	for name, test := range map[string]struct {
		changes []v1alpha1.FieldChange
		job     func(*mpi.Job)
		want    string
	}{
		"an invalid value of a TrainJob": {changes: changes("spec.trainer.numNodes", "-1"), job: trainJob(func(*mpi.Job) {}), want: "the job is invalid"},
		"another host of a TrainJob": {
			changes: changes("spec.trainer.command", `["mpirun", "--host", "node8", "train"]`), job: trainJob(launcherRuns("mpirun", "--host", "node7", "train")), want: "same warnings",
		},
		"a good one for a TrainJob": {changes: changes("spec.trainer.command", `["mpirun", "train"]`), job: trainJob(launcherRuns("mpirun", "--host", "node7", "train"))},
		"no such container":         {changes: changes(pod+"containers[7].tty", "true"), want: "cannot be applied"},
		"nothing":                   {changes: changes("spec.slotsPerWorker", "2"), want: "cannot be applied"},
		"an invalid value":          {changes: changes("spec.slotsPerWorker", "-1"), want: "the job is invalid"},
		"another host": {
			changes: changes(pod+"containers[0].command", `["mpirun", "--host", "node8", "train"]`), job: launcherRuns("mpirun", "--host", "node7", "train"), want: "same warnings",
		},
		"another policy": {changes: changes(pod+"dnsPolicy", "None"), job: withDNSPolicy, want: "same warnings"},
		"a good one":     {changes: changes("env.OMP_NUM_THREADS", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(2)
			if test.job != nil {
				s = running(2, test.job)
			}
			wrong := carriedOut(s, []diagnose.Finding{{Code: codes.LaunchRefused, Remedies: []v1alpha1.Remedy{{Rerun: true, Changes: test.changes}}}})
			if text := strings.Join(wrong, "\n"); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("%q is wrong, want %q", wrong, test.want)
			}
		})
	}
}
