package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
)

// oldVersions of MPIJobs are those before v2beta1. Their types are those of mpi-operator v0.2 and v0.3
// (pkg/apis/kubeflow/{v1alpha1,v1alpha2,v1}) and of training-operator v1.9 (pkg/apis/kubeflow.org/v1).
var oldVersions = []string{"v1", "v1alpha2", "v1alpha1"}

// ToV2beta1 converts an MPIJob of an earlier version to v2beta1. The errors list everything that cannot be converted or
// could not run.
func ToV2beta1(from map[string]any, options Options) (Result, field.ErrorList) {
	c := &toV2beta1{conversion: conversion{left: clone(from).(tree)}}
	version, _ := c.text("apiVersion")
	_, version, _ = strings.Cut(version, "/")
	c.drop("kind", "status")
	metadata, _ := taken[tree](&c.conversion, "metadata")
	kept := tree{}
	for _, name := range []string{"name", "namespace", "labels"} {
		set(kept, name, metadata[name])
	}
	set(kept, "annotations", usersAnnotations(look(metadata, "annotations")))
	if options.Name != "" {
		kept["name"] = options.Name
	}
	c.name, _ = metadata["name"].(string)
	c.spec = tree{}
	c.object = tree{"apiVersion": kubeflow.SchemeGroupVersion.String(), "kind": kubeflow.Kind, "metadata": kept, "spec": c.spec}
	if version == "v1alpha1" {
		c.alpha1()
	} else {
		c.replicated()
	}
	c.policy(version)
	c.discovery()
	c.tell(Changed, "", "", "the agent starts the ranks instead of \"kubectl exec\"; the launcher needs no kubectl and no rights for it")
	if len(c.errs) > 0 {
		return Result{}, c.errs
	}
	if errs := runnable(c.object); len(errs) > 0 {
		return Result{}, errs
	}
	return c.result(c.object, func(string) string { return "MPIJobs of v2beta1 have no such field" }), nil
}

// runnable returns the errors because of which an MPIJob of v2beta1 cannot run.
func runnable(object tree) field.ErrorList {
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &typed); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", "cannot be read: "+err.Error())}
	}
	job, errs := mpijob.Kind{}.Convert(&typed)
	return append(errs, mpi.Validate(job)...)
}

type toV2beta1 struct {
	conversion
	name         string
	object, spec tree
}

// implementations are the MPI implementations by their names in v1alpha2.
var implementations = map[string]mpi.Implementation{"open_mpi": mpi.OpenMPI, "intel_mpi": mpi.IntelMPI, "mpich": mpi.MPICH}

// replicated converts v1 and v1alpha2, which have launcher and workers already.
func (c *toV2beta1) replicated() {
	if slots, found := c.number("spec", "slotsPerWorker"); found {
		c.spec["slotsPerWorker"] = slots
	}
	if name, found := c.text("spec", "mpiDistribution"); found {
		if implementation, known := implementations[name]; known {
			c.spec["mpiImplementation"] = string(implementation)
			c.moved("spec.mpiDistribution", "spec.mpiImplementation")
		} else {
			c.fail(field.NotSupported(field.NewPath("spec", "mpiDistribution"), name, []string{"open_mpi", "intel_mpi", "mpich"}))
		}
	}
	specs, _ := taken[tree](&c.conversion, "spec", "mpiReplicaSpecs")
	main, _ := c.text("spec", "mainContainer")
	converted := tree{}
	for _, name := range []string{"Launcher", "Worker"} {
		if of, is := specs[name].(tree); is {
			if replica := c.replica(name, of, main); replica != nil {
				converted[name] = replica
			}
		}
		delete(specs, name)
	}
	for _, name := range leaves(specs, "") {
		c.fail(field.NotSupported(field.NewPath("spec", "mpiReplicaSpecs"), name, []string{"Launcher", "Worker"}))
	}
	if main != "" {
		c.tell(Changed, "spec.mainContainer", "", "ranks run in the first container; %s is now the first", main)
	}
	c.spec["mpiReplicaSpecs"] = converted
}

