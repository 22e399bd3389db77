package reporting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/times"
)

const (
	// goneDelay is how long after a report was deleted by others it is counted: by then, its job is gone, too, if it was deleted
	// with its namespace.
	goneDelay = time.Minute
	// maxGone is how many such reports wait at most.
	maxGone = 20_000
	// maxBatch is how many reports are counted at once: a ledger contains their UIDs until they are deleted.
	maxBatch = 5_000
)

// ledger keeps what the jobs reserved whose reports were deleted, in ConfigMaps of the operator's namespace (cost.Ledger). Each report is
// counted once: those that the operator deletes before it does, those that are deleted with their namespace afterwards. Nil keeps nothing.
type ledger struct {
	client client.Client
	// live reads ConfigMaps and jobs, which are not cached.
	live      client.Reader
	namespace string
	// labels are the keys of the labels of jobs that are kept.
	labels []string
	clock  clock.PassiveClock
	// lost is called with the number of reports that are deleted and are not counted.
	lost func(reports int)

	mu    sync.Mutex
	leads bool
	// own are reports that the operator has counted or that are forged, and deletes.
	own  map[types.UID]bool
	gone []deletedReport
	// ends are read from the ConfigMap of deleted reports, by cost.NamespaceKey; nil until they are read.
	ends map[string]cost.Ends
}

// deletedReport is what is counted of a report.
type deletedReport struct {
	namespace string
	ref       v1alpha1.JobReference
	failed    bool
	at        time.Time
	entry     cost.LedgerEntry
}

// maxUsageLabels is how many labels of a job are kept in the sums.
const maxUsageLabels = 5

// CheckUsageLabels checks the keys of the labels of jobs that are kept in the sums of deleted reports.
func CheckUsageLabels(keys []string) error {
	if len(keys) > maxUsageLabels {
		return fmt.Errorf("--usage-labels: %d keys are not allowed; use %d or fewer", len(keys), maxUsageLabels)
	}
	for _, key := range keys {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			return fmt.Errorf("--usage-labels: %q is no key of a label: %s", key, strings.Join(errs, "; "))
		}
	}
	return nil
}

func newLedger(c client.Client, live client.Reader, namespace string, labels []string, now clock.PassiveClock) *ledger {
	if namespace == "" {
		return nil
	}
	return &ledger{client: c, live: live, namespace: namespace, labels: labels, clock: now, lost: func(int) {}, own: map[types.UID]bool{}}
}

func (l *ledger) deletedReportOf(r *v1alpha1.JobReport, now time.Time) deletedReport {
	status := r.Status
	d := deletedReport{namespace: r.Namespace, ref: r.Spec.JobRef, failed: status.Phase == v1alpha1.PhaseFailed, at: now}
	d.entry = cost.LedgerEntry{UID: string(r.UID), Consumption: status.Consumption, Used: cost.UsedDays(status.Usage), Labels: report.LabelsOf(status, l.labels), Ended: now}
	switch {
	case status.CompletionTime != nil:
		d.entry.Ended = status.CompletionTime.Time
	case status.Consumption != nil:
		d.entry.Ended = status.Consumption.Until.Time
	}
	for _, when := range []*metav1.Time{status.StartTime, status.RunningTime} {
		if when != nil {
			d.entry.Began = when.Time
		}
	}
	if status.Run != nil {
		d.entry.User = status.Run.Creator
	}
	switch {
	case status.Waited != nil && status.Waited.Queue != "":
		d.entry.Queue = status.Waited.Queue
	case status.Scheduling != nil:
		d.entry.Queue = status.Scheduling.Queue
	}
	return d
}

