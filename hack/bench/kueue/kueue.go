// Package kueue replaces Kueue in benches: it creates and changes Workloads as Kueue does, and serves positions in a queue
// by the same API, without deciding anything. So our operator is measured, and not Kueue.
package kueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label names a job's queue; Queue is the only one that there is.
const (
	Label = "kueue.x-k8s.io/queue-name"
	Queue = "team"
)

const (
	visibility = "visibility.kueue.x-k8s.io"
	version    = "v1beta2"
)

var workloadKind = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: version, Kind: "Workload"}

// Kueue is the stand-in, for one namespace.
type Kueue struct {
	admin  client.Client
	server *httptest.Server

	mu sync.Mutex
	// waiting are the names of the Workloads that wait, the next one first.
	waiting []string
}

// Start has an API server serve places in queues. Its CRDs must have the Workload.
func Start(ctx context.Context, admin client.Client) (*Kueue, error) {
	k := &Kueue{admin: admin}
	k.server = httptest.NewTLSServer(http.HandlerFunc(k.serve))
	address, ok := k.server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("replace Kueue: it listens on %s", k.server.Listener.Addr())
	}
	// That is how an API server finds its way to another one that is no pod.
	const name, namespace = "kueue-visibility", "default"
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	api := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": visibility, "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": namespace, "name": name, "port": int64(address.Port)},
	}}}
	api.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	api.SetName(version + "." + visibility)
	for _, object := range []client.Object{service, api} {
		if err := admin.Create(ctx, object); err != nil {
			return nil, errors.Join(fmt.Errorf("replace Kueue: %w", err), k.Stop())
		}
	}
	for {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(api), api); err != nil {
			return nil, errors.Join(fmt.Errorf("replace Kueue: %w", err), k.Stop())
		}
		if available(api) {
			return k, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("replace Kueue: its API is not available: %w", context.Cause(ctx)), k.Stop())
		}
	}
}

func available(api *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(api.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// Stop ends it. What it has made stays.
func (k *Kueue) Stop() error {
	k.server.Close()
	return nil
}

// Hold takes a job up that was created suspended: from now on it waits, behind the others.
func (k *Kueue) Hold(ctx context.Context, job *kubeflow.MPIJob) error {
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"queueName": Queue, "active": true, "podSets": []any{podSet("launcher", 1), podSet("worker", int64(*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas))},
	}}}
	workload.SetGroupVersionKind(workloadKind)
	workload.SetNamespace(job.Namespace)
	workload.SetName("mpijob-" + job.Name)
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind))})
	if err := k.admin.Create(ctx, workload); err != nil {
		return fmt.Errorf("make Workload of %s: %w", job.Name, err)
	}
	k.mu.Lock()
	k.waiting = append(k.waiting, workload.GetName())
	k.mu.Unlock()
	return k.condition(ctx, workload, map[string]any{"QuotaReserved": condition("False", "Pending", "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, 8 more needed")})
}

// Admit lets a job in.
func (k *Kueue) Admit(ctx context.Context, job *kubeflow.MPIJob) error {
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(workloadKind)
	workload.SetNamespace(job.Namespace)
	workload.SetName("mpijob-" + job.Name)
	k.leave(workload.GetName())
	if err := k.condition(ctx, workload, map[string]any{"QuotaReserved": condition("True", "QuotaReserved", ""), "Admitted": condition("True", "Admitted", "")}); err != nil {
		return err
	}
	if err := k.admin.Patch(ctx, job, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"runPolicy":{"suspend":false}}}`))); err != nil {
		return fmt.Errorf("let %s in: %w", job.Name, err)
	}
	return nil
}

// Move has the next one leave the queue, so that all others move up.
func (k *Kueue) Move() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = k.waiting[min(1, len(k.waiting)):]
}

func (k *Kueue) leave(workload string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, name := range k.waiting {
		if name == workload {
			k.waiting = append(k.waiting[:i:i], k.waiting[i+1:]...)
			return
		}
	}
}

func podSet(name string, count int64) map[string]any {
	containers := []any{map[string]any{"name": "main", "image": "example.com/mpi:1"}}
	return map[string]any{"name": name, "count": count, "template": map[string]any{"spec": map[string]any{"containers": containers}}}
}

func condition(status, reason, message string) map[string]any {
	return map[string]any{"status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
}

// condition sets a Workload's conditions, by type.
func (k *Kueue) condition(ctx context.Context, workload *unstructured.Unstructured, conditions map[string]any) error {
	var list []any
	for kind, c := range conditions {
		c := c.(map[string]any)
		c["type"] = kind
		list = append(list, c)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": list}})
	if err != nil {
		return err
	}
	if err := k.admin.Status().Patch(ctx, workload, client.RawPatch(types.MergePatchType, patch)); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("set conditions of Workload %s: %w", workload.GetName(), err)
	}
	return nil
}

// serve answers for the visibility API: what kinds there are, and who waits.
func (k *Kueue) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/apis/"+visibility+"/"+version {
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: visibility + "/" + version,
			APIResources: []metav1.APIResource{{Name: "localqueues/pendingworkloads", Namespaced: true, Kind: "PendingWorkloadsSummary", Verbs: []string{"get"}}},
		})
		return
	}
	most, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		most = 1000
	}
	k.mu.Lock()
	waiting := k.waiting[:min(most, len(k.waiting))]
	items := make([]any, len(waiting))
	for i, name := range waiting {
		items[i] = map[string]any{"metadata": map[string]any{"name": name}, "localQueueName": Queue, "positionInLocalQueue": i, "positionInClusterQueue": i}
	}
	k.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PendingWorkloadsSummary", "apiVersion": visibility + "/" + version, "items": items})
}