// replica converts launcher or workers; nil if there are none.
func (c *toV2beta1) replica(name string, of tree, main string) tree {
	at := fmt.Sprintf("%s[%s]", replicas, name)
	replica := tree{"template": object(of, "template")}
	n, found := take(of, "replicas")
	switch {
	case name == "Worker" && !found:
		c.tell(Changed, at, "", "removed: replicas are not set, which meant 0 workers; the default in v2beta1 is 1")
		return nil
	case name == "Worker" && same(n, 0):
		c.tell(Changed, at, "", "removed: the job has 0 workers")
		return nil
	case found:
		replica["replicas"] = n
	}
	replica["restartPolicy"] = c.restartPolicy(name, of, at)
	template := object(replica, "template")
	first(look(template, "spec"), main)
	c.kubectl(template, at+".template")
	if name == "Worker" {
		c.idle(template, at+".template")
	}
	return replica
}

// restartPolicy returns one of the two policies of v2beta1. The default of the earlier versions was Never.
func (c *toV2beta1) restartPolicy(name string, of tree, at string) string {
	policy, _ := take(of, "restartPolicy")
	text, _ := policy.(string)
	here := at + ".restartPolicy"
	switch corev1.RestartPolicy(text) {
	case "":
		if name == "Launcher" {
			c.tell(Changed, here, here, "set to Never, the default of the old version; the default in v2beta1 is OnFailure")
		}
		return string(corev1.RestartPolicyNever)
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		return text
	}
	c.tell(Changed, here, here, "%s is replaced by OnFailure, which restarts a container after any failure; v2beta1 supports only Never and OnFailure", text)
	return string(corev1.RestartPolicyOnFailure)
}

// first moves a container to the first position.
func first(pod tree, name string) {
	containers, _ := pod["containers"].([]any)
	i := slices.IndexFunc(containers, func(c any) bool { one, is := c.(tree); return is && one["name"] == name })
	if name != "" && i > 0 {
		moved := containers[i]
		pod["containers"] = slices.Insert(slices.Delete(slices.Clone(containers), i, i+1), 0, moved)
	}
}

// kubectl removes what a pod needed for "kubectl exec".
func (c *toV2beta1) kubectl(template tree, at string) {
	pod := look(template, "spec")
	if inits, is := pod["initContainers"].([]any); is {
		inits = slices.DeleteFunc(inits, func(entry any) bool {
			one, is := entry.(tree)
			if is && one["name"] == "kubectl-delivery" {
				c.tell(Changed, at+".spec.initContainers[kubectl-delivery]", "", "removed: kubectl is not needed")
				return true
			}
			return false
		})
		delete(pod, "initContainers")
		set(pod, "initContainers", inits)
	}
	for i, container := range entries(pod["containers"]) {
		here := fmt.Sprintf("%s.spec.containers[%d]", at, i)
		if env, is := container["env"].([]any); is {
			container["env"] = slices.DeleteFunc(env, func(entry any) bool {
				one, is := entry.(tree)
				value, _ := one["value"].(string)
				if is && strings.Contains(value, "kubexec") {
					c.tell(Changed, fmt.Sprintf("%s.env[%v]", here, one["name"]), "", "removed: mpirun starts ranks through the agent")
					return true
				}
				return false
			})
		}
		if text := strings.Join(words(texts(container["command"]), texts(container["args"])), " "); strings.Contains(text, "kubexec") {
			c.tell(Todo, here+".command", "", "contains kubexec.sh, which no longer exists: remove it; mpirun starts ranks through the agent")
		}
	}
}

// idle removes a worker's command that only waits for "kubectl exec". Without a command, the agent runs.
func (c *toV2beta1) idle(template tree, at string) {
	containers := entries(look(template, "spec")["containers"])
	if len(containers) == 0 {
		return
	}
	said := strings.Join(words(texts(containers[0]["command"]), texts(containers[0]["args"])), " ")
	switch {
	case said == "":
	case strings.Contains(said, "sleep") || strings.Contains(said, "tail -f"):
		drop(containers[0], "command", "args")
		c.tell(Changed, at+firstOf+".command", "", "%q is removed: it only kept the pod running for \"kubectl exec\"; the worker runs the agent instead", said)
	default:
		c.tell(Todo, at+firstOf+".command", "", "the command replaces the agent, so that no ranks can be started on the workers: remove it, or start sshd in it and set the annotation %s: %s", mpi.AnnotationLaunch, mpi.LaunchSSHD)
	}
}

