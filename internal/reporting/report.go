// Package reporting writes the JobReport of each job, and the events and metrics that follow from it.
package reporting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstore"
	"opendatahub.io/mpijob/internal/metrics"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/tracing"
)

const (
	// slowStart is how long pods may take to start before it is asked why.
	slowStart = 30 * time.Second
	// slowCreation is how long it may take until a job has its first pod, or the object that creates it, before it is asked why: the
	// API server may have refused it.
	slowCreation = 5 * time.Second
	// lateEvidenceRetry is how long it takes until more evidence of a failure is looked for: logs and events come late.
	lateEvidenceRetry = 30 * time.Second
	// runningRefresh is how often a job that runs and is in trouble is looked at again.
	runningRefresh = time.Minute
	// waitingRefresh is how often the record of a job that waits for a place is brought up to date.
	waitingRefresh = 30 * time.Second
	// refreshesPerSecond is how many records a second are written at most, of all jobs, that say nothing new but the time: with more
	// than 6,000 jobs that wait they are written less often than every five minutes.
	refreshesPerSecond = 20
	// usageRefresh is how often the report of a job that runs, or whose pods outlive it, is updated with the resources used so far.
	usageRefresh = 15 * time.Minute
)

// Reporter keeps the record of each job. Nil keeps none.
type Reporter struct {
	client    client.Client
	live      client.Reader
	gatherer  *cluster.Gatherer
	clock     clock.PassiveClock
	metrics   *metrics.Metrics
	listener  *logReader
	usage     *usageReader
	lastLogs  *lastLogs
	lastPods  *lastPods
	masker    logs.Masker
	limiter   *reportLimiter
	ledger    *ledger
	Events    record.EventRecorder
	waitTimes *waitTimes
	runs      runs
	pulls     failedPulls
	tracing   *tracing.Tracing
	// refreshLimit bounds the writes whose only change is that a job still waits.
	refreshLimit flowcontrol.PassiveRateLimiter
	// retention is how long a report is kept after its job has ended.
	retention time.Duration
	jobLogs   *jobLogs
	logsLink  report.LogsLink
	jobLinks  report.JobLinks
	// keeper keeps complete logs; nil keeps none.
	keeper *logstore.Keeper
	// encryptedBy returns what encrypts the traffic between pods; nil for unknown.
	encryptedBy func(context.Context) ([]string, error)
}

// Options configure a reporter.
type Options struct {
	// Masker hides secrets in logs and messages before they are recorded.
	Masker logs.Masker
	// Retention is how long a report is kept after its job has ended, reports of failed jobs for at least 24 h; 0 keeps
	// reports forever.
	Retention time.Duration
	// Limits bound the reports of finished jobs.
	Limits Limits
	// Namespace is the operator's, where sums of deleted reports are kept; empty: they are not.
	Namespace string
	// UsageLabels are the keys of the labels of jobs that are kept in the sums of deleted reports.
	UsageLabels []string
	// LogsLink is the template of the links to jobs' logs in a log store (report.ParseLogsLink); empty: reports have none.
	LogsLink string
	// JobLinks are the links of all jobs (report.ParseJobLinks); empty: reports have only those of their jobs.
	JobLinks string
	// MaxLogBytes is how many bytes of compressed logs the report of a finished job keeps; 0 keeps none.
	MaxLogBytes int
	// LogBucket is where complete logs are kept; the zero value keeps none.
	LogBucket logstore.Settings
	// TrainingProgress is how often the log of a running job is read for its progress; 0 never reads it.
	TrainingProgress time.Duration
	// ServeMetrics serves the metrics of jobs with the operator's own.
	ServeMetrics bool
	// Tracing sends the traces of jobs; nil sends none.
	Tracing *tracing.Tracing
	// Encryption finds out what encrypts the traffic between pods; nil records nothing of it.
	Encryption func(context.Context) (by []string, err error)
}

