// Package operator runs MPI jobs: it wires the pure core to a cluster, and decides nothing about jobs itself.
package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// askAgain is how long a job rests whose objects the API server refuses: a quota that frees up or a stranger's
// object that goes tells nobody.
const askAgain = 15 * time.Second

// reconciler brings jobs of one kind to where they should be, one pass at a time.
type reconciler struct {
	kind     kinds.Kind
	client   client.Client
	cluster  *cluster.Cluster
	events   record.EventRecorder
	clock    clock.PassiveClock
	settings plan.Settings
	reporter *reporter
	queues   *queues
	quotas   *quotas
	gangs    *gangs
	line     *embedded
}

// Reconcile makes one pass over one job: load, observe, judge, plan, apply, tell, report.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := r.kind.Load(ctx, r.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if object == nil {
		r.gangs.forget(request.NamespacedName)
		r.quotas.forgetJob(r.kind.Name(), request.NamespacedName)
		return again(nil, r.reporter.close(ctx, r.kind.Name(), request.NamespacedName, ""))
	}
	job, errs := r.kind.Convert(object)
	if job.ManagedBy != "" || job.Lifecycle.Deleting {
		return reconcile.Result{}, nil
	}
	if errs = append(errs, mpi.Validate(job)...); len(errs) > 0 && job.Past.Finish == nil {
		out := mpi.Invalid(errs)
		if told := r.tell(ctx, object, out); told != nil {
			return again(nil, told)
		}
		_, err := r.reporter.tell(ctx, job, mpi.Observed{Now: r.clock.Now()}, nil, out)
		return again(nil, err)
	}
	seen, err := r.cluster.Observe(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	if seen.Queue, err = r.queues.of(ctx, job, seen.Now); err != nil {
		return reconcile.Result{}, err
	}
	seen.Shortages = r.quotas.of(ctx, job, seen)
	if err := r.gangs.observe(ctx, job, &seen); err != nil {
		return reconcile.Result{}, err
	}
	turn, err := r.turn(ctx, object, job, &seen)
	if err != nil {
		return again(nil, err)
	}
	out := mpi.Judge(job, seen)
	look := r.quotas.settle(job, seen, out)
	refusals, err := r.cluster.Apply(ctx, job, plan.For(job, seen, out, r.settings))
	told := r.tell(ctx, object, out.Refused(refusals))
	if err != nil || told != nil {
		return again(err, told)
	}
	next, reported := r.reporter.tell(ctx, job, seen, refusals, out.Refused(refusals))
	result := reconcile.Result{RequeueAfter: askAgain}
	if len(refusals) == 0 {
		result, err = r.expire(ctx, object, job, out)
	}
	if err != nil || reported != nil {
		return again(err, reported)
	}
	result.RequeueAfter = sooner(sooner(sooner(result.RequeueAfter, next), turn), look)
	if seen.Gang != nil {
		result.RequeueAfter = sooner(result.RequeueAfter, seen.Gang.Again)
	}
	return result, nil
}

// again comes back after errors of applying and telling. That somebody else wrote the job meanwhile is none worth
// a line in the log.
func again(applied, told error) (reconcile.Result, error) {
	if applied == nil && apierrors.IsConflict(told) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	return reconcile.Result{}, errors.Join(applied, told)
}

// tell writes an outcome to the job's status, if it says anything new, and then the events that go with it.
func (r *reconciler) tell(ctx context.Context, object client.Object, out mpi.Outcome) error {
	changed, events := r.kind.Status(object, out, r.clock.Now())
	if changed == nil {
		return nil
	}
	switch err := r.client.Status().Update(ctx, changed); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status of %s %s: %w", r.kind.Name(), client.ObjectKeyFromObject(object), err)
	}
	for _, event := range events {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.events.Event(changed, kind, event.Reason, eventMessage(event.Message))
	}
	log.FromContext(ctx).Info("job changed", "phase", out.Phase, "reason", out.Reason, "message", out.Message)
	return nil
}

// expire removes a finished job when its time to live is over, and comes back for it until then.
func (r *reconciler) expire(ctx context.Context, object client.Object, job mpi.Job, out mpi.Outcome) (reconcile.Result, error) {
	if out.Finish == nil || job.Lifecycle.TTL == nil {
		return reconcile.Result{}, nil
	}
	if left := out.Finish.At.Add(*job.Lifecycle.TTL).Sub(r.clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	err := r.client.Delete(ctx, object, client.Preconditions{UID: new(job.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("delete expired %s %s: %w", job.Kind, job.Key(), err)
	}
	return reconcile.Result{}, nil
}

// eventMessage cuts a message to what an event holds (k8s.io/kubernetes/pkg/apis/core/validation/events.go).
func eventMessage(message string) string {
	const most = 1024
	if len(message) > most {
		return strings.ToValidUTF8(message[:most-len("...")], "") + "..."
	}
	return message
}
