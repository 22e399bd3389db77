package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// trainGang plays Trainer, JobSet, the batch Job controller and a scheduler for one TrainJob of three pods.
type trainGang struct {
	trainerServer
	kind, name string
	group      *unstructured.Unstructured
	pods       []*corev1.Pod
}

// trainGang makes what they make: a PodGroup, a JobSet with its Jobs, and pods without a node. The PodGroup has the job's
// name, and belongs to it (trainer/v2 v2.3.0, pkg/runtime/framework/plugins/coscheduling and volcano).
func (s trainerServer) trainGang(t *testing.T, name, runtime, groupVersion string) *trainGang {
	t.Helper()
	job := trainjob.New()
	job.SetNamespace("default")
	job.SetName(name)
	job.Object["spec"] = map[string]any{
		"runtimeRef": map[string]any{"apiGroup": trainjob.GroupVersion.Group, "kind": trainjob.RuntimeKind, "name": runtime},
		"trainer":    map[string]any{"numNodes": int64(3), "resourcesPerNode": map[string]any{"requests": map[string]any{"cpu": "2"}}},
	}
	s.create(t, job)
	made := func(object client.Object, name string, owner client.Object, of string) {
		object.SetNamespace("default")
		object.SetName(name)
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind())})
		if of != "" {
			object.SetLabels(map[string]string{
				trainjob.LabelJobSet: job.GetName(), "jobset.sigs.k8s.io/replicatedjob-name": of, "jobset.sigs.k8s.io/restart-attempt": "0",
				batchv1.JobCompletionIndexAnnotation: name[len(name)-1:],
			})
		}
		s.create(t, object)
	}
	g := &trainGang{trainerServer: s, kind: trainjob.Kind, name: name, group: &unstructured.Unstructured{}}
	g.group.SetAPIVersion(groupVersion)
	g.group.SetKind("PodGroup")
	g.group.Object["spec"] = map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "6"}}
	made(g.group, name, job, "")
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(trainjob.JobSetKind)
	made(set, name, job, "")
	for role, pods := range map[string]int{"launcher": 1, "node": 2} {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "node", Image: "mpi", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		}}}}
		of := &batchv1.Job{Spec: batchv1.JobSpec{Template: template}}
		made(of, name+"-"+role+"-0", set, role)
		of.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
		for i := range pods {
			pod := &corev1.Pod{Spec: template.Spec}
			made(pod, fmt.Sprintf("%s-%s-0-%d", name, role, i), of, role)
			g.pods = append(g.pods, pod)
		}
	}
	return g
}

// says has the scheduler write the PodGroup's status.
func (g *trainGang) says(t *testing.T, status map[string]any) {
	t.Helper()
	g.group.Object["status"] = status
	if err := g.client.Status().Update(t.Context(), g.group); err != nil {
		t.Fatalf("write the status of PodGroup %s: %v", g.name, err)
	}
}

// runs has the pods run on a node.
func (g *trainGang) runs(t *testing.T, node string) {
	t.Helper()
	for _, pod := range g.pods {
		if err := g.client.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}); err != nil {
			t.Fatalf("place pod %s: %v", pod.Name, err)
		}
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		if err := g.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatalf("start pod %s: %v", pod.Name, err)
		}
	}
}

// told waits until the job's report says something.
func (g *trainGang) told(t *testing.T, what string, check func(v1alpha1.JobReportStatus) error) v1alpha1.JobReportStatus {
	t.Helper()
	var found v1alpha1.JobReportStatus
	eventually(t, what, func() error {
		var list v1alpha1.JobReportList
		if err := g.client.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			return err
		}
		for _, report := range list.Items {
			if ref := report.Spec.JobRef; ref.Kind == g.kind && ref.Name == g.name {
				found = report.Status
				return check(found)
			}
		}
		return errors.New("there is no report")
	})
	return found
}

// TestTrainJobsPodGroups: the report of a TrainJob whose pods a gang scheduler places says what it waits for, by the
// PodGroup that Trainer has made, and no more of that once all of them run.
func TestTrainJobsPodGroups(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	server.create(t, node)
	// The API server takes a new node for one that is not ready.
	node.Spec.Taints = nil
	if err := server.client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("5"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if err := server.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	type backend struct {
		name, group, version, policy string
		// status is what the PodGroup says while there is no room, and says is what becomes of it.
		status map[string]any
		says   string
	}
	backends := []backend{
		{
			name: gang.Coscheduling, group: "scheduling.x-k8s.io", version: "v1alpha1", policy: "coscheduling: {scheduleTimeoutSeconds: 120}",
			status: map[string]any{"phase": "Pending"},
			says:   "The scheduler has not placed all pods yet.",
		},
		{
			name: gang.Volcano, group: "scheduling.volcano.sh", version: "v1beta1", policy: "volcano: {}",
			status: map[string]any{"phase": "Pending", "conditions": []any{map[string]any{
				"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "transitionID": "1",
				"message": "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable",
			}}},
			says: "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable.",
		},
	}
	for _, b := range backends {
		if err := install(server.client, podGroups(b.group, b.version)); err != nil {
			t.Fatal(err)
		}
		server.runtime(t, b.name, "spec:\n  mlPolicy:", "spec:\n  podGroupPolicy: {"+b.policy+"}\n  mlPolicy:")
	}
	defer server.start(t)()

	gangs := map[string]*trainGang{}
	for _, b := range backends {
		g := server.trainGang(t, "of-"+b.name, b.name, b.group+"/"+b.version)
		gangs[b.name] = g
		g.says(t, b.status)
		says := "Waiting for capacity: 3 pods requested, 2 fit on 1 of 1 node. " + b.says + " Waiting since "
		waits := g.told(t, "it waits for its places", func(status v1alpha1.JobReportStatus) error {
			if waits := status.Scheduling; status.Phase != v1alpha1.PhaseGangScheduling || waits == nil || !strings.HasPrefix(waits.Message, says) {
				return fmt.Errorf("it is %s: %+v, want %q", status.Phase, waits, says)
			}
			return nil
		}).Scheduling
		want := &v1alpha1.SchedulingStatus{Backend: b.name, Wanted: 3, PodsFit: new(int32(2)), NodesFit: new(int32(1)), NodesTotal: new(int32(1))}
		// Past waits are all that is known of another scheduler's jobs.
		if waits.Estimate == nil || waits.Estimate.Reason != "FewSamples" {
			t.Errorf("%s: the estimate is %+v", b.name, waits.Estimate)
		}
		if diff := cmp.Diff(want, waits, cmpopts.IgnoreFields(v1alpha1.SchedulingStatus{}, "Since", "ObservedAt", "WaitedSeconds", "Message", "Estimate")); diff != "" {
			t.Errorf("%s: it is told otherwise (-want +got):\n%s", b.name, diff)
		}
		if waits.Since == nil || time.Since(waits.Since.Time) > time.Minute {
			t.Errorf("%s: it waits since %v", b.name, waits.Since)
		}
	}
	for _, b := range backends {
		g := gangs[b.name]
		g.says(t, map[string]any{"phase": "Running", "running": int64(3)})
		g.runs(t, node.Name)
		status := g.told(t, "it runs", func(status v1alpha1.JobReportStatus) error {
			if status.Phase != v1alpha1.PhaseRunning {
				return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
			}
			return nil
		})
		if status.Scheduling != nil || status.Waited == nil || status.Waited.Backend != b.name || status.Waited.Pods != 3 {
			t.Errorf("%s: it runs and waits as %+v, has waited %+v", b.name, status.Scheduling, status.Waited)
		}
	}
}