// New returns nil where the cluster has no JobReports.
func New(ctx context.Context, m manager.Manager, options Options) (*Reporter, error) {
	link, err := report.ParseLogsLink(options.LogsLink)
	if err != nil {
		return nil, fmt.Errorf("--logs-link: %w", err)
	}
	links, err := report.ParseJobLinks(options.JobLinks)
	if err != nil {
		return nil, fmt.Errorf("--job-links: %w", err)
	}
	kind := v1alpha1.GroupVersion.WithKind("JobReport")
	switch _, err := m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		log.Log.Info("the cluster has no JobReports: no records of jobs are kept; install config/crd and start the operator again")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for JobReports: %w", err)
	}
	if err := addReportIndex(ctx, m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	records, err := m.GetCache().GetInformer(ctx, &v1alpha1.JobReport{})
	if err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	waited := &waitTimes{}
	if _, err := records.AddEventHandler(waited.eventHandler()); err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	core, err := v1.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up reading logs: %w", err)
	}
	gatherer := cluster.NewGatherer(m.GetAPIReader(), core, options.Masker, clock.RealClock{})
	jobs, err := newMetrics(m, options.ServeMetrics)
	if err != nil {
		return nil, err
	}
	r := &Reporter{client: m.GetClient(), live: m.GetAPIReader(), gatherer: gatherer, clock: clock.RealClock{}, metrics: jobs, retention: options.Retention, waitTimes: waited, masker: options.Masker}
	if _, err := records.AddEventHandler(r.runs.eventHandler()); err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	r.tracing, r.encryptedBy = options.Tracing, options.Encryption
	r.refreshLimit = flowcontrol.NewTokenBucketRateLimiter(refreshesPerSecond, refreshesPerSecond)
	r.listener, r.lastLogs = newLogReader(gatherer.Listen, options.TrainingProgress), newLastLogs()
	r.usage = newUsageReader(gatherer.Usage)
	r.jobLogs, r.logsLink, r.jobLinks = newJobLogs(options.MaxLogBytes, gatherer.LogEnds), link, links
	r.lastPods = newLastPods(gatherer.LastRun, r.lastLogs, clock.RealClock{})
	if err := r.addKeeper(m, options, records); err != nil {
		return nil, err
	}
	if err := r.WatchPods(ctx, m.GetCache()); err != nil {
		return nil, err
	}
	if err := m.Add(manager.RunnableFunc(r.lastPods.run)); err != nil {
		return nil, fmt.Errorf("add reading of logs: %w", err)
	}
	r.Events = m.GetEventRecorderFor(mpi.StepSource) //nolint:staticcheck // as the reconciler's
	if err := r.addLedger(m, options.Namespace, options.UsageLabels, records); err != nil {
		return nil, err
	}
	r.limiter = newReportLimiter(options.Limits, m.GetClient(), jobs.ReportDeleted)
	r.limiter.ledger = r.ledger
	if _, err := records.AddEventHandler(r.limiter.eventHandler()); err != nil {
		return nil, fmt.Errorf("watch JobReports: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(r.limiter.run)); err != nil {
		return nil, fmt.Errorf("add limits of JobReports: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(r.deleteExpiredPeriodically)); err != nil {
		return nil, fmt.Errorf("add retention of JobReports: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.closeOrphansOnce(ctx, r.live) })); err != nil {
		return nil, fmt.Errorf("add closing of JobReports: %w", err)
	}
	return r, nil
}

// addLedger keeps what the jobs of deleted reports reserved.
func (r *Reporter) addLedger(m manager.Manager, namespace string, labels []string, records cache.Informer) error {
	if r.ledger = newLedger(m.GetClient(), m.GetAPIReader(), namespace, labels, r.clock); r.ledger == nil {
		return nil
	}
	r.ledger.lost = r.metrics.UsageLost
	if _, err := records.AddEventHandler(r.ledger.eventHandler()); err != nil {
		return fmt.Errorf("watch JobReports: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(r.ledger.run)); err != nil {
		return fmt.Errorf("add sums of deleted JobReports: %w", err)
	}
	return nil
}

// Update writes a job's report if it contains more than the previous one, nil for none, and returns after what time to
// update it again even if nothing changes; 0: never. A concurrent write is an error of conflict.
//
// The object is the job as users wrote it.
func (r *Reporter) Update(ctx context.Context, object client.Object, job mpi.Job, seen jobstate.Observed, refusals []jobstate.Refusal, out jobstate.Outcome, previous *v1alpha1.JobReport) (time.Duration, error) {
	if r == nil {
		return 0, nil
	}
	switch {
	case previous != nil:
	case out.Finish != nil && (r.isExpired(out.Finish.At, !out.Finish.Succeeded) || r.limiter.isSurplus(job.Namespace, out.Finish.At, !out.Finish.Succeeded)):
		return 0, nil
	default:
		if err := r.Close(ctx, job.Kind, job.Key(), job.UID); err != nil {
			return 0, err
		}
	}
	evidence, listenAgain := r.gatherEvidence(ctx, job, seen, refusals, out, previous)
	evidence.CurveLines = r.listener.withLateLines(job.UID, evidence.CurveLines)
	usageAgain := r.gatherUsage(ctx, job, seen, out, previous, &evidence)
	evidence.KeptLogs = r.jobLogs.of(job.UID, out)
	evidence.Curves = curves.Add(curvesOf(previous), evidence.CurveLines)
	evidence.Training = lastTraining(evidence.Training, out, previous)
	evidence.Wait = r.waitTimes.waitFor(job, seen, out)
	if out.Finish == nil {
		evidence.RegistryFails = r.pulls.areShared(job.UID, diagnose.FailingRegistry(seen), seen.Now)
	}
	evidence.Encryption = r.gatherEncryption(ctx, job, out, previous)
	evidence.Mask = r.masker.Text
	findings, err := diagnose.TryJob(job, seen, evidence, out)
	if err != nil {
		log.FromContext(ctx).Error(err, "A job could not be diagnosed")
	}
	if previous != nil && previous.Status.CompletionTime != nil && previous.Status.Phase == out.Phase {
		// What the job's status kept of its end is in that status's own words.
		out.Reason, out.Message = previous.Status.Reason, previous.Status.Message
	}
	next := report.Make(job, seen, evidence, out, findings, previous)
	report.MaskCommand(&next.Status, r.masker.Text)
	if err := r.setSpecification(ctx, &next, job, object); err != nil {
		return 0, err
	}
	next.Status.LogsLink = r.logsLink.Of(&next)
	next.Status.Links = r.jobLinks.Of(job, &next, r.masker.Text)
	r.tracing.Begin(&next.Status, job)
	r.runs.observe(job, seen, &next)
	again := nextUpdate(job, seen, out, &next, listenAgain, usageAgain)
	if worth := report.Changed(previous, next) || report.Reestimated(previous, next) || report.Outdated(previous, next) && r.refreshLimit.TryAccept(); !worth {
		r.listener.keepLines(job.UID, unrecorded(previous, evidence.CurveLines), seen.Now)
		return again, nil
	}
	if previous == nil {
		err = r.client.Create(ctx, &next)
	} else {
		err = r.patch(ctx, previous, &next)
	}
	switch {
	case err == nil:
		r.jobLogs.forget(job.UID, out)
		r.metrics.Observe(previous, next)
		r.emitEvents(job, previous, next)
		r.tracing.Send(previous, next, report.Sessions(seen)...)
		return again, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return again, nil
	case apierrors.IsInvalid(err):
		r.metrics.ReportNotWritten()
		// Another try would be refused as well.
		log.FromContext(ctx).Error(err, "the job's report is not taken")
		return again, nil
	case apierrors.IsAlreadyExists(err):
		if failed := r.deleteForeign(ctx, job); failed != nil {
			return 0, failed
		}
		fallthrough
	case apierrors.IsNotFound(err):
		err = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("jobreports").GroupResource(), next.Name, err)
	case !apierrors.IsConflict(err):
		r.metrics.ReportNotWritten()
	}
	r.listener.keepLines(job.UID, unrecorded(previous, evidence.CurveLines), seen.Now)
	return 0, fmt.Errorf("write report of %s %s: %w", job.Kind, job.Key(), err)
}

// lastTraining returns the progress that was read, or that of the report of a job that has ended: the pod with the output can be gone then, as after a
// deadline.
func lastTraining(read v1alpha1.Training, out jobstate.Outcome, previous *v1alpha1.JobReport) v1alpha1.Training {
	if out.Finish == nil || previous == nil || previous.Status.Training == nil || read != (v1alpha1.Training{}) {
		return read
	}
	return *previous.Status.Training
}

// curvesOf returns the curves in a report; nil if it has none.
func curvesOf(report *v1alpha1.JobReport) *v1alpha1.TrainingCurves {
	if report == nil {
		return nil
	}
	return report.Status.Curves
}

// unrecorded returns the lines with figures that are later than those of a report's curves.
func unrecorded(report *v1alpha1.JobReport, lines []curves.Line) []curves.Line {
	if recorded := curvesOf(report); recorded != nil {
		return linesAfter(recorded.Until.Time, lines)
	}
	return lines
}

func linesAfter(at time.Time, lines []curves.Line) []curves.Line {
	return slices.DeleteFunc(slices.Clone(lines), func(line curves.Line) bool { return !line.Time.After(at) })
}

// patch writes a report that was made from one in the cache. The manifest, which the cache does not have, stays unless the new
// report has one. It fails with an error of conflict if the report was changed meanwhile.
func (r *Reporter) patch(ctx context.Context, previous, next *v1alpha1.JobReport) error {
	return r.client.Patch(ctx, next, client.MergeFromWithOptions(previous, client.MergeFromWithOptimisticLock{})) //nolint:wrapcheck // callers tell errors apart
}

// setSpecification writes the job's specification into a report that was made from one in the cache, which has no manifest.
func (r *Reporter) setSpecification(ctx context.Context, next *v1alpha1.JobReport, job mpi.Job, object client.Object) error {
	if report.NeedsManifest(next.Status, job, object) {
		var found v1alpha1.JobReport
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(next), &found); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read report of %s %s: %w", job.Kind, job.Key(), err)
		}
		if found.Status.Specification != nil {
			next.Status.Specification.Manifest = found.Status.Specification.Manifest
		}
	}
	report.SetSpecification(&next.Status, job, object, r.masker.Text)
	return nil
}

