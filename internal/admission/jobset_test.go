package admission

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestJobSetWithoutRDMA: requests for RDMA are removed from a JobSet if the TrainJob allows it and no node offers it.
func TestJobSetWithoutRDMA(t *testing.T) {
	const jobSet = `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "pi", "namespace": "ns", "annotations": {"mpi.opendatahub.io/mpi-implementation": "OpenMPI"},
"ownerReferences": [{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "pi", "uid": "u", "controller": true}]},
"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "resources": {"limits": {"cpu": "1", "rdma/hca": "1"}}}]}}}}}]}}`
	for name, test := range map[string]struct {
		annotation string
		offered    bool
		removed    bool
		patched    bool
	}{
		"optional, and the TrainJob has patched the marker of the runtime": {annotation: mpi.RDMAOptional, removed: true, patched: true},
		"optional, not offered": {annotation: mpi.RDMAOptional, removed: true},
		"optional, offered":     {annotation: mpi.RDMAOptional, offered: true},
		"required, not offered": {annotation: mpi.RDMARequired},
		"not set":               {removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			job := trainjob.New()
			job.SetNamespace("ns")
			job.SetName("pi")
			job.SetUID("u")
			job.SetAnnotations(map[string]string{mpi.AnnotationRDMA: test.annotation})
			job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"name": "mpi"}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8")}}}
			if test.offered {
				node.Status.Allocatable["rdma/hca"] = resource.MustParse("1")
			}
			api := mpitest.FakeAPI().WithObjects(job, node).Build()
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Object: k8sruntime.RawExtension{Raw: []byte(jobSet)}}}
			if test.patched {
				request.Object.Raw = []byte(strings.Replace(jobSet, `"OpenMPI"`, `""`, 1))
			}
			answer := wireJobSet(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, &identity{}, request)
			patch, err := json.Marshal(answer.Patches)
			if err != nil || !answer.Allowed {
				t.Fatalf("the answer is %+v (%v)", answer, err)
			}
			if got := strings.Contains(string(patch), "without-rdma") && strings.Contains(string(patch), `{"op":"remove","path":"/spec/replicatedJobs/0/template/spec/template/spec/containers/0/resources/limits/rdma~1hca"}`); got != test.removed {
				t.Errorf("the patch is %s, want the request removed: %v", patch, test.removed)
			}
		})
	}
}

// jobSetOf returns a JobSet that Trainer makes of a TrainJob, and the TrainJob, which has a runtime of ours.
func jobSetOf(t *testing.T) (jobSet, job, used *unstructured.Unstructured) {
	t.Helper()
	read := func(text string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	const jobs = `replicatedJobs: [
  {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {nodeSelector: {pool: mpi}, containers: [{name: node}]}}}}},
  {name: node, template: {spec: {template: {spec: {nodeSelector: {pool: mpi}, containers: [{name: node}]}}}}}]`
	jobSet = read(`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: pi, namespace: ns, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI},
ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: pi, uid: u, controller: true}]}, spec: {` + jobs + `}}`)
	job = read(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: pi, namespace: ns, uid: u}, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 4}}}`)
	used = read(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}},
spec: {mlPolicy: {mpi: {runLauncherAsNode: true}}, template: {spec: {` + jobs + `}}}}`)
	return jobSet, job, used
}

// snapshotOf is the ConfigMap in which Trainer stores the runtime of the TrainJob, as its user may have written it.
func snapshotOf(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi-runtime-snapshot", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: "pi", UID: "u", Controller: new(true)},
		}},
		Data: map[string]string{"runtime": text},
	}
}

// wire sends a new JobSet to the webhook, which may take a moment.
func wire(t *testing.T, settings plan.Settings, gangs Gangs, jobSet *unstructured.Unstructured, objects ...client.Object) admission.Response {
	t.Helper()
	return ask(t, settings, gangs, &identity{}, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: rawOf(t, jobSet)}}, objects...)
}

func rawOf(t *testing.T, object *unstructured.Unstructured) k8sruntime.RawExtension {
	t.Helper()
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return k8sruntime.RawExtension{Raw: raw}
}

func ask(t *testing.T, settings plan.Settings, gangs Gangs, operator *identity, request admission.Request, objects ...client.Object) admission.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	api := mpitest.FakeAPI().WithObjects(objects...).Build()
	request.Namespace, request.Name = "ns", "pi"
	request.Kind = metav1.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	return wireJobSet(ctx, api, cluster.New(api, api, nil, clock.RealClock{}), settings, gangs, operator, request)
}

