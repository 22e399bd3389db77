package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Fields of MPIJobs and TrainJobs.
const (
	replicas     = "spec.mpiReplicaSpecs"
	launcherSpec = replicas + "[Launcher]"
	workerSpec   = replicas + "[Worker]"
	launcherPod  = launcherSpec + ".template"
	workerPod    = workerSpec + ".template"
	firstOf      = ".spec.containers[0]"

	nodesField     = "spec.trainer.numNodes"
	slotsField     = "spec.trainer.numProcPerNode"
	imageField     = "spec.trainer.image"
	commandField   = "spec.trainer.command"
	envField       = "spec.trainer.env"
	sizeField      = "spec.trainer.resourcesPerNode"
	runtimeField   = "spec.runtimeRef.name"
	patchesField   = "spec.runtimePatches"
	overridesField = "spec.podTemplateOverrides"
	connections    = "metadata.annotations[" + mpi.AnnotationConnections + "]"
)

// inBoth returns a field of the first container of launcher and workers, such as .env.
func inBoth(field string) string {
	return launcherPod + firstOf + field + ", " + workerPod + firstOf + field
}

// patchManager is the author of runtimePatches.
const patchManager = mpi.Group + "/migrate"

// runtimes are the runtimes of this project by implementation.
var runtimes = map[mpi.Implementation]string{mpi.OpenMPI: "mpi-openmpi", mpi.IntelMPI: "mpi-intel", mpi.MPICH: "mpi-mpich"}

// ToTrainJob converts an MPIJob of v2beta1 to a TrainJob with a runtime of this project. The errors list everything that
// cannot run, or that TrainJobs do not have.
func ToTrainJob(from map[string]any, options Options) (Result, field.ErrorList) {
	c := &toTrainJob{conversion: conversion{left: clone(from).(tree)}, options: options}
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, &typed); err != nil {
		return Result{}, field.ErrorList{field.Invalid(field.NewPath("spec"), "", "cannot be read as an MPIJob of v2beta1: "+err.Error())}
	}
	job, errs := mpijob.Kind{}.Convert(&typed)
	if errs = append(errs, mpi.Validate(job)...); len(errs) > 0 {
		return Result{}, errs
	}
	c.job = job
	c.object = tree{"apiVersion": trainjob.GroupVersion.String(), "kind": trainjob.Kind, "metadata": tree{}, "spec": tree{}}
	c.metadata()
	c.runtime()
	c.size()
	c.command()
	c.pods()
	c.policy()
	c.checkLimits(c.object, c.options.Used)
	if len(c.errs) > 0 {
		return Result{}, c.errs
	}
	return c.result(c.object, c.why), nil
}

type toTrainJob struct {
	conversion
	options Options
	job     mpi.Job
	object  tree
}

func (c *toTrainJob) trainer() tree { return object(c.object, "spec", "trainer") }

// metadata keeps the metadata that users set.
func (c *toTrainJob) metadata() {
	c.drop("apiVersion", "kind", "status")
	old, _ := taken[tree](&c.conversion, "metadata")
	kept := object(c.object, "metadata")
	name := c.job.Name
	if c.options.Name != "" && c.options.Name != name {
		name = c.options.Name
		c.tell(Changed, "metadata.name", "metadata.name", "renamed from %s to %s", c.job.Name, name)
	} else {
		c.tell(Todo, "metadata.name", "", "the MPIJob and the TrainJob both need the Service %s: delete the MPIJob first, or use another name (--name)", name)
	}
	set(kept, "name", name)
	set(kept, "namespace", c.job.Namespace)
	set(kept, "labels", old["labels"])
	annotations := usersAnnotations(look(old, "annotations"))
	if launch := annotations[mpi.AnnotationLaunch]; launch == mpi.LaunchSSHD {
		c.tell(Changed, "metadata.annotations["+mpi.AnnotationLaunch+"]", "", "the agent starts the ranks instead of the image's sshd")
	}
	delete(annotations, mpi.AnnotationLaunch)
	set(kept, "annotations", annotations)
}

// usersAnnotations returns the annotations without those that programs wrote.
func usersAnnotations(all tree) tree {
	kept := maps.Clone(all)
	for _, name := range append([]string{mpi.AnnotationSuspendInQueue}, mpi.AddedAnnotations...) {
		delete(kept, name)
	}
	return kept
}