// reportsByJob is the index of reports by the kind and the name of their job. By labels, the cache would look at all reports of
// the namespace for each job that is created or deleted.
const reportsByJob = "reportsByJob"

// reportsByUID is the index of reports by the UID of their job.
const reportsByUID = "reportsByUID"

// addReportIndex adds the indexes to a cache. Call it once before the cache starts.
func addReportIndex(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.JobReport{}, reportsByJob, jobOfReport); err != nil {
		return fmt.Errorf("index JobReports by job: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1alpha1.JobReport{}, reportsByUID, uidOfReport); err != nil {
		return fmt.Errorf("index JobReports by the UID of their job: %w", err)
	}
	return nil
}

func uidOfReport(object client.Object) []string {
	if r, is := object.(*v1alpha1.JobReport); is {
		return []string{string(r.Spec.JobRef.UID)}
	}
	return nil
}

func jobOfReport(object client.Object) []string {
	if r, is := object.(*v1alpha1.JobReport); is {
		return []string{indexedJob(r.Spec.JobRef.Kind, r.Spec.JobRef.Name)}
	}
	return nil
}

func indexedJob(kind, name string) string { return kind + "/" + name }

// Close ends the records of jobs of a name that are gone: all of them, but that of the job with a UID.
func (r *Reporter) Close(ctx context.Context, kind string, key types.NamespacedName, but types.UID) error {
	if r == nil {
		return nil
	}
	r.runs.forgetJob(mpi.ID{Kind: kind, Namespace: key.Namespace, Name: key.Name}, but)
	var list v1alpha1.JobReportList
	if err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{reportsByJob: indexedJob(kind, key.Name)}); err != nil {
		return fmt.Errorf("list reports of %s %s: %w", kind, key, err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if item.Spec.JobRef.UID == but {
			continue
		}
		closed := report.Closed(*item, r.clock.Now())
		if item.Status.CompletionTime != nil && !report.Changed(item, closed) {
			continue
		}
		switch err := r.patch(ctx, item, &closed); {
		case err == nil:
			r.metrics.Observe(item, closed)
			r.tracing.Send(item, closed)
			ref := item.Spec.JobRef
			r.emitEvents(mpi.Job{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: key.Namespace, Name: ref.Name, UID: ref.UID}, item, closed)
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

// gatherEvidence is what is known of a job beyond what a pass reads anyway, and for a job that runs after what time it is to be
// looked at again.
func (r *Reporter) gatherEvidence(ctx context.Context, job mpi.Job, seen jobstate.Observed, refusals []jobstate.Refusal, out jobstate.Outcome, previous *v1alpha1.JobReport) (jobstate.Evidence, time.Duration) {
	again := time.Duration(0)
	if out.Phase != v1alpha1.PhaseRunning {
		r.listener.forget(job.UID)
	} else {
		again = min(runningRefresh, job.Lifecycle.SilentAfter/2)
	}
	switch {
	case needsEvidence(job, seen, refusals, out, previous):
		evidence := r.gatherer.Gather(ctx, job, seen, refusals)
		r.lastLogs.complete(job, seen, &evidence)
		if (out.Finish != nil || jobstate.IsLauncherReplaced(job, seen)) && len(seen.LauncherPods) == 0 {
			evidence.Gone = r.lastPods.of(seen)
		}
		return evidence, again
	case out.Phase == v1alpha1.PhaseRunning:
		return r.listener.readIfDue(ctx, job, seen)
	case out.Phase == v1alpha1.PhaseSucceeded && !report.Settled(previous, seen.Now):
		return r.listener.readLast(ctx, job, seen), 0
	}
	return jobstate.Evidence{Refusals: refusals}, 0
}

// gatherEncryption returns what encrypts the traffic between a job's pods; nil if that need not be looked up.
func (r *Reporter) gatherEncryption(ctx context.Context, job mpi.Job, out jobstate.Outcome, previous *v1alpha1.JobReport) *jobstate.Encryption {
	if r.encryptedBy == nil || !report.NeedsEncryption(job, out, previous) {
		return nil
	}
	by, err := r.encryptedBy(ctx)
	return &jobstate.Encryption{By: by, Err: err}
}

// gatherUsage adds what a job uses, or used until its end, to the evidence. It returns after what time the usage of a job that runs is due next.
func (r *Reporter) gatherUsage(ctx context.Context, job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, previous *v1alpha1.JobReport, evidence *jobstate.Evidence) (again time.Duration) {
	switch {
	case out.Phase == v1alpha1.PhaseRunning:
		r.usage.resume(job.UID, seen.Now, previous)
		evidence.Usage, again = r.usage.readIfDue(ctx, job, seen)
		evidence.Cordoned = r.gatherer.Cordoned(ctx, seen)
		evidence.Used, evidence.LatestMemory = r.usage.usedSoFar(job, seen, previous)
		r.addStall(job, seen, evidence)
	case previous != nil && previous.Status.CompletionTime != nil:
		r.usage.forget(job.UID)
	default:
		if last := r.usage.lastOf(job.UID, seen.Now); out.Finish != nil {
			evidence.Usage = last
		}
	}
	return again
}

// addStall adds what the launcher's agent has reported of ranks that make no progress to the end of its log, unless what was read of the log has
// that, or that it is over: the last lines of a program that prints much are others.
func (r *Reporter) addStall(job mpi.Job, seen jobstate.Observed, evidence *jobstate.Evidence) {
	if len(seen.LauncherPods) == 0 {
		return
	}
	launcher := seen.LauncherPods[len(seen.LauncherPods)-1]
	log, isRead := evidence.Logs[launcher.Name]
	isStall := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), agentapi.StallPrefix) }
	if slices.ContainsFunc(log.Lines, isStall) {
		if diagnose.LastStall(log.Lines) == "" {
			r.usage.endStall(job.UID)
		}
		return
	}
	stall := r.usage.stallOf(job.UID, seen.Now)
	if stall == nil || !isRead {
		return
	}
	main := job.Launcher.Template.Spec.Containers
	isLater := func(c corev1.ContainerStatus) bool {
		return len(main) > 0 && c.Name == main[0].Name && startOf(c).Unix() > stall.At
	}
	if slices.ContainsFunc(launcher.Status.ContainerStatuses, isLater) {
		// It is about an earlier attempt.
		return
	}
	log.Lines = slices.Concat(log.Lines, stall.Lines)
	evidence.Logs = maps.Clone(evidence.Logs)
	evidence.Logs[launcher.Name] = log
}

