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

// Where MPIJobs have what they are made of.
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

// patchManager says in runtimePatches who wrote them.
const patchManager = mpi.Group + "/migrate"

// runtimes are ours, by implementation.
var runtimes = map[mpi.Implementation]string{mpi.OpenMPI: "mpi-openmpi", mpi.IntelMPI: "mpi-intel", mpi.MPICH: "mpi-mpich"}

// ToTrainJob turns an MPIJob of v2beta1 into a TrainJob with one of our runtimes. What in the MPIJob cannot run, or has
// no like among TrainJobs, is told as errors, all at once.
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
	c.check()
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

// metadata takes over what users write there.
func (c *toTrainJob) metadata() {
	c.drop("apiVersion", "kind", "status")
	old, _ := taken[tree](&c.conversion, "metadata")
	kept := object(c.object, "metadata")
	name := c.job.Name
	if c.options.Name != "" && c.options.Name != name {
		name = c.options.Name
		c.tell(Changed, "metadata.name", "metadata.name", "%s is now %s", c.job.Name, name)
	} else {
		c.tell(Todo, "metadata.name", "", "an MPIJob and a TrainJob of the same name do not run beside each other in a namespace, since both need the Service %s: delete the MPIJob first, or give the TrainJob another name (--name)", name)
	}
	set(kept, "name", name)
	set(kept, "namespace", c.job.Namespace)
	set(kept, "labels", old["labels"])
	annotations := usersAnnotations(look(old, "annotations"))
	if launch := annotations[mpi.AnnotationLaunch]; launch == mpi.LaunchSSHD {
		c.tell(Changed, "metadata.annotations["+mpi.AnnotationLaunch+"]", "", "ranks are started by the agent, and not by the image's own sshd")
	}
	delete(annotations, mpi.AnnotationLaunch)
	set(kept, "annotations", annotations)
}

// usersAnnotations leaves out those that programs have written.
func usersAnnotations(all tree) tree {
	kept := maps.Clone(all)
	for _, name := range []string{"kubectl.kubernetes.io/last-applied-configuration", mpi.AnnotationCreator, mpi.AnnotationSuspendSetBy, mpi.AnnotationChangedBy} {
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
		c.tell(Changed, "spec.sshAuthMountPath", "", "the runtime says where keys are (/etc/mpi-agent in ours), and the agent uses them")
	}
	if creation, found := c.text("spec", "launcherCreationPolicy"); found && creation != string(kubeflow.LauncherCreationPolicyAtStartup) {
		c.tell(Changed, "spec.launcherCreationPolicy", "", "the launcher starts at once, and its agent waits until every worker is there")
	}
}

func words(lists ...[]string) []string { return slices.Concat(lists...) }

// size is how many nodes there are, and how many ranks on each.
func (c *toTrainJob) size() {
	_, _ = c.take("spec", "runLauncherAsWorker")
	c.take("spec", "slotsPerWorker")
	take(look(c.left, "spec", "mpiReplicaSpecs"), "Launcher", "replicas")
	take(look(c.left, "spec", "mpiReplicaSpecs"), "Worker", "replicas")
	workers, slots := int64(c.job.Workers.Count), int64(c.job.SlotsPerWorker)
	if workers == 0 {
		c.fail(field.Required(field.NewPath("spec", "mpiReplicaSpecs").Key("Worker"),
			"must be there: a TrainJob of an MPI runtime has 2 pods at least, so a job of its launcher alone stays an MPIJob"))
		return
	}
	nodes := workers
	from, to := workerSpec+".replicas", nodesField
	switch {
	case c.job.Launcher.RunsRanks:
		nodes++
		c.tell(Changed, from, to, "%d nodes: the launcher, which runs ranks as before, counts as one", nodes)
	case workers == 1:
		c.tell(Changed, from, to, "Trainer makes 2 pods with %d slots each where this was a worker with %d and a launcher without any: have mpirun start as many ranks as before (-n %d), or twice as many", slots, slots, slots)
	default:
		c.tell(Changed, from, to, "%d workers and a launcher without ranks become %d pods with ranks, the first of which is the launcher: one pod less, and as many ranks as before, %d", workers, nodes, workers*slots)
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
		c.tell(Changed, at+".args", commandField, "is run as the command itself: the image's own entrypoint is not run before it; put it in front where it is needed")
	default:
		c.fail(field.Required(field.NewPath("spec", "mpiReplicaSpecs").Key("Launcher").Child("template", "spec", "containers").Index(0).Child("command"),
			"must say what the launcher runs, such as [mpirun, train]: a TrainJob cannot leave that to the image"))
	}
	text := strings.Join(words(launcher.Command, launcher.Args), " ")
	for _, part := range []struct{ has, do string }{
		{c.job.Name + "-worker-", "names workers' pods, which are called otherwise now, such as <name>-node-0-0: leave hosts to the list of hosts, /etc/mpi/hostfile, which mpirun reads by itself"},
		{mpi.DiscoverHostsKey, "reads " + mpi.DiscoverHostsKey + ", which TrainJobs do not have: their number of nodes is fixed; use /etc/mpi/hostfile"},
		{"kubexec.sh", "uses kubexec.sh of an earlier MPIJob: leave it out, mpirun finds the agent by itself"},
		{c.job.SSHMountPath + "/", "reads the job's keys, which are elsewhere: leave that to the agent"},
	} {
		if strings.Contains(text, part.has) {
			c.tell(Todo, commandField, "", part.do)
		}
	}
	if worker := c.job.Workers; worker.HasCommand() {
		c.tell(Changed, workerPod+firstOf+".command", "", "workers run the agent, which starts ranks without sshd or anything else in the image")
	}
}

