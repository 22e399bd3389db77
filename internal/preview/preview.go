// Package preview computes the objects that a job would create, and finds the errors in the job, without a cluster. The package
// is pure.
//
// For an MPIJob, the operator creates all objects. For a TrainJob, Kubeflow Trainer and JobSet create most of them, and only
// their names and purposes are known.
package preview

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/podspec"
)

// Preview is what a job creates.
type Preview struct {
	// Job is the job; it is not suspended.
	Job mpi.Job
	// Objects are in the order of their creation.
	Objects []Object
	// Notes are warnings, and what the objects do not show.
	Notes []string
}

// Object is an object that a job creates.
type Object struct {
	Kind, Name string
	// Creator is the operator, Trainer or JobSet.
	Creator string
	// Purpose is a noun phrase; of a pod, it ends with the requests.
	Purpose string

	object runtime.Object
}

// MPIJob returns what an MPIJob creates, or every error in it.
func MPIJob(object *unstructured.Unstructured, settings plan.Settings) (Preview, field.ErrorList) {
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		return Preview{}, unreadable(err)
	}
	job, errs := mpijob.Kind{}.Convert(&typed)
	if errs = append(errs, mpi.Validate(job)...); len(errs) > 0 {
		return Preview{}, errs
	}
	p := Preview{Job: job, Notes: append(mpi.Warnings(job), mpi.WarnAnnotations(mpi.KindMPIJob, nil, typed.Annotations)...)}
	p.resume()
	p.noteRequests(p.Job.PodSets())
	if p.Job.Launcher.AfterWorkers {
		p.Notes = append(p.Notes, "the launcher is created when all workers are ready (launcherCreationPolicy)")
		p.Job.Launcher.AfterWorkers = false
	}
	seen := jobstate.Observed{}
	planned := plan.For(p.Job, seen, jobstate.Judge(p.Job, seen), settings)
	for _, made := range append(planned.Base, planned.Pods...) {
		p.addMade(made, purpose(p.Job, made))
	}
	return p, nil
}

// resume lets a suspended job run, with a note.
func (p *Preview) resume() {
	if p.Job.Lifecycle.Suspended {
		p.Notes = append(p.Notes, "the job is suspended; its pods are created when it is resumed")
		p.Job.Lifecycle.Suspended = false
	}
}

// noteRequests adds a note about the pods of a job in a queue that request nothing.
func (p *Preview) noteRequests(pods []mpi.PodSet) {
	if p.Job.Queue == "" {
		return
	}
	var empty []string
	for _, set := range pods {
		if podspec.RequestsNothing(podspec.PodOf(set.Template)) {
			empty = append(empty, set.Name)
		}
	}
	if len(empty) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("pods request nothing (%s): if Kueue selects the nodes in queue %s (topology-aware scheduling), and no LimitRange of the namespace has a default, the job is refused or waits forever",
			strings.Join(empty, ", "), p.Job.Queue))
	}
}

func unreadable(err error) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("spec"), "", "cannot be read: "+err.Error())}
}

// purpose returns what an object of an MPIJob is for.
func purpose(job mpi.Job, object plan.Object) string {
	switch object := object.(type) {
	case *corev1.Service:
		return "host names of the pods"
	case *corev1.ConfigMap:
		return "hostfile with " + phrase.Count(int(job.Ranks()), "slot")
	case *corev1.Secret:
		return "SSH keys of the job"
	case *batchv1.Job:
		return "launcher: " + podspec.Text(podspec.Requests(object.Spec.Template.Spec))
	case *corev1.Pod:
		return podPurpose("worker", true, job.SlotsPerWorker, object.Spec)
	}
	return "isolates the job"
}

// podPurpose returns what a pod is for: its role, its slots if it runs ranks, and its requests.
func podPurpose(role string, runsRanks bool, slots int32, pod corev1.PodSpec) string {
	if runsRanks {
		role += ", " + phrase.Count(int(slots), "slot")
	}
	return role + ": " + podspec.Text(podspec.Requests(pod))
}

// addMade adds an object that the operator creates.
func (p *Preview) addMade(made plan.Object, purpose string) {
	p.add(made.GetObjectKind().GroupVersionKind().Kind, made.GetName(), "the operator", purpose, made)
}

func (p *Preview) add(kind, name, creator, purpose string, object runtime.Object) {
	p.Objects = append(p.Objects, Object{Kind: kind, Name: name, Creator: creator, Purpose: purpose, object: object})
}

