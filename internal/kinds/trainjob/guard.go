package trainjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

var (
	annotations  = field.NewPath("metadata", "annotations")
	templatePath = spec.Child("template")
	jobsPath     = templatePath.Child("spec", "replicatedJobs")
	policyPath   = spec.Child("mlPolicy")
)

// CheckRuntime returns the fields of an MPI runtime because of which Trainer would run something else than what the job
// specifies. Runtimes without MPI are not checked.
func CheckRuntime(r Runtime) field.ErrorList {
	errs := checkAnnotations(r)
	if !r.IsMPI() {
		return errs
	}
	errs = append(errs, checkNumNodes(r)...)
	if r.Spec.PodGroupPolicy != nil {
		errs = append(errs, checkGang(r)...)
	}
	for _, name := range []string{launcherName, nodeName} {
		errs = append(errs, checkWired(r, name)...)
	}
	return errs
}

// checkNumNodes: Trainer gives the runtime's numNodes to the job with the label, and the TrainJob's to "node" alone
// (trainer/v2/pkg/runtime/core, newRuntimeInfo, and plugins/mpi).
func checkNumNodes(r Runtime) field.ErrorList {
	n := ptr.Deref(r.Spec.MLPolicy.NumNodes, 1)
	trainer := r.trainer()
	if n <= 1 || trainer == nil || trainer.Name != launcherName {
		return nil
	}
	return field.ErrorList{field.Invalid(policyPath.Child("numNodes"), n,
		fmt.Sprintf("must be 1: Trainer would start %d launchers, since this number goes to the job %q; how many nodes there are each TrainJob says in %s", n, launcherName, nodesPath))}
}

// checkGang: a gang scheduler waits for all pods, and JobSet makes none of the launcher's before those that it depends
// on are ready.
func checkGang(r Runtime) field.ErrorList {
	var errs field.ErrorList
	for i, job := range r.Spec.Template.Spec.ReplicatedJobs {
		if len(job.DependsOn) > 0 {
			errs = append(errs, field.Invalid(jobsPath.Index(i).Child("dependsOn"), job.DependsOn[0].Name,
				"must be left out where podGroupPolicy is set: all pods are scheduled together, and those of this job do not exist before the others run, so that none ever would; the agent waits for workers by itself"))
		}
	}
	return errs
}

// checkWired: Trainer brings keys and hostfile only to containers of this name in jobs of these names.
func checkWired(r Runtime, name string) field.ErrorList {
	pod := r.job(name).pod()
	switch {
	case r.job(name) == nil:
		return field.ErrorList{field.Required(jobsPath, fmt.Sprintf("must have a job named %q: Trainer brings keys and hostfile to the jobs %q and %q alone", name, launcherName, nodeName))}
	case container(&pod.Spec) == nil:
		return field.ErrorList{field.Required(jobsPath.Key(name), fmt.Sprintf("must have a container named %q: Trainer brings keys and hostfile to no other", nodeName))}
	}
	return nil
}

// checkAnnotations checks ours, which exist for MPI runtimes alone.
func checkAnnotations(r Runtime) field.ErrorList {
	var errs field.ErrorList
	if name, ours := r.Annotations[mpi.AnnotationImplementation]; ours {
		at := annotations.Key(mpi.AnnotationImplementation)
		switch {
		case !slices.Contains(mpi.Implementations, mpi.Implementation(name)):
			errs = append(errs, field.NotSupported(at, mpi.Implementation(name), mpi.Implementations))
		case !r.IsMPI():
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("is for runtimes with %s", policyPath.Child("mpi"))))
		}
	}
	if have, want := r.Spec.Template.Metadata.Annotations[mpi.AnnotationImplementation], r.Annotations[mpi.AnnotationImplementation]; have != want {
		errs = append(errs, field.Invalid(templatePath.Child("metadata", "annotations").Key(mpi.AnnotationImplementation), have,
			fmt.Sprintf("must be %q as in %s: from here Trainer copies it to every JobSet, which is how jobs of this runtime are known", want, annotations)))
	}
	_, timeout := mpi.ParseScheduleTimeout(r.Annotations)
	return slices.Concat(errs, timeout, checkMinimum(r), CheckLimitAnnotations(r.Annotations), isolation.CheckEgress(r.Annotations))
}

