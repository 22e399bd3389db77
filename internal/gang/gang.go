package gang

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/mpi"
)

// The names of the back ends, as reports and the operator's flag --gang-scheduling spell them. Any other word of the flag
// is the name of a scheduler with coscheduling.
const (
	PodGroup     = "podgroup"
	Coscheduling = "coscheduling"
	Volcano      = "volcano"
	Embedded     = "embedded"

	// Auto leaves the choice to Choose, None places no job as a whole.
	Auto = "auto"
	None = "none"
)

// Backend is a scheduler that knows by an object, the job's PodGroup, which pods to place together.
type Backend interface {
	// Name is one of the names above.
	Name() string
	// Kind is what its PodGroups are.
	Kind() schema.GroupVersionKind
	// bind says what the pods of a job carry, so many of which are to be placed at once, and what its PodGroup says.
	bind(job mpi.Job, size int32) Binding
	// read adds to a state what the PodGroup says.
	read(podGroup *unstructured.Unstructured, state *mpi.GangState)
}

// Backends are all of them. Coscheduling is here without the name of a scheduler.
var Backends = []Backend{native{}, coscheduling{}, volcano{}}

// Binding is how the pods of a job are bound to each other.
type Binding struct {
	// Labels, Annotations, SchedulerName and SchedulingGroup are for each of the job's pods; empty and nil: none.
	Labels, Annotations map[string]string
	SchedulerName       string
	SchedulingGroup     *corev1.PodSchedulingGroup
	// Spec is that of the PodGroup of a Kind; nil where there is none.
	Kind schema.GroupVersionKind
	Spec map[string]any
}

// Bind says how the pods of a job are bound by the back end that its state names; not at all where that has no objects.
func Bind(job mpi.Job, seen mpi.Observed) Binding {
	if seen.Gang == nil {
		return Binding{}
	}
	for _, b := range Backends {
		if b.Name() != seen.Gang.Backend {
			continue
		}
		binding := b.bind(job, size(job, seen))
		binding.Kind = b.Kind()
		if seen.Gang.Scheduler != "" {
			binding.SchedulerName = seen.Gang.Scheduler
		}
		return binding
	}
	return Binding{}
}

// size is how many of a job's pods have to have a place at once. Workers that have ended are not counted by schedulers:
// a launcher's next try would wait for them for ever.
func size(job mpi.Job, seen mpi.Observed) int32 {
	ended := int32(0)
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) && mpi.HasEnded(worker.Pod) {
			ended++
		}
	}
	return max(min(job.GangSize(), job.Pods()-ended), 1)
}

// Choice is what places a job's pods together.
type Choice struct {
	// Backend is empty where nothing does.
	Backend, Scheduler string
	// Wrong is why it cannot, with what to do; the job is then not to be started. Empty: it can.
	Wrong string
}

// Choose says what places the pods of a job together, by the operator's setting and by what the cluster has.
func Choose(setting string, installed func(backend string) bool, job mpi.Job) Choice {
	if job.Pods() < 2 || setting == None {
		return Choice{}
	}
	switch setting {
	case Auto:
		return automatic(installed(PodGroup), job)
	case Embedded:
		return Choice{Backend: Embedded}
	case PodGroup:
		if odd := unlike(job); odd != "" {
			return Choice{Backend: PodGroup, Wrong: odd}
		}
	}
	choice := Choice{Backend: setting}
	switch setting {
	case PodGroup:
	case Volcano:
		choice.Scheduler = Volcano
	default:
		choice.Backend, choice.Scheduler = Coscheduling, setting
	}
	if !installed(choice.Backend) {
		choice.Wrong = fmt.Sprintf("The operator is told to have jobs placed by %s (--gang-scheduling=%s), whose PodGroups this cluster does not have. "+
			"Ask whoever runs the cluster to install it, or to choose another back end.", choice.Backend, setting)
	}
	return choice
}

// automatic prefers the cluster's own scheduler, and where that cannot place gangs does so only for jobs that ask: pods
// that are not made have no cluster autoscaler add nodes.
func automatic(native bool, job mpi.Job) Choice {
	asks := job.Gang.Wanted
	switch odd := unlike(job); {
	case !native && asks:
		return Choice{Backend: Embedded}
	case !native, job.Launcher.AfterWorkers && !asks:
		return Choice{}
	case odd == "":
		return Choice{Backend: PodGroup}
	case asks:
		return Choice{Backend: PodGroup, Wrong: fmt.Sprintf("%s Or leave out %s.", odd, job.Fields.Gang)}
	}
	return Choice{}
}