// needsEvidence reports whether more is to be asked of the API server than a pass reads anyway: only where something
// seems to be wrong.
func needsEvidence(job mpi.Job, seen jobstate.Observed, refusals []jobstate.Refusal, out jobstate.Outcome, previous *v1alpha1.JobReport) bool {
	switch {
	case out.Finish != nil:
		return !out.Finish.Succeeded && !report.Settled(previous, seen.Now)
	case out.Suspended() || out.Reason == codes.ValidationError:
		return false
	case out.NeedsAction || len(refusals) > 0, jobstate.IsLauncherReplaced(job, seen):
		return true
	}
	for _, try := range seen.LauncherPods {
		if try.DeletionTimestamp != nil {
			return true
		}
	}
	for _, started := range startsOfIncompleteJobs(job, seen) {
		if seen.Now.Sub(started) >= slowStart {
			return true
		}
	}
	for _, started := range startsWithoutPods(job, seen, out, previous) {
		if seen.Now.Sub(started) >= slowCreation {
			return true
		}
	}
	return slices.ContainsFunc(seen.Workers, func(worker jobstate.Worker) bool { return podstatus.HasEnded(worker.Pod) }) || anyTroubled(seen)
}

// anyTroubled reports whether a container of the job's pods or its initializers ended badly, or a pod takes long to start or to be ready.
func anyTroubled(seen jobstate.Observed) bool {
	for _, pod := range seen.AllPodsAndInitializers() {
		_, bad := cluster.EndedBadly(pod)
		if bad || (pod.Status.Phase == corev1.PodPending || cluster.Unready(pod)) && seen.Now.Sub(pod.CreationTimestamp.Time) >= slowStart {
			return true
		}
	}
	return false
}

