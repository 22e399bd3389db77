// Package gang places all pods of a job together or none: the back ends, the choice among them, and the embedded
// scheduler's decisions.
package gang

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// The names of the back ends, as reports and the operator's flag --gang-scheduling spell them. Any other word of the flag
// is the name of a scheduler with coscheduling.
const (
	PodGroup     = "podgroup"
	Coscheduling = "coscheduling"
	Volcano      = "volcano"
	Embedded     = "embedded"

	// Auto leaves the choice to Choose. Requested is Auto, but the embedded scheduler only places jobs that ask for it.
	// None places no job as a whole.
	Auto      = "auto"
	Requested = "requested"
	None      = "none"
)

// Backend is a scheduler that reads from an object, the job's PodGroup, which pods to place together.
type Backend interface {
	// Name is one of the names above.
	Name() string
	// Kind is what its PodGroups are.
	Kind() schema.GroupVersionKind
	// bind says what the pods of a job carry, so many of which are to be placed at once, and what its PodGroup says.
	bind(job mpi.Job, size int32) Binding
	// read adds to a state what the PodGroup says.
	read(podGroup *unstructured.Unstructured, state *jobstate.GangState)
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
func Bind(job mpi.Job, seen jobstate.Observed) Binding {
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

// size is the number of a job's pods that must be placed together. Schedulers do not count workers that have ended: a
// launcher's next try would wait for them indefinitely.
func size(job mpi.Job, seen jobstate.Observed) int32 {
	ended := int32(0)
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) && podstatus.HasEnded(worker.Pod) {
			ended++
		}
	}
	return max(min(job.GangSize(), job.Pods()-ended), 1)
}

// Choice is what places a job's pods together.
type Choice struct {
	// Backend is empty where nothing does.
	Backend, Scheduler string
	// ByDefault is set if the embedded scheduler places a job that did not ask for it (see Decision), or that Kueue assigns to nodes: it
	// waits until all of its pods have room, but does not select the nodes.
	ByDefault bool
	// Wrong is why it cannot, with what to do; the job is then not to be started. Empty: it can.
	Wrong string
}

// Choose says what places the pods of a job together, by the operator's setting and by what the cluster has.
func Choose(setting string, installed func(backend string) bool, job mpi.Job) Choice {
	if job.Pods() < 2 || setting == None {
		return Choice{}
	}
	if job.External {
		return ofExternal(setting, job)
	}
	switch setting {
	case Auto, Requested:
		return automatic(installed(PodGroup), setting == Auto, job)
	case Embedded:
		return Choice{Backend: Embedded, ByDefault: job.PlacedByKueue()}
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
		choice.Wrong = fmt.Sprintf("The operator uses %s (--gang-scheduling=%s), whose PodGroup API is not installed on this cluster. "+
			"Ask the cluster administrator to install it, or to use another back end.", choice.Backend, setting)
	}
	return choice
}

// ofExternal chooses for a job whose pods another controller creates. The embedded scheduler places it if the operator can hold
// back its pods, also on a cluster with a scheduler that supports PodGroups: the pods of such a job name no PodGroup.
func ofExternal(setting string, job mpi.Job) Choice {
	isChosen := setting == Auto || setting == Embedded || setting == PodGroup || setting == Requested && job.Gang.Wanted
	if job.Gated && isChosen && isDefaultScheduler(job) {
		return Choice{Backend: Embedded, ByDefault: true}
	}
	return Choice{}
}

// automatic prefers the cluster's own scheduler. What that cannot place, the embedded one does for jobs that ask, and with all also
// for jobs that nothing else places together: another scheduler may have rules of its own. Kueue admits a job in one of its queues by
// quotas, not by nodes: such a job is placed after that.
func automatic(native, all bool, job mpi.Job) Choice {
	asks := job.Gang.Wanted
	switch odd := unlike(job); {
	case native && odd == "" && (asks || !job.Launcher.AfterWorkers):
		return Choice{Backend: PodGroup}
	case native && asks:
		return Choice{Backend: PodGroup, Wrong: fmt.Sprintf("%s Or remove %s.", odd, job.Fields.Gang)}
	case asks:
		return Choice{Backend: Embedded, ByDefault: job.PlacedByKueue()}
	case all && isDefaultScheduler(job):
		return Choice{Backend: Embedded, ByDefault: true}
	}
	return Choice{}
}

// unlike names the field in which the pods of launcher and workers differ although kube-scheduler requires it to be equal
// in all pods of a gang (k8s.io/kubernetes/pkg/scheduler/schedule_one_podgroup.go); empty if there is none.
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
	return fmt.Sprintf("The %s of launcher (%q) and workers (%q) differ, but the scheduler requires the same for all pods of a gang. "+
		"Use the same for both.", field, is, other)
}

// isDefaultScheduler reports whether all pods of a job go to the cluster's default scheduler.
func isDefaultScheduler(job mpi.Job) bool {
	return schedulerOf(job.Launcher.Template.Spec) == corev1.DefaultSchedulerName && schedulerOf(job.Workers.Template.Spec) == corev1.DefaultSchedulerName
}

func schedulerOf(spec corev1.PodSpec) string {
	if spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

// State counts the placed pods of a job whose back end was chosen, and adds the state of its PodGroup.
func State(choice Choice, job mpi.Job, seen jobstate.Observed) jobstate.GangState {
	state := jobstate.GangState{Backend: choice.Backend, Scheduler: choice.Scheduler, Wanted: job.GangSize(), Placed: CountPlaced(job, seen)}
	if choice.Wrong != "" {
		state.Hold, state.Never, state.Reason, state.Message = true, true, codes.GangImpossible, choice.Wrong
		return state
	}
	for _, b := range Backends {
		for _, podGroup := range seen.PodGroups {
			if b.Name() == choice.Backend && podGroup.GroupVersionKind().GroupKind() == b.Kind().GroupKind() {
				b.read(podGroup, &state)
			}
		}
	}
	if jobstate.IsOfGang(state.Message) {
		state.Message = lacks(job, seen)
	}
	return state
}

// lacks is the scheduler's message for the first pod that it finds no node for; empty if there is no such pod.
func lacks(job mpi.Job, seen jobstate.Observed) string {
	for _, pod := range PodsOf(job, seen) {
		if c := podstatus.NotScheduled(pod); c != nil && !jobstate.IsOfGang(c.Message) {
			return c.Message
		}
	}
	return ""
}

// CountPlaced is how many pods have a node: of the launcher the latest try.
func CountPlaced(job mpi.Job, seen jobstate.Observed) (n int32) {
	for _, pod := range PodsOf(job, seen) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// PodsOf returns the launcher's latest try and the job's workers, without those that are being deleted.
func PodsOf(job mpi.Job, seen jobstate.Observed) []*corev1.Pod {
	return slices.DeleteFunc(seen.CurrentPods(job.Workers.Count), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
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
			podspec.Add(sum, podspec.Requests(job.Launcher.Template.Spec), 1)
		}
		podspec.Add(sum, podspec.Requests(job.Workers.Template.Spec), int64(min(size-launcher, job.Workers.Count)))
	}
	text := make(map[string]any, len(sum))
	for name, quantity := range sum {
		text[string(name)] = quantity.String()
	}
	return text
}