// allGangs holds back the pods of all jobs for which that is possible.
type allGangs struct{ noGangs }

func (allGangs) Gates(job mpi.Job) bool { return job.Gated }

// admittingGangs takes one annotation for the statement that a job of four pods may have them.
type admittingGangs struct{ allGangs }

func (admittingGangs) HasAdmitted(job mpi.Job, annotation string, _ time.Time) bool {
	return job.Name == "pi" && job.Pods() == 4 && annotation == "stated"
}

// TestGateOfANewJobSet: a JobSet for whose pods room is reserved is not suspended, unless its TrainJob is.
func TestGateOfANewJobSet(t *testing.T) {
	for name, test := range map[string]struct {
		gangs     Gangs
		stated    string
		suspended bool
		stored    string
		gate      string
		suspends  bool
	}{
		"nothing holds it back":       {gangs: noGangs{}, stated: "stated"},
		"it waits":                    {gangs: allGangs{}, stated: "stated", gate: mpi.GateClosed, suspends: true},
		"nothing is stated":           {gangs: admittingGangs{}, gate: mpi.GateClosed, suspends: true},
		"something else is stated":    {gangs: admittingGangs{}, stated: "forged", gate: mpi.GateClosed, suspends: true},
		"room is reserved":            {gangs: admittingGangs{}, stated: "stated", gate: mpi.GateOpen},
		"it is for fewer pods":        {gangs: admittingGangs{}, stated: "stated", stored: "{metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}}, spec: {mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [{name: launcher}, {name: node}]}}}}", gate: mpi.GateClosed, suspends: true},
		"its TrainJob is suspended":   {gangs: allGangs{}, suspended: true, gate: mpi.GateSuspended},
		"it is, and room is reserved": {gangs: admittingGangs{}, stated: "stated", suspended: true, gate: mpi.GateSuspended},
	} {
		jobSet, job, used := jobSetOf(t)
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pi.trainjob", Annotations: map[string]string{mpi.AnnotationAdmitted: test.stated},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: "pi", UID: "u", Controller: new(true)}},
		}}
		if test.suspended {
			jobSet.Object["spec"].(map[string]any)["suspend"] = true
		}
		objects := []client.Object{job, used, policy}
		if test.stored != "" {
			objects = append(objects, snapshotOf(test.stored))
		}
		answer := wire(t, plan.Settings{NetworkPolicies: true}, test.gangs, jobSet, objects...)
		patch, err := json.Marshal(answer.Patches)
		if err != nil || !answer.Allowed {
			t.Fatalf("%s: the answer is %+v (%v)", name, answer, err)
		}
		_, gate, _ := strings.Cut(string(patch), `"path":"/metadata/annotations/mpi.opendatahub.io~1gate","value":"`)
		gate, _, _ = strings.Cut(gate, `"`)
		if suspends := strings.Contains(string(patch), `"path":"/spec/suspend"`); gate != test.gate || suspends != test.suspends {
			t.Errorf("%s: the gate is %q, and it is suspended: %t", name, gate, suspends)
		}
	}
}

// TestForgedSnapshotIsIsolated: a user who writes the ConfigMap with the runtime of a TrainJob has its pods created neither
// without a NetworkPolicy nor before there is room for all of them.
func TestForgedSnapshotIsIsolated(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi.trainjob", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: "pi", UID: "u", Controller: new(true)},
	}}}
	const onHosts = "{name: launcher, template: {spec: {template: {spec: {hostNetwork: true}}}}}, {name: node, template: {spec: {template: {spec: {hostNetwork: true}}}}}"
	for name, text := range map[string]string{
		"Trainer's":      "{metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}}, spec: {mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [{name: launcher}, {name: node}]}}}}",
		"without MPI":    "{metadata: {name: mpi}, spec: {}}",
		"on the hosts":   "{metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}}, spec: {mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [" + onHosts + "]}}}}",
		"a gang already": "{metadata: {name: mpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI}}, spec: {podGroupPolicy: {}, mlPolicy: {mpi: {}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			jobSet, job, used := jobSetOf(t)
			isolating := plan.Settings{NetworkPolicies: true}
			if answer := wire(t, isolating, allGangs{}, jobSet, job, used, snapshotOf(text)); answer.Allowed || !strings.Contains(answer.Result.Message, "pi.trainjob") {
				t.Errorf("without a policy the answer is %+v", answer)
			}
			answer := wire(t, isolating, allGangs{}, jobSet, job, used, snapshotOf(text), policy)
			if patch, _ := json.Marshal(answer.Patches); !answer.Allowed || !strings.Contains(string(patch), `"closed"`) {
				t.Errorf("with the policy the answer is %+v", answer)
			}
		})
	}
}

