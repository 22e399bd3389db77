package admission

import (
	"encoding/json"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

const nothingEncrypts = "nothing on this cluster is known to do so"

// inNamespace is the namespace of jobs, which requires encryption, and what encrypts.
func inNamespace(encrypted bool) []client.Object {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{mpi.AnnotationRequireEncryption: "true"}}}}
	if encrypted {
		objects = append(objects, mpitest.Encrypted()...)
	}
	return objects
}

// TestChangesOfMPIJobsKeepEncryption: a change of an MPIJob is refused by which its pods would communicate in plain text. A queue can
// always resume it.
func TestChangesOfMPIJobsKeepEncryption(t *testing.T) {
	type change = func(*kubeflow.MPIJob)
	worker := func(apply func(*corev1.PodTemplateSpec)) change {
		return func(o *kubeflow.MPIJob) { apply(&o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template) }
	}
	suspended := func(is bool) change { return func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = &is } }
	hosts := worker(func(pod *corev1.PodTemplateSpec) { pod.Spec.HostNetwork = true })
	network := worker(func(pod *corev1.PodTemplateSpec) { pod.Annotations = map[string]string{mpi.MultusNetworks: "fabric/a"} })
	device := worker(func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"rdma/hca": resource.MustParse("1")}
	})
	selected := worker(func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector = map[string]string{"pool": "a"} })
	alone := func(o *kubeflow.MPIJob) { delete(o.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker) }
	for name, test := range map[string]struct {
		before, after []change
		encrypted     bool
		refused       string
		warned        string
	}{
		"suspended, to the host network":         {before: []change{suspended(true)}, after: []change{suspended(true), hosts}, encrypted: true, refused: "spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: Forbidden"},
		"suspended, to a secondary network":      {before: []change{suspended(true)}, after: []change{suspended(true), network}, encrypted: true, refused: "secondary networks"},
		"suspended, to RDMA":                     {before: []change{suspended(true)}, after: []change{suspended(true), device}, encrypted: true, refused: "RDMA (rdma/hca)"},
		"resumed with the change":                {before: []change{suspended(true)}, after: []change{hosts}, encrypted: true, refused: "hostNetwork"},
		"suspended with the change":              {after: []change{suspended(true), hosts}, encrypted: true, refused: "hostNetwork"},
		"another plain text":                     {before: []change{suspended(true), hosts}, after: []change{suspended(true), hosts, network}, encrypted: true, refused: "secondary networks"},
		"grown from one pod":                     {before: []change{suspended(true), alone}, after: []change{suspended(true)}, refused: nothingEncrypts},
		"grown from one pod, encrypted":          {before: []change{suspended(true), alone}, after: []change{suspended(true)}, encrypted: true},
		"one pod in the host network":            {before: []change{suspended(true)}, after: []change{suspended(true), hosts, alone}, encrypted: true},
		"corrected":                              {before: []change{suspended(true), hosts}, after: []change{suspended(true)}, encrypted: true},
		"resumed":                                {before: []change{suspended(true)}, after: []change{selected}, encrypted: true},
		"resumed by a queue, in plain text":      {before: []change{suspended(true), hosts}, after: []change{hosts, selected}, encrypted: true, warned: "hostNetwork"},
		"resumed by a queue, nothing encrypts":   {before: []change{suspended(true)}, after: []change{selected}, warned: nothingEncrypts},
		"suspended by a queue, nothing encrypts": {after: []change{suspended(true)}, warned: nothingEncrypts},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := k8sruntime.NewScheme()
			if err := kubeflow.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := mpitest.FakeAPI().WithObjects(inNamespace(test.encrypted)...).Build()
			handler := &validator{kind: mpijob.Kind{}, decoder: admission.NewDecoder(scheme), cluster: cluster.New(api, api, nil, clock.RealClock{}), gangs: noGangs{}}
			of := func(generation int64, changes []change) k8sruntime.RawExtension {
				job := mpitest.MPIJob("ns", 8, changes...)
				job.TypeMeta, job.Generation = metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: "MPIJob"}, generation
				raw, err := json.Marshal(job)
				if err != nil {
					t.Fatal(err)
				}
				return k8sruntime.RawExtension{Raw: raw}
			}
			got := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Namespace: "ns", Name: "pi", OldObject: of(1, test.before), Object: of(2, test.after),
			}})
			if got.Allowed != (test.refused == "") || !got.Allowed && !strings.Contains(got.Result.Message, test.refused) {
				t.Errorf("allowed: %t: %+v", got.Allowed, got.Result)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, test.warned) || test.warned == "" && got.Allowed && strings.Contains(warnings, "encrypt") {
				t.Errorf("warnings are %q", warnings)
			}
		})
	}
}

