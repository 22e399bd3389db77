package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/mpi"
)

func TestCheckInstallation(t *testing.T) {
	t.Parallel()
	installed := []client.Object{deployment("ns", operatorApp, operatorApp, 2, 2)}
	// answers is how the webhooks respond to a valid and an invalid job.
	answers := func(user string, refusal error) func(*kubeflow.MPIJob) error {
		return func(job *kubeflow.MPIJob) error {
			if len(job.Name) > 63 {
				return refusal
			}
			if user != "" {
				job.Annotations = map[string]string{mpi.AnnotationCreator: user}
			}
			return nil
		}
	}
	kinds := append(slices.Clone(ourKinds), "mpi.opendatahub.io/v1alpha1/runtimetests")
	for name, test := range map[string]struct {
		serves  []string
		objects []client.Object
		create  func(*kubeflow.MPIJob) error
		want    []string
	}{
		"everything works": {kinds, installed, answers("me", errRejected), []string{
			"ok API server: Kubernetes v1.36.0", "ok Kinds of objects: MPIJob, JobReport and RuntimeTest are installed",
			"ok Operator: 2 of 2 replicas of ns/mpijob-operator are ready, mpijob-operator:v1",
			"ok Admission: invalid jobs are rejected", "ok Users of jobs: the user who creates a job is recorded, here me",
		}},
		"the webhooks do not answer": {kinds, installed, answers("", nil), []string{
			"ok API server: Kubernetes v1.36.0", "ok Kinds of objects: MPIJob, JobReport and RuntimeTest are installed",
			"ok Operator: 2 of 2 replicas of ns/mpijob-operator are ready, mpijob-operator:v1",
			"fail Admission: the operator's webhook does not respond: jobs are not validated, and fail later",
			"fail Users of jobs: the operator's webhook does not respond: the users who create jobs are not recorded",
		}},
		"nothing is installed": {nil, nil, func(*kubeflow.MPIJob) error { return forbidden("mpijobs") }, []string{
			"ok API server: Kubernetes v1.36.0",
			"fail Kinds of objects: not installed: mpijobs.kubeflow.org/v2beta1, jobreports.mpi.opendatahub.io/v1alpha1, runtimetests.mpi.opendatahub.io/v1alpha1",
			`fail Operator: unknown: deployments.apps "mpijob-operator" not found`,
			`fail Admission: unknown: mpijobs is forbidden: no right`, `fail Users of jobs: unknown: mpijobs is forbidden: no right`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, test.serves, nil)
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := kubeflow.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			cluster.API = fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if !slices.Contains(options, client.CreateOption(client.DryRunAll)) {
						t.Error("a job was created, and not only as a dry run")
					}
					return test.create(object.(*kubeflow.MPIJob))
				},
			}).Build()
			results, err := cluster.CheckInstallation(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range results {
				got = append(got, string(r.Verdict)+" "+r.Check+": "+r.Found)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("CheckInstallation returns\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
