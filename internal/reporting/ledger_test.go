package reporting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// books is an API server with reports, and an operator in the namespace "operator".
type books struct {
	t     *testing.T
	api   client.WithWatch
	clock *clocktesting.FakeClock
	fails func(verb string) error
	// broken is the name of a ConfigMap that cannot be written, and written is called with those that are.
	broken  string
	written func(*corev1.ConfigMap)
	// lists is how many lists of jobs were read, which fail with listErr if it is set.
	lists   int
	listErr error
}

func newBooks(t *testing.T, objects ...client.Object) *books {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, kubeflow.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &books{t: t, clock: clocktesting.NewFakeClock(mpitest.Now), fails: func(string) error { return nil }}
	write := func(verb string, object client.Object) error {
		failure := b.fails(verb)
		config, is := object.(*corev1.ConfigMap)
		switch {
		case is && failure != nil:
			return failure
		case is && config.Name == b.broken:
			return apierrors.NewInternalError(errors.New("broken"))
		case is && b.written != nil:
			b.written(config)
		}
		return nil
	}
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := write("create", object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := write("patch", object); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, jobs := list.(*metav1.PartialObjectMetadataList); jobs {
				b.lists++
				if b.listErr != nil {
					return b.listErr
				}
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return b
}

func (b *books) ledger() *ledger {
	return newLedger(b.api, b.api, "operator", []string{"team", "project"}, b.clock)
}

// coreHours returns the sums of core hours and jobs of the ledgers of a namespace.
func (b *books) coreHours(namespace string) (sum float64, jobs int) {
	b.t.Helper()
	var list corev1.ConfigMapList
	if err := b.api.List(b.t.Context(), &list, client.InNamespace("operator"), client.MatchingLabels{mpi.LabelUsageOf: namespace}); err != nil {
		b.t.Fatal(err)
	}
	for _, config := range list.Items {
		sums, err := cost.ParseLedger(config.Data)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, line := range sums.Lines {
			sum, jobs = sum+float64(line.CPUCoreSeconds)/3600, jobs+line.Jobs
			if line.User != "ann" || line.Queue != "gpu" {
				b.t.Errorf("the line is %+v", line)
			}
		}
	}
	return sum, jobs
}

func (b *books) want(step string, hours float64, jobs int) {
	b.t.Helper()
	if gotHours, gotJobs := b.coreHours("ns"); math.Abs(gotHours-hours) > 1e-6 || gotJobs != jobs {
		b.t.Errorf("%s: %g core hours of %d jobs are kept, want %g of %d", step, gotHours, gotJobs, hours, jobs)
	}
}

// usedReport returns the report of a job that held a core until its end, some days ago.
func usedReport(name string, hours, daysAgo int) *v1alpha1.JobReport {
	end := mpitest.Now.AddDate(0, 0, -daysAgo)
	start := end.Add(-time.Duration(hours) * time.Hour)
	r := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("report-" + name)}}
	r.Spec.JobRef = v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: name, UID: types.UID(name)}
	r.Status = v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseSucceeded, StartTime: new(metav1.NewTime(start)), CompletionTime: new(metav1.NewTime(end)), Run: &v1alpha1.Run{Creator: "ann"},
		Waited: &v1alpha1.Waited{Backend: "kueue", Queue: "gpu"},
		Consumption: &v1alpha1.Consumption{
			Until: metav1.NewTime(end), CPUCoreSeconds: int64(hours) * 3600, Steps: []v1alpha1.ConsumptionStep{{Time: metav1.NewTime(start)}},
		},
	}
	return r
}

// TestSumsKeepLabelsAndUse: the sums have those labels of the job that the operator keeps, and what was measured of it.
func TestSumsKeepLabelsAndUse(t *testing.T) {
	t.Parallel()
	r := usedReport("a", 2, 40)
	r.Status.Specification = &v1alpha1.Specification{Manifest: "metadata: {labels: {team: blue, color: green}}"}
	r.Status.Usage = &v1alpha1.Usage{Since: *r.Status.StartTime, Until: *r.Status.CompletionTime, Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricCPU, Mean: 500}}}
	b := newBooks(t)
	if err := b.ledger().count(t.Context(), []*v1alpha1.JobReport{r}); err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := b.api.List(t.Context(), &list, client.InNamespace("operator"), client.MatchingLabels{mpi.LabelUsageOf: "ns"}); err != nil {
		t.Fatal(err)
	}
	seconds := int64(0)
	for _, config := range list.Items {
		sums, err := cost.ParseLedger(config.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range sums.Lines {
			if line.Labels != "team=blue" || line.CPUCores == nil {
				t.Fatalf("the line is %+v", line)
			}
			seconds += *line.CPUCores
		}
	}
	if seconds != 3600 {
		t.Errorf("%d used core seconds are kept, want 3600", seconds)
	}
	for name, keys := range map[string][]string{"too many": {"a", "b", "c", "d", "e", "f"}, "no key": {"a b"}, "empty": {""}} {
		if CheckUsageLabels(keys) == nil {
			t.Errorf("%s: %q are allowed", name, keys)
		}
	}
	if err := CheckUsageLabels([]string{"team", "example.com/project"}); err != nil {
		t.Error(err)
	}
}