// TrainJob returns what a TrainJob of a runtime creates, or every error in both.
func TrainJob(from trainjob.TrainJob, used trainjob.Runtime, settings plan.Settings) (Preview, field.ErrorList) {
	errs := trainjob.CheckRuntime(used)
	more, warnings := trainjob.Check(from, used)
	if errs = append(errs, more...); len(errs) > 0 {
		return Preview{}, errs
	}
	job := trainjob.Convert(from, used)
	p := Preview{Job: job, Notes: warnings}
	p.resume()
	p.noteRequests(trainjob.PodSets(from, used))
	p.add("JobSet", job.Name, "Trainer", "runtime "+used.Name, nil)
	if used.IsMPI() {
		p.add("Secret", job.SecretName(), "Trainer", "SSH keys of the job", nil)
		p.add("ConfigMap", job.ConfigName(), "Trainer", "hostfile with "+phrase.Count(int(job.Ranks()), "slot"), nil)
	}
	p.add("Service", job.Name, "JobSet", "host names of the pods", nil)
	if !job.Launcher.None {
		p.addPod(job.LauncherName()+"-0", mpi.RoleLauncher, job.Launcher.RunsRanks, job.Launcher.Template)
	}
	for i := range int(job.Workers.Count) {
		p.addPod(job.WorkerName(i), mpi.RoleWorker, true, job.Workers.Template)
	}
	seen := jobstate.Observed{}
	for _, made := range plan.For(job, seen, jobstate.Judge(job, seen), settings).Base {
		p.addMade(made, "isolates the job")
	}
	return p, nil
}

// DecodeTrainJob returns the TrainJob of an object, or why it cannot be read.
func DecodeTrainJob(object *unstructured.Unstructured) (trainjob.TrainJob, field.ErrorList) {
	var job trainjob.TrainJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return job, unreadable(err)
	}
	return job, nil
}

// FindRuntime returns the runtime of a TrainJob among objects; nil if it is missing. It fails if the runtime cannot be read.
func FindRuntime(job trainjob.TrainJob, objects []map[string]any) (*trainjob.Runtime, error) {
	name := job.Spec.RuntimeRef.Name
	for _, fields := range objects {
		object := unstructured.Unstructured{Object: fields}
		if object.GetName() != name || object.GetKind() != trainjob.ClusterRuntimeKind && object.GetKind() != trainjob.RuntimeKind {
			continue
		}
		var found trainjob.Runtime
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &found); err != nil {
			return nil, fmt.Errorf("runtime %s: %w", name, err)
		}
		return &found, nil
	}
	return nil, nil
}

// addPod adds a pod of a TrainJob, as far as it is known. JobSet appends letters to its name, of which the job's part is its
// host name.
func (p *Preview) addPod(name string, role mpi.Role, runsRanks bool, template corev1.PodTemplateSpec) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Job.Namespace, Name: name, Labels: maps.Clone(template.Labels), Annotations: template.Annotations},
		Spec:       *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, map[string]string{trainjob.LabelJobSet: p.Job.Name, mpi.LabelRole: string(role)})
	p.add("Pod", name, "JobSet", podPurpose(string(role), runsRanks, p.Job.SlotsPerWorker, pod.Spec), pod)
}

// Known returns the objects that are known in full, as users write them. Secrets are without keys.
func (p Preview) Known() ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, one := range p.Objects {
		if one.object == nil {
			continue
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one.object)
		if err != nil {
			return nil, err
		}
		object := unstructured.Unstructured{Object: fields}
		remove := [][]string{{"status"}, {"metadata", "creationTimestamp"}, {"metadata", "ownerReferences"}, {"spec", "template", "metadata", "creationTimestamp"}}
		if one.Kind == "Secret" {
			remove = append(remove, []string{"data", corev1.SSHAuthPrivateKey}, []string{"data", mpi.SSHPublicKey})
		}
		for _, path := range remove {
			unstructured.RemoveNestedField(object.Object, path...)
		}
		all = append(all, object)
	}
	return all, nil
}

// Fold returns the objects with more than two pods that only differ in their number as one.
func (p Preview) Fold() []Object {
	var all []Object
	for i := 0; i < len(p.Objects); {
		next := i + 1
		for next < len(p.Objects) && p.Objects[i].Kind == "Pod" && p.Objects[next].Kind == "Pod" && p.Objects[next].Purpose == p.Objects[i].Purpose {
			next++
		}
		if n := next - i; n > 2 {
			first, last := p.Objects[i], p.Objects[next-1].Name
			first.Name += " to " + last[strings.LastIndex(last, "-"):]
			first.Purpose = strconv.Itoa(n) + " workers" + strings.TrimPrefix(first.Purpose, "worker")
			all = append(all, first)
		} else {
			all = append(all, p.Objects[i:next]...)
		}
		i = next
	}
	return all
}

// Total returns the number of pods and the sum of their requests.
func (p Preview) Total() (pods int, requests corev1.ResourceList) {
	requests = corev1.ResourceList{}
	add := func(template corev1.PodTemplateSpec, times int64) {
		pods += int(times)
		podspec.Add(requests, podspec.Requests(template.Spec), times)
	}
	add(p.Job.Workers.Template, int64(p.Job.Workers.Count))
	if !p.Job.Launcher.None {
		add(p.Job.Launcher.Template, 1)
	}
	for name, quantity := range requests {
		requests[name] = resource.MustParse(quantity.String()) // in the shortest form
	}
	return pods, requests
}
