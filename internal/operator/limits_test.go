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
		"MPIJob of GPUs with a suffix":         {strings.ReplaceAll(limitedMPIJob, "%[2]d", "%[2]dk"), "limited", 4, 1, "mpi", []string{"1000 GPUs", "at most 2"}},
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

// TestChangesBeyondLimits: after a limit was lowered, or an upgrade counts more, jobs of both kinds can be suspended and resumed, by users and
// queues. They cannot grow, also while they are suspended, and are only resumed on nodes with the required labels.
func TestChangesBeyondLimits(t *testing.T) {
	needsPolicies(t)
	server := newTrainerServer(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lowered"}}
	server.create(t, namespace)
	workers := []string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}
	set := func(value any, fields ...string) func(map[string]any) {
		return func(object map[string]any) {
			if err := unstructured.SetNestedField(object, value, fields...); err != nil {
				t.Error(err)
			}
		}
	}
	// inEach changes each element of a list.
	inEach := func(list []string, change func(map[string]any)) func(map[string]any) {
		return func(object map[string]any) {
			elements, _, err := unstructured.NestedSlice(object, list...)
			if err != nil {
				t.Error(err)
			}
			for _, element := range elements {
				change(element.(map[string]any)) //nolint:forcetypeassert // the test's own
			}
			set(elements, list...)(object)
		}
	}
	containers, jobs := append(workers[:3:3], "template", "spec", "containers"), []string{"spec", "replicatedJobs"}
	tests := map[string]struct {
		text string
		// grow is a change of what the limits count.
		grow func(object map[string]any)
		// anywhere is true for what the policy does not compare with the labels of nodes.
		anywhere bool
	}{
		"mpijob":     {text: fmt.Sprintf(limitedMPIJob, 4, 0, "mpi"), grow: set(int64(5), workers...)},
		"ranks":      {text: fmt.Sprintf(limitedRanks, 2, 4, "mpi"), grow: set(int64(3), workers...)},
		"launcher":   {text: fmt.Sprintf(limitedMPIJob, 2, 0, "mpi"), grow: set(true, "spec", "runLauncherAsWorker")},
		"gpus":       {text: fmt.Sprintf(limitedMPIJob, 1, 2, "mpi"), grow: inEach(containers, set("2", "resources", "limits", "example.com/npu"))},
		"sidecars":   {text: fmt.Sprintf(limitedSidecars, 1, 2, "mpi"), grow: inEach(containers, set("4", "resources", "limits", "nvidia.com/gpu"))},
		"large-pods": {text: fmt.Sprintf(limitedMPIJob, 1, 4, "mpi"), grow: set(int64(2), workers...)},
		"trainjob":   {text: fmt.Sprintf(limitedTrainJob, 4), grow: set(int64(5), "spec", "trainer", "numNodes"), anywhere: true},
		"jobset":     {text: fmt.Sprintf(limitedJobSet, 4, 4, "mpi"), grow: inEach(jobs, set(int64(5), "template", "spec", "parallelism"))},
		"replicas":   {text: fmt.Sprintf(limitedOther, 2, 1, "mpi"), grow: inEach(jobs, set(int64(3), "replicas"))},
		"jobset-gpus": {text: fmt.Sprintf(limitedOther, 2, 2, "mpi"), grow: inEach(jobs, inEach([]string{"template", "spec", "template", "spec", "containers"},
			set("3", "resources", "limits", "amd.com/gpu")))},
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, test := range tests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace.Name)
		object.SetName(name)
		server.create(t, object)
		objects[name] = object
	}
	policies, err := manifests("webhook", "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		server.create(t, policy)
	}
	annotate := func(name, value string, options ...client.PatchOption) error {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value))
		return server.client.Patch(t.Context(), namespace, patch, options...)
	}
	eventually(t, "invalid limits are refused", func() error {
		if err := annotate(mpi.AnnotationMaxWorkers, "x", client.DryRunAll); err == nil || !strings.Contains(err.Error(), `max-workers]: Invalid value: "x": must be a whole number`) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	for _, value := range []string{"", "-1", "+1", "1.5", "99999999999"} {
		if err := annotate(mpi.AnnotationMaxWorkers, value, client.DryRunAll); err == nil {
			t.Errorf("%q is accepted", value)
		}
	}
	// limit sets a limit, and waits until it applies to a new job.
	limit := func(name, value, refusal string) {
		t.Helper()
		if err := annotate(name, value); err != nil {
			t.Fatal(err)
		}
		probe := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, limitedMPIJob, 3, 3, "mpi"), &probe.Object); err != nil {
			t.Fatal(err)
		}
		probe.SetNamespace(namespace.Name)
		probe.SetName("probe")
		eventually(t, name+" applies", func() error {
			if err := server.client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), refusal) {
				return fmt.Errorf("the answer is %w", err)
			}
			return nil
		})
	}
	suspend := func(object *unstructured.Unstructured, value bool) func(map[string]any) {
		if object.GetKind() == "MPIJob" {
			return set(value, "spec", "runPolicy", "suspend")
		}
		return set(value, "spec", "suspend")
	}
	update := func(t *testing.T, what, refusal string, object *unstructured.Unstructured, changes ...func(map[string]any)) {
		t.Helper()
		changed := object.DeepCopy()
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(object), changed); err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			change(changed.Object)
		}
		switch err := server.client.Update(t.Context(), changed); {
		case err != nil && refusal == "":
			t.Errorf("%s: %v", what, err)
		case refusal != "" && (err == nil || !strings.Contains(err.Error(), "mpijob-limits") || !strings.Contains(err.Error(), refusal)):
			t.Errorf("%s: the answer is %v", what, err)
		}
	}
	// A refusal names the first limit: the number of workers.
	limit(mpi.AnnotationMaxGPUs, "2", "in a pod: must be at most 2")
	limit(mpi.AnnotationMaxWorkers, "2", "[Worker].replicas: Invalid value: 3: must be at most 2")
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			grow, refusal := tests[name].grow, "must be at most 2"
			update(t, "it runs and grows", refusal, object, grow)
			update(t, "it is suspended and grows", refusal, object, suspend(object, true), grow)
			update(t, "it is suspended", "", object, suspend(object, true))
			update(t, "it grows while it is suspended", refusal, object, grow)
			update(t, "it is resumed and grows", refusal, object, suspend(object, false), grow)
			update(t, "it is resumed", "", object, suspend(object, false))
		})
	}
	for name, value := range map[string]string{mpi.AnnotationMaxWorkers: "9", mpi.AnnotationMaxGPUs: "9"} {
		if err := annotate(name, value); err != nil {
			t.Fatal(err)
		}
	}
	limit(mpi.AnnotationNodeLabels, "pool=other", "nodeSelector")
	for name, object := range objects {
		t.Run(name+" elsewhere", func(t *testing.T) {
			update(t, "it is suspended", "", object, suspend(object, true))
			refusal := "nodeSelector"
			if tests[name].anywhere {
				refusal = ""
			}
			update(t, "it is resumed", refusal, object, suspend(object, false))
		})
	}
}
