package gang

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// volcano is the scheduler of https://volcano.sh. What it is given is what mpi-operator gives it
// (pkg/controller/podgroup.go).
type volcano struct{}

// volcanoAnnotation names, on a pod, its PodGroup.
const volcanoAnnotation = "scheduling.k8s.io/group-name"

func (volcano) Name() string { return Volcano }

func (volcano) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
}

func (volcano) bind(job mpi.Job, size int32) Binding {
	spec := map[string]any{"minMember": int64(size)}
	if job.Gang.Queue != "" {
		spec["queue"] = job.Gang.Queue
	}
	for _, class := range []string{job.Gang.PriorityClass, job.PriorityClass(mpi.RoleLauncher), job.PriorityClass(mpi.RoleWorker)} {
		if class != "" {
			spec["priorityClassName"] = class
			break
		}
	}
	if least := least(job, size); len(least) > 0 {
		spec["minResources"] = least
	}
	return Binding{Annotations: map[string]string{volcanoAnnotation: job.Name}, SchedulerName: Volcano, Spec: spec}
}

func (volcano) read(podGroup *unstructured.Unstructured, state *jobstate.GangState) {
	if said := apimeta.FindStatusCondition(conditions(podGroup), "Unschedulable"); said != nil && said.Status == metav1.ConditionTrue {
		state.Reason, state.Message = said.Reason, said.Message
	}
}
