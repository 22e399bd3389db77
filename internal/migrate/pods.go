package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// patchable are the fields of pods that a TrainJob may change in its runtime; true if Trainer v2.1 supports them.
var patchable = map[string]bool{
	"serviceAccountName": true, "volumes": true, "imagePullSecrets": true, "nodeSelector": true, "affinity": true, "tolerations": true,
	"schedulingGates": true, "securityContext": false, "terminationGracePeriodSeconds": false,
}

// scheduling are those of them that select a pod's node.
var scheduling = []string{"nodeSelector", "affinity", "tolerations", "schedulingGates"}

// patchableInContainer are the same for the container that runs the program.
var patchableInContainer = map[string]bool{"volumeMounts": true, "securityContext": false}

// role is one of the two pod templates of an MPIJob.
type role struct {
	at string
	// template, spec and main (its first container) are the parts that were not read yet.
	template, spec, main tree
}

func (c *toTrainJob) role(name, at string) role {
	template := look(c.left, "spec", "mpiReplicaSpecs", name, "template")
	r := role{at: at, template: template, spec: look(template, "spec"), main: tree{}}
	if containers := entries(r.spec["containers"]); len(containers) > 0 {
		r.main = containers[0]
	}
	return r
}

// pods converts both templates to the fields of a TrainJob for its pods: image, variables and size of all pods, and the
// changes to its runtime.
func (c *toTrainJob) pods() {
	if c.job.Workers.Count == 0 {
		return
	}
	launcher, worker := c.role("Launcher", launcherPod), c.role("Worker", workerPod)
	c.image(launcher, worker)
	c.env(launcher, worker)
	c.resources(launcher, worker)
	c.user(worker)
	c.patches(launcher, worker)
	c.priority(launcher, worker)
	for _, r := range []role{launcher, worker} {
		drop(r.main, "name", "command", "args")
		if r.main["imagePullPolicy"] == "IfNotPresent" {
			drop(r.main, "imagePullPolicy")
		}
		drop(r.spec, "restartPolicy")
		c.rest(r)
	}
	drop(look(c.left, "spec", "mpiReplicaSpecs", "Launcher"), "template")
	drop(look(c.left, "spec", "mpiReplicaSpecs", "Worker"), "template")
}

func (c *toTrainJob) image(launcher, worker role) {
	launchers, _ := take(launcher.main, "image")
	image, _ := take(worker.main, "image")
	c.trainer()["image"] = image
	c.moved(worker.at+firstOf+".image", imageField)
	if launchers != image {
		c.tell(Changed, launcher.at+firstOf+".image", imageField, "all pods use the image of the workers instead of %v; check that it contains mpirun and the programs in the launcher's command", launchers)
	}
}

// env sets the variables of both templates on all nodes.
func (c *toTrainJob) env(launcher, worker role) {
	launchers, _ := take(launcher.main, "env")
	workers, _ := take(worker.main, "env")
	all := entries(workers)
	for _, entry := range entries(launchers) {
		i := slices.IndexFunc(all, func(have tree) bool { return have["name"] == entry["name"] })
		switch {
		case i < 0:
			all = append(all, entry)
		case !same(all[i], entry):
			c.tell(Changed, launcher.at+firstOf+".env["+fmt.Sprint(entry["name"])+"]", envField, "all nodes have the same variables; the value of the workers replaces that of the launcher")
		}
	}
	if len(all) > 0 {
		c.trainer()["env"] = anys(all)
		c.tell(Moved, inBoth(".env"), envField, "")
	}
	c.connections(launcher, worker)
}

// connections converts Secrets whose keys are all variables to data connections.
func (c *toTrainJob) connections(launcher, worker role) {
	annotations := look(c.object, "metadata", "annotations")
	written, _ := annotations[mpi.AnnotationConnections].(string)
	var names []string
	for _, r := range []role{worker, launcher} {
		from, _ := take(r.main, "envFrom")
		for i, source := range entries(from) {
			name, _ := look(source, "secretRef")["name"].(string)
			here := fmt.Sprintf("%s%s.envFrom[%d]", r.at, firstOf, i)
			switch {
			case name == "" || source["prefix"] != nil && source["prefix"] != "":
				c.tell(Lost, here, "", "TrainJobs cannot use %s as a whole; add each key as a variable in %s (valueFrom: configMapKeyRef or secretKeyRef)", sourceName(source), envField)
			case !slices.Contains(names, name):
				names = append(names, name)
				c.moved(here, connections)
			}
		}
	}
	if written != "" {
		names = append(strings.Split(written, ","), names...)
	}
	if len(names) > 0 {
		object(c.object, "metadata", "annotations")[mpi.AnnotationConnections] = strings.Join(slices.Compact(names), ",")
	}
}