// countBefore counts reports of a namespace before each is deleted by a function, in batches. Without the right to write ConfigMaps, it
// counts nothing.
func (l *ledger) countBefore(ctx context.Context, reports []*v1alpha1.JobReport, deleteOne func(*v1alpha1.JobReport) error) error {
	for batch := range slices.Chunk(reports, maxBatch) {
		if err := l.count(ctx, batch); err != nil {
			return err
		}
		for _, r := range batch {
			if err := deleteOne(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// count counts reports of a namespace that are deleted next.
func (l *ledger) count(ctx context.Context, reports []*v1alpha1.JobReport) error {
	if l == nil || len(reports) == 0 {
		return nil
	}
	var deleted []deletedReport
	for _, r := range reports {
		deleted = append(deleted, l.deletedReportOf(r, l.clock.Now()))
	}
	err := l.write(ctx, reports[0].Namespace, deleted)
	if apierrors.IsForbidden(err) {
		log.FromContext(ctx).Error(err, "what jobs reserved whose reports are deleted is not kept", "namespace", reports[0].Namespace, "reports", len(reports))
		l.lost(len(reports))
		err = nil
	}
	if err == nil {
		l.disown(reports...)
	}
	return err
}

// disown has reports count no more when they are gone.
func (l *ledger) disown(reports ...*v1alpha1.JobReport) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range reports {
		l.own[r.UID] = true
	}
}

// write adds reports of a namespace to its ledgers, and to the times until when reports were deleted.
func (l *ledger) write(ctx context.Context, namespace string, deleted []deletedReport) error {
	var list v1alpha1.JobReportList
	if err := l.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list reports of namespace %s: %w", namespace, err)
	}
	existing := map[string]bool{}
	for i := range list.Items {
		existing[string(list.Items[i].UID)] = true
	}
	// Those that are tried again may be part of some of their months.
	l.mu.Lock()
	for _, d := range l.gone {
		existing[d.entry.UID] = true
	}
	l.mu.Unlock()
	months := map[string][]cost.LedgerEntry{}
	for _, d := range deleted {
		for _, month := range d.entry.Months() {
			months[month] = append(months[month], d.entry)
		}
	}
	for month, entries := range months {
		name := cost.LedgerName(namespace, month)
		var damage error
		err := l.change(ctx, name, map[string]string{mpi.LabelUsageOf: namespace}, func(data map[string]string) (err error) {
			var sums cost.Ledger
			if sums, damage = cost.ParseLedger(data); damage != nil {
				cost.SetAside(data)
			}
			sums.Add(month, entries, func(uid string) bool { return existing[uid] })
			data[cost.LedgerKey], err = sums.Text()
			return err //nolint:wrapcheck // change names the ConfigMap
		})
		if err != nil {
			return err
		}
		if damage != nil {
			log.FromContext(ctx).Error(damage, "a ledger of what jobs reserved cannot be read; it is set aside, and new sums are kept without it", "configMap", name, "key", cost.UnreadableKey, "namespace", namespace)
		}
	}
	key := cost.NamespaceKey(namespace)
	return l.change(ctx, cost.DeletedReportsName, nil, func(data map[string]string) error {
		ends := cost.ParseEnds(data[key])
		for _, d := range deleted {
			i := failedIndex(d.failed)
			ends[i] = times.Later(ends[i], d.entry.Ended)
		}
		data[key] = ends.Text()
		forgetOldEnds(data)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ends != nil {
			l.ends[key] = ends
		}
		return nil
	})
}

// change creates or changes a ConfigMap.
func (l *ledger) change(ctx context.Context, name string, labels map[string]string, with func(data map[string]string) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var config corev1.ConfigMap
		err := l.live.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: name}, &config)
		isNew := apierrors.IsNotFound(err)
		if err != nil && !isNew {
			return err //nolint:wrapcheck // it is wrapped below; conflicts must be seen here
		}
		old := config.DeepCopy()
		config.Namespace, config.Name = l.namespace, name
		if config.Data == nil {
			config.Data = map[string]string{}
		}
		if err := with(config.Data); err != nil {
			return err
		}
		if !isNew {
			return l.client.Patch(ctx, &config, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // as above
		}
		config.Labels = labels
		// The cache does not have it, so that no read may wait for it.
		if err = l.client.Create(ctx, &config, client.DisableReadYourWritesConsistency); apierrors.IsAlreadyExists(err) {
			return apierrors.NewConflict(corev1.Resource("configmaps"), name, err)
		}
		return err //nolint:wrapcheck // as above
	})
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", l.namespace, name, err)
	}
	return nil
}

// maxEnds is how many namespaces the ConfigMap of deleted reports has.
const maxEnds = 10_000

// forgetOldEnds deletes the namespaces whose reports were deleted first, if there are too many.
func forgetOldEnds(data map[string]string) {
	if len(data) <= maxEnds {
		return
	}
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if byEnd := cost.DeletedUntil(data[a]).Compare(cost.DeletedUntil(data[b])); byEnd != 0 {
			return byEnd
		}
		return strings.Compare(a, b)
	})
	for _, key := range keys[:len(keys)-maxEnds] {
		delete(data, key)
	}
}

