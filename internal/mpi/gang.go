package mpi

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AnnotationRequeues stands on a job and says how often it is put back after its pods have not all found a place in time;
// then it fails. Unset: RequeueLimit.
const AnnotationRequeues = Group + "/gang-requeues"

// RequeueLimit is how often a job is put back where its user says nothing.
const RequeueLimit int32 = 5

// gangTimeout is how long some of a gang's pods may hold their places while others have none, as far as the user says
// nothing.
const gangTimeout = 10 * time.Minute

// Gang is how a job's pods are to be placed together: all of them or none.
type Gang struct {
	// Wanted is set where the user asks for it: by a schedulingPolicy, though an empty one.
	Wanted bool
	// MinAvailable is how many pods have to find a place at once; nil: all (see GangSize).
	MinAvailable *int32
	// Queue is the scheduler's queue to wait in, PriorityClass the class of the gang as a whole, both empty where the user
	// names none. MinResources are what must be free before a scheduler that reads it tries; nil: it is to count by itself.
	Queue, PriorityClass string
	MinResources         corev1.ResourceList
	// Timeout is how long some of the pods may have a place while others have none. Where TimeoutSet tells that the user
	// named it, it bounds too how long none may have one.
	Timeout    time.Duration
	TimeoutSet bool
	// Requeues is how often the job is put back after that, before it fails.
	Requeues int32
}

// Requeues reads AnnotationRequeues, or is the default where a job has none or a wrong one.
func Requeues(annotations map[string]string) (int32, field.ErrorList) {
	text, set := annotations[AnnotationRequeues]
	if !set {
		return RequeueLimit, nil
	}
	requeues, err := strconv.ParseInt(text, 10, 32)
	if err != nil || requeues < 0 {
		return RequeueLimit, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationRequeues), text,
			"must be how often the job is put back after its pods have not all found a place in time, 0 or more")}
	}
	return int32(requeues), nil
}

// validateGang checks how the pods are to be placed together.
func validateGang(j Job) field.ErrorList {
	var errs field.ErrorList
	if j.Gang.Timeout < 0 {
		errs = append(errs, field.Invalid(j.Fields.Gang.Child("scheduleTimeoutSeconds"), int64(j.Gang.Timeout/time.Second), "must be 0 or more"))
	}
	least := j.Gang.MinAvailable
	if least == nil {
		return errs
	}
	at := j.Fields.Gang.Child("minAvailable")
	switch {
	case *least < 0:
		errs = append(errs, field.Invalid(at, *least, "must be 0 or more"))
	case *least > j.Pods():
		errs = append(errs, field.Invalid(at, *least, fmt.Sprintf("must be at most %d: the job has no more pods, so that it would wait for ever", j.Pods())))
	case j.Launcher.AfterWorkers && *least > j.Workers.Count:
		errs = append(errs, field.Invalid(at, *least, fmt.Sprintf("must be at most %d: the launcher is made only when all workers are ready, "+
			"so that they would wait for it and it for them; or have the launcher made at once (launcherCreationPolicy: AtStartup)", j.Workers.Count)))
	}
	return errs
}

// Pods is how many pods a job has: its workers, and its launcher if it has one.
func (j Job) Pods() int32 {
	if j.Launcher.None {
		return j.Workers.Count
	}
	return j.Workers.Count + 1
}

// GangSize is how many of the job's pods are placed together. A launcher that is made only when workers are ready cannot
// be one of them.
func (j Job) GangSize() int32 {
	all := j.Pods()
	if j.Launcher.AfterWorkers {
		all = j.Workers.Count
	}
	if least := j.Gang.MinAvailable; least != nil {
		return max(min(*least, all), 1)
	}
	return all
}

// PriorityClass is the priority class of the pods of a role: their template's, else the gang's; empty: the cluster's
// default.
func (j Job) PriorityClass(role Role) string {
	template := j.Workers.Template
	if role == RoleLauncher {
		template = j.Launcher.Template
	}
	return cmp.Or(template.Spec.PriorityClassName, j.Gang.PriorityClass)
}