// Check returns what keeps a TrainJob from running as it is written with an MPI runtime: the limits of the runtime and
// its faults, all of them at once. Warnings are about what runs but is probably not intended. With other runtimes only
// their limits are checked, the annotations that have an effect with any runtime, and the labels of pods.
func Check(job TrainJob, used Runtime) (errs field.ErrorList, warnings []string) {
	return check(nil, job, used)
}

// check is Check for a job that had annotations before: those that it still has cause no warnings.
func check(before map[string]string, job TrainJob, used Runtime) (errs field.ErrorList, warnings []string) {
	errs, warnings = append(checkJobAnnotations(job, used), checkPodLabels(job)...), mpi.WarnAnnotations(Kind, before, job.Annotations)
	isLimited := before[mpi.AnnotationScheduleTimeout] == job.Annotations[mpi.AnnotationScheduleTimeout] || !waitsWithoutLimit(job)
	switch {
	case !used.ours():
		warnings = append(warnings, warnIneffective(job, used)...)
	case !used.mayBeGated():
		warnings = append(warnings, warnNotGated(job, used)...)
	case !isLimited:
		warnings = append(warnings, fmt.Sprintf("%s: only limits how long some of the pods hold nodes while others have none. Without a queue, a job of which no pod has a node waits without a limit; to end it, set %s",
			annotations.Key(mpi.AnnotationScheduleTimeout), fields.Deadline))
	}
	if !used.IsMPI() {
		return append(errs, CheckLimits(job, used)...), warnings
	}
	if names, _ := Connections(job, used); len(names) > 0 && !hasAgent(used.job(nodeName).pod().Spec) {
		warnings = append(warnings, mpi.ConnectionsWithoutAgent)
	}
	errs = append(errs, unusable(job, append(checkNumNodes(used), gangFaults(used)...))...)
	errs = append(errs, checkName(job, used)...)
	errs = append(errs, checkSlots(job)...)
	errs = append(errs, mpi.ValidateResources(ptr.Deref(job.trainer().ResourcesPerNode, corev1.ResourceRequirements{}), sizePath)...)
	errs = append(errs, CheckLimits(job, used)...)
	errs = append(errs, checkCommand(job, used)...)
	return errs, append(warnings, warn(job, used)...)
}

// waitsWithoutLimit reports whether a TrainJob sets a time for the placement of its pods that does not end it while none of them has a
// node: only Trainer can let it fail (see Convert).
func waitsWithoutLimit(job TrainJob) bool {
	return job.Annotations[mpi.AnnotationScheduleTimeout] != "" && job.Labels[mpi.LabelQueue] == "" && job.Spec.ActiveDeadlineSeconds == nil
}

// unusable returns the faults of a runtime as errors of a TrainJob that names it.
func unusable(job TrainJob, faults field.ErrorList) (errs field.ErrorList) {
	for _, err := range faults {
		errs = append(errs, field.Invalid(spec.Child("runtimeRef", "name"), job.Spec.RuntimeRef.Name,
			fmt.Sprintf("cannot be used as it is, ask who maintains it: %s %s", err.Field, err.Detail)))
	}
	return errs
}

// checkJobAnnotations checks the annotations of a TrainJob that have an effect with its runtime.
func checkJobAnnotations(job TrainJob, used Runtime) field.ErrorList {
	return slices.DeleteFunc(mpi.CheckAnnotations(Kind, job.Namespace, job.Annotations), func(err *field.Error) bool {
		switch err.Field {
		case annotations.Key(mpi.AnnotationTTL).String(), annotations.Key(mpi.AnnotationSilence).String(), annotations.Key(mpi.AnnotationLinks).String():
			return false
		case mpi.ConnectionsPath.String():
			return !used.ours()
		}
		return !used.IsMPI()
	})
}

// checkSlots refuses numbers of ranks with which mpirun fails. What is a word is Trainer's to refuse.
func checkSlots(job TrainJob) field.ErrorList {
	written := job.trainer().NumProcPerNode
	if written == nil {
		return nil
	}
	n := int64(written.IntVal)
	if written.Type == intstr.String {
		var err error
		if n, err = strconv.ParseInt(strings.TrimSpace(written.StrVal), 10, 64); err != nil {
			return nil
		}
	}
	if n > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(slotsPath, n, "must be 1 or more: it is the number of ranks per node; omit it for the number of the runtime")}
}