// nextUpdate is how long a record may stay as it is if nothing happens; 0: for good.
func nextUpdate(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, next *v1alpha1.JobReport, listenAgain, usageAgain time.Duration) time.Duration {
	if out.Finish != nil {
		if !out.Finish.Succeeded && !report.Settled(next, seen.Now) {
			return lateEvidenceRetry
		}
		if report.Holds(next) {
			return usageRefresh
		}
		return 0
	}
	if out.Phase == v1alpha1.PhaseSuspended {
		return 0
	}
	soonest := listenAgain
	atMost := func(wait time.Duration) {
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	if out.Phase == v1alpha1.PhaseRunning {
		atMost(usageRefresh)
	}
	if usageAgain > 0 {
		atMost(usageAgain)
	}
	if next.Status.Scheduling != nil {
		atMost(waitingRefresh)
	}
	since := startsOfIncompleteJobs(job, seen)
	for _, since := range append(since, creationsOfStarting(seen)...) {
		left := slowStart - seen.Now.Sub(since) + time.Second
		if left <= 0 || left > slowStart+time.Second {
			// It takes longer; or it is in the future, because a clock was set.
			left = slowStart
		}
		atMost(left)
	}
	for _, since := range startsWithoutPods(job, seen, out, next) {
		atMost(creationCheck(seen.Now.Sub(since)))
	}
	for _, at := range endsOfWorkers(seen) {
		atMost(creationCheck(seen.Now.Sub(at)))
	}
	return soonest
}

// creationsOfStarting are the times at which the pods were created that are pending, or run and are not ready.
func creationsOfStarting(seen jobstate.Observed) (times []time.Time) {
	for _, pod := range seen.AllPodsAndInitializers() {
		if (pod.Status.Phase == corev1.PodPending || cluster.Unready(pod)) && pod.DeletionTimestamp == nil {
			times = append(times, pod.CreationTimestamp.Time)
		}
	}
	return times
}

// endsOfWorkers are the times at which workers ended.
func endsOfWorkers(seen jobstate.Observed) (times []time.Time) {
	for _, worker := range seen.Workers {
		if at := podstatus.EndedAt(worker.Pod); podstatus.HasEnded(worker.Pod) && !at.IsZero() {
			times = append(times, at)
		}
	}
	return times
}

// creationCheck returns after how long it is asked again why there is no pod, or no longer one, which has been awaited for a time.
func creationCheck(awaited time.Duration) time.Duration {
	switch {
	case awaited >= 0 && awaited < slowCreation:
		return slowCreation - awaited + time.Second
	case awaited >= 0 && awaited < slowStart:
		return slowCreation
	}
	// It takes longer; or it is in the future, because a clock was set.
	return slowStart
}

// startsWithoutPods are the times since which pods of the job are awaited of which there is none at all: of Jobs without pods, and of
// a job for which another controller has not created all Jobs. That has been awaited since the first report, which is now if it is new.
func startsWithoutPods(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, report *v1alpha1.JobReport) (since []time.Time) {
	add := func(of *batchv1.Job, pods int) {
		if of != nil && pods == 0 && !ptr.Deref(of.Spec.Suspend, false) && !jobstate.HasFinished(of) {
			since = append(since, cmp.Or(of.Status.StartTime, &of.CreationTimestamp).Time)
		}
	}
	add(seen.Launcher, len(seen.LauncherPods))
	add(seen.WorkerJob, len(seen.Workers))
	closed := seen.Gate != nil && seen.Gate.Closed
	if job.External && seen.Launcher == nil && !isLauncherLater(job, seen) && isBeforeRunning(out.Phase) && out.PodsMayStart && !closed {
		at := seen.Now
		if report != nil && !report.CreationTimestamp.IsZero() {
			at = report.CreationTimestamp.Time
		}
		since = append(since, at)
	}
	return since
}

// isLauncherLater reports whether a launcher's Job that is missing may be created later, without an error: after the workers are ready,
// if it depends on them. JobSet resumes its Jobs once it has created all of them.
func isLauncherLater(job mpi.Job, seen jobstate.Observed) bool {
	if seen.WorkerJob == nil || ptr.Deref(seen.WorkerJob.Spec.Suspend, false) {
		return false
	}
	starts := func(worker jobstate.Worker) bool {
		return worker.Pod.Status.Phase == corev1.PodPending || cluster.Unready(worker.Pod)
	}
	return job.Launcher.None || len(seen.Workers) < int(job.Workers.Count) || slices.ContainsFunc(seen.Workers, starts)
}

// isBeforeRunning reports whether a job in a phase still waits for its pods.
func isBeforeRunning(phase v1alpha1.Phase) bool {
	return phase == v1alpha1.PhasePending || phase == v1alpha1.PhaseInitializing
}

// startsOfIncompleteJobs are the times at which Jobs were started that have not all of their pods: those may have been refused.
func startsOfIncompleteJobs(job mpi.Job, seen jobstate.Observed) (started []time.Time) {
	add := func(of *batchv1.Job, pods, wanted int) {
		if of != nil && pods < wanted && !ptr.Deref(of.Spec.Suspend, false) && !jobstate.HasFinished(of) {
			started = append(started, cmp.Or(of.Status.StartTime, &of.CreationTimestamp).Time)
		}
	}
	add(seen.Launcher, len(seen.LauncherPods), 1)
	add(seen.WorkerJob, len(seen.Workers), int(job.Workers.Count))
	return started
}

// WatchPods keeps the last state of the pods of a cache that failed, for the reports of their jobs. Call it before the cache
// starts.
func (r *Reporter) WatchPods(ctx context.Context, of cache.Cache) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.lastPods.watch(ctx, of), r.watchKeptPods(ctx, of))
}