// runtime chooses the runtime.
func (c *toTrainJob) runtime() {
	ref := c.options.Runtime
	_, written := c.text("spec", "mpiImplementation")
	if ref.Name == "" {
		ref.Name = runtimes[c.job.Implementation]
		switch said := strings.Join(words(c.job.Launcher.Template.Spec.Containers[0].Command, c.job.Launcher.Template.Spec.Containers[0].Args), " "); {
		case c.job.Implementation != mpi.OpenMPI:
		case strings.Contains(said, "horovodrun"):
			ref.Name = "mpi-horovod"
		case strings.Contains(said, "deepspeed "):
			ref.Name = "mpi-deepspeed"
		}
	}
	c.options.Runtime = ref
	spec := object(c.object, "spec")
	spec["runtimeRef"] = tree{"name": ref.Name}
	if ref.Kind != "" {
		object(spec, "runtimeRef")["kind"] = ref.Kind
	}
	if written {
		c.moved("spec.mpiImplementation", runtimeField)
	}
	path, _ := c.text("spec", "sshAuthMountPath")
	if path != "" && path != mpi.DefaultSSHPath {
		c.tell(Changed, "spec.sshAuthMountPath", "", "the runtime sets the directory of the SSH keys (/etc/mpi-agent in the runtimes of this project)")
	}
	if creation, found := c.text("spec", "launcherCreationPolicy"); found && creation != string(kubeflow.LauncherCreationPolicyAtStartup) {
		c.tell(Changed, "spec.launcherCreationPolicy", "", "the launcher starts immediately, and its agent waits for the workers")
	}
}

func words(lists ...[]string) []string { return slices.Concat(lists...) }

// size converts the number of workers and the slots of each.
func (c *toTrainJob) size() {
	_, _ = c.take("spec", "runLauncherAsWorker")
	c.take("spec", "slotsPerWorker")
	take(look(c.left, "spec", "mpiReplicaSpecs"), "Launcher", "replicas")
	take(look(c.left, "spec", "mpiReplicaSpecs"), "Worker", "replicas")
	workers, slots := int64(c.job.Workers.Count), int64(c.job.SlotsPerWorker)
	if workers == 0 {
		c.fail(field.Required(field.NewPath("spec", "mpiReplicaSpecs").Key("Worker"),
			"a TrainJob of an MPI runtime has at least 2 pods; keep a job that has only a launcher as an MPIJob"))
		return
	}
	nodes := workers
	from, to := workerSpec+".replicas", nodesField
	switch {
	case c.job.Launcher.RunsRanks:
		nodes++
		c.tell(Changed, from, to, "%d nodes, including the launcher, which still runs ranks", nodes)
	case workers == 1:
		c.tell(Changed, from, to, "a TrainJob of an MPI runtime has at least 2 nodes, so that the number of slots doubles from %d to %d; to start as many ranks as before, use \"mpirun -n %d\"", slots, 2*slots, slots)
	default:
		c.tell(Changed, from, to, "%d workers and a launcher without ranks become %d nodes, the first of which is the launcher; the job still has %d ranks, in one pod fewer", workers, nodes, workers*slots)
	}
	c.trainer()["numNodes"] = nodes
	c.trainer()["numProcPerNode"] = slots
	c.moved("spec.slotsPerWorker", slotsField)
}

// command is what the launcher runs.
func (c *toTrainJob) command() {
	launcher := c.job.Launcher.Template.Spec.Containers[0]
	switch at := launcherPod + firstOf; {
	case len(launcher.Command) > 0:
		c.trainer()["command"] = anys(words(launcher.Command, launcher.Args))
		c.moved(at+".command", commandField)
		if len(launcher.Args) > 0 {
			c.moved(at+".args", commandField)
		}
	case len(launcher.Args) > 0:
		c.trainer()["command"] = anys(launcher.Args)
		c.tell(Changed, at+".args", commandField, "the arguments become the command, and the image's entrypoint is not run; add it to the command if the program needs it")
	default:
		c.fail(field.Required(field.NewPath("spec", "mpiReplicaSpecs").Key("Launcher").Child("template", "spec", "containers").Index(0).Child("command"),
			"set the command of the launcher, such as [mpirun, train]; a TrainJob cannot use the default command of the image"))
	}
	text := strings.Join(words(launcher.Command, launcher.Args), " ")
	for _, part := range []struct{ has, do string }{
		{c.job.Name + "-worker-", "contains names of worker pods, which differ in a TrainJob, such as <name>-node-0-0: remove them; mpirun reads the hosts from /etc/mpi/hostfile"},
		{mpi.DiscoverHostsKey, "uses " + mpi.DiscoverHostsKey + ", which TrainJobs do not have, because their number of nodes is fixed: use /etc/mpi/hostfile"},
		{"kubexec.sh", "uses kubexec.sh, which no longer exists: remove it; mpirun starts ranks through the agent"},
		{c.job.SSHMountPath + "/", "uses the job's SSH keys, which have another path in a TrainJob: remove the options for them; mpirun starts ranks through the agent"},
	} {
		if strings.Contains(text, part.has) {
			c.tell(Todo, commandField, "", part.do)
		}
	}
	if worker := c.job.Workers; worker.HasCommand() {
		c.tell(Changed, workerPod+firstOf+".command", "", "workers run the agent, which starts ranks without sshd")
	}
}