// checkWiring returns the fields of a TrainJob because of which its JobSet is not completed (Wire) and therefore refused.
func checkWiring(job TrainJob) field.ErrorList {
	_, connections := mpi.ParseConnections(job.Namespace, job.Annotations)
	_, restarts := mpi.ParseMaxRestarts(job.Annotations)
	_, topology := mpi.ParseTopology(job.Annotations)
	_, priority := mpi.ParsePriorityClass(job.Annotations)
	return slices.Concat(connections, restarts, topology, priority, checkSlots(job))
}

// warnNotGated returns warnings about annotations that only have an effect if the operator can hold back the pods (mayBeGated).
func warnNotGated(job TrainJob, used Runtime) (warnings []string) {
	warn := func(annotation, instead string) {
		warnings = append(warnings, fmt.Sprintf("%s: has no effect with the runtime %s, whose pods another scheduler places together, or JobSet creates in order; %s",
			annotations.Key(annotation), used.Name, instead))
	}
	if job.Annotations[mpi.AnnotationScheduleTimeout] != "" {
		warn(mpi.AnnotationScheduleTimeout, "set the timeout of that scheduler")
	}
	if waitsWithoutQueue(job) {
		warn(mpi.AnnotationWaitForQuota, notHeldBack)
	}
	return warnings
}

// waitsWithoutQueue reports whether a job is to wait for the quotas of its namespace, and not in a queue of Kueue's anyway.
func waitsWithoutQueue(job TrainJob) bool {
	return job.Annotations[mpi.AnnotationWaitForQuota] == "true" && job.Labels[mpi.LabelQueue] == ""
}

// notHeldBack is what happens to jobs whose pods the operator cannot hold back until the quotas have room.
const notHeldBack = "the job is refused while the quotas of the namespace have no room for it"

// warnIneffective returns warnings about annotations that only have an effect on JobSets which the operator completes (Wire).
func warnIneffective(job TrainJob, used Runtime) (warnings []string) {
	topology, _ := mpi.ParseTopology(job.Annotations)
	for _, annotation := range []struct {
		isSet   bool
		at      *field.Path
		instead string
	}{
		{job.Annotations[mpi.AnnotationConnections] != "", mpi.ConnectionsPath, "give the job the Secret's keys as variables (trainer.env)"},
		{topology.Key != "", annotations, "set podAffinity in its pod templates"},
		{job.Annotations[mpi.AnnotationMaxRestarts] != "", annotations.Key(mpi.AnnotationMaxRestarts), "set failurePolicy.maxRestarts of its JobSet"},
		{job.Annotations[mpi.AnnotationScheduleTimeout] != "", annotations.Key(mpi.AnnotationScheduleTimeout), "its pods are not placed together, unless by the scheduler in podGroupPolicy of its runtime"},
		{job.Annotations[mpi.AnnotationPriorityClass] != "", annotations.Key(mpi.AnnotationPriorityClass), "set priorityClassName in the pod templates of its runtime"},
		{job.Annotations[mpi.AnnotationRDMA] == mpi.RDMAOptional, mpi.RDMAPath, "its pods wait for nodes with RDMA"},
		{waitsWithoutQueue(job), annotations.Key(mpi.AnnotationWaitForQuota), notHeldBack},
		{job.Annotations[mpi.AnnotationProfile] == "true", annotations.Key(mpi.AnnotationProfile), "use a profiler that its image contains"},
	} {
		if annotation.isSet {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect with the runtime %s, which does not have the annotation %s; %s",
				annotation.at, used.Name, mpi.AnnotationImplementation, annotation.instead))
		}
	}
	return warnings
}

// Connections returns a TrainJob's data connections; none if JobSets of its runtime are not completed (Wire).
func Connections(job TrainJob, used Runtime) ([]string, field.ErrorList) {
	if !used.ours() {
		return nil, nil
	}
	return mpi.ParseConnections(job.Namespace, job.Annotations)
}

// IsOurs reports whether the operator adds to the JobSets of a runtime's jobs what Trainer leaves out, so that annotations of the
// TrainJob have an effect.
func (r Runtime) IsOurs() bool { return r.ours() }