func sourceName(source tree) string {
	if name, found := look(source, "configMapRef")["name"]; found {
		return fmt.Sprintf("ConfigMap %v", name)
	}
	return fmt.Sprintf("Secret %v with a prefix", look(source, "secretRef")["name"])
}

func (c *toTrainJob) resources(launcher, worker role) {
	launchers, _ := take(launcher.main, "resources")
	workers, _ := take(worker.main, "resources")
	if size, is := workers.(tree); is && len(size) > 0 {
		c.trainer()["resourcesPerNode"] = size
		c.moved(worker.at+firstOf+".resources", sizeField)
	} else {
		c.tell(Todo, worker.at+firstOf+".resources", sizeField, "the workers have no resources, so that each node has those of the runtime (cpu 100m, memory 128Mi in the runtimes of this project): set them")
	}
	if !same(launchers, workers) {
		c.tell(Changed, launcher.at+firstOf+".resources", sizeField, "the launcher runs ranks, and has the same resources as the other nodes")
	}
	trainjob.RequestLimits(look(c.trainer(), "resourcesPerNode"))
}

// user reports that the runtimes of this project set the user of pods.
func (c *toTrainJob) user(worker role) {
	for _, of := range []tree{worker.spec, worker.main} {
		context := look(of, "securityContext")
		if context["runAsUser"] != nil || context["runAsNonRoot"] != nil {
			return
		}
	}
	c.tell(Todo, worker.at+firstOf+".image", "", "pods run as a non-root user without capabilities: check that the image supports this and contains mpirun; sshd and SSH keys are not needed")
}

// patches sets what the TrainJob changes in the pods of its runtime.
func (c *toTrainJob) patches(launcher, worker role) {
	for _, name := range scheduling {
		if own, found := launcher.spec[name]; found && !same(own, worker.spec[name]) {
			c.tell(Changed, launcher.at+".spec."+name, "", "the launcher runs ranks, and is scheduled like the workers")
			delete(launcher.spec, name)
		}
	}
	workers := c.patch(worker)
	launchers := c.patch(launcher)
	inherit(launchers, workers)
	if len(workers) == 0 && len(launchers) == 0 {
		return
	}
	spec := object(c.object, "spec")
	if c.options.Overrides {
		var overrides []any
		for _, target := range targets(launchers, workers) {
			override := maps.Clone(target.patch)
			override["targetJobs"] = anys(target.jobs)
			overrides = append(overrides, override)
		}
		spec["podTemplateOverrides"] = overrides
		return
	}
	patches := slices.DeleteFunc([]trainjob.JobPatch{{Job: "launcher", Template: launchers}, {Job: "node", Template: workers}}, func(p trainjob.JobPatch) bool {
		return len(p.Template) == 0
	})
	spec["runtimePatches"] = trainjob.RuntimePatches(patchManager, patches)
}

type target struct {
	jobs  []tree
	patch tree
}

