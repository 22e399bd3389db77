package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestRunningJobThatBecomesInvalid: while no webhook answers, annotations and fields of running jobs become invalid. The jobs go on
// and end, their workers are deleted, and their reports say what is ignored and close.
func TestRunningJobThatBecomesInvalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*kubeflow.MPIJob)
		says   string
	}{
		"an annotation": {annotated(mpi.AnnotationSilence, "x y"), "The default is used instead."},
		"the launch":    {annotated(mpi.AnnotationLaunch, "x y"), "No others are created until this is corrected."},
		"a field":       {func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = new(int32(-1)) }, "No others are created until this is corrected."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			start(t, namespace)
			launcher, _ := runs(t, namespace, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyAll) })
			reported(t, namespace, "Running")
			change(t, namespace, test.change)
			eventually(t, "the report says what is ignored", func() error {
				report := reported(t, namespace, "Running")
				if !slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool {
					return f.Code == codes.InvalidChange && strings.HasSuffix(f.Summary, test.says)
				}) {
					return fmt.Errorf("its findings are %+v", report.Status.Findings)
				}
				return nil
			})
			says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
			finish(t, get(t, namespace, launcher.Name, &batchv1.Job{}))
			says(t, namespace, "pi", kubeflow.JobSucceeded, corev1.ConditionTrue, "MPIJobSucceeded")
			workersAre(t, namespace)
			if report := reported(t, namespace, "Succeeded"); report.Status.CompletionTime == nil {
				t.Errorf("its report is open: %+v", report.Status)
			}
		})
	}
}

// TestAdmissionOfChangedAnnotations: the webhook refuses an annotation by which an existing job would become invalid, and warns of
// one that has no effect. Other changes of a job that is invalid already pass.
func TestAdmissionOfChangedAnnotations(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	suspend := func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) }
	create(t, mpitest.MPIJob(namespace, 1, suspend))
	create(t, mpitest.MPIJob(namespace, 1, suspend, annotated(mpi.AnnotationSilence, "x y"), func(o *kubeflow.MPIJob) { o.Name = "bad" }))
	guarded(t, namespace)
	update := func(name string, edit func(*kubeflow.MPIJob)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			job := get(t, namespace, name, &kubeflow.MPIJob{})
			edit(job)
			return api.Update(t.Context(), job, client.DryRunAll)
		})
	}
	eventually(t, "an invalid annotation is refused", func() error {
		err := update("pi", annotated(mpi.AnnotationRequeues, "x y"))
		if want := `metadata.annotations[mpi.opendatahub.io/gang-requeues]: Invalid value: "x y": must be a number, 0 or more`; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			return errors.Join(errors.New("want "+want), err)
		}
		return nil
	})
	for name, edit := range map[string]func(*kubeflow.MPIJob){
		"a label":    func(o *kubeflow.MPIJob) { o.Labels = map[string]string{"team": "a"} },
		"suspension": func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(false) },
		"correction": annotated(mpi.AnnotationSilence, "1h"),
	} {
		if err := update("bad", edit); err != nil {
			t.Errorf("%s of a job that is invalid already: %v", name, err)
		}
	}
}
