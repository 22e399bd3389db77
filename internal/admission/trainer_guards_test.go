package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestNameTaken: JobSet would take a Service of the job's name for its own.
func TestNameTaken(t *testing.T) {
	tests := map[string]struct {
		owner *metav1.OwnerReference
		none  bool
		says  string
	}{
		"no Service":               {none: true},
		"an earlier TrainJob's":    {owner: &metav1.OwnerReference{Kind: "JobSet", Name: "pi", UID: "old", Controller: new(true)}},
		"an MPIJob's":              {owner: &metav1.OwnerReference{Kind: "MPIJob", Name: "pi", UID: "u", Controller: new(true)}, says: "that of MPIJob pi"},
		"another owner's, by hand": {says: "that of another owner"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := mpitest.FakeAPI()
			if !test.none {
				service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi"}}
				if test.owner != nil {
					service.OwnerReferences = []metav1.OwnerReference{*test.owner}
				}
				have = have.WithObjects(service)
			}
			err := checkServiceName(t.Context(), have.Build(), trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi"}})
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("the answer is %v, want %q", err, test.says)
			}
		})
	}
}

// TestClosedDestinations: a runtime of a namespace is warned of what it cannot allow.
func TestClosedDestinations(t *testing.T) {
	const allowed = "2049,169.254.169.254:80,0.0.0.0/0,namespace/minio,wrong"
	got := closedDestinations(trainjob.RuntimeKind, allowed)
	if len(got) != 1 || !strings.Contains(got[0], "metadata.annotations[mpi.opendatahub.io/allow-egress]: 169.254.169.254/32:80 has no effect") {
		t.Errorf("the warnings are %q", got)
	}
	if got := closedDestinations(trainjob.ClusterRuntimeKind, allowed); len(got) > 0 {
		t.Errorf("an administrator is warned: %q", got)
	}
}

// TestTrainJobsAreWarnedOfDeniedConnections: what a TrainJob mentions is compared with its policy if it gets one: with MPI, and
// without it if the administrator isolates all TrainJobs.
func TestTrainJobsAreWarnedOfDeniedConnections(t *testing.T) {
	const denied = "denies connections to data.example.com:80; to use it, ask an administrator to add 80 to the annotation mpi.opendatahub.io/allow-egress of Namespace ns"
	withMPI := plan.Settings{NetworkPolicies: true}
	all := plan.Settings{NetworkPolicies: true, IsolatesAllTrainJobs: true}
	for name, test := range map[string]struct {
		settings plan.Settings
		mpi      bool
		warned   bool
	}{
		"with MPI":                                {settings: withMPI, mpi: true, warned: true},
		"without MPI":                             {settings: withMPI},
		"without MPI, all are isolated":           {settings: all, warned: true},
		"with MPI, the operator isolates none":    {mpi: true},
		"without MPI, the operator isolates none": {settings: plan.Settings{IsolatesAllTrainJobs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, job, used := jobSetOf(t)
			if !test.mpi {
				used.SetAnnotations(nil)
				unstructured.RemoveNestedField(used.Object, "spec", "mlPolicy")
			}
			_ = unstructured.SetNestedStringSlice(job.Object, []string{"sh", "-c", "curl http://data.example.com/x"}, "spec", "trainer", "command")
			api := mpitest.FakeAPI().WithObjects(used).Build()
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Name: "pi", Object: rawOf(t, job)}}
			answer := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), test.settings, noGangs{}, request)
			if got := strings.Contains(strings.Join(answer.Warnings, "\n"), denied); got != test.warned {
				t.Errorf("the answer is %+v, want a warning: %v", answer, test.warned)
			}
		})
	}
}

