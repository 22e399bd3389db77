package trainjob

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
)

// Editor implements kinds.Editor for TrainJobs.
type Editor struct{}

var _ kinds.Editor = Editor{}

// GroupVersionKind is TrainJob of trainer.kubeflow.org/v1alpha1.
func (Editor) GroupVersionKind() schema.GroupVersionKind { return GroupVersion.WithKind(Kind) }

// SuspendPath is spec.suspend.
func (Editor) SuspendPath() []string { return []string{"spec", "suspend"} }

// SetNumber sets the number of nodes or of processes per node, or the deadline in seconds.
func (Editor) SetNumber(job *unstructured.Unstructured, setting kinds.Setting, value any) error {
	return unstructured.SetNestedField(job.Object, value, map[kinds.Setting][]string{
		kinds.SettingWorkers:  {"spec", "trainer", "numNodes"},
		kinds.SettingSlots:    {"spec", "trainer", "numProcPerNode"},
		kinds.SettingDeadline: {"spec", "activeDeadlineSeconds"},
	}[setting]...)
}

// SetImage sets the trainer's image.
func (Editor) SetImage(job *unstructured.Unstructured, image string) error {
	return unstructured.SetNestedField(job.Object, image, "spec", "trainer", "image")
}

// SetCommand sets the trainer's command.
func (Editor) SetCommand(job *unstructured.Unstructured, command []any) error {
	unstructured.RemoveNestedField(job.Object, "spec", "trainer", "args")
	return unstructured.SetNestedSlice(job.Object, command, "spec", "trainer", "command")
}

// SetResource sets a resource of each node, and requests what is limited (RequestLimits).
func (Editor) SetResource(job *unstructured.Unstructured, name, quantity string) error {
	resources, _, _ := unstructured.NestedMap(job.Object, "spec", "trainer", "resourcesPerNode")
	resources = kinds.SetQuantity(resources, name, quantity)
	RequestLimits(resources)
	return unstructured.SetNestedMap(job.Object, resources, "spec", "trainer", "resourcesPerNode")
}

// overcommitted are the resources whose requests and limits may differ.
var overcommitted = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// RequestLimits sets the requests of cpu, memory and ephemeral-storage that are missing to the limits, as Kubernetes does in pods.
// Trainer since v2.3 keeps the requests of a runtime if a TrainJob only sets limits: its pods would request far less than they use.
func RequestLimits(resources map[string]any) {
	limits, _ := resources["limits"].(map[string]any)
	requests, _ := resources["requests"].(map[string]any)
	for _, name := range overcommitted {
		limit, limited := limits[string(name)]
		if _, requested := requests[string(name)]; requested || !limited {
			continue
		}
		if requests == nil {
			requests = map[string]any{}
			resources["requests"] = requests
		}
		requests[string(name)] = limit
	}
}

// SetEnv sets a variable of the trainer.
func (Editor) SetEnv(job *unstructured.Unstructured, name, value string) error {
	env, _, _ := unstructured.NestedSlice(job.Object, "spec", "trainer", "env")
	if env = kinds.SetVariable(env, name, value); len(env) == 0 {
		unstructured.RemoveNestedField(job.Object, "spec", "trainer", "env")
		return nil
	}
	return unstructured.SetNestedSlice(job.Object, env, "spec", "trainer", "env")
}

// SetRuntime sets the name of the runtime. It removes the kind of the one before, which the new one may not have.
func (Editor) SetRuntime(job *unstructured.Unstructured, name string) error {
	unstructured.RemoveNestedField(job.Object, "spec", "runtimeRef", "kind")
	return unstructured.SetNestedField(job.Object, name, "spec", "runtimeRef", "name")
}

// Summarize returns the trainer's fields and the runtime's name.
func (Editor) Summarize(job *unstructured.Unstructured) kinds.Summary {
	typed, err := decodeObject(job)
	if err != nil {
		return kinds.Summary{}
	}
	trainer := typed.trainer()
	return kinds.Summary{
		Image: ptr.Deref(trainer.Image, ""), Runtime: typed.Spec.RuntimeRef.Name,
		Command: append(slices.Clone(trainer.Command), trainer.Args...), Worker: ptr.Deref(trainer.ResourcesPerNode, corev1.ResourceRequirements{}),
	}
}

// Size returns the nodes of a job that sets their number and resources; the runtime sets them otherwise.
func (Editor) Size(job *unstructured.Unstructured) (kinds.Size, bool) {
	typed, err := decodeObject(job)
	if err != nil || typed.Spec.Trainer == nil || typed.Spec.Trainer.ResourcesPerNode == nil || typed.Spec.Trainer.NumNodes == nil {
		return kinds.Size{}, false
	}
	worker := corev1.PodSpec{Containers: []corev1.Container{{Resources: *typed.Spec.Trainer.ResourcesPerNode}}}
	return kinds.Size{Worker: worker, Workers: *typed.Spec.Trainer.NumNodes}, true
}

// Check returns nothing: a TrainJob cannot be checked without its runtime, see Check of this package.
func (Editor) Check(*unstructured.Unstructured) (field.ErrorList, []string) { return nil, nil }

// PodLabels select the pods of the job's JobSet.
func (Editor) PodLabels(name string) map[string]string { return map[string]string{LabelJobSet: name} }

// PodRole reads the role and the index from the labels that JobSet sets.
func (Editor) PodRole(pod *corev1.Pod) (mpi.Role, int, bool) {
	role, index := Place(pod)
	return role, index, true
}

// RankLayout returns the zero value: the runtime determines the layout.
func (Editor) RankLayout(*unstructured.Unstructured) kinds.RankLayout { return kinds.RankLayout{} }

func decodeObject(job *unstructured.Unstructured) (TrainJob, error) {
	data, err := json.Marshal(job.Object)
	if err != nil {
		return TrainJob{}, err
	}
	return Decode(data)
}
