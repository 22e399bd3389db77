package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/metrics"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

const (
	// slowStart is how long pods may take to start before it is asked why.
	slowStart = 30 * time.Second
	// unsettled is how long it takes until more evidence of a failure is looked for: logs and events come late.
	unsettled = 30 * time.Second
	// listening is how often a job that runs and is in trouble is looked at again.
	listening = time.Minute
	// waiting is how often the record of a job that waits for a place is brought up to date.
	waiting = 30 * time.Second
	// refreshes is how many records a second are written at most, of all jobs, that say nothing new but the time: with more
	// than 600 jobs that wait they are written less often than every half a minute.
	refreshes = 20
	// holds is how often it is looked whether the record of a job that runs should tell what it has held so far.
	holds = 15 * time.Minute
	// keepFailed is how long the report of a failed job is kept at least.
	keepFailed = 24 * time.Hour
)

// reporter keeps the record of each job. Nil keeps none.
type reporter struct {
	client   client.Client
	gatherer *cluster.Gatherer
	clock    clock.PassiveClock
	metrics  *metrics.Metrics
	listener *listener
	words    *lastWords
	events   record.EventRecorder
	waits    *waits
	// refreshes bounds the writes that tell nothing but that a job still waits.
	refreshes flowcontrol.PassiveRateLimiter
	// retention is how long a report is kept after its job has ended.
	retention time.Duration
}

// newReporter returns nil where the cluster has no JobReports.
func newReporter(ctx context.Context, m manager.Manager, masker logs.Masker, options Options) (*reporter, error) {
	kind := v1alpha1.GroupVersion.WithKind("JobReport")
	switch _, err := m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		log.Log.Info("the cluster has no JobReports: no records of jobs are kept; install config/crd and start the operator again")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for JobReports: %w", err)
	}
	records, err := m.GetCache().GetInformer(ctx, &v1alpha1.JobReport{})
	if err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	waited := &waits{}
	if _, err := records.AddEventHandler(waited.listener()); err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	core, err := v1.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up reading logs: %w", err)
	}
	gatherer := cluster.NewGatherer(m.GetAPIReader(), core, masker, clock.RealClock{})
	jobs, err := newMetrics(m, options)
	if err != nil {
		return nil, err
	}
	r := &reporter{client: m.GetClient(), gatherer: gatherer, clock: clock.RealClock{}, metrics: jobs, retention: options.ReportRetention, waits: waited}
	r.refreshes = flowcontrol.NewTokenBucketRateLimiter(refreshes, refreshes)
	r.listener, r.words = newListener(gatherer.Listen, options.TrainingProgress), newLastWords()
	r.events = m.GetEventRecorderFor(mpi.StepSource) //nolint:staticcheck // as the reconciler's
	if err := m.Add(manager.RunnableFunc(r.sweepAlways)); err != nil {
		return nil, fmt.Errorf("add retention of JobReports: %w", err)
	}
	return r, nil
}