// policy is how long a job lives, and what is left of it.
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
	const template = " of the runtime's JobSet says that: set it in a copy of the runtime"
	if _, found := take(policy, "ttlSecondsAfterFinished"); found {
		c.tell(Lost, "spec.runPolicy.ttlSecondsAfterFinished", "", "ttlSecondsAfterFinished"+template+"; TrainJobs themselves stay until somebody deletes them")
	}
	tries := "the launcher is tried once, where an MPIJob's is tried again 6 times"
	if n, found := take(policy, "backoffLimit"); found {
		tries = fmt.Sprintf("the launcher is tried once, where it was tried again %v times", n)
	}
	c.tell(Changed, "spec.runPolicy.backoffLimit", "", "%s; failurePolicy.maxRestarts%s to have the whole job started anew", tries, template)
	if clean, found := take(policy, "cleanPodPolicy"); !found || clean != string(kubeflow.CleanPodPolicyAll) {
		c.tell(Changed, "spec.runPolicy.cleanPodPolicy", "", "worker pods go when the launcher has succeeded; the job's report keeps the last lines of their logs")
	}
	if _, found := take(policy, "schedulingPolicy"); found {
		c.tell(Lost, "spec.runPolicy.schedulingPolicy", "", "the runtime says how pods are placed together (podGroupPolicy), or a queue does (label %s)", mpi.LabelQueue)
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
		c.tell(Lost, "spec.runPolicy.activeDeadlineSeconds", "", "TrainJobs have it from Trainer v2.2 on; set activeDeadlineSeconds of both jobs in a copy of the runtime")
	default:
		object(c.object, "spec")["activeDeadlineSeconds"] = deadline
		c.tell(Changed, "spec.runPolicy.activeDeadlineSeconds", "spec.activeDeadlineSeconds", "counts from the start of the job; before, from the start of the launcher")
	}
}

// check asks the runtime, where it is known.
func (c *toTrainJob) check() {
	if c.options.Used == nil || len(c.errs) > 0 {
		return
	}
	var job trainjob.TrainJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.object, &job); err != nil {
		c.fail(field.InternalError(field.NewPath("spec"), err))
		return
	}
	errs, warnings := trainjob.Check(job, *c.options.Used)
	c.errs = append(c.errs, errs...)
	for _, warning := range warnings {
		c.tell(Todo, "", "", warning)
	}
}

// why says what to do about a field that has no place in a TrainJob.
func (c *toTrainJob) why(path string) string {
	if strings.HasPrefix(path, replicas) || strings.HasPrefix(path, "spec.mpiReplicaSpecs") {
		return c.inRuntime()
	}
	return "TrainJobs have nothing like it"
}

func (c *toTrainJob) inRuntime() string {
	return fmt.Sprintf("only the runtime says that: set it in a copy of the runtime %s, in its jobs launcher and node", c.options.Runtime.Name)
}