// unlike says in what the launcher's pod and the workers' differ that Kubernetes' scheduler wants to be the same in all
// pods of a gang (k8s.io/kubernetes/pkg/scheduler/schedule_one_podgroup.go); empty: in nothing.
func unlike(job mpi.Job) string {
	if job.Workers.Count == 0 || job.Launcher.AfterWorkers && job.GangSize() <= job.Workers.Count && !job.Gang.Wanted {
		return ""
	}
	launcher, worker := job.PriorityClass(mpi.RoleLauncher), job.PriorityClass(mpi.RoleWorker)
	field, is, other := "priorityClassName", launcher, worker
	if launcher == worker {
		field, is, other = "schedulerName", schedulerOf(job.Launcher.Template.Spec), schedulerOf(job.Workers.Template.Spec)
	}
	if is == other {
		return ""
	}
	return fmt.Sprintf("The pods cannot be placed together: the launcher's %s is %q and the workers' is %q, and the scheduler takes only pods of which it is the same. "+
		"Give both the same.", field, is, other)
}

func schedulerOf(spec corev1.PodSpec) string {
	if spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

// State is how far the pods of a job have come whose back end was chosen, and what its PodGroup says of it.
func State(choice Choice, job mpi.Job, seen mpi.Observed) mpi.GangState {
	state := mpi.GangState{Backend: choice.Backend, Scheduler: choice.Scheduler, Wanted: job.GangSize(), Placed: placed(job, seen)}
	if choice.Wrong != "" {
		state.Hold, state.Never, state.Reason, state.Message = true, true, ReasonImpossible, choice.Wrong
		return state
	}
	for _, b := range Backends {
		for _, podGroup := range seen.PodGroups {
			if b.Name() == choice.Backend && podGroup.GroupVersionKind().GroupKind() == b.Kind().GroupKind() {
				b.read(podGroup, &state)
			}
		}
	}
	if mpi.IsOfGang(state.Message) {
		state.Message = lacks(job, seen)
	}
	return state
}

// lacks is what the scheduler says of the first pod that it finds no node for; empty where it says that of none.
func lacks(job mpi.Job, seen mpi.Observed) string {
	for _, pod := range pods(job, seen) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && !mpi.IsOfGang(c.Message) {
				return c.Message
			}
		}
	}
	return ""
}

// ReasonImpossible is that of a job whose back end cannot place it as a whole.
const ReasonImpossible = "GangImpossible"

// placed is how many pods have a node: of the launcher the latest try.
func placed(job mpi.Job, seen mpi.Observed) (n int32) {
	for _, pod := range pods(job, seen) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// pods are the launcher's latest try and the workers that the job wants, but for those that are being deleted.
func pods(job mpi.Job, seen mpi.Observed) []*corev1.Pod {
	all := slices.Clone(seen.LauncherPods[max(0, len(seen.LauncherPods)-1):])
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) {
			all = append(all, worker.Pod)
		}
	}
	return slices.DeleteFunc(all, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// conditions are those of a PodGroup's status.
func conditions(podGroup *unstructured.Unstructured) []metav1.Condition {
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions,omitempty"`
		} `json:"status"`
	}
	// One that has none, or others than we know, says nothing.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(podGroup.Object, &status); err != nil {
		return nil
	}
	return status.Status.Conditions
}

// least are the resources that so many pods of a job ask for, the launcher first; empty: none.
func least(job mpi.Job, size int32) map[string]any {
	sum := job.Gang.MinResources
	if sum == nil {
		sum = corev1.ResourceList{}
		launcher := int32(0)
		if !job.Launcher.None && !job.Launcher.AfterWorkers {
			launcher = 1
			add(sum, mpi.Requests(job.Launcher.Template.Spec), 1)
		}
		add(sum, mpi.Requests(job.Workers.Template.Spec), int64(min(size-launcher, job.Workers.Count)))
	}
	text := make(map[string]any, len(sum))
	for name, quantity := range sum {
		text[string(name)] = quantity.String()
	}
	return text
}

func add(sum, each corev1.ResourceList, times int64) {
	for name, quantity := range each {
		quantity.Mul(times)
		quantity.Add(sum[name])
		sum[name] = quantity
	}
}