// tell brings a job's record up to date, and says after what time that is to be done again even if nothing happens;
// 0: never. A write that met another one's is an error of conflict.
func (r *reporter) tell(ctx context.Context, job mpi.Job, seen mpi.Observed, refusals []mpi.Refusal, out mpi.Outcome) (time.Duration, error) {
	if r == nil {
		return 0, nil
	}
	var previous *v1alpha1.JobReport
	var found v1alpha1.JobReport
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.ReportName()}, &found); {
	case err == nil:
		previous = &found
	case !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("read report of %s %s: %w", job.Kind, job.Key(), err)
	case out.Finish != nil && r.expired(out.Finish.At, !out.Finish.Succeeded):
		return 0, nil
	default:
		if err := r.close(ctx, job.Kind, job.Key(), job.UID); err != nil {
			return 0, err
		}
	}
	evidence, listenAgain := r.evidence(ctx, job, seen, refusals, out, previous)
	evidence.Wait = r.waits.of(job, seen, out)
	findings := diagnose.Job(job, seen, evidence, out)
	if previous != nil && previous.Status.CompletionTime != nil && string(previous.Status.Phase) == string(out.Phase) {
		// What the job's status kept of its end is in that status's own words.
		out.Reason, out.Message = previous.Status.Reason, previous.Status.Message
	}
	next := report.Make(job, seen, evidence, out, findings, previous)
	again := sooner(nextLook(job, seen, out, &next), listenAgain)
	if worth := report.Changed(previous, next) || report.Outdated(previous, next) && r.refreshes.TryAccept(); !worth {
		return again, nil
	}
	var err error
	if previous == nil {
		err = r.client.Create(ctx, &next)
	} else {
		err = r.client.Update(ctx, &next)
	}
	switch {
	case err == nil:
		r.metrics.Observe(previous, next)
		r.announce(job, previous, next)
		return again, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return again, nil
	case apierrors.IsInvalid(err):
		r.metrics.ReportNotWritten()
		// Another try would be refused as well.
		log.FromContext(ctx).Error(err, "the job's report is not taken")
		return again, nil
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		err = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("jobreports").GroupResource(), next.Name, err)
	case !apierrors.IsConflict(err):
		r.metrics.ReportNotWritten()
	}
	return 0, fmt.Errorf("write report of %s %s: %w", job.Kind, job.Key(), err)
}

// close ends the records of jobs of a name that are gone: all of them, but that of the job with a UID.
func (r *reporter) close(ctx context.Context, kind string, key types.NamespacedName, but types.UID) error {
	if r == nil {
		return nil
	}
	labels := mpi.Job{Kind: kind, Name: key.Name}.ReportLabels()
	var list v1alpha1.JobReportList
	if err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("list reports of %s %s: %w", kind, key, err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if item.Status.CompletionTime != nil || item.Spec.JobRef.UID == but || item.Spec.JobRef.Name != key.Name {
			continue
		}
		closed := report.Closed(*item, r.clock.Now())
		switch err := r.client.Update(ctx, &closed); {
		case err == nil:
			r.metrics.Observe(item, closed)
			ref := item.Spec.JobRef
			r.announce(mpi.Job{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: key.Namespace, Name: ref.Name, UID: ref.UID}, item, closed)
		case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		default:
			if !apierrors.IsConflict(err) {
				r.metrics.ReportNotWritten()
			}
			return fmt.Errorf("end report of %s %s: %w", kind, key, err)
		}
	}
	return nil
}

// evidence is what is known of a job beyond what a pass reads anyway, and for a job that runs after what time it is to be
// looked at again.
func (r *reporter) evidence(ctx context.Context, job mpi.Job, seen mpi.Observed, refusals []mpi.Refusal, out mpi.Outcome, previous *v1alpha1.JobReport) (mpi.Evidence, time.Duration) {
	again := time.Duration(0)
	if out.Phase != mpi.PhaseRunning {
		r.listener.forget(job.UID)
	} else {
		again = min(listening, job.Lifecycle.SilentAfter/2)
	}
	switch {
	case wantsEvidence(job, seen, refusals, out, previous):
		evidence := r.gatherer.Gather(ctx, job, seen, refusals)
		r.words.complete(job.UID, seen, &evidence)
		return evidence, again
	case out.Phase == mpi.PhaseRunning:
		return r.listener.hear(ctx, job, seen)
	case out.Phase == mpi.PhaseSucceeded && !report.Settled(previous, seen.Now):
		return r.listener.last(ctx, job, seen), 0
	}
	return mpi.Evidence{Refusals: refusals}, 0
}