// policy converts the fields of runPolicy.
func (c *toTrainJob) policy() {
	spec := object(c.object, "spec")
	policy := look(c.left, "spec", "runPolicy")
	if suspend, found := take(policy, "suspend"); found && suspend == true {
		spec["suspend"] = true
		c.moved("spec.runPolicy.suspend", "spec.suspend")
	}
	if by, _ := take(policy, "managedBy"); by == kubeflow.MultiKueueController {
		spec["managedBy"] = by
		c.moved("spec.runPolicy.managedBy", "spec.managedBy")
	}
	c.deadline(policy)
	if seconds, found := take(policy, "ttlSecondsAfterFinished"); found {
		object(c.object, "metadata", "annotations")[mpi.AnnotationTTL] = fmt.Sprint(seconds)
		c.moved("spec.runPolicy.ttlSecondsAfterFinished", "metadata.annotations["+mpi.AnnotationTTL+"]")
	}
	retries := "6, the default"
	if n, found := take(policy, "backoffLimit"); found {
		retries = fmt.Sprint(n)
	}
	if retries != "0" {
		c.tell(Changed, "spec.runPolicy.backoffLimit", "", "a failed launcher is not retried (before: backoffLimit %s); to restart the whole job, set the annotation mpi.opendatahub.io/max-restarts", retries)
	}
	if clean, found := take(policy, "cleanPodPolicy"); !found || clean != string(kubeflow.CleanPodPolicyAll) {
		c.tell(Changed, "spec.runPolicy.cleanPodPolicy", "", "worker pods are deleted when the launcher succeeds; the JobReport keeps the last lines of their logs")
	}
	gang := look(policy, "schedulingPolicy")
	if seconds, found := take(gang, "scheduleTimeoutSeconds"); found && fmt.Sprint(seconds) != "0" {
		object(c.object, "metadata", "annotations")[mpi.AnnotationScheduleTimeout] = fmt.Sprint(seconds)
		c.moved("spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", "metadata.annotations["+mpi.AnnotationScheduleTimeout+"]")
	}
	if _, found := take(policy, "schedulingPolicy"); found && len(gang) > 0 {
		c.tell(Lost, "spec.runPolicy.schedulingPolicy", "", "all pods are placed together by default; for other settings configure another scheduler in the runtime (podGroupPolicy), or use a queue (label %s)", mpi.LabelQueue)
	}
	for _, role := range []string{"Launcher", "Worker"} {
		take(look(c.left, "spec", "mpiReplicaSpecs"), role, "restartPolicy")
	}
}

func (c *toTrainJob) deadline(policy tree) {
	deadline, found := take(policy, "activeDeadlineSeconds")
	switch {
	case !found:
	case c.options.Overrides:
		c.tell(Lost, "spec.runPolicy.activeDeadlineSeconds", "", "requires Trainer v2.2 or later; with v2.1, set activeDeadlineSeconds of the jobs launcher and node in a copy of the runtime")
	default:
		object(c.object, "spec")["activeDeadlineSeconds"] = deadline
		c.tell(Changed, "spec.runPolicy.activeDeadlineSeconds", "spec.activeDeadlineSeconds", "the time starts with the job, not with its launcher")
	}
}

// why returns what to do about a field that TrainJobs do not have.
func (c *toTrainJob) why(path string) string {
	if strings.HasPrefix(path, replicas) || strings.HasPrefix(path, "spec.mpiReplicaSpecs") {
		return c.inRuntime()
	}
	return "TrainJobs have no such field"
}

func (c *toTrainJob) inRuntime() string {
	return fmt.Sprintf("only a runtime can set this; set it in the jobs launcher and node of a copy of runtime %s", c.options.Runtime.Name)
}
