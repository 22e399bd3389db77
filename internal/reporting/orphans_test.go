package reporting

import (
	"context"
	"slices"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/metrics"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	jobreport "opendatahub.io/mpijob/internal/report"
)

// TestReportsOfDeletedJobsAreClosed: a job that is deleted while no replica leads has its report closed by the next leader.
func TestReportsOfDeletedJobsAreClosed(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, kubeflow.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reportFor := func(name string, uid types.UID) *v1alpha1.JobReport {
		job := mpi.Job{Kind: "MPIJob", Name: name, UID: uid}
		return &v1alpha1.JobReport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job.ReportName(), Labels: job.ReportLabels()},
			Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: name, UID: uid}},
			Status:     v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning},
		}
	}
	there := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there", UID: "uid-there"}}
	reports := map[string]*v1alpha1.JobReport{"there": reportFor("there", "uid-there"), "gone": reportFor("gone", "uid-gone"), "replaced": reportFor("there", "uid-before")}
	lingering := reportFor("lingering", "uid-lingering")
	lingering.Status.Phase, lingering.Status.CompletionTime = v1alpha1.PhaseSucceeded, new(metav1.NewTime(mpitest.Now.Add(-time.Hour)))
	lingering.Status.Consumption = &v1alpha1.Consumption{Until: metav1.NewTime(mpitest.Now.Add(-time.Minute)), Held: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	reports["gone, after its pods outlived it"] = lingering
	trainJob := reportFor("train", "uid-train")
	trainJob.Spec.JobRef.APIVersion, trainJob.Spec.JobRef.Kind = "trainer.kubeflow.org/v1alpha1", "TrainJob"
	reports["of a kind that the cluster does not have"] = trainJob
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).WithIndex(&v1alpha1.JobReport{}, reportsByJob, jobOfReport)
	for _, report := range reports {
		builder = builder.WithObjects(report)
	}
	api := builder.Build()
	now := clocktesting.NewFakePassiveClock(mpitest.Now)
	none := metrics.New(metrics.Sources{Records: func() []v1alpha1.JobReport { return nil }}, now)
	r := &Reporter{client: api, clock: now, metrics: none, Events: record.NewFakeRecorder(10)}
	live := interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind := list.GetObjectKind().GroupVersionKind(); kind.Kind == "TrainJobList" {
				return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
			}
			return api.List(ctx, list, options...)
		},
	})
	if err := r.closeOrphans(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	for name, report := range reports {
		var now v1alpha1.JobReport
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(report), &now); err != nil {
			t.Fatal(err)
		}
		closed := now.Status.CompletionTime != nil && !jobreport.Holds(&now)
		if want := name == "gone" || name == "replaced" || report == lingering; closed != want {
			t.Errorf("the report of a job that is %s is closed: %v", name, closed)
		}
	}
}

// TestClosedReportsAreFinal: closing writes the report of a job that runs, once, and never that of a finished job.
func TestClosedReportsAreFinal(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reportFor := func(uid types.UID) *v1alpha1.JobReport {
		job := mpi.Job{Kind: "MPIJob", Name: "pi", UID: uid}
		return &v1alpha1.JobReport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job.ReportName(), Labels: job.ReportLabels()},
			Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{Kind: "MPIJob", Name: "pi", UID: uid}},
			Status:     v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning},
		}
	}
	running, finished := reportFor("running"), reportFor("finished")
	// Their labels are those of the job; what they refer to decides.
	other, trainJob := reportFor("other"), reportFor("train")
	other.Spec.JobRef.Name, trainJob.Spec.JobRef.Kind = "other", "TrainJob"
	finished.Status.Phase, finished.Status.CompletionTime = v1alpha1.PhaseSucceeded, new(metav1.NewTime(mpitest.Now))
	var written []string
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(running, finished, other, trainJob).
		WithIndex(&v1alpha1.JobReport{}, reportsByJob, jobOfReport).Build(), interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var by client.ListOptions
			by.ApplyOptions(options)
			if by.FieldSelector == nil {
				t.Errorf("reports are listed by %+v: the cache looks at all reports of the namespace", by)
			}
			return api.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			written = append(written, object.GetName())
			return api.Patch(ctx, object, patch, options...)
		},
	})
	now := clocktesting.NewFakePassiveClock(mpitest.Now)
	r := &Reporter{client: api, clock: now, metrics: metrics.New(metrics.Sources{Records: func() []v1alpha1.JobReport { return nil }}, now), Events: record.NewFakeRecorder(10)}
	for range 2 {
		if err := r.Close(t.Context(), "MPIJob", types.NamespacedName{Namespace: "ns", Name: "pi"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(written, []string{running.Name}) {
		t.Errorf("written are %v, want %s once", written, running.Name)
	}
}
