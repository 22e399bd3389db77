package plan

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// bound returns the job with the labels, annotations and fields in its pod templates by which a scheduler places the
// pods together.
func bound(job mpi.Job, seen jobstate.Observed) mpi.Job {
	binding := gang.Bind(job, seen)
	if binding.Spec == nil {
		return job
	}
	for role, template := range map[mpi.Role]*corev1.PodTemplateSpec{mpi.RoleLauncher: &job.Launcher.Template, mpi.RoleWorker: &job.Workers.Template} {
		class := job.PriorityClass(role)
		*template = *template.DeepCopy()
		if binding.Labels != nil {
			template.Labels = withLabels(template.Labels, binding.Labels)
		}
		if binding.Annotations != nil {
			template.Annotations = withLabels(template.Annotations, binding.Annotations)
		}
		template.Spec.PriorityClassName = class
		if binding.SchedulerName != "" {
			template.Spec.SchedulerName = binding.SchedulerName
		}
		if binding.SchedulingGroup != nil {
			template.Spec.SchedulingGroup = binding.SchedulingGroup
		}
	}
	return job
}

// podGroup returns the job's PodGroup to create, or the fields to change in the existing one. It returns nil if
// nothing changes, or if the job does not need a PodGroup now.
func podGroup(job mpi.Job, seen jobstate.Observed) Object {
	if job.Lifecycle.Suspended || seen.Gang == nil || seen.Gang.Hold {
		return nil
	}
	binding := gang.Bind(job, seen)
	if binding.Spec == nil {
		return nil
	}
	var uid types.UID
	for _, have := range seen.PodGroups {
		if have.GroupVersionKind().GroupKind() != binding.Kind.GroupKind() || have.GetDeletionTimestamp() != nil {
			continue
		}
		if holds(have.Object["spec"], binding.Spec) {
			return nil
		}
		uid = have.GetUID()
	}
	wants := &unstructured.Unstructured{Object: map[string]any{"spec": binding.Spec}}
	wants.SetGroupVersionKind(binding.Kind)
	about := meta(job, job.Name, uid)
	wants.SetNamespace(about.Namespace)
	wants.SetName(about.Name)
	wants.SetUID(uid)
	wants.SetLabels(about.Labels)
	wants.SetOwnerReferences(about.OwnerReferences)
	return wants
}

// holds reports whether an object contains all wanted fields. It may have others: defaults, and fields that
// schedulers add.
func holds(have, want any) bool {
	wanted, fields := want.(map[string]any)
	if !fields {
		return reflect.DeepEqual(have, want)
	}
	there, fields := have.(map[string]any)
	if !fields {
		return false
	}
	for name, value := range wanted {
		if !holds(there[name], value) {
			return false
		}
	}
	return true
}

// unwantedPodGroups returns the PodGroups to delete: all if the job finished or is suspended, otherwise those of
// other schedulers than the current one.
func unwantedPodGroups(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome) []Ref {
	var wanted gang.Binding
	if out.Finish == nil && !job.Lifecycle.Suspended {
		wanted = gang.Bind(job, seen)
	}
	var refs []Ref
	for _, have := range seen.PodGroups {
		kind := have.GroupVersionKind()
		if have.GetDeletionTimestamp() == nil && (wanted.Spec == nil || kind.GroupKind() != wanted.Kind.GroupKind()) {
			refs = append(refs, Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: have.GetNamespace(), Name: have.GetName(), UID: have.GetUID()})
		}
	}
	return refs
}

// pinned adds node affinity for the node that was chosen for a pod, if any: required if firmly is set, else
// preferred.
func pinned(spec *corev1.PodSpec, seen jobstate.Observed, name string, firmly bool) {
	if seen.Gang == nil || seen.Gang.Nodes[name] == "" {
		return
	}
	there := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{seen.Gang.Nodes[name]}}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if !firmly {
		const most = 100
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: most, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{there}}})
		return
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	// The terms are alternatives, so that each of them needs the node.
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		term.MatchFields = append(slices.Clip(term.MatchFields), there)
	}
}
