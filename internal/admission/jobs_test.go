package admission

import (
	"encoding/json"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestUpdates: a changed annotation of an existing job is validated. What was invalid before blocks no other change, and nothing
// blocks changes of jobs that are over or being deleted.
func TestUpdates(t *testing.T) {
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{kubeflow.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	handler := &validator{kind: mpijob.Kind{}, decoder: admission.NewDecoder(scheme), cluster: cluster.New(api, api, nil, clock.RealClock{}), gangs: noGangs{}}

	type change = func(*kubeflow.MPIJob)
	annotate := func(name, value string) change {
		return func(o *kubeflow.MPIJob) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, name, value) }
	}
	spec := func(apply change) change { return func(o *kubeflow.MPIJob) { o.Generation++; apply(o) } }
	suspend := spec(func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) })
	label := func(o *kubeflow.MPIJob) { o.Labels = map[string]string{"team": "a"} }
	running := func(o *kubeflow.MPIJob) {
		o.Generation = 1
		o.Status.Conditions = []kubeflow.JobCondition{{Type: kubeflow.JobCreated, Status: corev1.ConditionTrue}, {Type: kubeflow.JobRunning, Status: corev1.ConditionTrue}}
	}
	finished := func(o *kubeflow.MPIJob) {
		running(o)
		o.Status.Conditions = append(o.Status.Conditions, kubeflow.JobCondition{Type: kubeflow.JobSucceeded, Status: corev1.ConditionTrue})
	}
	deleted := func(o *kubeflow.MPIJob) {
		running(o)
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: mpitest.Now}, []string{"example.com/wait"}
	}
	silence := annotate(mpi.AnnotationSilence, "x y")
	const wrong = "metadata.annotations[mpi.opendatahub.io/silent-after]: Invalid value: \"x y\": must be a duration of at least 10s"
	tests := map[string]struct {
		before, after []change
		refused       string
		warned        string
	}{
		"a label":                              {before: []change{running}, after: []change{label}},
		"a valid annotation":                   {before: []change{running}, after: []change{annotate(mpi.AnnotationSilence, "1h")}},
		"an invalid annotation":                {before: []change{running}, after: []change{silence}, refused: wrong},
		"an invalid annotation with a field":   {before: []change{running}, after: []change{silence, suspend}, refused: wrong},
		"a label, with an invalid annotation":  {before: []change{running, silence}, after: []change{label}},
		"suspension, with an invalid one":      {before: []change{running, silence}, after: []change{suspend}, warned: wrong},
		"another invalid one":                  {before: []change{running, silence}, after: []change{annotate(mpi.AnnotationRDMA, "x")}, refused: "rdma"},
		"the correction of an invalid one":     {before: []change{running, silence}, after: []change{annotate(mpi.AnnotationSilence, "1h")}},
		"an invalid annotation, once it ended": {before: []change{finished}, after: []change{silence}},
		"anything, while it is being deleted":  {before: []change{deleted}, after: []change{silence, spec(func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = new(int32(-1)) })}},
		"its finalizers":                       {before: []change{deleted, silence}, after: []change{func(o *kubeflow.MPIJob) { o.Finalizers = nil }}},
		"an annotation without an effect":      {before: []change{running}, after: []change{annotate(mpi.AnnotationTTL, "60")}, warned: "ttlSecondsAfterFinished"},
		"the launch mode":                      {before: []change{running}, after: []change{annotate(mpi.AnnotationLaunch, "ssh")}, refused: `mpi.opendatahub.io/launch]: Unsupported value: "ssh"`},
		"an invalid field":                     {before: []change{running}, after: []change{spec(func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = new(int32(-1)) })}, refused: "spec.slotsPerWorker: Invalid value: -1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := mpitest.MPIJob("ns", 2, test.before...)
			after := before.DeepCopy()
			for _, apply := range test.after {
				apply(after)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: "ns", Name: "pi"}}
			for object, into := range map[*kubeflow.MPIJob]*k8sruntime.RawExtension{before: &request.OldObject, after: &request.Object} {
				object.TypeMeta = metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: "MPIJob"}
				raw, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				into.Raw = raw
			}
			got := handler.Handle(t.Context(), request)
			if got.Allowed != (test.refused == "") || !got.Allowed && !strings.Contains(got.Result.Message, test.refused) {
				t.Errorf("allowed: %t: %+v", got.Allowed, got.Result)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, test.warned) || test.warned == "" && warnings != "" && got.Allowed {
				t.Errorf("warnings are %q", warnings)
			}
		})
	}
}