// TestJobSetUsesTheSitesKeys: where the site requires another type of key than Trainer's, no pod is created before the operator's
// key exists, and pods mount that one.
func TestJobSetUsesTheSitesKeys(t *testing.T) {
	jobSet, job, used := jobSetOf(t)
	jobSet.Object["spec"].(map[string]any)["replicatedJobs"].([]any)[1].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"volumes": []any{map[string]any{"name": "mpi-ssh-auth", "secret": map[string]any{"secretName": "pi-mpi-ssh-auth"}}},
	}}}}
	keys := func(uid types.UID) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi.ssh", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: "pi", UID: uid, Controller: new(true)},
		}}}
	}
	required := plan.Settings{ReplacesKeys: true}
	for name, objects := range map[string][]client.Object{"without keys": nil, "with the keys of an earlier job": {keys("earlier")}} {
		if answer := wire(t, required, noGangs{}, jobSet, append(objects, job, used)...); answer.Allowed || !strings.Contains(answer.Result.Message, "the Secret pi.ssh of TrainJob pi does not exist yet") {
			t.Errorf("%s the answer is %+v", name, answer)
		}
	}
	for settings, want := range map[plan.Settings]bool{required: true, {}: false} {
		answer := wire(t, settings, noGangs{}, jobSet, job, used, keys("u"))
		if patch, _ := json.Marshal(answer.Patches); !answer.Allowed || strings.Contains(string(patch), "pi.ssh") != want {
			t.Errorf("with %+v the answer is %+v, want the operator's keys: %v", settings, answer, want)
		}
	}
}

// TestJobSetKeepsLimits: the limits of a runtime apply to TrainJobs that the API server has admitted without asking the
// operator. What is there already stays changeable, within them.
func TestJobSetKeepsLimits(t *testing.T) {
	limited := func(used *unstructured.Unstructured, limit, value string) *unstructured.Unstructured {
		changed := used.DeepCopy()
		changed.SetAnnotations(map[string]string{mpi.AnnotationImplementation: "OpenMPI", limit: value})
		return changed
	}
	jobSet, job, used := jobSetOf(t)
	for name, test := range map[string]struct {
		limit, value, says string
	}{
		"nodes":                  {mpi.AnnotationMaxWorkers, "3", "spec.trainer.numNodes: Invalid value: 4: must be at most 3 with the runtime mpi"},
		"as many nodes":          {mpi.AnnotationMaxWorkers, "4", ""},
		"labels of nodes":        {mpi.AnnotationNodeLabels, "pool=gpu", `the nodeSelector of the job "launcher" must have pool: gpu`},
		"the labels that it has": {mpi.AnnotationNodeLabels, "pool=mpi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := wire(t, plan.Settings{}, noGangs{}, jobSet, job, limited(used, test.limit, test.value))
			if answer.Allowed != (test.says == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, test.says) {
				t.Errorf("the answer is %+v, want %q", answer, test.says)
			}
		})
	}
	changed := func(of *unstructured.Unstructured, old, replaced string) *unstructured.Unstructured {
		text := strings.Replace(string(rawOf(t, of).Raw), old, replaced, 1)
		object, err := decodeTree([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	for name, test := range map[string]struct {
		before, after *unstructured.Unstructured
		says          string
	}{
		"another pool":           {jobSet, changed(jobSet, `"pool":"mpi"`, `"pool":"other"`), "must keep pool: mpi, which the runtime mpi requires"},
		"any pool":               {jobSet, changed(jobSet, `"pool":"mpi"`, ""), "must keep pool: mpi"},
		"another flavor":         {changed(jobSet, `"pool":"mpi"`, `"pool":"mpi","flavor":"a"`), jobSet, ""},
		"it never had the label": {changed(jobSet, `"pool":"mpi"`, `"pool":"a"`), changed(jobSet, `"pool":"mpi"`, `"pool":"b"`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(t, plan.Settings{}, noGangs{}, &identity{}, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Object: rawOf(t, test.after), OldObject: rawOf(t, test.before),
			}}, job, limited(used, mpi.AnnotationNodeLabels, "pool=mpi"))
			if answer.Allowed != (test.says == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, test.says) {
				t.Errorf("the answer is %+v, want %q", answer, test.says)
			}
		})
	}
}