// withNetwork returns a TrainJob, or a JobSet, whose workers are in a secondary network.
func withNetwork(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	changed := object.DeepCopy()
	annotated := map[string]any{"annotations": map[string]any{mpi.MultusNetworks: "fabric/a"}}
	if object.GetKind() == "JobSet" {
		jobs, _, _ := unstructured.NestedSlice(changed.Object, "spec", "replicatedJobs")
		if err := unstructured.SetNestedMap(jobs[1].(map[string]any), annotated, "template", "spec", "template", "metadata"); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedSlice(changed.Object, jobs, "spec", "replicatedJobs")
		return changed
	}
	_ = unstructured.SetNestedSlice(changed.Object, []any{map[string]any{"targetJobs": []any{map[string]any{"name": "node"}}, "metadata": annotated}}, "spec", "podTemplateOverrides")
	return changed
}

// inState returns an object with a generation that is suspended, or not.
func inState(object *unstructured.Unstructured, generation int64, suspended bool) *unstructured.Unstructured {
	changed := object.DeepCopy()
	changed.SetGeneration(generation)
	_ = unstructured.SetNestedField(changed.Object, suspended, "spec", "suspend")
	return changed
}

// TestChangesOfTrainJobsKeepEncryption: like TestChangesOfMPIJobsKeepEncryption.
func TestChangesOfTrainJobsKeepEncryption(t *testing.T) {
	for name, test := range map[string]struct {
		had, has  bool
		resumed   bool
		encrypted bool
		noMPI     bool
		refused   string
		warned    string
	}{
		"to a secondary network":               {has: true, encrypted: true, refused: "no network plug-in encrypts secondary networks; remove the annotation k8s.v1.cni.cncf.io/networks, in the job or its runtime"},
		"to a secondary network, and resumed":  {has: true, encrypted: true, resumed: true, refused: "secondary networks"},
		"to a secondary network, without MPI":  {has: true, encrypted: true, noMPI: true},
		"corrected":                            {had: true, encrypted: true},
		"resumed":                              {encrypted: true, resumed: true},
		"resumed by a queue, in plain text":    {had: true, has: true, encrypted: true, resumed: true, warned: "secondary networks"},
		"resumed by a queue, nothing encrypts": {resumed: true, warned: nothingEncrypts},
	} {
		t.Run(name, func(t *testing.T) {
			_, job, used := jobSetOf(t)
			if test.noMPI {
				used.SetAnnotations(nil)
				unstructured.RemoveNestedField(used.Object, "spec", "mlPolicy")
			}
			_ = unstructured.SetNestedStringSlice(job.Object, []string{"mpirun", "pi"}, "spec", "trainer", "command")
			was, is := job, job
			if test.had {
				was = withNetwork(t, job)
			}
			if test.has {
				is = withNetwork(t, job)
			}
			api := mpitest.FakeAPI().WithObjects(append(inNamespace(test.encrypted), used)...).Build()
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Namespace: "ns", Name: "pi", OldObject: rawOf(t, inState(was, 1, true)), Object: rawOf(t, inState(is, 2, !test.resumed)),
			}}
			got := guardTrainJob(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
			if got.Allowed != (test.refused == "") || !got.Allowed && !strings.Contains(got.Result.Message, test.refused) {
				t.Errorf("allowed: %t: %+v", got.Allowed, got.Result)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, test.warned) || test.warned == "" && got.Allowed && strings.Contains(warnings, "encrypt") {
				t.Errorf("warnings are %q", warnings)
			}
		})
	}
}

// TestJobSetsKeepEncryption: a JobSet whose pods communicate in plain text is neither created nor resumed, whatever its TrainJob and its
// runtime contain. One that runs goes on.
func TestJobSetsKeepEncryption(t *testing.T) {
	for name, test := range map[string]struct {
		plain     bool
		created   bool
		resumed   bool
		was       bool
		encrypted bool
		refused   string
	}{
		"created, encrypted":             {created: true, encrypted: true},
		"created, nothing encrypts":      {created: true, refused: nothingEncrypts},
		"created in a secondary network": {created: true, plain: true, encrypted: true, refused: "secondary networks"},
		"resumed, encrypted":             {was: true, resumed: true, encrypted: true},
		"resumed, nothing encrypts":      {was: true, resumed: true, refused: nothingEncrypts},
		"resumed in a secondary network": {was: true, resumed: true, plain: true, encrypted: true, refused: "secondary networks"},
		"suspended, nothing encrypts":    {},
		"changed while it is suspended":  {was: true, plain: true, encrypted: true},
		"runs, nothing encrypts":         {resumed: true},
	} {
		t.Run(name, func(t *testing.T) {
			jobSet, job, used := jobSetOf(t)
			is := jobSet
			if test.plain {
				is = withNetwork(t, jobSet)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, OldObject: rawOf(t, inState(jobSet, 1, test.was)), Object: rawOf(t, inState(is, 2, !test.resumed)),
			}}
			if test.created {
				request.Operation, request.OldObject.Raw = admissionv1.Create, nil
			}
			got := ask(t, plan.Settings{}, noGangs{}, &identity{}, request, append(inNamespace(test.encrypted), job, used)...)
			if got.Allowed != (test.refused == "") || !got.Allowed && !strings.Contains(got.Result.Message, test.refused) {
				t.Errorf("allowed: %t: %+v", got.Allowed, got.Result)
			}
		})
	}
}
