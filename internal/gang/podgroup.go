package gang

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// native is Kubernetes' own scheduler, from 1.37 on (https://kep.k8s.io/4671).
type native struct{}

func (native) Name() string { return PodGroup }

func (native) Kind() schema.GroupVersionKind {
	return schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
}

func (native) bind(job mpi.Job, size int32) Binding {
	spec := map[string]any{
		"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(size)}},
		// An MPI job that has lost a pod cannot go on, so a preempting job must take all of it or nothing.
		"disruptionMode": map[string]any{"all": map[string]any{}},
	}
	// kube-scheduler requires the priority class of the PodGroup and of its pods to be equal.
	if class := job.PriorityClass(mpi.RoleWorker); class != "" {
		spec["priorityClassName"] = class
	}
	return Binding{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &job.Name}, Spec: spec}
}

// read uses the scheduler's condition until the gang is placed for the first time: the condition is not updated later.
func (native) read(podGroup *unstructured.Unstructured, state *jobstate.GangState) {
	said := apimeta.FindStatusCondition(conditions(podGroup), schedulingv1beta1.PodGroupInitiallyScheduled)
	if said != nil && said.Status == metav1.ConditionFalse {
		state.Reason, state.Message = said.Reason, said.Message
	}
}
