package doctor

import (
	"context"
	"fmt"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// CheckInstallation checks whether the operator in the namespace works, with few rights: to get its Deployment and to create
// MPIJobs in its namespace, which dry runs do. Unlike Check, it judges an operator whose webhooks do not answer, and what cannot be
// read, as failed. It fails if the API server does not respond.
func (c Cluster) CheckInstallation(ctx context.Context) ([]Result, error) {
	version, err := c.Discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	results := []Result{{Check: "API server", Verdict: OK, Found: "Kubernetes " + version.GitVersion}}
	for _, check := range []func(context.Context) []Result{c.kinds, c.deployment, c.admission, c.creator} {
		results = append(results, check(ctx)...)
	}
	for i := range results {
		switch r := &results[i]; {
		case r.Err != nil:
			r.Verdict, r.Found = Fail, "unknown: "+strings.Join(strings.Fields(r.Err.Error()), " ")
		case r.Verdict == Warn && r.Check == checkAdmission:
			r.Verdict = Fail
		}
	}
	return results, ctx.Err()
}

// deployment checks the operator's Deployment in the namespace.
func (c Cluster) deployment(ctx context.Context) []Result {
	var d appsv1.Deployment
	if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: operatorApp}, &d); err != nil {
		return unknown("Operator", err)
	}
	return []Result{judgeDeployment("Operator", d)}
}

// creator checks that jobs are completed: a dry run creates a valid job, and the webhook adds the user who creates it.
func (c Cluster) creator(ctx context.Context) []Result {
	const check = "Users of jobs"
	job := sampleJob(c.Namespace, "installation-check")
	if err := c.API.Create(ctx, job, client.DryRunAll); err != nil {
		return unknown(check, err)
	}
	user := job.Annotations[mpi.AnnotationCreator]
	if user == "" {
		return []Result{{
			Check: check, Verdict: Fail, Found: "the operator's webhook does not respond: the users who create jobs are not recorded",
			Remedy: "Check that the operator is running, and that the API server can reach port 9443 of its pods.",
		}}
	}
	return []Result{{Check: check, Verdict: OK, Found: "the user who creates a job is recorded, here " + user}}
}

// sampleJob returns a job with one worker that is valid unless its name is too long.
func sampleJob(namespace, name string) *kubeflow.MPIJob {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	return &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: kubeflow.MPIJobSpec{MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
			kubeflow.MPIReplicaTypeLauncher: {Replicas: new(int32(1)), Template: pod}, kubeflow.MPIReplicaTypeWorker: {Replicas: new(int32(1)), Template: pod},
		}},
	}
}
