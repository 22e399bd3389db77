package reporting

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/times"
)

// Limits bound the reports of finished jobs, since every job leaves one that its user cannot delete, and the operator caches
// them.
type Limits struct {
	// Reports is the number of reports in each namespace and Bytes their approximate size; 0: no limit.
	Reports int
	Bytes   int
	// TotalBytes is the approximate size of the reports in all namespaces; 0: no limit.
	TotalBytes int
}

// exceededBy reports whether reports are more than the limits allow.
func (l Limits) exceededBy(sum reportSum) bool {
	return l.Reports > 0 && sum.reports > l.Reports || l.Bytes > 0 && sum.bytes > l.Bytes
}

// reportSum is the number and the size of reports.
type reportSum struct{ reports, bytes int }

func (s reportSum) minus(o reportSum) reportSum {
	return reportSum{s.reports - o.reports, s.bytes - o.bytes}
}

func (s reportSum) plus(o reportSum) reportSum {
	return reportSum{s.reports + o.reports, s.bytes + o.bytes}
}

// sumOf counts a report; nothing if its job has not finished.
func sumOf(r *v1alpha1.JobReport) reportSum {
	if r.Status.CompletionTime == nil {
		return reportSum{}
	}
	return reportSum{1, report.Size(r)}
}

// surplus returns the reports of a namespace to delete, and those whose logs to delete. Those of jobs that succeeded come before those that
// failed, and the oldest first, until a tenth less than the limits is left. If the reports take too many bytes, all logs are deleted before
// the first report.
func (l Limits) surplus(reports []v1alpha1.JobReport) (doomed, stripped []*v1alpha1.JobReport) {
	var finished []*v1alpha1.JobReport
	var sum reportSum
	sums := map[*v1alpha1.JobReport]reportSum{}
	for i := range reports {
		if of := sumOf(&reports[i]); of.reports > 0 {
			finished, sum = append(finished, &reports[i]), sum.plus(of)
			sums[&reports[i]] = of
		}
	}
	if !l.exceededBy(sum) {
		return nil, nil
	}
	slices.SortFunc(finished, func(a, b *v1alpha1.JobReport) int {
		return cmp.Or(
			cmp.Compare(failedLast(a), failedLast(b)),
			a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	less := Limits{Reports: l.Reports - l.Reports/10, Bytes: l.Bytes - l.Bytes/10}
	n := 0
	for ; n < len(finished) && (Limits{Reports: less.Reports}).exceededBy(sum); n++ {
		sum = sum.minus(sums[finished[n]])
	}
	for _, r := range finished[n:] {
		if bytes := report.LogSize(r); bytes > 0 && less.exceededBy(sum) {
			stripped, sum.bytes = append(stripped, r), sum.bytes-bytes
		}
	}
	if less.exceededBy(sum) {
		// No report has logs now.
		for stripped = nil; n < len(finished) && less.exceededBy(sum); n++ {
			sum = sum.minus(sums[finished[n]]).plus(reportSum{0, report.LogSize(finished[n])})
		}
		for _, r := range finished[n:] {
			if report.LogSize(r) > 0 {
				stripped = append(stripped, r)
			}
		}
	}
	return finished[:n], stripped
}

func failedLast(r *v1alpha1.JobReport) int {
	return failedIndex(r.Status.Phase == v1alpha1.PhaseFailed)
}

// largestShare returns how many bytes a namespace may have so that all have at most a total: those with more are reduced to it,
// the others keep what they have.
func largestShare(sums []int, total int) int {
	slices.Sort(sums)
	for i, sum := range sums {
		if share := total / (len(sums) - i); sum > share {
			return max(share, 1)
		}
		total -= sum
	}
	return math.MaxInt
}

// Values of the metric of deleted reports: the limit that was exceeded.
const (
	namespaceLimit = "namespace"
	totalLimit     = "total"
)

// reportLimiter deletes the surplus reports of namespaces.
type reportLimiter struct {
	limits Limits
	client client.Client
	full   chan struct{}
	// ledger counts reports before they are deleted; nil counts none.
	ledger *ledger
	// deleted is called for each report that is deleted, with the limit that was exceeded.
	deleted func(limit string)

	mu sync.Mutex
	// sums are those of each namespace, of is what each report counts, and over are the namespaces above the limits.
	sums map[string]reportSum
	of   map[types.NamespacedName]reportSum
	over map[string]bool
	// total is the size of all reports, and overTotal is whether it is above the limit.
	total     int
	overTotal bool
	// pruned are, for each namespace, the ends of the latest jobs whose reports were deleted: [0] of those that succeeded,
	// [1] of those that failed.
	pruned map[string][2]time.Time
}

func newReportLimiter(limits Limits, c client.Client, deleted func(limit string)) *reportLimiter {
	return &reportLimiter{
		limits: limits, client: c, deleted: deleted, full: make(chan struct{}, 1),
		sums: map[string]reportSum{}, of: map[types.NamespacedName]reportSum{}, over: map[string]bool{}, pruned: map[string][2]time.Time{},
	}
}

// eventHandler counts reports as they come and go.
func (l *reportLimiter) eventHandler() toolscache.ResourceEventHandler {
	set := func(object any) {
		if r, is := object.(*v1alpha1.JobReport); is {
			l.set(client.ObjectKeyFromObject(r), sumOf(r))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = gone.Obj
			}
			if r, is := object.(*v1alpha1.JobReport); is {
				l.set(client.ObjectKeyFromObject(r), reportSum{})
			}
		},
	}
}

func (l *reportLimiter) set(key types.NamespacedName, now reportSum) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.sums[key.Namespace].minus(l.of[key]).plus(now)
	l.total += now.bytes - l.of[key].bytes
	if l.sums[key.Namespace] = sum; sum == (reportSum{}) {
		delete(l.sums, key.Namespace)
	}
	if l.of[key] = now; now == (reportSum{}) {
		delete(l.of, key)
	}
	isOver, isOverTotal := l.limits.exceededBy(sum), l.limits.TotalBytes > 0 && l.total > l.limits.TotalBytes
	if isOver {
		l.over[key.Namespace] = true
	}
	if l.overTotal = isOverTotal; isOver || isOverTotal {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// isSurplus reports whether the report of a job that has ended would be deleted at once: later ones were. The job itself may
// still exist, and its report is not written again then.
func (l *reportLimiter) isSurplus(namespace string, end time.Time, failed bool) bool {
	which := failedIndex(failed)
	earlier := l.ledger.endsOf(namespace)[which]
	l.mu.Lock()
	defer l.mu.Unlock()
	return !end.After(times.Later(earlier, l.pruned[namespace][which]))
}

// run deletes surplus reports until the context ends.
func (l *reportLimiter) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.full:
		}
		l.mu.Lock()
		over := l.over
		l.over = map[string]bool{}
		l.mu.Unlock()
		for namespace := range over {
			l.tryPrune(ctx, namespace, l.limits, namespaceLimit)
		}
		l.pruneTotal(ctx)
	}
}