// TestExpiredReportsStayInTheSums: what their jobs reserved is kept before they are deleted, once, also if the operator ends in between,
// and their deletion does not count them again.
func TestExpiredReportsStayInTheSums(t *testing.T) {
	t.Parallel()
	reports := []*v1alpha1.JobReport{usedReport("a", 100, 40), usedReport("b", 10, 35), usedReport("c", 1, 2)}
	b := newBooks(t, reports[0], reports[1], reports[2])
	r := &Reporter{client: b.api, clock: b.clock, retention: 30 * 24 * time.Hour, ledger: b.ledger()}
	// The operator ends before it deletes them.
	if err := r.ledger.count(t.Context(), reports[:2]); err != nil {
		t.Fatal(err)
	}
	b.want("before the deletion", 110, 2)
	r.ledger = b.ledger()
	r.ledger.leads = true
	if err := r.deleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.want("deleted", 110, 2)
	handler := r.ledger.eventHandler()
	for _, gone := range reports[:2] {
		handler.OnDelete(gone)
	}
	b.clock.Step(time.Hour)
	r.ledger.countGone(t.Context())
	b.want("after the deletion", 110, 2)
	b.clock.Step(40 * 24 * time.Hour)
	if err := r.deleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.want("all are deleted", 111, 3)
	var config corev1.ConfigMap
	if err := b.api.Get(t.Context(), types.NamespacedName{Namespace: "operator", Name: cost.DeletedReportsName}, &config); err != nil {
		t.Fatal(err)
	}
	if got, want := cost.DeletedUntil(config.Data[cost.NamespaceKey("ns")]), reports[2].Status.CompletionTime.Time; !got.Equal(want) {
		t.Errorf("reports were deleted until %s, want %s", got, want)
	}
}

// TestALedgerDoesNotStopTheOthers: if the ledger of a namespace cannot be written, its reports are kept, and those of later namespaces are
// deleted.
func TestALedgerDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	stuck, late := usedReport("stuck", 100, 40), usedReport("late", 10, 40)
	stuck.Namespace = "broken"
	b := newBooks(t, stuck, late)
	b.broken = cost.LedgerName("broken", monthsOf(stuck)[0])
	r := &Reporter{client: b.api, clock: b.clock, retention: 30 * 24 * time.Hour, ledger: b.ledger()}
	if err := r.deleteExpired(t.Context()); err == nil || !strings.Contains(err.Error(), b.broken) {
		t.Errorf("the error is %v", err)
	}
	if left := reportsIn(t, b.api); len(left) != 1 {
		t.Errorf("%v are left", left)
	}
	b.want("the others", 10, 1)
	b.broken = ""
	if err := r.deleteExpired(t.Context()); err != nil || len(reportsIn(t, b.api)) > 0 {
		t.Errorf("%v are left: %v", reportsIn(t, b.api), err)
	}
}

func monthsOf(r *v1alpha1.JobReport) []string {
	return new(ledger).deletedReportOf(r, mpitest.Now).entry.Months()
}

// TestDamagedLedgersAreSetAside: a ledger that cannot be read, such as one that was restored in part, is kept under another key, and new
// sums are written.
func TestDamagedLedgersAreSetAside(t *testing.T) {
	t.Parallel()
	report := usedReport("a", 10, 40)
	damaged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: cost.LedgerName("ns", monthsOf(report)[0]), Labels: map[string]string{mpi.LabelUsageOf: "ns"}}}
	damaged.Data = map[string]string{cost.LedgerKey: `{"lines":[{"day":"2026-`}
	b := newBooks(t, report, damaged)
	r := &Reporter{client: b.api, clock: b.clock, retention: 30 * 24 * time.Hour, ledger: b.ledger()}
	if err := r.deleteExpired(t.Context()); err != nil || len(reportsIn(t, b.api)) > 0 {
		t.Errorf("%v are left: %v", reportsIn(t, b.api), err)
	}
	b.want("new sums", 10, 1)
	var config corev1.ConfigMap
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(damaged), &config); err != nil {
		t.Fatal(err)
	}
	if got, want := config.Data[cost.UnreadableKey], damaged.Data[cost.LedgerKey]; got != want {
		t.Errorf("%q is set aside, want %q", got, want)
	}
}