// wantsEvidence tells whether more is to be asked of the API server than a pass reads anyway: only where something
// seems to be wrong.
func wantsEvidence(job mpi.Job, seen mpi.Observed, refusals []mpi.Refusal, out mpi.Outcome, previous *v1alpha1.JobReport) bool {
	switch {
	case out.Finish != nil:
		return !out.Finish.Succeeded && !report.Settled(previous, seen.Now)
	case out.Suspended() || out.Reason == mpi.ReasonInvalid:
		return false
	case out.Trouble || len(refusals) > 0:
		return true
	}
	for _, try := range seen.LauncherPods {
		if try.DeletionTimestamp != nil {
			return true
		}
	}
	for _, started := range lacking(job, seen) {
		if seen.Now.Sub(started) >= slowStart {
			return true
		}
	}
	for _, pod := range podsOf(seen) {
		_, bad := cluster.EndedBadly(pod)
		if bad || (pod.Status.Phase == corev1.PodPending || cluster.Unready(pod)) && seen.Now.Sub(pod.CreationTimestamp.Time) >= slowStart {
			return true
		}
	}
	return false
}

// nextLook is how long a record may stay as it is if nothing happens; 0: for good.
func nextLook(job mpi.Job, seen mpi.Observed, out mpi.Outcome, next *v1alpha1.JobReport) time.Duration {
	if out.Finish != nil {
		if !out.Finish.Succeeded && !report.Settled(next, seen.Now) {
			return unsettled
		}
		return 0
	}
	if out.Phase == mpi.PhaseSuspended {
		return 0
	}
	var soonest time.Duration
	if out.Phase == mpi.PhaseRunning {
		soonest = holds
	}
	if next.Status.Scheduling != nil {
		soonest = waiting
	}
	since := lacking(job, seen)
	for _, pod := range podsOf(seen) {
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			since = append(since, pod.CreationTimestamp.Time)
		}
	}
	for _, since := range since {
		left := slowStart - seen.Now.Sub(since) + time.Second
		if left <= 0 || left > slowStart+time.Second {
			// It takes longer; or it is from the future, since somebody set a clock.
			left = slowStart
		}
		if soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return soonest
}

// lacking are the times at which Jobs were started that have not all of their pods: those may have been refused.
func lacking(job mpi.Job, seen mpi.Observed) (started []time.Time) {
	add := func(of *batchv1.Job, pods, wanted int) {
		if of != nil && pods < wanted && !ptr.Deref(of.Spec.Suspend, false) && !mpi.HasFinished(of) {
			started = append(started, cmp.Or(of.Status.StartTime, &of.CreationTimestamp).Time)
		}
	}
	add(seen.Launcher, len(seen.LauncherPods), 1)
	add(seen.WorkerJob, len(seen.Workers), int(job.Workers.Count))
	return started
}

func podsOf(seen mpi.Observed) []*corev1.Pod {
	pods := append([]*corev1.Pod(nil), seen.LauncherPods...)
	for _, worker := range seen.Workers {
		pods = append(pods, worker.Pod)
	}
	return pods
}

// sooner is the shorter one of two times to wait; 0 is no time.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// expired tells whether a job has ended so long ago that no report of it is kept.
func (r *reporter) expired(end time.Time, failed bool) bool {
	keep := r.retention
	if failed {
		keep = max(keep, keepFailed)
	}
	return r.retention > 0 && r.clock.Since(end) >= keep
}

// sweepAlways deletes old reports again and again, until the context ends.
func (r *reporter) sweepAlways(ctx context.Context) error {
	if r.retention <= 0 {
		return nil
	}
	ticker := time.NewTicker(min(max(r.retention/24, time.Second), time.Hour))
	defer ticker.Stop()
	for {
		if err := r.sweep(ctx); err != nil && ctx.Err() == nil {
			log.Log.Error(err, "old reports are not deleted; this is tried again later")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sweep deletes the reports whose time is over.
func (r *reporter) sweep(ctx context.Context) error {
	var list v1alpha1.JobReportList
	if err := r.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if item.Status.CompletionTime == nil || !r.expired(item.Status.CompletionTime.Time, item.Status.Phase == v1alpha1.Phase(mpi.PhaseFailed)) {
			continue
		}
		doomed := &v1alpha1.JobReport{}
		doomed.Namespace, doomed.Name = item.Namespace, item.Name
		err := r.client.Delete(ctx, doomed, client.Preconditions{UID: &item.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete report %s/%s: %w", item.Namespace, item.Name, err)
		}
	}
	return nil
}