// targets returns the overrides for these patches; one if they are equal.
func targets(launchers, workers tree) []target {
	launcher, node := tree{"name": "launcher"}, tree{"name": trainjob.Container}
	if same(launchers, workers) {
		return []target{{[]tree{launcher, node}, workers}}
	}
	var all []target
	for _, t := range []target{{[]tree{launcher}, launchers}, {[]tree{node}, workers}} {
		if len(t.patch) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// patch moves what a TrainJob can change in the pods of its runtime from a template to a patch.
func (c *toTrainJob) patch(r role) tree {
	to := patchesField
	if c.options.Overrides {
		to = overridesField
	}
	patch := tree{}
	for _, name := range []string{"labels", "annotations"} {
		if value, found := take(r.template, "metadata", name); found {
			if written, is := value.(tree); is && len(written) > 0 {
				object(patch, "metadata")[name] = value
				c.moved(r.at+".metadata."+name, to)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(patchable)) {
		value, found := r.spec[name]
		if !found || len(leaves(value, "x")) == 0 || c.options.Overrides && !patchable[name] {
			continue
		}
		delete(r.spec, name)
		object(patch, "spec")[name] = value
		c.moved(r.at+".spec."+name, to)
	}
	main := tree{}
	for _, name := range slices.Sorted(maps.Keys(patchableInContainer)) {
		value, found := r.main[name]
		if !found || len(leaves(value, "x")) == 0 || c.options.Overrides && !patchableInContainer[name] {
			continue
		}
		delete(r.main, name)
		main[name] = value
		c.moved(r.at+firstOf+"."+name, to)
	}
	if len(main) > 0 {
		main["name"] = trainjob.Container
		object(patch, "spec")["containers"] = []any{main}
	}
	return patch
}

// inherit adds the settings of the workers to the launcher, because it runs ranks. The launcher's own settings remain.
func inherit(launchers, workers tree) {
	for _, name := range []string{"labels", "annotations"} {
		for key, value := range look(workers, "metadata", name) {
			if _, found := look(launchers, "metadata", name)[key]; !found {
				object(launchers, "metadata", name)[key] = value
			}
		}
	}
	for name, value := range look(workers, "spec") {
		spec := object(launchers, "spec")
		switch own, found := spec[name]; {
		case !found:
			spec[name] = clone(value)
		case name == "volumes" || name == "imagePullSecrets":
			spec[name] = union(own, value, "name")
		case name == "containers":
			mine, theirs := entries(own)[0], entries(value)[0]
			for field, setting := range theirs {
				if _, found := mine[field]; !found {
					mine[field] = clone(setting)
				}
			}
			if theirs["volumeMounts"] != nil {
				mine["volumeMounts"] = union(mine["volumeMounts"], theirs["volumeMounts"], "mountPath")
			}
		}
	}
}

// union returns the entries of a list, and those of another list whose key is not among them.
func union(own, more any, key string) []any {
	all := entries(own)
	for _, entry := range entries(more) {
		if !slices.ContainsFunc(all, func(have tree) bool { return have[key] == entry[key] }) {
			all = append(all, entry)
		}
	}
	return anys(all)
}

// priority converts the priority class of all pods. Classes that differ remain fields of the pods.
func (c *toTrainJob) priority(launcher, worker role) {
	class := c.job.PriorityClass(mpi.RoleWorker)
	if class == "" || class != c.job.PriorityClass(mpi.RoleLauncher) {
		return
	}
	object(c.object, "metadata", "annotations")[mpi.AnnotationPriorityClass] = class
	effect, text := Moved, ""
	if c.job.Queue != "" {
		effect, text = Changed, "pods keep their priority class; Kueue orders TrainJobs by the label "+mpi.LabelQueuePriority
	}
	for _, from := range []struct {
		of    tree
		field string
		path  string
	}{
		{look(c.left, "spec", "runPolicy", "schedulingPolicy"), "priorityClass", "spec.runPolicy.schedulingPolicy"},
		{launcher.spec, "priorityClassName", launcher.at + ".spec"},
		{worker.spec, "priorityClassName", worker.at + ".spec"},
	} {
		if _, found := take(from.of, from.field); found {
			c.tell(effect, from.path+"."+from.field, "metadata.annotations["+mpi.AnnotationPriorityClass+"]", text)
		}
	}
}

// rest reports the fields of a template that only a runtime can set, a line for each field of the pod or its container.
func (c *toTrainJob) rest(r role) {
	told := func(of tree, at string, skip ...string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(skip, name) && len(leaves(of[name], "x")) > 0 {
				c.tell(Lost, at+"."+name, "", c.inRuntime())
			}
		}
	}
	told(r.spec, r.at+".spec", "containers", "initContainers")
	told(r.main, r.at+firstOf)
	for i, first := range entries(r.spec["initContainers"]) {
		c.tell(Lost, fmt.Sprintf("%s.spec.initContainers[%d]", r.at, i), "", "container %v: %s", first["name"], c.inRuntime())
	}
	for i, other := range entries(r.spec["containers"]) {
		if i > 0 {
			c.tell(Lost, fmt.Sprintf("%s.spec.containers[%d]", r.at, i), "", "container %v: %s", other["name"], c.inRuntime())
		}
	}
}
