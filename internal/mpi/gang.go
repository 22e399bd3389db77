package mpi

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// RequeueLimit is the default of AnnotationRequeues.
const RequeueLimit int32 = 5

// defaultGangTimeout is the default of scheduleTimeoutSeconds: how long some pods of a gang may hold nodes while
// others have none.
const defaultGangTimeout = 10 * time.Minute

// Gang describes how a job's pods are scheduled together: all of them or none.
type Gang struct {
	// Wanted is whether the user requested it, by a schedulingPolicy, which may be empty.
	Wanted bool
	// MinAvailable is the number of pods that must be scheduled at once; nil means all (see GangSize).
	MinAvailable *int32
	// Queue is the queue of the scheduler, and PriorityClass the priority class of the gang; both are empty if the
	// user set none. MinResources is the capacity that must be free before a scheduler that supports it tries to
	// place the gang; if nil, the scheduler computes it.
	Queue, PriorityClass string
	MinResources         corev1.ResourceList
	// Timeout is how long some pods may hold nodes while others have none. If TimeoutSet, the user set it, and it
	// also limits how long no pod has a node.
	Timeout    time.Duration
	TimeoutSet bool
	// Requeues is how often the job is requeued after the timeout before it fails.
	Requeues int32
}

// addressMargin is how much longer than Timeout an agent waits: its launcher may start before the operator's time does, and the operator
// has to delete the pods before a launcher fails.
const addressMargin = 2 * time.Minute

// AddressWait is how long the agent of a launcher waits for a worker that has no address: until the operator has put back a job that is
// placed in part (see Timeout).
func (g Gang) AddressWait() time.Duration { return g.Timeout + addressMargin }

// ParseRequeues reads AnnotationRequeues. It returns RequeueLimit if the annotation is missing or invalid.
func ParseRequeues(annotations map[string]string) (int32, field.ErrorList) {
	requeues, errs := parseCount(annotations, AnnotationRequeues, math.MaxInt32,
		"must be a number, 0 or more: how often the job is requeued if not all of its pods can be placed in time")
	return ptr.Deref(requeues, RequeueLimit), errs
}

// ParseScheduleTimeout reads AnnotationScheduleTimeout. It returns 0 if the annotation is missing or invalid.
func ParseScheduleTimeout(annotations map[string]string) (time.Duration, field.ErrorList) {
	const detail = "must be a number of seconds, 1 or more: how long an attempt to place all pods together may take"
	seconds, errs := parseCount(annotations, AnnotationScheduleTimeout, math.MaxInt32, detail)
	if seconds != nil && *seconds == 0 {
		return 0, field.ErrorList{field.Invalid(annotationPath(AnnotationScheduleTimeout), annotations[AnnotationScheduleTimeout], detail)}
	}
	return time.Duration(ptr.Deref(seconds, 0)) * time.Second, errs
}

// ParsePriorityClass reads AnnotationPriorityClass. It returns "" if the annotation is missing or invalid.
func ParsePriorityClass(annotations map[string]string) (string, field.ErrorList) {
	name, set := annotations[AnnotationPriorityClass]
	if !set {
		return "", nil
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", field.ErrorList{field.Invalid(annotationPath(AnnotationPriorityClass), name, "must be the name of a PriorityClass: lower-case letters, digits, - and .")}
	}
	return name, nil
}

// validateGang validates how the pods are scheduled together.
func validateGang(j Job) field.ErrorList {
	var errs field.ErrorList
	if j.Gang.Timeout < 0 {
		errs = append(errs, field.Invalid(j.Fields.GangTimeout, int64(j.Gang.Timeout/time.Second), "must be 0 or more"))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Gang.MinResources)) {
		if quantity := j.Gang.MinResources[name]; quantity.Sign() < 0 || quantity.CmpInt64(maxQuantity) > 0 {
			errs = append(errs, field.Invalid(j.Fields.Gang.Child("minResources").Key(string(name)), quantity.String(), "must be from 0 to 1Pi (2^50); omit minResources to let the scheduler compute it"))
		}
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
		errs = append(errs, field.Invalid(at, *least, fmt.Sprintf("must be at most %d, the number of pods of the job; with more it would never start", j.Pods())))
	case j.Launcher.AfterWorkers && *least > j.Workers.Count:
		errs = append(errs, field.Invalid(at, *least, fmt.Sprintf("must be at most %d, the number of workers: the launcher is only created when all workers are ready; "+
			"or create the launcher with the workers (launcherCreationPolicy: AtStartup)", j.Workers.Count)))
	}
	return errs
}

// Pods returns the number of pods of a job: its workers, and its launcher if it has one.
func (j Job) Pods() int32 {
	if j.Launcher.None {
		return j.Workers.Count
	}
	return j.Workers.Count + 1
}

// GangSize returns the number of pods that are scheduled together. It excludes a launcher that is only created when
// all workers are ready.
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

// PriorityClass returns the priority class of the pods of a role: that of their template, else that of the gang, else
// "" for the default of the cluster.
func (j Job) PriorityClass(role Role) string {
	template := j.Workers.Template
	if role == RoleLauncher {
		template = j.Launcher.Template
	}
	return cmp.Or(template.Spec.PriorityClassName, j.Gang.PriorityClass)
}
