package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// TestReportsHaveLinks: the report of a job links to the pages that its user, the administrator and its variables name. The annotation may
// change while the job runs, and links that are none are refused.
func TestReportsHaveLinks(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	operate(t, restConfig, operator.Options{WatchNamespaces: []string{namespace}, JobLinks: "Traces=https://traces.example.com/{namespace}"})
	runs(t, namespace, func(job *kubeflow.MPIJob) {
		launcher := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
		launcher.Env = append(launcher.Env, corev1.EnvVar{Name: "MLFLOW_TRACKING_URI", Value: "https://me:secret@mlflow.example.com"}, corev1.EnvVar{Name: "MLFLOW_EXPERIMENT_ID", Value: "7"})
	})
	has := func(when string, want ...v1alpha1.Link) {
		t.Helper()
		eventually(t, "the report has the links "+when, func() error {
			if diff := cmp.Diff(want, reported(t, namespace, "Running").Status.Links); diff != "" {
				return fmt.Errorf("the links differ (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	traces := v1alpha1.Link{Title: "Traces", URL: "https://traces.example.com/" + namespace}
	mlflow := v1alpha1.Link{Title: "MLflow", URL: "https://mlflow.example.com/#/experiments/7"}
	has("of the administrator and of MLflow", traces, mlflow)
	change(t, namespace, annotated(mpi.AnnotationLinks, "TensorBoard=https://tb.example.com/{name}"))
	has("of the job, too", traces, v1alpha1.Link{Title: "TensorBoard", URL: "https://tb.example.com/pi"}, mlflow)

	bad := mpitest.MPIJob(namespace, 1, annotated(mpi.AnnotationLinks, "TensorBoard=javascript:alert(1)"), func(o *kubeflow.MPIJob) { o.Name = "bad" })
	create(t, bad)
	eventually(t, "a job with a script as a link is invalid", func() error {
		job := get(t, namespace, "bad", &kubeflow.MPIJob{})
		for _, condition := range job.Status.Conditions {
			if condition.Reason == "ValidationError" && strings.Contains(condition.Message, "start it with https://") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", job.Status.Conditions)
	})
}
