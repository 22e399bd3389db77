package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// limitedJobs are jobs of both kinds, by what they need: the number of workers, GPUs per pod, and the value of the label pool.
const (
	limitedMPIJob = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: limited}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: l, image: i, command: [mpirun, pi]}]}}}
    Worker: {replicas: %[1]d, template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: w, image: i, resources: {limits: {nvidia.com/gpu: %[2]d, example.com/gpumem: 99}}}, {name: s, image: i}]}}}
`
	// Its init container runs before the others, and its second container with the first.
	limitedInits = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: limited}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: l, image: i, command: [mpirun, pi]}]}}}
    Worker:
      replicas: %[1]d
      template:
        spec:
          nodeSelector: {pool: %[3]q}
          initContainers:
          - {name: first, image: i, resources: {limits: {nvidia.com/gpu: %[2]d}}}
          - {name: sidecar, image: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}
          containers: [{name: w, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]
`
	limitedSidecars = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: limited}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: l, image: i, command: [mpirun, pi]}]}}}
    Worker:
      replicas: %[1]d
      template:
        spec:
          nodeSelector: {pool: %[3]q}
          initContainers:
          - {name: sidecar, image: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}
          - {name: second, image: i, resources: {limits: {nvidia.com/gpu: %[2]d}}}
          containers: [{name: w, image: i}]
`
	// Its launcher runs ranks, and it requests accelerators of other vendors, and a network.
	limitedRanks = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: limited}
spec:
  runLauncherAsWorker: true
  mpiReplicaSpecs:
    Launcher: {template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: l, image: i, command: [mpirun, pi]}]}}}
    Worker: {replicas: %[1]d, template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: w, image: i, resources: {limits: {huawei.com/Ascend910: %[2]d, rdma/hca: 8, hugepages-2Mi: 1Gi, memory: 1Gi}}}]}}}
`
	// Its workers are in a job of another name.
	limitedOther = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: limited, ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: limited, uid: u, controller: true}]}
spec:
  replicatedJobs:
  - {name: own, replicas: %[1]d, template: {spec: {parallelism: 1, template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: node, image: i, resources: {limits: {amd.com/gpu: %[2]d}}}]}}}}}
`
	limitedTrainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: limited}
spec: {runtimeRef: {name: any}, trainer: {numNodes: %[1]d}}
`
	// The JobSet that Trainer makes of it. Only JobSets of TrainJobs are limited.
	limitedJobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: limited, ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: limited, uid: u, controller: true}]}
spec:
  replicatedJobs:
  - {name: dataset-initializer, replicas: 1, template: {spec: {parallelism: 1, template: {spec: {nodeSelector: {pool: mpi}, containers: [{name: d, image: i}]}}}}}
  - {name: launcher, replicas: 1, template: {spec: {parallelism: 1, template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: node, image: i}]}}}}}
  - {name: node, replicas: 1, template: {spec: {parallelism: %[1]d, template: {spec: {nodeSelector: {pool: %[3]q}, containers: [{name: node, image: i, resources: {limits: {amd.com/gpu: %[2]d}}}]}}}}}