// TestManyReportsAreCountedInBatches: however many reports are deleted at once, by the operator or by others, a ledger has room for their
// UIDs.
func TestManyReportsAreCountedInBatches(t *testing.T) {
	t.Parallel()
	const n = maxBatch + 10
	for name, remove := range map[string]func(b *books, reports []client.Object) error{
		"by the operator": func(b *books, _ []client.Object) error {
			return (&Reporter{client: b.api, clock: b.clock, retention: 30 * 24 * time.Hour, ledger: b.ledger()}).deleteExpired(t.Context())
		},
		"by a limit": func(b *books, _ []client.Object) error {
			l := newReportLimiter(Limits{}, b.api, func(string) {})
			l.ledger = b.ledger()
			return l.prune(t.Context(), "ns", Limits{Reports: 1}, namespaceLimit)
		},
		"by others": func(b *books, reports []client.Object) error {
			l := b.ledger()
			l.leads = true
			for _, report := range reports {
				l.eventHandler().OnDelete(report)
				if err := b.api.Delete(t.Context(), report); err != nil {
					return err
				}
			}
			b.clock.Step(time.Hour)
			l.countGone(t.Context())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports := make([]client.Object, 0, n)
			for i := range n {
				reports = append(reports, usedReport(fmt.Sprintf("job-%d", i), 1, 40))
			}
			b := newBooks(t, reports...)
			b.written = func(config *corev1.ConfigMap) {
				if sums, err := cost.ParseLedger(config.Data); err != nil || len(sums.Counted) > maxBatch {
					t.Errorf("%d UIDs are written: %v", len(sums.Counted), err)
				}
			}
			if err := remove(b, reports); err != nil {
				t.Fatal(err)
			}
			left := len(reportsIn(t, b.api))
			b.want("deleted", float64(n-left), n-left)
			if left > 1 {
				t.Errorf("%d reports are left", left)
			}
		})
	}
}

// TestSurplusReportsStayInTheSums: a report that was deleted because of a limit is kept in the sums, and is not written again after a
// restart, when it would count twice.
func TestSurplusReportsStayInTheSums(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for i := range 10 {
		objects = append(objects, usedReport(fmt.Sprintf("job-%d", i), 1, 10-i))
	}
	b := newBooks(t, objects...)
	limiter := func() *reportLimiter {
		l := newReportLimiter(Limits{Reports: 5}, b.api, func(string) {})
		l.ledger = b.ledger()
		return l
	}
	l := limiter()
	b.fails = func(string) error { return apierrors.NewServiceUnavailable("later") }
	if err := l.prune(t.Context(), "ns", l.limits, namespaceLimit); err == nil || len(reportsIn(t, b.api)) != 10 {
		t.Errorf("the sums cannot be written, and %d reports are left: %v", len(reportsIn(t, b.api)), err)
	}
	b.fails = func(string) error { return nil }
	if err := l.prune(t.Context(), "ns", l.limits, namespaceLimit); err != nil {
		t.Fatal(err)
	}
	if left := len(reportsIn(t, b.api)); left != 5 {
		t.Errorf("%d reports are left", left)
	}
	b.want("deleted", 5, 5)
	restarted := limiter()
	for i := range 10 {
		end := mpitest.Now.AddDate(0, 0, i-10)
		if got := restarted.isSurplus("ns", end, false); got != (i < 5) {
			t.Errorf("after a restart, the report of job %d is surplus: %t", i, got)
		}
	}
	if restarted.isSurplus("ns", mpitest.Now.AddDate(0, 0, -10), true) || restarted.isSurplus("other", mpitest.Now.AddDate(0, 0, -10), false) {
		t.Error("reports are surplus of which none was deleted")
	}
}