// pruneTotal reduces the namespaces with the most reports if the reports of all namespaces exceed their limit: who creates many
// jobs in many namespaces does not displace the reports of others.
func (l *reportLimiter) pruneTotal(ctx context.Context) {
	l.mu.Lock()
	if !l.overTotal {
		l.mu.Unlock()
		return
	}
	l.overTotal = false
	total := l.total
	var sums []int
	for _, sum := range l.sums {
		sums = append(sums, sum.bytes)
	}
	share := largestShare(sums, l.limits.TotalBytes-l.limits.TotalBytes/10)
	var largest []string
	for namespace, sum := range l.sums {
		if sum.bytes > share {
			largest = append(largest, namespace)
		}
	}
	l.mu.Unlock()
	log.FromContext(ctx).Info("the reports of all namespaces exceed --max-total-report-bytes: the oldest ones of the namespaces with the most reports are deleted",
		"bytes", total, "limit", l.limits.TotalBytes, "namespaces", len(largest))
	slices.Sort(largest)
	for _, namespace := range largest {
		l.tryPrune(ctx, namespace, Limits{Bytes: share}, totalLimit)
	}
}

func (l *reportLimiter) tryPrune(ctx context.Context, namespace string, limits Limits, which string) {
	if err := l.prune(ctx, namespace, limits, which); err != nil && ctx.Err() == nil {
		// The next report of the namespace starts another try.
		log.FromContext(ctx).Error(err, "surplus reports are not deleted", "namespace", namespace)
	}
}

// prune deletes the surplus reports of a namespace.
func (l *reportLimiter) prune(ctx context.Context, namespace string, limits Limits, which string) error {
	var list v1alpha1.JobReportList
	if err := l.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list reports of namespace %s: %w", namespace, err)
	}
	doomed, stripped := limits.surplus(list.Items)
	if len(stripped) > 0 {
		log.FromContext(ctx).Info("the reports of a namespace take too many bytes: the logs in the oldest ones are deleted", "namespace", namespace, "logs", len(stripped))
	}
	for _, item := range stripped {
		if err := l.deleteLogs(ctx, item); err != nil {
			return err
		}
	}
	return l.ledger.countBefore(ctx, doomed, func(item *v1alpha1.JobReport) error {
		l.mu.Lock()
		latest := l.pruned[namespace]
		latest[failedLast(item)] = times.Later(latest[failedLast(item)], item.Status.CompletionTime.Time)
		l.pruned[namespace] = latest
		l.mu.Unlock()
		if err := deleteReport(ctx, l.client, item); err != nil {
			return err
		}
		l.deleted(which)
		return nil
	})
}

// deleteLogs deletes the logs in a report. The cache does not have them, so that the patch is written by hand.
func (l *reportLimiter) deleteLogs(ctx context.Context, item *v1alpha1.JobReport) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": item.UID, "resourceVersion": item.ResourceVersion},
		"status": map[string]any{"logs": map[string]any{
			"data": nil, "size": nil, "omitted": "The logs were deleted because the reports of jobs take too much space (--max-report-bytes, --max-total-report-bytes).",
		}},
	})
	if err != nil {
		return fmt.Errorf("delete logs in report %s/%s: %w", item.Namespace, item.Name, err)
	}
	changed := &v1alpha1.JobReport{}
	changed.Namespace, changed.Name = item.Namespace, item.Name
	err = l.client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch))
	// After a conflict, the event of the change starts another try.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete logs in report %s/%s: %w", item.Namespace, item.Name, err)
	}
	return nil
}