// TestInvalidPodsOfTrainJobsAreRefused: a TrainJob whose pods the API server refuses because of its own fields is refused.
func TestInvalidPodsOfTrainJobsAreRefused(t *testing.T) {
	_, job, used := jobSetOf(t)
	for path, value := range map[string]any{
		"numNodes": int64(2), "command": []any{"mpirun", "pi"}, "env": []any{map[string]any{"name": "A=B", "value": "c"}},
		"resourcesPerNode": map[string]any{"requests": map[string]any{"memory": "2Gi"}, "limits": map[string]any{"memory": "1Gi"}},
	} {
		if err := unstructured.SetNestedField(job.Object, value, "spec", "trainer", path); err != nil {
			t.Fatal(err)
		}
	}
	main := field.NewPath("spec", "containers").Index(0)
	api := mpitest.FakeAPI().WithObjects(used).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "preflight-", field.ErrorList{
				field.Invalid(main.Child("env").Index(0).Child("name"), "A=B", "must not contain '='"),
				field.Invalid(main.Child("resources", "requests"), "2Gi", "must be less than or equal to memory limit of 1Gi"),
			})
		},
	}).Build()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Name: "pi", Object: rawOf(t, job)}}
	answer := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
	if answer.Allowed || answer.Result == nil {
		t.Fatal("the job is admitted")
	}
	var got []string
	for _, cause := range answer.Result.Details.Causes {
		got = append(got, cause.Field+": "+cause.Message)
	}
	want := []string{
		`spec.trainer.resourcesPerNode.requests[memory]: Invalid value: "2Gi": must be at most its limit, 1Gi`,
		`spec.trainer.env[0].name: Invalid value: "A=B": must not contain '='`,
	}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("it is refused for %q, want %q", got, want)
		}
	}
}

// TestInvalidChangesOfTrainJobsAreRefused: pods that the API server would refuse are refused when a suspended TrainJob is changed. A
// queue can always resume one.
func TestInvalidChangesOfTrainJobsAreRefused(t *testing.T) {
	type state struct {
		memory  string
		suspend bool
	}
	for name, test := range map[string]struct {
		before, after state
		queue         string
		tried         bool
		refused       bool
	}{
		"changed while suspended":            {before: state{"1Gi", true}, after: state{"2Gi", true}, tried: true, refused: true},
		"changed while suspended in a queue": {before: state{"1Gi", true}, after: state{"2Gi", true}, queue: "team", tried: true, refused: true},
		"changed and resumed":                {before: state{"1Gi", true}, after: state{"2Gi", false}, tried: true, refused: true},
		"resumed":                            {before: state{"1Gi", true}, after: state{"1Gi", false}},
		"resumed by a queue with a change":   {before: state{"1Gi", true}, after: state{"2Gi", false}, queue: "team"},
		"suspended":                          {before: state{"1Gi", false}, after: state{"1Gi", true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, job, used := jobSetOf(t)
			tried := false
			api := mpitest.FakeAPI().WithObjects(used).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					tried = true
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "preflight-", field.ErrorList{
						field.Invalid(field.NewPath("spec", "containers").Index(0).Child("resources", "requests"), "2Gi", "must be less than or equal to node limits"),
					})
				},
			}).Build()
			in := func(generation int64, s state) *unstructured.Unstructured {
				written := job.DeepCopy()
				written.SetGeneration(generation)
				if test.queue != "" {
					written.SetLabels(map[string]string{mpi.LabelQueue: test.queue})
				}
				for path, value := range map[string]any{
					"numNodes": int64(2), "command": []any{"mpirun", "pi"}, "resourcesPerNode": map[string]any{"requests": map[string]any{"memory": s.memory}},
				} {
					if err := unstructured.SetNestedField(written.Object, value, "spec", "trainer", path); err != nil {
						t.Fatal(err)
					}
				}
				if err := unstructured.SetNestedField(written.Object, s.suspend, "spec", "suspend"); err != nil {
					t.Fatal(err)
				}
				return written
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Namespace: "ns", Name: "pi", OldObject: rawOf(t, in(1, test.before)), Object: rawOf(t, in(2, test.after)),
			}}
			answer := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
			if tried != test.tried || answer.Allowed == test.refused {
				t.Errorf("pods were tried: %v; the answer is %+v %+v", tried, answer, answer.Result)
			}
			if test.refused && !strings.Contains(answer.Result.Message, "spec.trainer.resourcesPerNode.requests") {
				t.Errorf("it is refused for %q", answer.Result.Message)
			}
		})
	}
}