`
)

// TestLimitsOfNamespaces: the API server refuses jobs of both kinds beyond the limits of their namespace, with the figures, also if
// no operator answers; JobSets of TrainJobs are limited, too.
func TestLimitsOfNamespaces(t *testing.T) {
	needsPolicies(t)
	server := newTrainerServer(t)
	namespace := func(name string, annotations map[string]string) {
		server.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
	}
	namespace("limited", map[string]string{mpi.AnnotationMaxWorkers: "4", mpi.AnnotationMaxGPUs: "2", mpi.AnnotationNodeLabels: "pool=mpi"})
	namespace("wrong", map[string]string{mpi.AnnotationMaxWorkers: "four"})
	namespace("unlabelled", map[string]string{mpi.AnnotationNodeLabels: "gpu"})
	namespace("empty", map[string]string{mpi.AnnotationNodeLabels: " pool= , "})
	namespace("free", nil)
	// Invalid limits may be older than the policies.
	objects, err := manifests("webhook", "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		server.create(t, object)
	}
	job := func(template, namespace string, workers, gpus int, pool string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		var text string
		if strings.Contains(template, "%[3]q") {
			text = fmt.Sprintf(template, workers, gpus, pool)
		} else {
			text = fmt.Sprintf(template, workers)
		}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		return object
	}
	tests := map[string]struct {
		template, namespace string
		workers, gpus       int
		pool                string
		// refused are parts of the error; none for what is admitted.
		refused []string
	}{
		"MPIJob":                               {limitedMPIJob, "limited", 4, 2, "mpi", nil},
		"MPIJob of too many workers":           {limitedMPIJob, "limited", 5, 2, "mpi", []string{"spec.mpiReplicaSpecs[Worker].replicas", "5", "at most 4", "limited"}},
		"MPIJob of too many GPUs":              {limitedMPIJob, "limited", 4, 3, "mpi", []string{"spec.mpiReplicaSpecs", "3 GPUs", "at most 2"}},
		"MPIJob elsewhere":                     {limitedMPIJob, "limited", 4, 2, "other", []string{"nodeSelector", "pool=mpi"}},
		"MPIJob without limits":                {limitedMPIJob, "free", 50, 8, "other", nil},
		"MPIJob where the limit is no number":  {limitedMPIJob, "wrong", 1, 0, "mpi", []string{"namespace wrong", "max-workers: four", "must be a whole number", "administrator"}},
		"MPIJob where the labels are none":     {limitedMPIJob, "unlabelled", 1, 0, "mpi", []string{"namespace unlabelled", "required-node-labels: gpu", "key=value"}},
		"MPIJob of the empty value":            {limitedMPIJob, "empty", 1, 0, "", nil},
		"MPIJob of another value":              {limitedMPIJob, "empty", 1, 0, "mpi", []string{"nodeSelector"}},
		"MPIJob with init containers":          {limitedInits, "limited", 4, 2, "mpi", nil},
		"MPIJob with a large init container":   {limitedInits, "limited", 4, 3, "mpi", []string{"3 GPUs", "at most 2"}},
		"MPIJob with a sidecar":                {limitedSidecars, "limited", 4, 1, "mpi", nil},
		"MPIJob with a sidecar before":         {limitedSidecars, "limited", 4, 2, "mpi", []string{"3 GPUs", "at most 2"}},
		"MPIJob with ranks in the launcher":    {limitedRanks, "limited", 3, 2, "mpi", nil},
		"MPIJob with one launcher too many":    {limitedRanks, "limited", 4, 2, "mpi", []string{"Invalid value: 5 with the launcher", "at most 4"}},
		"MPIJob of too many NPUs":              {limitedRanks, "limited", 3, 3, "mpi", []string{"3 GPUs or other accelerators", "at most 2"}},
		"TrainJob":                             {limitedTrainJob, "limited", 4, 0, "", nil},
		"TrainJob of too many nodes":           {limitedTrainJob, "limited", 5, 0, "", []string{"spec.trainer.numNodes", "5", "at most 4"}},
		"TrainJob without limits":              {limitedTrainJob, "free", 50, 0, "", nil},
		"JobSet":                               {limitedJobSet, "limited", 4, 2, "mpi", nil},
		"JobSet of another job":                {limitedOther, "limited", 4, 2, "mpi", nil},
		"JobSet of another job, too large":     {limitedOther, "limited", 5, 3, "other", []string{"spec.replicatedJobs: Invalid value: 5"}},
		"JobSet of another job, too many GPUs": {limitedOther, "limited", 4, 3, "mpi", []string{"3 GPUs"}},
		"JobSet of another job, elsewhere":     {limitedOther, "limited", 4, 2, "other", []string{"nodeSelector"}},
		"JobSet of too many nodes":             {limitedJobSet, "limited", 5, 2, "mpi", []string{"spec.replicatedJobs", "5", "at most 4"}},
		"JobSet of too many GPUs":              {limitedJobSet, "limited", 4, 4, "mpi", []string{"4 GPUs", "at most 2"}},
		"JobSet elsewhere":                     {limitedJobSet, "limited", 4, 2, "other", []string{"nodeSelector", "pool=mpi"}},
	}
	eventually(t, "the policy applies", func() error {
		if err := server.client.Create(t.Context(), job(limitedMPIJob, "limited", 5, 2, "mpi"), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "mpijob-limits") {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := server.client.Create(t.Context(), job(test.template, test.namespace, test.workers, test.gpus, test.pool), client.DryRunAll)
			if len(test.refused) == 0 {
				if err != nil && strings.Contains(err.Error(), "mpijob-limits") {
					t.Error(err)
				}
				return
			}
			// Clients show the message of the cause.
			if status, is := errors.AsType[*apierrors.StatusError](err); !is || !apierrors.IsInvalid(err) || len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Field != "" {
				t.Errorf("the error is %#v", err)
			}
			for _, part := range test.refused {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v, want %q", err, part)
				}
			}
		})
	}
}

// TestSuspendBeyondLimits: after a limit was lowered, jobs of both kinds can be suspended, by users and queues, and not be resumed.
func TestSuspendBeyondLimits(t *testing.T) {
	needsPolicies(t)
	server := newTrainerServer(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lowered"}}
	server.create(t, namespace)
	objects := map[string]*unstructured.Unstructured{}
	for kind, text := range map[string]string{"MPIJob": fmt.Sprintf(limitedMPIJob, 4, 0, "mpi"), "TrainJob": fmt.Sprintf(limitedTrainJob, 4), "JobSet": fmt.Sprintf(limitedJobSet, 4, 0, "mpi")} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace.Name)
		server.create(t, object)
		objects[kind] = object
	}
	policies, err := manifests("webhook", "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		server.create(t, policy)
	}
	annotate := func(value string) error {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+mpi.AnnotationMaxWorkers+`":"`+value+`"}}}`))
		return server.client.Patch(t.Context(), namespace, patch, client.DryRunAll)
	}
	eventually(t, "invalid limits are refused", func() error {
		if err := annotate("x"); err == nil || !strings.Contains(err.Error(), `max-workers]: Invalid value: "x": must be a whole number`) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	for _, value := range []string{"", "-1", "+1", "1.5", "99999999999"} {
		if err := annotate(value); err == nil {
			t.Errorf("%q is accepted", value)
		}
	}
	if err := annotate("2"); err != nil {
		t.Error(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+mpi.AnnotationMaxWorkers+`":"2"}}}`))
	if err := server.client.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	suspend := func(object *unstructured.Unstructured, value bool) error {
		path := `{"spec":{"suspend":%t}}`
		if object.GetKind() == "MPIJob" {
			path = `{"spec":{"runPolicy":{"suspend":%t}}}`
		}
		return server.client.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, path, value)))
	}
	for kind, object := range objects {
		t.Run(kind, func(t *testing.T) {
			if err := suspend(object, true); err != nil {
				t.Errorf("it cannot be suspended: %v", err)
			}
			eventually(t, "it is not resumed", func() error {
				err := suspend(object, false)
				if err == nil {
					_ = suspend(object, true)
					return fmt.Errorf("it was resumed")
				}
				if !strings.Contains(err.Error(), "at most 2") {
					return err
				}
				return nil
			})
		})
	}
}
