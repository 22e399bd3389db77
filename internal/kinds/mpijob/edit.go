package mpijob

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
)

// Editor implements kinds.Editor for MPIJobs.
type Editor struct{}

var _ kinds.Editor = Editor{}

var bothRoles = []string{string(kubeflow.MPIReplicaTypeLauncher), string(kubeflow.MPIReplicaTypeWorker)}

// GroupVersionKind is MPIJob of kubeflow.org/v2beta1.
func (Editor) GroupVersionKind() schema.GroupVersionKind { return kubeflow.SchemeGroupVersionKind }

// SuspendPath is spec.runPolicy.suspend.
func (Editor) SuspendPath() []string { return []string{"spec", "runPolicy", "suspend"} }

// SetNumber sets the number of workers or slots, or the deadline in seconds.
func (Editor) SetNumber(job *unstructured.Unstructured, setting kinds.Setting, value any) error {
	path := map[kinds.Setting][]string{
		kinds.SettingWorkers:  {"spec", "mpiReplicaSpecs", "Worker", "replicas"},
		kinds.SettingSlots:    {"spec", "slotsPerWorker"},
		kinds.SettingDeadline: {"spec", "runPolicy", "activeDeadlineSeconds"},
	}[setting]
	if setting == kinds.SettingWorkers {
		if _, found, _ := unstructured.NestedMap(job.Object, path[:len(path)-1]...); !found {
			return errors.New("the job has no workers, only a launcher")
		}
	}
	return unstructured.SetNestedField(job.Object, value, path...)
}

// SetImage sets the image of the main container of launcher and workers.
func (Editor) SetImage(job *unstructured.Unstructured, image string) error {
	return eachMainContainer(job, bothRoles, func(main map[string]any) { main["image"] = image })
}

// SetCommand sets the launcher's command.
func (Editor) SetCommand(job *unstructured.Unstructured, command []any) error {
	return eachMainContainer(job, bothRoles[:1], func(main map[string]any) {
		main["command"] = command
		delete(main, "args")
	})
}

// SetResource sets a resource of the workers, and of a launcher that runs ranks.
func (Editor) SetResource(job *unstructured.Unstructured, name, quantity string) error {
	roles := bothRoles[1:]
	if runsRanks, _, _ := unstructured.NestedBool(job.Object, "spec", "runLauncherAsWorker"); runsRanks {
		roles = bothRoles
	}
	return eachMainContainer(job, roles, func(main map[string]any) {
		resources, _ := main["resources"].(map[string]any)
		main["resources"] = kinds.SetQuantity(resources, name, quantity)
	})
}

// SetEnv sets a variable of launcher and workers.
func (Editor) SetEnv(job *unstructured.Unstructured, name, value string) error {
	return eachMainContainer(job, bothRoles, func(main map[string]any) {
		env, _ := main["env"].([]any)
		if main["env"] = kinds.SetVariable(env, name, value); len(main["env"].([]any)) == 0 {
			delete(main, "env")
		}
	})
}

// SetRuntime fails: MPIJobs have no runtime.
func (Editor) SetRuntime(*unstructured.Unstructured, string) error {
	return errors.New("MPIJobs have no runtime")
}

// Summarize returns the worker's image and resources, and the launcher's command.
func (Editor) Summarize(job *unstructured.Unstructured) kinds.Summary {
	typed, err := decode(job)
	if err != nil {
		return kinds.Summary{}
	}
	var summary kinds.Summary
	if main := mainContainer(typed.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher]); main != nil {
		summary.Image, summary.Command = main.Image, append(slices.Clone(main.Command), main.Args...)
	}
	if main := mainContainer(typed.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]); main != nil {
		summary.Image, summary.Worker = cmp.Or(main.Image, summary.Image), main.Resources
	}
	return summary
}

// Size returns the pods of a valid job.
func (Editor) Size(job *unstructured.Unstructured) (kinds.Size, bool) {
	typed, err := decode(job)
	if err != nil {
		return kinds.Size{}, false
	}
	converted, errs := Kind{}.Convert(typed)
	return kinds.Size{Launcher: converted.Launcher.Template.Spec, Worker: converted.Workers.Template.Spec, Workers: converted.Workers.Count}, len(errs) == 0
}

// Check validates a job as the operator does. A job that cannot be decoded is left to the API server.
func (Editor) Check(job *unstructured.Unstructured) (field.ErrorList, []string) {
	typed, err := decode(job)
	if err != nil {
		return nil, nil
	}
	converted, errs := Kind{}.Convert(typed)
	var warnings []string
	if len(errs) == 0 {
		warnings = append(mpi.Warnings(converted), mpi.WarnAnnotations(kubeflow.Kind, nil, typed.Annotations)...)
	}
	return append(errs, mpi.Validate(converted)...), warnings
}

// PodLabels select the pods that the operator creates for a job.
func (Editor) PodLabels(name string) map[string]string { return mpi.Job{Name: name}.Selector() }

// PodRole reads the role from the pod's label, and a worker's index from its name.
func (Editor) PodRole(pod *corev1.Pod) (mpi.Role, int, bool) {
	role := mpi.Role(pod.Labels[mpi.LabelRole])
	if role == mpi.RoleWorker {
		index, err := strconv.Atoi(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
		return role, index, err == nil
	}
	return role, 0, role == mpi.RoleLauncher
}

// RankLayout reads slots and workers. A job that was read from YAML or built may have its numbers as float64.
func (Editor) RankLayout(job *unstructured.Unstructured) kinds.RankLayout {
	number := func(missing int, path ...string) int {
		value, _, _ := unstructured.NestedFieldNoCopy(job.Object, path...)
		switch value := value.(type) {
		case int64:
			return int(value)
		case float64:
			return int(value)
		}
		return missing
	}
	layout := kinds.RankLayout{SlotsPerWorker: number(1, "spec", "slotsPerWorker")}
	layout.LauncherRunsRanks, _, _ = unstructured.NestedBool(job.Object, "spec", "runLauncherAsWorker")
	hosts := number(0, "spec", "mpiReplicaSpecs", "Worker", "replicas")
	if layout.LauncherRunsRanks {
		hosts++
	}
	layout.Ranks = layout.SlotsPerWorker * hosts
	return layout
}

func decode(job *unstructured.Unstructured) (*kubeflow.MPIJob, error) {
	var typed kubeflow.MPIJob
	return &typed, runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, &typed)
}

func mainContainer(role *kubeflow.ReplicaSpec) *corev1.Container {
	if role == nil || len(role.Template.Spec.Containers) == 0 {
		return nil
	}
	return &role.Template.Spec.Containers[0]
}

// eachMainContainer changes the first container of some roles.
func eachMainContainer(job *unstructured.Unstructured, roles []string, change func(main map[string]any)) error {
	for _, role := range roles {
		path := []string{"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"}
		containers, found, err := unstructured.NestedSlice(job.Object, path...)
		if err != nil || !found || len(containers) == 0 {
			continue
		}
		main, is := containers[0].(map[string]any)
		if !is {
			continue
		}
		change(main)
		if err := unstructured.SetNestedSlice(job.Object, containers, path...); err != nil {
			return err
		}
	}
	return nil
}