// GangState is what a back end that places whole jobs says of one.
type GangState struct {
	// Backend is what places the job, such as podgroup or embedded. Scheduler is the name of the scheduler that its pods
	// go to; empty: their own.
	Backend, Scheduler string
	// Hold is set while no pods may be made: the job waits for its turn, or for its next try. Evict is set while those that
	// are there have to go.
	Hold, Evict bool
	// GaveUp is set where the job was put back too often, and none of its pods is left.
	GaveUp bool
	// Nodes are the nodes that pods are pinned to, by the name of the pod; that of the launcher's Job stands for its pod.
	Nodes map[string]string

	// Placed is how many pods have a node, of Wanted.
	Placed, Wanted int32
	// PodsFit is how many of the pods would find a place now, and NodesFit on how many of the NodesTotal nodes; nil where that
	// is not known.
	PodsFit, NodesFit, NodesTotal *int32
	// Position is the job's place among those that wait, 1 for the next one; 0 where that is not known. Scope says among
	// which jobs it counts.
	Position int32
	Scope    string

	// Since is when the job began to wait for its pods' places.
	Since time.Time
	// Attempts is how often it was put back, EvictedAt when that was last, and NextTry when it is tried again; zero where it
	// never was.
	Attempts           int32
	EvictedAt, NextTry time.Time
	// Again is after what time the state changes by itself, 0: not before something happens.
	Again time.Duration

	// Reason is one word for why the job has no places, and Message a sentence; empty where the back end says none.
	Reason, Message string
	// Never is set where waiting does not help: no node or quota of this cluster can ever take the job.
	Never bool
}

// Waits tells whether not all of the pods have a place.
func (g *GangState) Waits() bool {
	return g != nil && (g.Hold || g.Evict || g.Placed < g.Wanted)
}

// Fits says how much room there is, such as "needs 9 pods placed together, 5 fit on 2 of 2 nodes".
func (g GangState) Fits() string {
	text := fmt.Sprintf("needs %s placed together", count(g.Wanted, "pod"))
	if g.Placed > 0 {
		text += fmt.Sprintf(", %d have a node", g.Placed)
	}
	if g.PodsFit == nil || g.NodesFit == nil || g.NodesTotal == nil {
		return text
	}
	more := ""
	if g.Placed > 0 {
		more = " more"
	}
	if *g.PodsFit == 0 {
		return text + fmt.Sprintf(", none%s fits on any of %s", more, count(*g.NodesTotal, "node"))
	}
	return text + fmt.Sprintf(", %d%s fit on %d of %s", *g.PodsFit, more, *g.NodesFit, count(*g.NodesTotal, "node"))
}

// text says what the job waits for. It names times, not ages, so that it stays while nothing happens.
func (g GangState) text() string {
	text := "It " + g.Fits()
	if g.Position > 0 {
		text += fmt.Sprintf("; number %d", g.Position)
		if g.Scope != "" {
			text += " " + g.Scope
		}
	}
	text += "."
	if g.Message != "" {
		text += " " + sentence(strings.ToUpper(g.Message[:1])+g.Message[1:])
	}
	if g.Attempts > 0 {
		text += fmt.Sprintf(" It was put back %s, last at %s", times(g.Attempts), g.EvictedAt.UTC().Format(time.TimeOnly+" MST"))
		if g.Hold {
			text += ", and is tried again at " + g.NextTry.UTC().Format(time.TimeOnly+" MST")
		}
		text += "."
	}
	return text
}

// IsOfGang tells of a scheduler's message whether it says no more than that others of the same gang find no place
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/gangscheduling).
func IsOfGang(message string) bool { return strings.Contains(message, "minCount (") }

// gaveUp says why the job has failed.
func (g GangState) gaveUp() string {
	text := fmt.Sprintf("Not all of %s had found a place in time at %s", count(g.Wanted, "pod"), g.EvictedAt.UTC().Format(time.TimeOnly+" MST"))
	if before := g.Attempts - 1; before > 0 {
		text += fmt.Sprintf(", after the job had been put back %s", times(before))
	}
	text += "."
	if g.Message != "" {
		text += " " + sentence(g.Message)
	}
	return text
}

func times(n int32) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