// TestTrainJobsKeepLimitsOfNamespace: a TrainJob beyond a limit of its namespace is refused when it is created, and when it grows, with any
// runtime. One that was created before the limit can be resumed.
func TestTrainJobsKeepLimitsOfNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		mpi         bool
		before      *bool
		after       bool
		grows       bool
		refused     string
	}{
		"within":                  {annotations: map[string]string{mpi.AnnotationMaxWorkers: "4"}, mpi: true},
		"too many nodes":          {annotations: map[string]string{mpi.AnnotationMaxWorkers: "1"}, mpi: true, refused: "must be at most 1, the limit of the namespace ns"},
		"without MPI":             {annotations: map[string]string{mpi.AnnotationMaxWorkers: "1"}, refused: "must be at most 1, the limit of the namespace ns"},
		"on other nodes":          {annotations: map[string]string{mpi.AnnotationNodeLabels: "pool=other"}, refused: "must have pool: other, which the namespace ns requires"},
		"a limit that is invalid": {annotations: map[string]string{mpi.AnnotationMaxGPUs: "x"}, mpi: true, refused: "the namespace ns has an invalid limit"},
		"it is suspended":         {annotations: map[string]string{mpi.AnnotationMaxWorkers: "1"}, mpi: true, before: new(false), after: true},
		"it is resumed":           {annotations: map[string]string{mpi.AnnotationMaxWorkers: "1"}, mpi: true, before: new(true)},
		"it grows":                {annotations: map[string]string{mpi.AnnotationMaxWorkers: "1"}, mpi: true, before: new(true), after: true, grows: true, refused: "must be at most 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, job, used := jobSetOf(t)
			if !test.mpi {
				used.SetAnnotations(nil)
				unstructured.RemoveNestedField(used.Object, "spec", "mlPolicy")
			}
			for path, value := range map[string]any{"numNodes": int64(2), "command": []any{"mpirun", "pi"}} {
				if err := unstructured.SetNestedField(job.Object, value, "spec", "trainer", path); err != nil {
					t.Fatal(err)
				}
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: test.annotations}}
			api := mpitest.FakeAPI().WithObjects(used, namespace).Build()
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Name: "pi"}}
			if test.before != nil {
				request.Operation = admissionv1.Update
				before := job.DeepCopy()
				_ = unstructured.SetNestedField(before.Object, *test.before, "spec", "suspend")
				if test.grows {
					_ = unstructured.SetNestedField(before.Object, int64(1), "spec", "trainer", "numNodes")
				}
				request.OldObject = rawOf(t, before)
				job.SetGeneration(2)
				_ = unstructured.SetNestedField(job.Object, test.after, "spec", "suspend")
			}
			request.Object = rawOf(t, job)
			answer := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
			if answer.Allowed != (test.refused == "") || test.refused != "" && !strings.Contains(answer.Result.Message, test.refused) {
				t.Errorf("the answer is %+v %+v, want %q", answer, answer.Result, test.refused)
			}
		})
	}
}

// TestTrainJobsOfTheOtherKindOfRuntime: a TrainJob whose runtime does not exist gets the warning that names the one of the other kind. Kubeflow
// Trainer refuses it.
func TestTrainJobsOfTheOtherKindOfRuntime(t *testing.T) {
	_, job, used := jobSetOf(t)
	_ = unstructured.SetNestedField(job.Object, trainjob.RuntimeKind, "spec", "runtimeRef", "kind")
	api := mpitest.FakeAPI().WithObjects(used).Build()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Name: "pi", Object: rawOf(t, job)}}
	answer := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
	if !answer.Allowed || !strings.Contains(strings.Join(answer.Warnings, "\n"), "but a ClusterTrainingRuntime of this name: remove kind") {
		t.Errorf("the answer is %+v", answer)
	}
}

// TestOwnLimitsStay: the limits of a namespace apply while those of the operator's cannot be read.
func TestOwnLimitsStay(t *testing.T) {
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{mpi.AnnotationMaxWorkers: "4"}}}
	api := mpitest.FakeAPI().WithObjects(own).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == "mpijob-system" {
				return errors.New("no answer")
			}
			return api.Get(ctx, key, object, options...)
		},
	}).Build()
	limits := namespaceLimits(t.Context(), cluster.New(api, api, nil, clock.RealClock{}), "ns", plan.Settings{OperatorNamespace: "mpijob-system"})
	if value, isDefault, set := limits.Get(mpi.AnnotationMaxWorkers); value != "4" || isDefault || !set {
		t.Errorf("the limits are %+v", limits)
	}
}