// ours reports whether jobs of a runtime are given in their JobSets what Trainer leaves out.
func (r Runtime) ours() bool { return r.IsMPI() && r.Annotations[mpi.AnnotationImplementation] != "" }

func gangFaults(used Runtime) field.ErrorList {
	if used.Spec.PodGroupPolicy == nil {
		return nil
	}
	return checkGang(used)
}

// checkName: pods are named after the TrainJob, and their names are host names.
func checkName(job TrainJob, used Runtime) field.ErrorList {
	longest := max(len("-launcher-0-0"), len("-node-0-")+len(strconv.Itoa(int(max(workers(job, used)-1, 0)))))
	if room := validation.DNS1123LabelMaxLength - longest; len(job.Name) > room {
		return field.ErrorList{field.Invalid(fields.Name, job.Name,
			fmt.Sprintf("must have at most %d characters, this has %d: the host names of its pods begin with it and have at most %d", room, len(job.Name), validation.DNS1123LabelMaxLength))}
	}
	return nil
}

// patchesPath is where this TrainJob changes its runtime.
func patchesPath(job TrainJob) *field.Path {
	if len(job.Spec.PodTemplateOverrides) > 0 {
		return spec.Child("podTemplateOverrides")
	}
	return spec.Child("runtimePatches")
}

// checkCommand requires a command: our runtimes run the TrainJob's command and have none themselves.
func checkCommand(job TrainJob, used Runtime) field.ErrorList {
	pod := template(job, used.trainer(), false)
	main := container(&pod.Spec)
	if main == nil || used.trainer().Name != launcherName || !hasAgent(pod.Spec) || len(main.Args) > 0 {
		return nil
	}
	if own := used.trainer().pod(); len(main.Command) > 0 && !slices.Equal(main.Command, container(&own.Spec).Command) {
		return nil
	}
	return field.ErrorList{field.Required(trainerPath.Child("command"),
		fmt.Sprintf("must say what the launcher runs, such as [mpirun, train]: the runtime %s runs nothing by itself", used.Name))}
}

// warn returns warnings about values that Trainer changes silently.
func warn(job TrainJob, used Runtime) []string {
	var warnings []string
	trainer := job.trainer()
	converted := Convert(job, used)
	warnings = append(warnings, converted.WarnLauncher(trainer.Command, trainer.Args, trainer.Env, trainerPath)...)
	warnings = append(warnings, converted.WarnLocalMaster(trainer.Env, trainerPath.Child("env"))...)
	warnings = append(warnings, converted.WarnDevices(trainer.Env, trainerPath.Child("env"))...)
	warnings = append(warnings, mpi.WarnPath(trainer.Env, trainerPath.Child("env"))...)
	pod := used.trainer().pod()
	if own := container(&pod.Spec); own != nil {
		warnings = append(warnings, mpi.WarnReferences(trainer.Env, own.EnvFrom, trainerPath.Child("env"), own.Env...)...)
		if names, _ := Connections(job, used); len(names) == 0 {
			warnings = append(warnings, mpi.WarnCommandReferences(trainer.Command, slices.Concat(own.Env, trainer.Env), own.EnvFrom, trainerPath.Child("command"))...)
		}
	}
	warnings = append(warnings, mpi.WarnMemory(size(job, used), sizePath)...)
	warnings = append(warnings, warnPatches(job, used)...)
	if policy := used.mpiPolicy(); policy.RunLauncherAsNode && nodes(job, used) <= 1 {
		warnings = append(warnings, fmt.Sprintf("%s: %d makes 2 pods with ranks, the launcher and a worker: Trainer has no fewer where the launcher runs ranks (runLauncherAsNode)", nodesPath, nodes(job, used)))
	} else if !policy.RunLauncherAsNode && trainer.ResourcesPerNode != nil {
		warnings = append(warnings, fmt.Sprintf("%s: sizes the launcher alone with the runtime %s (runLauncherAsNode: false); its workers stay as the runtime has them", sizePath, used.Name))
	}
	if have, n := podspec.GPUs(size(job, used)), slots(job, used); have > 0 && int64(n) != have {
		warnings = append(warnings, fmt.Sprintf("%s: %d ranks per node with %d GPUs; most MPI programs for GPUs need one rank per GPU", slotsPath, n, have))
	}
	if kept := keptRequests(job, used); len(kept) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: has limits without requests. With Kubeflow Trainer 2.3 or later, pods request what the runtime %s requests (%s), whatever the limits; set requests of the same size",
			sizePath, used.Name, strings.Join(kept, ", ")))
	}
	if used.Annotations[mpi.AnnotationImplementation] == "" {
		if trainer.Image != nil || len(trainer.Env) > 0 && !used.mpiPolicy().RunLauncherAsNode {
			warnings = append(warnings, fmt.Sprintf("%s: image and env reach the launcher alone with the runtime %s; with one that has the annotation %s they reach the workers too",
				trainerPath, used.Name, mpi.AnnotationImplementation))
		}
	}
	return warnings
}