// failedIndex returns the position of a job's end in cost.Ends.
func failedIndex(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

// endsOf returns the ends of the latest jobs of a namespace whose reports were deleted, by this operator or an earlier one.
func (l *ledger) endsOf(namespace string) cost.Ends {
	if l == nil {
		return cost.Ends{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var config corev1.ConfigMap
		err := l.live.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: cost.DeletedReportsName}, &config)
		if err != nil && !apierrors.IsNotFound(err) {
			log.Log.Error(err, "the list of deleted reports cannot be read; it is read again with the next job")
			return cost.Ends{}
		}
		l.ends = map[string]cost.Ends{}
		for key, text := range config.Data {
			l.ends[key] = cost.ParseEnds(text)
		}
	}
	return l.ends[cost.NamespaceKey(namespace)]
}

// eventHandler notes the reports that others delete, such as with their namespace, while this replica leads.
func (l *ledger) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if unknown, is := object.(toolscache.DeletedFinalStateUnknown); is {
			object = unknown.Obj
		}
		r, is := object.(*v1alpha1.JobReport)
		if !is {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.own[r.UID]:
			delete(l.own, r.UID)
		case l.leads:
			l.noteGone(l.deletedReportOf(r, l.clock.Now()))
		}
	}}
}

// run counts the reports that others delete, until the context ends.
func (l *ledger) run(ctx context.Context) error {
	lead := func(leads bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leads = leads
	}
	lead(true)
	defer lead(false)
	ticker := time.NewTicker(goneDelay / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			l.countGone(ctx)
		}
	}
}

// noteGone has reports count later. The caller holds the lock.
func (l *ledger) noteGone(deleted ...deletedReport) {
	fit := min(len(deleted), max(0, maxGone-len(l.gone)))
	l.gone = append(l.gone, deleted[:fit]...)
	if lost := len(deleted) - fit; lost > 0 {
		l.lost(lost)
	}
}

// countGone counts the reports that others have deleted a while ago, if their jobs are gone, too. The report of a job that exists is
// written again.
func (l *ledger) countGone(ctx context.Context) {
	now := l.clock.Now()
	l.mu.Lock()
	due := map[namespacedKind][]deletedReport{}
	l.gone = slices.DeleteFunc(l.gone, func(d deletedReport) bool {
		isDue := now.Sub(d.at) >= goneDelay
		if isDue {
			of := namespacedKind{d.namespace, schema.FromAPIVersionAndKind(d.ref.APIVersion, d.ref.Kind)}
			due[of] = append(due[of], d)
		}
		return isDue
	})
	l.mu.Unlock()
	for of, deleted := range due {
		failed, err := l.countDeleted(ctx, of, deleted)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "what the jobs reserved whose reports were deleted is not kept", "namespace", of.namespace, "kind", of.kind.Kind, "reports", len(failed))
		}
		l.mu.Lock()
		if apierrors.IsForbidden(err) {
			l.lost(len(failed))
		} else {
			l.noteGone(failed...)
		}
		l.mu.Unlock()
	}
}

// namespacedKind is a kind of jobs in a namespace.
type namespacedKind struct {
	namespace string
	kind      schema.GroupVersionKind
}

// countDeleted counts reports that others have deleted, except those whose job exists. If it fails, it returns those that it has not
// counted.
func (l *ledger) countDeleted(ctx context.Context, of namespacedKind, deleted []deletedReport) (failed []deletedReport, err error) {
	jobs, err := jobsOf(ctx, l.live, of.kind, client.InNamespace(of.namespace))
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return deleted, err
	}
	deleted = slices.DeleteFunc(deleted, func(d deletedReport) bool {
		uid, exists := jobs[types.NamespacedName{Namespace: d.namespace, Name: d.ref.Name}]
		return exists && uid == d.ref.UID
	})
	for len(deleted) > 0 {
		n := min(len(deleted), maxBatch)
		if err := l.write(ctx, of.namespace, deleted[:n]); err != nil {
			return deleted, err
		}
		deleted = deleted[n:]
	}
	return nil, nil
}