// Nodes returns the nodes of the cluster, not as they were before a time; nil if they are unknown.
func (r *Reporter) Nodes(ctx context.Context, notBefore time.Time) []jobstate.Node {
	if r == nil {
		return nil
	}
	return r.gatherer.Nodes(ctx, notBefore)
}

// deleteForeign deletes a report that has the name of a job's report and is of another job. Only this job's report may have the
// name, which contains its UID: another user created it.
func (r *Reporter) deleteForeign(ctx context.Context, job mpi.Job) error {
	var found v1alpha1.JobReport
	err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.ReportName()}, &found)
	if err == nil && found.Spec.JobRef.UID != job.UID {
		log.FromContext(ctx).Info("deleting a JobReport of another creator", "name", found.Name)
		r.ledger.disown(&found)
		err = r.client.Delete(ctx, &found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace report of %s %s: %w", job.Kind, job.Key(), err)
	}
	return nil
}

// Report returns the report of a job; nil if there is none, none is kept, or another user created what has its name.
func (r *Reporter) Report(ctx context.Context, job mpi.Job) (*v1alpha1.JobReport, error) {
	if r == nil {
		return nil, nil
	}
	var found v1alpha1.JobReport
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.ReportName()}, &found); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read report of %s %s: %w", job.Kind, job.Key(), err)
	}
	if found.Spec.JobRef.UID != job.UID {
		return nil, nil
	}
	return &found, nil
}