// warnPatches returns warnings about patches of jobs that the runtime does not have: Trainer adds them as further jobs.
func warnPatches(job TrainJob, used Runtime) (warnings []string) {
	var names []string
	for _, of := range used.Spec.Template.Spec.ReplicatedJobs {
		names = append(names, of.Name)
	}
	unknown := func(at *field.Path, name string) {
		if !slices.Contains(names, name) {
			warnings = append(warnings, fmt.Sprintf("%s: the runtime %s has no job %q; its jobs are %s", at.Child("name"), used.Name, name, strings.Join(names, ", ")))
		}
	}
	for i, patch := range job.Spec.RuntimePatches {
		for j, of := range patch.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs {
			unknown(replicatedJobAt(i, j), of.Name)
		}
	}
	for i, override := range job.Spec.PodTemplateOverrides {
		for j, of := range override.TargetJobs {
			unknown(spec.Child("podTemplateOverrides").Index(i).Child("targetJobs").Index(j), of.Name)
		}
	}
	return warnings
}

// keptRequests returns the requests of a runtime that stay although a TrainJob sets another limit.
func keptRequests(job TrainJob, used Runtime) (kept []string) {
	asked := job.trainer().ResourcesPerNode
	pod := used.trainer().pod()
	main := container(&pod.Spec)
	if asked == nil || main == nil {
		return nil
	}
	for _, name := range overcommitted {
		limit, limited := asked.Limits[name]
		_, requested := asked.Requests[name]
		if of, has := main.Resources.Requests[name]; limited && !requested && has && !of.Equal(limit) {
			kept = append(kept, fmt.Sprintf("%s %s", name, &of))
		}
	}
	return kept
}

// fixed is the error for a change of the trainer of a job that is not suspended. Trainer v2.1 accepts it and does not apply it; later
// versions refuse it.
const fixed = "cannot be changed while the job runs: its pods would stay as they are; suspend the job first (spec.suspend: true), or delete it and create it again with the change"

func isSuspended(job TrainJob) bool { return ptr.Deref(job.Spec.Suspend, false) }

// CheckChange is Check for a TrainJob that is changed: it returns the errors that the change causes.
func CheckChange(before, after TrainJob, used Runtime) (errs field.ErrorList, warnings []string) {
	old, _ := Check(before, used)
	errs, warnings = check(before.Annotations, after, used)
	errs, _ = mpi.SplitNew(old, errs)
	if past(before).Finish != nil {
		errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
			return strings.HasPrefix(err.Field, annotations.String()) && err.Field != annotations.Key(mpi.AnnotationTTL).String()
		})
		was, is := before.Spec, after.Spec
		was.Suspend, is.Suspend = nil, nil
		if !equality.Semantic.DeepEqual(was, is) {
			errs = append(errs, field.Forbidden(spec, mpi.FinishedIsFixed(before.Name)))
		}
	}
	if runs := !isSuspended(before) && !isSuspended(after) && past(before).Finish == nil; runs && used.IsMPI() && !equality.Semantic.DeepEqual(before.trainer(), after.trainer()) {
		errs = append(errs, field.Forbidden(trainerPath, fixed))
	}
	for _, name := range []string{mpi.AnnotationConnections, mpi.AnnotationPriorityClass} {
		if used.ours() && past(before).Finish == nil && before.Annotations[name] != after.Annotations[name] {
			errs = append(errs, field.Forbidden(annotations.Key(name), "cannot be changed after the job was created: its pods were defined with it; delete the job and create it again with the change"))
		}
	}
	return errs, warnings
}