// TestReportsOfDeletedNamespacesStayInTheSums: reports that others delete are counted a minute later, by the leader, unless their job
// exists, or they are forged.
func TestReportsOfDeletedNamespacesStayInTheSums(t *testing.T) {
	t.Parallel()
	alive := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alive", UID: "alive"}}
	replaced := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "replaced", UID: "another"}}
	b := newBooks(t, alive, replaced)
	l := b.ledger()
	handler := l.eventHandler()
	handler.OnDelete(usedReport("while-another-leads", 1000, 1))
	l.leads = true
	forged := usedReport("forged", 1000, 1)
	l.disown(forged)
	running := usedReport("running", 4, 0)
	running.Status.Phase, running.Status.CompletionTime = v1alpha1.PhaseRunning, nil
	for _, gone := range []*v1alpha1.JobReport{usedReport("a", 1, 1), usedReport("alive", 1000, 1), usedReport("replaced", 2, 1), forged, running} {
		handler.OnDelete(gone)
	}
	l.countGone(t.Context())
	b.want("at once", 0, 0)
	b.clock.Step(2 * time.Minute)
	b.fails = func(string) error { return apierrors.NewServiceUnavailable("later") }
	l.countGone(t.Context())
	b.want("the API server does not answer", 0, 0)
	b.fails = func(string) error { return nil }
	l.countGone(t.Context())
	l.countGone(t.Context())
	b.want("later", 7, 3)
}

// TestUnknownJobsAreAskedForAgain: if jobs cannot be listed, reports that others have deleted are counted later. The jobs of a namespace are
// listed once.
func TestUnknownJobsAreAskedForAgain(t *testing.T) {
	t.Parallel()
	b := newBooks(t, &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alive", UID: "alive"}})
	l := b.ledger()
	l.leads = true
	lost := 0
	l.lost = func(reports int) { lost += reports }
	handler := l.eventHandler()
	for i := range 100 {
		handler.OnDelete(usedReport(fmt.Sprintf("job-%d", i), 1, 1))
	}
	handler.OnDelete(usedReport("alive", 1000, 1))
	b.clock.Step(2 * time.Minute)
	b.listErr = apierrors.NewServiceUnavailable("later")
	l.countGone(t.Context())
	b.want("the API server does not answer", 0, 0)
	b.listErr = nil
	l.countGone(t.Context())
	b.want("later", 100, 100)
	if b.lists != 2 || lost != 0 || len(l.gone) > 0 {
		t.Errorf("jobs were listed %d times, %d reports are lost, %d wait", b.lists, lost, len(l.gone))
	}
	handler.OnDelete(usedReport("secret", 1, 1))
	b.clock.Step(2 * time.Minute)
	b.listErr = apierrors.NewForbidden(corev1.Resource("jobs"), "", nil)
	l.countGone(t.Context())
	if lost != 1 || len(l.gone) > 0 {
		t.Errorf("without the right to list jobs, %d reports are lost, %d wait", lost, len(l.gone))
	}
	for i := range maxGone + 5 {
		handler.OnDelete(usedReport(fmt.Sprintf("job-%d", i), 1, 1))
	}
	if lost != 6 || len(l.gone) != maxGone {
		t.Errorf("of very many, %d reports are lost, %d wait", lost, len(l.gone))
	}
}

// TestFailedMonthsAreNotCountedTwice: a report whose job ran in two months is counted once in each if the second ledger is written later.
func TestFailedMonthsAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	l := b.ledger()
	l.leads = true
	long, other := usedReport("long", 24*60, 1), usedReport("other", 1, 1)
	b.broken = cost.LedgerName("ns", monthsOf(long)[0])
	l.eventHandler().OnDelete(long)
	b.clock.Step(2 * time.Minute)
	l.countGone(t.Context())
	if err := l.write(t.Context(), "ns", []deletedReport{l.deletedReportOf(other, b.clock.Now())}); err != nil {
		t.Fatal(err)
	}
	b.broken = ""
	l.countGone(t.Context())
	b.want("in all months", 24*60+1, 2)
}

// TestWithoutRightToKeepSums: limits and retention work without ConfigMaps, and what is lost is counted.
func TestWithoutRightToKeepSums(t *testing.T) {
	t.Parallel()
	for name, namespace := range map[string]string{"forbidden": "operator", "outside of the cluster": ""} {
		b := newBooks(t, usedReport("a", 100, 40))
		b.fails = func(string) error { return apierrors.NewForbidden(corev1.Resource("configmaps"), "x", nil) }
		l := newLedger(b.api, b.api, namespace, nil, b.clock)
		lost := 0
		if l != nil {
			l.lost = func(reports int) { lost += reports }
		}
		r := &Reporter{client: b.api, clock: b.clock, retention: 30 * 24 * time.Hour, ledger: l}
		if err := r.deleteExpired(t.Context()); err != nil || len(reportsIn(t, b.api)) > 0 {
			t.Errorf("%s: %d reports are left: %v", name, len(reportsIn(t, b.api)), err)
		}
		if l != nil && lost != 1 {
			t.Errorf("%s: %d reports are lost", name, lost)
		}
	}
}