// policy moves the fields next to runPolicy into it, and reports the fields that no longer exist. In v1 the launcher was a
// pod, and the job failed with it; in the other versions it was a batch Job with the same default as in v2beta1
// (mpi-operator, newLauncher in pkg/controllers).
func (c *toV2beta1) policy(version string) {
	policy, _ := taken[tree](&c.conversion, "spec", "runPolicy")
	if policy == nil {
		policy = tree{}
	}
	for _, name := range []string{"cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds"} {
		value, found := c.take("spec", name)
		if !found || value == nil {
			continue
		}
		if _, have := policy[name]; have {
			c.tell(Changed, "spec."+name, "", "removed: spec.runPolicy.%s takes precedence", name)
			continue
		}
		policy[name] = value
		c.moved("spec."+name, "spec.runPolicy."+name)
	}
	if by, found := policy["managedBy"].(string); found && by != kubeflow.MultiKueueController {
		delete(policy, "managedBy")
		c.tell(Changed, "spec.runPolicy.managedBy", "", "removed: %q does not run MPIJobs of v2beta1", by)
	}
	if policy["schedulingPolicy"] != nil {
		c.tell(Todo, "spec.runPolicy.schedulingPolicy", "spec.runPolicy.schedulingPolicy", "kept; whether it has an effect depends on the gang scheduler of the cluster. To use a queue of Kueue, set the label %s", mpi.LabelQueue)
	}
	never := look(c.spec, "mpiReplicaSpecs", "Launcher")["restartPolicy"] == string(corev1.RestartPolicyNever)
	if _, have := policy["backoffLimit"]; version == "v1" && never && !have {
		policy["backoffLimit"] = int64(0)
		c.tell(Changed, "", "spec.runPolicy.backoffLimit", "set to 0: in v1 a job with restartPolicy Never failed with its launcher; the default in v2beta1 is 6 retries")
	}
	set(c.spec, "runPolicy", policy)
}

// discovery gives elastic Horovod the slots of each host, which discover_hosts.sh of v1 printed: that of v2beta1 prints hosts only, and without
// slots horovodrun starts no ranks.
func (c *toV2beta1) discovery() {
	containers := entries(look(c.spec, "mpiReplicaSpecs", "Launcher", "template", "spec")["containers"])
	if len(containers) == 0 {
		return
	}
	const script, option = "discover_hosts.sh", "--slots-per-host"
	text := strings.Join(words(texts(containers[0]["command"]), texts(containers[0]["args"])), " ")
	if !strings.Contains(text, script) || strings.Contains(text, option) {
		return
	}
	slots, found := c.spec["slotsPerWorker"]
	if !found {
		slots = 1
	}
	for _, name := range []string{"command", "args"} {
		list, _ := containers[0][name].([]any)
		if i := slices.Index(list, any("--host-discovery-script")); i >= 0 {
			containers[0][name] = slices.Insert(slices.Clone(list), i, any(option), any(fmt.Sprint(slots)))
			c.tell(Changed, "", launcherPod+firstOf+"."+name, "%s %v is added: %s prints no slots in v2beta1", option, slots, script)
			return
		}
	}
	c.tell(Todo, launcherPod+firstOf+".command", "", "%s prints no slots in v2beta1: add %s %v to the options of horovodrun", script, option, slots)
}

// alpha1 converts v1alpha1, which had one template for launcher and workers, and counted processing units.
func (c *toV2beta1) alpha1() {
	template, _ := taken[tree](&c.conversion, "spec", "template")
	if len(entries(look(template, "spec")["containers"])) == 0 {
		c.fail(field.Required(field.NewPath("spec", "template", "spec", "containers"), "must define at least one container"))
		return
	}
	workers, units, device := c.units(template)
	policy := string(corev1.RestartPolicyOnFailure)
	if look(template, "spec")["restartPolicy"] == string(corev1.RestartPolicyNever) {
		policy = string(corev1.RestartPolicyNever)
	}
	drop(look(template, "spec"), "restartPolicy")
	c.kubectl(template, "spec.template")

	launcher, worker := clone(template).(tree), clone(template).(tree)
	drop(entries(look(launcher, "spec")["containers"])[0], "resources")
	drop(entries(look(worker, "spec")["containers"])[0], "command", "args")
	if units > 0 {
		object(entries(look(worker, "spec")["containers"])[0], "resources", "limits")[device] = units
	}
	c.onMaster(launcher)
	slots, found := c.number("spec", "slotsPerWorker")
	if !found {
		slots = max(units, 1)
		c.tell(Changed, "", "spec.slotsPerWorker", "set to %d, the number of processing units of a worker, which was the default", slots)
	}
	c.spec["slotsPerWorker"] = slots
	c.spec["mpiReplicaSpecs"] = tree{
		"Launcher": tree{"replicas": int64(1), "restartPolicy": policy, "template": launcher},
		"Worker":   tree{"replicas": workers, "restartPolicy": string(corev1.RestartPolicyNever), "template": worker},
	}
	c.moved("spec.template", launcherPod+" and "+workerPod)
	c.tell(Changed, "spec.template", "", "the launcher has the template without resources, and the workers have it without the command, as before")
}

