package runner

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// TestWithoutPolicies: where the API server does not check the right to create TrainJobs, the operator creates none for a user.
func TestWithoutPolicies(t *testing.T) {
	t.Parallel()
	policies := meta.NewDefaultRESTMapper(nil)
	policies.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), meta.RESTScopeRoot)
	for name, test := range map[string]struct {
		mapper  meta.RESTMapper
		phase   v1alpha1.TestPhase
		message string
	}{
		"Kubernetes 1.29": {meta.NewDefaultRESTMapper(nil), v1alpha1.TestFailed, "RuntimeTests require Kubernetes 1.30 or later"},
		"Kubernetes 1.30": {policies, v1alpha1.TestPending, "Kubeflow Trainer is not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &runtimeTests{mapper: test.mapper, clock: clock.RealClock{}}
			var of v1alpha1.RuntimeTest
			if _, err := r.proceed(t.Context(), &of); err != nil {
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
