package gang

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// coscheduling is a scheduler with the plugin of that name (https://github.com/kubernetes-sigs/scheduler-plugins). What it
// is given is what mpi-operator gives it (pkg/controller/podgroup.go).
type coscheduling struct{}

// coschedulingLabel names, on a pod, its PodGroup.
const coschedulingLabel = "scheduling.x-k8s.io/pod-group"

func (coscheduling) Name() string { return Coscheduling }

func (coscheduling) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}
}

func (coscheduling) bind(job mpi.Job, size int32) Binding {
	timeout := int64(0)
	if job.Gang.TimeoutSet {
		timeout = int64(job.Gang.Timeout.Seconds())
	}
	spec := map[string]any{"minMember": int64(size), "scheduleTimeoutSeconds": timeout}
	if least := least(job, size); len(least) > 0 {
		spec["minResources"] = least
	}
	return Binding{Labels: map[string]string{coschedulingLabel: job.Name}, Spec: spec}
}

// read takes the phase alone: there are no reasons.
func (coscheduling) read(podGroup *unstructured.Unstructured, state *jobstate.GangState) {
	switch phase, _, _ := unstructured.NestedString(podGroup.Object, "status", "phase"); phase {
	case "Pending":
		state.Reason, state.Message = codes.PodGroupPending, codes.Status(codes.PodGroupPending, nil)
	case "Unknown":
		state.Reason, state.Message = codes.PodGroupIncomplete, codes.Status(codes.PodGroupIncomplete, nil)
	}
}
