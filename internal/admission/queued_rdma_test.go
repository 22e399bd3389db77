package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestQueuedRDMA: requests for RDMA that no node offers are removed from a new job in a queue, and again if it is applied again.
func TestQueuedRDMA(t *testing.T) {
	const (
		job = `{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","metadata":{"name":"pi","namespace":"ns","labels":{"kueue.x-k8s.io/queue-name":"team"},"annotations":{ANNOTATIONS}},
"spec":{"runPolicy":{MANAGER},"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{"containers":[{"name":"l","image":"i"}]}}},"Worker":{"replicas":1,"template":{"spec":{"containers":[{"name":"w","image":"i","resources":{"limits":{LIMITS}}}]}}}}}}`
		limit = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/resources/limits/rdma~1hca"
		was   = `"mpi.opendatahub.io/removed-rdma":"[{\"op\":\"add\",\"path\":\"` + limit + `\",\"value\":1}]"`
	)
	of := func(annotations, limits, manager string) string {
		return strings.NewReplacer("ANNOTATIONS", annotations, "LIMITS", limits, "MANAGER", manager).Replace(job)
	}
	unqueued := func(job string) string { return strings.Replace(job, `"kueue.x-k8s.io/queue-name":"team"`, "", 1) }
	suspended := of("", `"cpu":1,"rdma/hca":1`, `"suspend":true`)
	const asks = `"cpu":1,"rdma/hca":1`
	for name, test := range map[string]struct {
		before, job string
		offered     bool
		removed     bool
		want        string
	}{
		"no node offers it":                                {job: of("", asks, ""), removed: true, want: "removed-rdma"},
		"a node offers it":                                 {job: of("", asks, ""), offered: true},
		"the user insists":                                 {job: of(`"mpi.opendatahub.io/rdma":"required"`, asks, "")},
		"runs on another cluster":                          {job: of("", asks, `"managedBy":"kueue.x-k8s.io/multikueue"`)},
		"requests none":                                    {job: of("", `"cpu":1`, "")},
		"the second call for a new job":                    {job: of(was, `"cpu":1`, "")},
		"an annotation without requests":                   {job: of(`"mpi.opendatahub.io/removed-rdma":"x"`, `"cpu":1`, ""), want: `"op":"remove","path":"/metadata/annotations`},
		"applied again":                                    {before: of(was, `"cpu":1`, ""), job: of(was, asks, ""), removed: true},
		"applied again, insisting":                         {before: of(was, `"cpu":1`, ""), job: of(was+`,"mpi.opendatahub.io/rdma":"required"`, asks, "")},
		"changed by its queue":                             {before: of(was, `"cpu":1`, ""), job: of(was, `"cpu":2`, "")},
		"a suspended job enters a queue":                   {before: unqueued(suspended), job: suspended, removed: true, want: "removed-rdma"},
		"a suspended job enters a queue, a node offers it": {before: unqueued(suspended), job: suspended, offered: true},
		"a job that runs gets a label":                     {before: unqueued(of("", asks, "")), job: of("", asks, "")},
		"a suspended job that was in its queue before":     {before: suspended, job: suspended},
		"a job that has left its queue is applied again":   {before: unqueued(of(was, `"cpu":1`, `"suspend":true`)), job: unqueued(of(was, asks, `"suspend":true`)), removed: true},
		"the annotation is removed":                        {before: of(was, `"cpu":1`, ""), job: of("", `"cpu":1`, ""), want: "removed-rdma"},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8")}}}
			if test.offered {
				node.Status.Allocatable["rdma/hca"] = resource.MustParse("1")
			}
			api := mpitest.FakeAPI().WithObjects(node).Build()
			handler := queuedRDMA{live: api, cluster: cluster.New(api, api, nil, clock.RealClock{}), kinds: []kinds.Validated{mpijob.Kind{}}, decoder: admission.NewDecoder(api.Scheme())}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "ns", Kind: metav1.GroupVersionKind{Kind: mpi.KindMPIJob}, Object: k8sruntime.RawExtension{Raw: []byte(test.job)},
			}}
			if test.before != "" {
				request.Operation, request.OldObject.Raw = admissionv1.Update, []byte(test.before)
			}
			answer := handler.Handle(t.Context(), request)
			patch, err := json.Marshal(answer.Patches)
			if err != nil || !answer.Allowed {
				t.Fatalf("the answer is %+v (%v)", answer, err)
			}
			if got := strings.Contains(string(patch), `{"op":"remove","path":"`+limit+`"}`); got != test.removed {
				t.Errorf("the patch is %s, want the request removed: %v", patch, test.removed)
			}
			if test.want == "" && !test.removed && len(answer.Patches) > 0 || !strings.Contains(string(patch), test.want) {
				t.Errorf("the patch is %s, want %q", patch, test.want)
			}
		})
	}
}

// TestQueuedRDMARefusesNoJob: a job stays as it is, with a warning, if the operator cannot find out whether nodes offer its RDMA.
func TestQueuedRDMARefusesNoJob(t *testing.T) {
	const metadata = `"metadata":{"name":"pi","namespace":"ns","labels":{"kueue.x-k8s.io/queue-name":"team"}}`
	unread := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no answer")
	}}
	api := mpitest.FakeAPI().WithInterceptorFuncs(unread).Build()
	handler := queuedRDMA{live: api, cluster: cluster.New(api, api, nil, clock.RealClock{}), kinds: []kinds.Validated{mpijob.Kind{}}, decoder: admission.NewDecoder(api.Scheme())}
	for name, test := range map[string]struct{ kind, object, warned string }{
		"the runtime is not read": {
			"TrainJob", `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",` + metadata + `,"spec":{"runtimeRef":{"name":"mpi"},"trainer":{"resourcesPerNode":{"limits":{"rdma/hca":1}}}}}`, "no answer",
		},
		"a field of another type": {
			"TrainJob", `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",` + metadata + `,"spec":{"runtimeRef":"mpi","trainer":{"resourcesPerNode":{"limits":{"rdma/hca":1}}}}}`, "read TrainJob",
		},
		"a field of an MPIJob of another type": {
			"MPIJob", `{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob",` + metadata + `,"spec":{"slotsPerWorker":"x","a":{"limits":{"rdma/hca":1}}}}`, "read MPIJob",
		},
		"no object": {"MPIJob", `{`, "read object"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "ns", Kind: metav1.GroupVersionKind{Kind: test.kind}, Object: k8sruntime.RawExtension{Raw: []byte(test.object)},
			}})
			if !answer.Allowed || len(answer.Patches) > 0 || len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], test.warned) {
				t.Errorf("the answer is %+v %+v, want a warning with %q", answer, answer.Result, test.warned)
			}
		})
	}
}
