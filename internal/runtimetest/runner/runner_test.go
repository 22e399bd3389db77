package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

// installed returns the policy and its binding as they are installed.
func installed(t *testing.T) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "webhook", "runtimetests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(first), policy), yaml.UnmarshalStrict([]byte(second), binding)); err != nil {
		t.Fatal(err)
	}
	return policy, binding
}

// TestWithoutPolicies: where the API server does not check the right to create TrainJobs, the operator creates none for a user.
func TestWithoutPolicies(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	policy, binding := installed(t)
	policy.CreationTimestamp, binding.CreationTimestamp = metav1.NewTime(created.Add(-time.Hour)), metav1.NewTime(created.Add(-time.Hour))
	audits, others, later := binding.DeepCopy(), binding.DeepCopy(), binding.DeepCopy()
	audits.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	others.Spec.PolicyName = "another"
	later.CreationTimestamp = metav1.NewTime(created.Add(time.Second))
	for name, test := range map[string]struct {
		objects []client.Object
		read    error
		phase   v1alpha1.TestPhase
		message string
	}{
		"Kubernetes 1.29":                    {read: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ValidatingAdmissionPolicy"}}, phase: v1alpha1.TestFailed, message: "RuntimeTests require Kubernetes 1.30 or later"},
		"nothing is installed":               {phase: v1alpha1.TestFailed, message: "RuntimeTests require the policy mpijob-runtimetest and its binding"},
		"the binding is missing":             {objects: []client.Object{policy}, phase: v1alpha1.TestFailed, message: "RuntimeTests require the policy mpijob-runtimetest and its binding"},
		"the policy is missing":              {objects: []client.Object{binding}, phase: v1alpha1.TestFailed, message: "RuntimeTests require the policy mpijob-runtimetest and its binding"},
		"the binding only records":           {objects: []client.Object{policy, audits}, phase: v1alpha1.TestFailed, message: "the binding mpijob-runtimetest enforces the policy"},
		"the binding is for another":         {objects: []client.Object{policy, others}, phase: v1alpha1.TestFailed, message: "the binding mpijob-runtimetest enforces the policy"},
		"they were installed after the test": {objects: []client.Object{policy, later}, phase: v1alpha1.TestFailed, message: "The test is older than the policy"},
		"they are installed":                 {objects: []client.Object{policy, binding}, phase: v1alpha1.TestPending, message: "Kubeflow Trainer is not installed"},
		"it cannot be found out":             {read: errors.New("no answer"), message: "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := interceptor.NewClient(mpitest.FakeAPI().WithObjects(test.objects...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.read != nil {
						return test.read
					}
					return c.Get(ctx, key, object, options...)
				},
			})
			r := &runtimeTests{live: api, mapper: meta.NewDefaultRESTMapper(nil), clock: clock.RealClock{}}
			of := v1alpha1.RuntimeTest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
			if _, err := r.proceed(t.Context(), &of); test.phase == "" {
				if err == nil || !strings.Contains(err.Error(), test.message) || of.Status.CompletionTime != nil {
					t.Errorf("the error is %v, and the test is %s; want %q", err, of.Status.Phase, test.message)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			if of.Status.Phase != test.phase || !strings.Contains(of.Status.Message, test.message) {
				t.Errorf("the test is %s: %s; want %s: %s", of.Status.Phase, of.Status.Message, test.phase, test.message)
			}
			if over := of.Status.CompletionTime != nil; over != (test.phase == v1alpha1.TestFailed) {
				t.Errorf("the test has ended: %v", over)
			}
		})
	}
}
