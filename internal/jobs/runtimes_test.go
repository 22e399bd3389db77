package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

func clusterRuntime(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	runtime := parsed(t, "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: "+name+"}, spec: "+spec+"}")
	return runtime
}

func TestDescribeRuntime(t *testing.T) {
	t.Parallel()
	const launcher = `{name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: launcher-image, resources: {requests: {cpu: 1}}}]}}}}}`
	const node = `{name: node, template: {spec: {template: {spec: {containers: [{name: log, image: logger}, {name: node, image: worker-image, resources: {requests: {cpu: 2}}}]}}}}}`
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   Runtime
		// errs are parts of the errors, in order.
		errs []string
	}{
		"all set": {
			object: object(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: r, annotations: {mpi.opendatahub.io/mpi-implementation: MPICH, mpi.opendatahub.io/max-workers: "8", mpi.opendatahub.io/max-gpus-per-worker: "4", mpi.opendatahub.io/required-node-labels: pool=gpu, mpi.opendatahub.io/allow-egress: 10.0.0.0/8}},
  spec: {mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 2, runLauncherAsNode: true, sshAuthMountPath: /keys}}, template: {metadata: {annotations: {mpi.opendatahub.io/mpi-implementation: MPICH}}, spec: {replicatedJobs: [`+launcher+`, `+node+`]}}}}`),
			want: Runtime{
				Kind: "TrainingRuntime", Namespace: "ns", Name: "r", MPI: true, Implementation: "MPICH", Slots: 2, LauncherRunsRanks: true, KeyPath: "/keys",
				MaxWorkers: "8", MaxGPUs: "4", NodeLabels: "pool=gpu", AllowEgress: "10.0.0.0/8", Image: "worker-image",
				Containers: []RuntimeContainer{{Job: "launcher", Image: "launcher-image"}, {Job: "node", Image: "logger"}, {Job: "node", Image: "worker-image"}},
			},
		},
		"defaults and errors": {
			object: clusterRuntime(t, "r", `{mlPolicy: {numNodes: 4, mpi: {}}, template: {spec: {replicatedJobs: [`+launcher+`]}}}`),
			want:   Runtime{Kind: "ClusterTrainingRuntime", Name: "r", MPI: true, Implementation: "OpenMPI", DefaultImplementation: true, Slots: 1, Image: "launcher-image", Containers: []RuntimeContainer{{Job: "launcher", Image: "launcher-image"}}},
			errs:   []string{"spec.mlPolicy.numNodes: Invalid value: 4", "spec.template.spec.replicatedJobs: Required value"},
		},
		"another framework": {
			object: clusterRuntime(t, "torch", `{mlPolicy: {torch: {}}, template: {spec: {replicatedJobs: [`+node+`]}}}`),
			want:   Runtime{Kind: "ClusterTrainingRuntime", Name: "torch", Image: "worker-image", Containers: []RuntimeContainer{{Job: "node", Image: "logger"}, {Job: "node", Image: "worker-image"}}},
		},
		"unreadable": {
			object: clusterRuntime(t, "r", `{mlPolicy: {numNodes: many}}`),
			want:   Runtime{Kind: "ClusterTrainingRuntime", Name: "r", Unreadable: true},
			errs:   []string{"cannot be read: "},
		},
	} {
		got := describeRuntime(test.object)
		if len(got.Errors) != len(test.errs) || !slices.EqualFunc(got.Errors, test.errs, strings.Contains) {
			t.Errorf("%s: errors %q, want %q", name, got.Errors, test.errs)
		}
		for i, c := range got.Containers {
			if cpu := c.Requests.Cpu(); cpu.Value() != map[string]int64{"launcher": 1, "node": 2}[c.Job] {
				t.Errorf("%s: %s requests %s cores", name, c.Job, cpu)
			}
			got.Containers[i].Requests = nil
		}
		got.Errors, got.Object = nil, nil
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestRuntimeOfTheOtherKind: the error about a runtime that does not exist names the one of the other kind.
func TestRuntimeOfTheOtherKind(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, clusterRuntime(t, "torch", "{}"), object(t, "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: mine}, spec: {}}"))
	for name, test := range map[string]struct{ kind, runtime, want string }{
		"of the cluster":   {trainjob.RuntimeKind, "torch", `TrainingRuntime "torch" not found; did you mean ClusterTrainingRuntime torch?`},
		"of the namespace": {"", "mine", `ClusterTrainingRuntime "mine" not found; did you mean TrainingRuntime mine?`},
		"misspelled":       {"", "tors", `runtime "tors" not found; did you mean torch?`},
	} {
		job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: trainjob.Spec{RuntimeRef: trainjob.RuntimeRef{Kind: test.kind, Name: test.runtime}}}
		if _, err := c.RuntimeOf(t.Context(), job); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestFindRuntime(t *testing.T) {
	t.Parallel()
	ours := func(name string) *unstructured.Unstructured {
		return object(t, "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: "+name+"}, spec: {}}")
	}
	c, s := newServer(t, clusterRuntime(t, "both", "{}"), clusterRuntime(t, "broken", "{mlPolicy: {numNodes: many}}"), clusterRuntime(t, "torch", "{}"), ours("both"), ours("mine"))
	list, err := c.Runtimes(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range list.Runtimes {
		names = append(names, one.Kind+"/"+one.Name)
	}
	if diff := cmp.Diff([]string{"ClusterTrainingRuntime/both", "TrainingRuntime/both", "ClusterTrainingRuntime/broken", "TrainingRuntime/mine", "ClusterTrainingRuntime/torch"}, names); diff != "" {
		t.Errorf("runtimes (-want +got)\n%s", diff)
	}
	for reference, want := range map[string]string{
		"mine": "TrainingRuntime/mine", "torch": "ClusterTrainingRuntime/torch", "trainingruntimes/both": "TrainingRuntime/both", "ClusterTrainingRuntime/both": "ClusterTrainingRuntime/both",
		"both":                 `several runtimes are named "both"; use clustertrainingruntime/both or trainingruntime/both`,
		"mein":                 `runtime "mein" not found; did you mean mine?`,
		"trainingruntime/tors": `runtime "trainingruntime/tors" not found; did you mean torch?`,
	} {
		one, err := c.FindRuntime(t.Context(), "ns", reference)
		if got := one.Kind + "/" + one.Name; err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%s is %s, %v; want %s", reference, got, err, want)
		}
	}

	s.refuse = func(_, kind string) error {
		if kind == "ClusterTrainingRuntimeList" {
			return forbidden("clustertrainingruntimes")
		}
		return nil
	}
	if list, err := c.Runtimes(t.Context(), "ns"); err != nil || len(list.Runtimes) != 2 || len(list.Omitted) != 1 || !apierrors.IsForbidden(list.Omitted[0].Err) {
		t.Errorf("without the right to read those of the cluster: %+v, %v", list, err)
	}
	if _, err := c.FindRuntime(t.Context(), "ns", "torch"); !apierrors.IsForbidden(err) {
		t.Errorf("a runtime that may be one of the cluster: %v", err)
	}
	s.refuse = func(_, kind string) error { return missing(kind) }
	if _, err := c.FindRuntime(t.Context(), "ns", "mine"); err == nil || err.Error() != (&NoTrainerError{}).Error() {
		t.Errorf("without Trainer: %v", err)
	}
	s.refuse = func(string, string) error { return context.DeadlineExceeded }
	if _, err := c.Runtimes(t.Context(), "ns"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a failing request: %v", err)
	}
}

func TestRuntimeTestSpec(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	spec := RuntimeTestSpec{Namespace: "ns", Kind: "TrainingRuntime", Name: long, Image: "i", CPU: "500m", Memory: "1Gi", GPU: "0", Queue: "q", Timeout: time.Minute, TTL: time.Hour}
	test, err := spec.object()
	if err != nil {
		t.Fatal(err)
	}
	resources := test.Spec.ResourcesPerNode
	if len(resources.Requests) != 2 || resources.Requests.Cpu().String() != "500m" || len(resources.Limits) != 1 || resources.Limits.Memory().String() != "1Gi" {
		t.Errorf("it requests %v, with the limits %v", resources.Requests, resources.Limits)
	}
	of := RuntimeTestSpec{Namespace: "ns", Name: "r", GPU: "1", Timeout: time.Minute}
	for name, want := range map[string]string{"": "nvidia.com/gpu", "amd.com/gpu": "amd.com/gpu", "nvidia.com/mig-1g.5gb": "nvidia.com/mig-1g.5gb"} {
		of.GPUResource = name
		test, err := of.object()
		if err != nil {
			t.Fatal(err)
		}
		one := corev1.ResourceList{corev1.ResourceName(want): resource.MustParse("1")}
		if diff := cmp.Diff(&corev1.ResourceRequirements{Requests: one, Limits: one}, test.Spec.ResourcesPerNode); diff != "" {
			t.Errorf("GPUs of %q (-want +got)\n%s", name, diff)
		}
	}
	for _, name := range []string{"gpu", "a b/gpu"} {
		of.GPUResource = name
		if err := of.Validate(); err == nil || err.Error() != "gpuResource: "+name+" is not the name of a GPU resource; use one such as amd.com/gpu" {
			t.Errorf("GPUs of %q: %v", name, err)
		}
	}
	test.Spec.ResourcesPerNode = nil
	want := &v1alpha1.RuntimeTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: long[:39] + "-", Labels: map[string]string{mpi.LabelQueue: "q"}},
		Spec:       v1alpha1.RuntimeTestSpec{RuntimeRef: v1alpha1.RuntimeReference{Name: long, Kind: "TrainingRuntime"}, Image: "i", TimeoutSeconds: 60, TTLSecondsAfterFinished: new(int32(3600))},
	}
	if diff := cmp.Diff(want, test); diff != "" {
		t.Errorf("test (-want +got)\n%s", diff)
	}
	if test, err := (RuntimeTestSpec{Namespace: "ns", Name: "r", Timeout: time.Minute}).object(); err != nil || test.Spec.ResourcesPerNode != nil || test.Spec.TTLSecondsAfterFinished != nil || test.Labels != nil {
		t.Errorf("without options: %+v, %v", test, err)
	}
	err = RuntimeTestSpec{CPU: "lots", GPU: "-1", Timeout: time.Second}.Validate()
	const wrong = "namespace: is required; the test runs there; name: is required; timeout: 1s is not allowed; use 10s to 1h; cpu: lots is not a quantity; use a value such as 2, 500m or 1Gi; gpu: -1 is not a quantity; use a value such as 2, 500m or 1Gi"
	if err == nil || err.Error() != wrong {
		t.Errorf("the errors are %v", err)
	}
}

func TestDeleteRuntime(t *testing.T) {
	t.Parallel()
	kept := clusterRuntime(t, "kept", "")
	kept.SetFinalizers([]string{"trainer.kubeflow.org/resource-in-use"})
	c, s := newServer(t, clusterRuntime(t, "free", ""), kept)
	for name, wantKept := range map[string]bool{"free": false, "kept": true} {
		runtime, err := c.FindRuntime(t.Context(), "", name)
		if err != nil {
			t.Fatal(err)
		}
		if isKept, err := c.DeleteRuntime(t.Context(), runtime); err != nil || isKept != wantKept {
			t.Errorf("%s: kept is %t, %v", name, isKept, err)
		}
		if name != "free" {
			continue
		}
		if _, err := c.DeleteRuntime(t.Context(), runtime); err != nil {
			t.Errorf("a runtime that is gone: %v", err)
		}
	}
	list, err := c.Runtimes(t.Context(), "")
	if err != nil || len(list.Runtimes) != 1 || list.Runtimes[0].Object.GetDeletionTimestamp() == nil {
		t.Errorf("after the deletion: %+v, %v", list.Runtimes, err)
	}
	s.refuse = func(verb, _ string) error {
		if verb == "delete" {
			return forbidden("clustertrainingruntimes")
		}
		return nil
	}
	if _, err := c.DeleteRuntime(t.Context(), list.Runtimes[0]); !apierrors.IsForbidden(err) {
		t.Errorf("without the right: %v", err)
	}
}

// TestRunRuntimeTest starts a test, waits for it and deletes it, while a controller writes its status.
func TestRunRuntimeTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newServer(t)
		test, err := c.StartRuntimeTest(t.Context(), RuntimeTestSpec{Namespace: "ns", Name: "r", Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		set := func(status v1alpha1.RuntimeTestStatus) {
			var stored v1alpha1.RuntimeTest
			if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(test), &stored); err != nil {
				t.Fatal(err)
			}
			stored.Status = status
			if err := s.api.Update(t.Context(), &stored); err != nil {
				t.Fatal(err)
			}
		}
		checks := []v1alpha1.RuntimeCheck{{Name: "ImagePull", Result: v1alpha1.CheckPass}, {Name: "Keys", Result: v1alpha1.CheckPending}, {Name: "Connect", Result: v1alpha1.CheckUnknown}}
		var seen []string
		each := func(test v1alpha1.RuntimeTest) {
			text := string(test.Status.Phase)
			for _, check := range DecidedChecks(test) {
				text += " " + string(check.Name)
			}
			if len(seen) == 0 || seen[len(seen)-1] != text {
				seen = append(seen, text)
			}
			switch text {
			case "":
				set(v1alpha1.RuntimeTestStatus{Phase: v1alpha1.TestRunning, Checks: checks})
			case "Running ImagePull":
				set(v1alpha1.RuntimeTestStatus{Phase: v1alpha1.TestFailed, Checks: checks, CompletionTime: ago(0)})
			}
		}
		last, err := c.AwaitRuntimeTest(t.Context(), test, each)
		if err != nil || last.Status.Phase != v1alpha1.TestFailed {
			t.Errorf("the test is %+v, %v", last, err)
		}
		if diff := cmp.Diff([]string{"", "Running ImagePull", "Failed ImagePull Connect"}, seen); diff != "" {
			t.Errorf("seen (-want +got)\n%s", diff)
		}
		if tests, err := c.RuntimeTests(t.Context(), "ns"); err != nil || len(tests) != 1 {
			t.Errorf("the tests are %v, %v", tests, err)
		}

		set(v1alpha1.RuntimeTestStatus{})
		began := time.Now()
		last, err = c.AwaitRuntimeTest(t.Context(), test, func(v1alpha1.RuntimeTest) {})
		if waited := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || last == nil || waited != 6*time.Minute {
			t.Errorf("a test without an operator: %v after %s", err, waited)
		}
		for range 2 { // the second finds nothing to delete
			if err := c.DeleteRuntimeTest(t.Context(), test); err != nil {
				t.Error(err)
			}
		}
		if _, err = c.AwaitRuntimeTest(t.Context(), test, func(v1alpha1.RuntimeTest) {}); !apierrors.IsNotFound(err) {
			t.Errorf("a deleted test: %v", err)
		}
		s.refuse = func(string, string) error { return missing("RuntimeTest") }
		if _, err := c.StartRuntimeTest(t.Context(), RuntimeTestSpec{Namespace: "ns", Name: "r", Timeout: time.Minute}); err == nil || err.Error() != (&NoOperatorError{Kind: "RuntimeTest"}).Error() {
			t.Errorf("without the operator: %v", err)
		}
	})
}

func TestRuntimeImage(t *testing.T) {
	t.Parallel()
	if got := describeRuntime(clusterRuntime(t, "r", `{template: {spec: {replicatedJobs: [{name: main, template: {spec: {template: {spec: {containers: [{name: other, image: x}]}}}}}]}}}`)); got.Image != "" {
		t.Errorf("the image is %q although no container is Trainer's", got.Image)
	}
}
