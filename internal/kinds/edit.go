package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// Setting names a number that users set in jobs of every kind.
type Setting string

// The settings that are numbers.
const (
	SettingWorkers  Setting = "workers"
	SettingSlots    Setting = "slots"
	SettingDeadline Setting = "deadline"
)

// Editor reads and changes the fields of jobs as users write them. Objects are unstructured, so that fields of later
// versions of an API are kept.
type Editor interface {
	GroupVersionKind() schema.GroupVersionKind
	// SuspendPath is the path of the field that suspends a job.
	SuspendPath() []string
	// SetNumber sets a number. The value is an int64, or a string that contains a template parameter.
	SetNumber(job *unstructured.Unstructured, setting Setting, value any) error
	SetImage(job *unstructured.Unstructured, image string) error
	// SetCommand sets the command that starts the ranks, and removes the arguments.
	SetCommand(job *unstructured.Unstructured, command []any) error
	// SetResource sets a quantity of each worker.
	SetResource(job *unstructured.Unstructured, name, quantity string) error
	// SetEnv sets a variable of every rank. An empty value removes the variable.
	SetEnv(job *unstructured.Unstructured, name, value string) error
	SetRuntime(job *unstructured.Unstructured, name string) error
	// Summarize returns what users wrote about the pods; the zero value if the job cannot be decoded.
	Summarize(job *unstructured.Unstructured) Summary
	// Size returns the pods of a job; false if the job alone does not determine them.
	Size(job *unstructured.Unstructured) (Size, bool)
	// Check returns the errors that are known without the API server, and warnings about a job without errors.
	Check(job *unstructured.Unstructured) (field.ErrorList, []string)
	// PodLabels select the pods of the job of a name.
	PodLabels(name string) map[string]string
	// PodRole returns the role and the index of a job's pod; false if it is neither launcher nor worker.
	PodRole(pod *corev1.Pod) (role mpi.Role, index int, ok bool)
	// RankLayout returns where ranks run according to the job's own fields; the zero value if these do not tell.
	RankLayout(job *unstructured.Unstructured) RankLayout
}

// Summary is what users wrote about a job's pods.
type Summary struct {
	Image, Runtime string
	Command        []string
	// Worker is what each worker requests.
	Worker corev1.ResourceRequirements
}

// Size is the pods of a job.
type Size struct {
	Launcher, Worker corev1.PodSpec
	Workers          int32
}

// Pods returns the number of pods. The nodes of a TrainJob include its launcher, if it has one.
func (s Size) Pods() int32 {
	if len(s.Launcher.Containers) == 0 {
		return s.Workers
	}
	return s.Workers + 1
}

// RankLayout is the number of ranks of a job and where they run.
type RankLayout struct {
	SlotsPerWorker, Ranks int
	LauncherRunsRanks     bool
}

// SetQuantity sets a resource in a container's resources: in requests and limits where it is set already, else in limits.
// It returns the changed resources; nil resources are created.
func SetQuantity(resources map[string]any, name, quantity string) map[string]any {
	if resources == nil {
		resources = map[string]any{}
	}
	found := false
	for _, section := range []string{"requests", "limits"} {
		list, is := resources[section].(map[string]any)
		if _, set := list[name]; is && set {
			list[name] = quantity
			found = true
		}
	}
	if !found {
		limits, is := resources["limits"].(map[string]any)
		if !is {
			limits = map[string]any{}
			resources["limits"] = limits
		}
		limits[name] = quantity
	}
	return resources
}

// SetVariable returns a container's environment with a variable set, or removed if the value is empty. A variable that is there keeps its
// place: later ones can refer to it.
func SetVariable(env []any, name, value string) []any {
	changed, isSet := make([]any, 0, len(env)+1), value == ""
	for _, entry := range env {
		if variable, is := entry.(map[string]any); !is || variable["name"] != name {
			changed = append(changed, entry)
		} else if !isSet {
			changed, isSet = append(changed, map[string]any{"name": name, "value": value}), true
		}
	}
	if !isSet {
		changed = append(changed, map[string]any{"name": name, "value": value})
	}
	return changed
}