// units returns the number of workers, and the devices of each, by the rules of v1alpha1
// (mpi-operator, pkg/controllers/v1alpha1, allocateProcessingUnits).
func (c *toV2beta1) units(template tree) (workers, units int64, device string) {
	device, _ = c.text("spec", "processingResourceType")
	device = cmp.Or(device, "nvidia.com/gpu")
	if device == "gpu" {
		device = "nvidia.com/gpu"
	}
	gpus, hasGPUs := c.number("spec", "gpus")
	total, hasUnits := c.number("spec", "processingUnits")
	perNode, named := c.number("spec", "processingUnitsPerNode")
	gpusPerNode, gpusNamed := c.number("spec", "gpusPerNode")
	count, hasReplicas := c.number("spec", "replicas")
	from := "processingUnits"
	if hasGPUs {
		total, perNode, named, from = gpus, gpusPerNode, gpusNamed, "gpus"
	}
	spec := field.NewPath("spec")
	switch {
	case hasGPUs && hasUnits, hasReplicas && (hasGPUs || hasUnits):
		c.fail(field.Forbidden(spec.Child(from), "only one of gpus, processingUnits and replicas can be set"))
	case hasReplicas:
		limit := look(entries(look(template, "spec")["containers"])[0], "resources", "limits")[device]
		_, _ = fmt.Sscan(fmt.Sprint(limit), &units)
		return count, units, device
	case !hasGPUs && !hasUnits:
		c.fail(field.Required(spec.Child("replicas"), "set replicas, gpus or processingUnits"))
	case total < 1:
		c.fail(field.Invalid(spec.Child(from), total, "must be 1 or more"))
	default:
		return c.divided(from, total, perNode, named, device)
	}
	return 0, 0, device
}

// divided returns the number of workers and the devices of each for a total number of devices.
func (c *toV2beta1) divided(from string, total, perNode int64, named bool, device string) (workers, units int64, of string) {
	if !named {
		perNode = 1
		c.tell(Todo, "spec."+from, workerSpec+".replicas", "the number of %s per node is not set; 1 is assumed, the default of the old operator's flags --gpus-per-node and --processing-units-per-node: check that %d workers with 1 each are correct", device, total)
	}
	switch {
	case perNode < 1:
		c.fail(field.Invalid(field.NewPath("spec", from+"PerNode"), perNode, "must be 1 or more"))
		return 0, 0, device
	case total < perNode:
		workers, units = 1, total
	case total%perNode != 0:
		c.fail(field.Invalid(field.NewPath("spec", from), total, fmt.Sprintf("must be a multiple of the number per node, %d", perNode)))
		return 0, 0, device
	default:
		workers, units = total/perNode, perNode
	}
	c.tell(Changed, "spec."+from, workerSpec+".replicas", "%d of %s become %d workers with %d each", total, device, workers, units)
	return workers, units, device
}

// onMaster places the launcher on a node of the control plane.
func (c *toV2beta1) onMaster(launcher tree) {
	wanted, _ := taken[bool](&c.conversion, "spec", "launcherOnMaster")
	if !wanted {
		return
	}
	const label = "node-role.kubernetes.io/control-plane"
	pod := object(launcher, "spec")
	object(pod, "nodeSelector")[label] = ""
	tolerations, _ := pod["tolerations"].([]any)
	pod["tolerations"] = append(tolerations, tree{"key": label, "operator": "Exists", "effect": "NoSchedule"})
	c.tell(Changed, "spec.launcherOnMaster", launcherPod+".spec", "replaced by a nodeSelector and a toleration for %s", label)
}
