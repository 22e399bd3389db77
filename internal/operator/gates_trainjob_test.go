package operator_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// gatedJob plays Trainer, JobSet and the batch Job controller for one TrainJob of three pods, whose JobSet has a gate.
type gatedJob struct {
	trainGang
	job, set *unstructured.Unstructured
	// open is whether the webhook creates the gate open.
	open bool
}

// gatedJob creates a TrainJob, and the JobSet and Jobs that Trainer and JobSet create. The gate is what the webhook sets.
func (s trainerServer) gatedJob(t *testing.T, name string, changes ...func(*gatedJob)) *gatedJob {
	t.Helper()
	g := &gatedJob{trainGang: trainGang{trainerServer: s, kind: trainjob.Kind, name: name}, job: trainjob.New(), set: &unstructured.Unstructured{}}
	g.job.SetNamespace("default")
	g.job.SetName(name)
	g.job.Object["spec"] = map[string]any{
		"runtimeRef": map[string]any{"apiGroup": trainjob.GroupVersion.Group, "kind": trainjob.RuntimeKind, "name": "mpi"},
		"trainer":    map[string]any{"numNodes": int64(3), "resourcesPerNode": map[string]any{"requests": map[string]any{"cpu": "2"}}},
	}
	g.set.SetGroupVersionKind(trainjob.JobSetKind)
	g.set.SetNamespace("default")
	g.set.SetName(name)
	for _, change := range changes {
		change(g)
	}
	s.create(t, g.job)
	g.set.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(g.job, g.job.GroupVersionKind())})
	g.set.Object["spec"] = map[string]any{}
	if g.open {
		trainjob.OpenGate(g.set.Object)
	} else {
		trainjob.Gate(g.set.Object)
	}
	s.create(t, g.set)
	return g
}

// isOpen reports whether pods may be created.
func (g *gatedJob) isOpen(t *testing.T) bool {
	t.Helper()
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(g.set), g.set); err != nil {
		t.Fatal(err)
	}
	suspended, _, _ := unstructured.NestedBool(g.set.Object, "spec", "suspend")
	if open := g.set.GetAnnotations()[mpi.AnnotationGate] == mpi.GateOpen; open == suspended {
		t.Fatalf("JobSet %s has the gate %v, and is suspended: %t", g.name, g.set.GetAnnotations(), suspended)
	}
	return !suspended
}

// start creates the job's Jobs, and its pods on a node.
func (g *gatedJob) start(t *testing.T, node string) {
	t.Helper()
	g.createPods(t)
	g.runs(t, node)
}

// createPods creates the job's Jobs, and its pods without a node.
func (g *gatedJob) createPods(t *testing.T) {
	t.Helper()
	for role, pods := range map[string]int{"launcher": 1, "node": 2} {
		labels := map[string]string{
			mpi.LabelJobSet: g.name, mpi.LabelJobSetJob: role, "jobset.sigs.k8s.io/restart-attempt": "0", batchv1.JobCompletionIndexAnnotation: "0",
		}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "node", Image: "mpi", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		}}}}
		of := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: g.name + "-" + role + "-0", Labels: labels}, Spec: batchv1.JobSpec{Template: template}}
		of.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g.set, trainjob.JobSetKind)}
		g.create(t, of)
		for i := range pods {
			pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
			pod.Namespace, pod.Name = "default", fmt.Sprintf("%s-%s-0-%d-x7k2p", g.name, role, i)
			pod.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(i)
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, batchv1.SchemeGroupVersion.WithKind("Job"))}
			g.create(t, pod)
			g.pods = append(g.pods, pod)
		}
	}
}

// end has the job's pods succeed, and the job with them.
func (g *gatedJob) end(t *testing.T) {
	t.Helper()
	for _, pod := range g.pods {
		pod.Status.Phase = corev1.PodSucceeded
		if err := g.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(g.job), g.job); err != nil {
		t.Fatal(err)
	}
	g.job.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "done", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}}
	if err := g.client.Update(t.Context(), g.job); err != nil {
		t.Fatal(err)
	}
}

func (g *gatedJob) delete(t *testing.T) {
	t.Helper()
	for _, object := range []client.Object{g.job, g.set} {
		if err := g.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// node creates a node that is ready, with 8 cores.
func (s trainerServer) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.create(t, node)
	// The API server takes a new node for one that is not ready.
	node.Spec.Taints = nil
	if err := s.client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if err := s.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return node
}

// TestTrainJobsArePlacedAsAWhole: of TrainJobs that need more than half of the cluster each, without any setting, one gets its
// pods, and another when the first has ended. The others wait and say for what, also over a restart of the operator. A job of either
// kind that can never fit has no pods.
func TestTrainJobsArePlacedAsAWhole(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	node := server.node(t, "one")
	server.runtime(t, "mpi")
	stop := server.start(t)

	jobs := []*gatedJob{server.gatedJob(t, "one"), server.gatedJob(t, "two")}
	running := func() (runs, waits *gatedJob) {
		eventually(t, "one of them may have its pods", func() error {
			open := 0
			for i, g := range jobs {
				if g.isOpen(t) {
					open++
					runs, waits = g, jobs[1-i]
				}
			}
			if open != 1 {
				return fmt.Errorf("%d of them may", open)
			}
			return nil
		})
		return runs, waits
	}
	first, second := running()
	waits := second.told(t, "the other waits for capacity", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseGangScheduling || status.Scheduling == nil || status.Scheduling.PodsFit == nil {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
		}
		return nil
	}).Scheduling
	if waits.Backend != "embedded" || waits.Wanted != 3 || *waits.PodsFit != 1 || ptr.Deref(waits.Position, 0) != 1 {
		t.Errorf("it waits as %+v", waits)
	}
	first.start(t, node.Name)
	first.told(t, "the first runs", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		return nil
	})

	stop()
	defer server.start(t)()
	// The new operator admits nothing for two seconds, and then still nothing.
	for range 6 {
		time.Sleep(500 * time.Millisecond)
		if !first.isOpen(t) || second.isOpen(t) {
			t.Fatalf("after a restart of the operator: the first may have its pods: %t, the second: %t", first.isOpen(t), second.isOpen(t))
		}
	}
	first.end(t)
	eventually(t, "the second may have its pods", func() error {
		if !second.isOpen(t) {
			return fmt.Errorf("its gate is closed")
		}
		return nil
	})
	second.start(t, node.Name)

	// A job that is deleted while it waits leaves nothing behind for the next one.
	third := server.gatedJob(t, "three")
	third.told(t, "the third waits", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseGangScheduling {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	third.delete(t)
	fourth := server.gatedJob(t, "four")
	second.end(t)
	eventually(t, "the fourth may have its pods", func() error {
		if !fourth.isOpen(t) {
			return fmt.Errorf("its gate is closed")
		}
		return nil
	})

	// Jobs that do not fit on an empty cluster, of both kinds, get no pods and say why.
	never := server.gatedJob(t, "never", func(g *gatedJob) {
		if err := unstructured.SetNestedField(g.job.Object, int64(9), "spec", "trainer", "numNodes"); err != nil {
			t.Fatal(err)
		}
	})
	large := mpitest.MPIJob("default", 8, func(j *kubeflow.MPIJob) {
		for _, role := range j.Spec.MPIReplicaSpecs {
			role.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}
	})
	server.create(t, large)
	for _, g := range []*trainGang{&never.trainGang, {trainerServer: server, name: large.Name, kind: kubeflow.Kind}} {
		g.told(t, "it never fits", func(status v1alpha1.JobReportStatus) error {
			if len(status.Findings) == 0 || status.Findings[0].Code != codes.GangNeverFits {
				return fmt.Errorf("it is %s: %+v", status.Phase, status.Findings)
			}
			return nil
		})
	}
	if never.isOpen(t) {
		t.Error("the gate of a TrainJob that never fits is open")
	}
	var pods corev1.PodList
	if err := server.client.List(t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{mpi.LabelJob: large.Name}); err != nil || len(pods.Items) > 0 {
		t.Errorf("an MPIJob that never fits has %d pods: %v", len(pods.Items), err)
	}
}

// TestOpenGateIsClosed: a JobSet that was created with an open gate stays open if all of its pods have room. If they have none, because
// another operator decided that, its gate is closed before it has pods.
func TestOpenGateIsClosed(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	node := server.node(t, "one")
	server.runtime(t, "mpi")
	defer server.start(t)()
	open := func(g *gatedJob) { g.open = true }
	first := server.gatedJob(t, "one", open)
	eventually(t, "it may have its pods", func() error {
		if !first.isOpen(t) {
			return errors.New("its gate is closed")
		}
		return nil
	})
	first.start(t, node.Name)
	second := server.gatedJob(t, "two", open)
	eventually(t, "the gate of a job that does not fit is closed", func() error {
		if second.isOpen(t) {
			return errors.New("its gate is open")
		}
		return nil
	})
	first.end(t)
	eventually(t, "it is opened when the pods fit", func() error {
		if !second.isOpen(t) {
			return errors.New("its gate is closed")
		}
		return nil
	})
}

// serveJobSets has the API server ask the operator of this process about JobSets, at a port.
func (s trainerServer) serveJobSets(t *testing.T, port int) {
	t.Helper()
	for _, object := range webhookObjects(t) {
		switch of := object.(type) {
		case *corev1.Service:
			of.Namespace, of.Spec = "mpijob-system", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
			s.create(t, of)
		case *admissionv1.MutatingWebhookConfiguration:
			of.Webhooks = slices.DeleteFunc(of.Webhooks, func(w admissionv1.MutatingWebhook) bool { return !strings.HasPrefix(w.Name, "jobset.") })
			of.Webhooks[0].ClientConfig.Service.Port = new(int32(port))
			s.create(t, of)
		case *admissionv1.ValidatingWebhookConfiguration:
			// The operator adds its certificate.
			of.Webhooks = nil
			s.create(t, of)
		}
	}
}

// TestWebhookOpensTheGate: the JobSet of a TrainJob whose pods fit is not suspended when it is created. That of one that does not fit is, also
// if it fitted before and was preempted meanwhile: its pods do not exist when those of the other are created.
func TestWebhookOpensTheGate(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	server.node(t, "one")
	server.runtime(t, "mpi")
	server.create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000})
	port := freePort(t)
	server.serveJobSets(t, port)
	defer server.start(t, func(o *operator.Options) { o.WebhookPort, o.NetworkPolicies = port, true })()
	// create does what Trainer does: it tries again until the operator has answered.
	createJob := func(name string, annotations map[string]string) *unstructured.Unstructured {
		job := trainjob.New()
		job.SetAnnotations(annotations)
		job.SetNamespace("default")
		job.SetName(name)
		job.Object["spec"] = map[string]any{
			"runtimeRef": map[string]any{"apiGroup": trainjob.GroupVersion.Group, "kind": trainjob.RuntimeKind, "name": "mpi"},
			"trainer":    map[string]any{"numNodes": int64(3), "command": []any{"mpirun"}, "resourcesPerNode": map[string]any{"requests": map[string]any{"cpu": "2"}}},
		}
		server.create(t, job)
		return job
	}
	createSet := func(job *unstructured.Unstructured) (set *unstructured.Unstructured) {
		name := job.GetName()
		eventually(t, "the JobSet of "+name+" is created", func() error {
			set = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": false}}}
			set.SetGroupVersionKind(trainjob.JobSetKind)
			set.SetNamespace("default")
			set.SetName(name)
			set.SetAnnotations(map[string]string{mpi.AnnotationImplementation: "OpenMPI"})
			set.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, job.GroupVersionKind())})
			return server.client.Create(t.Context(), set)
		})
		return set
	}
	create := func(name string) (job, set *unstructured.Unstructured) {
		job = createJob(name, nil)
		return job, createSet(job)
	}
	isSuspended := func(set *unstructured.Unstructured) bool {
		suspended, _, _ := unstructured.NestedBool(set.Object, "spec", "suspend")
		return suspended
	}
	// No job is admitted in the first two seconds.
	warm, set := create("warm")
	eventually(t, "the first job may have its pods", func() error {
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || isSuspended(set) {
			return fmt.Errorf("it is suspended (%w)", err)
		}
		return nil
	})
	for _, object := range []client.Object{warm, set} {
		if err := server.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	early := createJob("early", nil)
	admission := func() string {
		policy := &networkingv1.NetworkPolicy{}
		if err := server.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "early.trainjob"}, policy); err != nil {
			return ""
		}
		return policy.Annotations[mpi.AnnotationAdmitted]
	}
	eventually(t, "the early job is admitted", func() error {
		if admission() == "" {
			return errors.New("its policy does not state it")
		}
		return nil
	})
	urgent := createJob("urgent", map[string]string{mpi.AnnotationPriorityClass: "urgent"})
	eventually(t, "the admission of the early job is revoked", func() error {
		if admission() != "" {
			return errors.New("its policy states it")
		}
		return nil
	})
	preempted := createSet(early)
	if !isSuspended(preempted) {
		t.Error("the JobSet of a job that was preempted may have its pods")
	}
	urgentSet := createSet(urgent)
	eventually(t, "the urgent job may have its pods", func() error {
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(urgentSet), urgentSet); err != nil || isSuspended(urgentSet) {
			return fmt.Errorf("it is suspended (%w)", err)
		}
		return nil
	})
	for _, object := range []client.Object{early, preempted, urgent, urgentSet} {
		if err := server.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	_, fits := create("fits")
	if isSuspended(fits) || fits.GetAnnotations()[mpi.AnnotationGate] != mpi.GateOpen {
		t.Errorf("the JobSet of a job that fits is suspended: %t, %v", isSuspended(fits), fits.GetAnnotations())
	}
	_, waits := create("waits")
	if !isSuspended(waits) || waits.GetAnnotations()[mpi.AnnotationGate] != mpi.GateClosed {
		t.Errorf("the JobSet of a job that does not fit is suspended: %t, %v", isSuspended(waits), waits.GetAnnotations())
	}
}

// TestTrainJobHasAPriority: a TrainJob without a queue takes the nodes of a whole other one if its annotation names a higher priority class.
func TestTrainJobHasAPriority(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	node := server.node(t, "one")
	server.runtime(t, "mpi")
	server.create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000})
	defer server.start(t)()

	ordinary := server.gatedJob(t, "ordinary")
	isOpen := func(g *gatedJob) func() error {
		return func() error {
			if !g.isOpen(t) {
				return fmt.Errorf("the gate of %s is closed", g.name)
			}
			return nil
		}
	}
	eventually(t, "the ordinary one may have its pods", isOpen(ordinary))
	ordinary.start(t, node.Name)
	waiting := server.gatedJob(t, "waiting")
	urgent := server.gatedJob(t, "urgent", func(g *gatedJob) {
		g.job.SetAnnotations(map[string]string{mpi.AnnotationPriorityClass: "urgent"})
	})
	eventually(t, "the ordinary one makes room", func() error {
		if ordinary.isOpen(t) {
			return errors.New("its gate is open")
		}
		return nil
	})
	for _, pod := range ordinary.pods {
		if err := server.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the urgent one may have its pods", isOpen(urgent))
	if waiting.isOpen(t) {
		t.Error("a job that came before and has no priority may have its pods, too")
	}
}

// TestTrainJobReleasesNodesInTime: a TrainJob of which a pod has a node and others have none gives it back after the time in its
// annotation, and waits for its next try. In a queue of Kueue it releases its quota.
func TestTrainJobReleasesNodesInTime(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t, filepath.Join("testdata", "workloads.yaml"))
	node := server.node(t, "one")
	server.runtime(t, "mpi")
	defer server.start(t)()
	timeout := map[string]string{mpi.AnnotationScheduleTimeout: "2"}
	job := server.gatedJob(t, "one", func(g *gatedJob) { g.job.SetAnnotations(timeout) })
	eventually(t, "it may have its pods", func() error {
		if !job.isOpen(t) {
			return errors.New("its gate is closed")
		}
		return nil
	})
	job.createPods(t)
	if err := server.client.SubResource("binding").Create(t.Context(), job.pods[0], &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}); err != nil {
		t.Fatal(err)
	}
	status := job.told(t, "it is put back", func(status v1alpha1.JobReportStatus) error {
		if status.Scheduling == nil || status.Scheduling.Attempts != 1 || status.Scheduling.NextTry == nil {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
		}
		return nil
	})
	if status.Phase != v1alpha1.PhaseGangScheduling {
		t.Errorf("it is %s: %s", status.Phase, status.Message)
	}
	eventually(t, "its nodes are released", func() error {
		if job.isOpen(t) {
			return errors.New("its gate is open")
		}
		return nil
	})

	queued := server.gatedJob(t, "queued", func(g *gatedJob) {
		g.job.SetAnnotations(timeout)
		g.job.SetLabels(map[string]string{mpi.LabelQueue: "team"})
	})
	workload := server.admit(t, queued.job, trainjob.GroupVersion.WithKind(trainjob.Kind), time.Now())
	server.isDeactivated(t, workload)
	const want = "0 of 3 pods scheduled within 2 s (metadata.annotations[mpi.opendatahub.io/schedule-timeout-seconds]). The job releases its quota; next attempt at "
	server.hasEvent(t, "queued", want, " UTC.")
}

// admit plays Kueue: it creates a Workload for a job in queue team that was admitted at a time.
func (s trainerServer) admit(t *testing.T, job client.Object, kind schema.GroupVersionKind, at time.Time) *unstructured.Unstructured {
	t.Helper()
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queueName": "team", "active": true}}}
	workload.SetGroupVersionKind(kueue.WorkloadKind)
	workload.SetNamespace(job.GetNamespace())
	workload.SetName(job.GetName())
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, kind)})
	s.create(t, workload)
	workload.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": at.UTC().Format(time.RFC3339),
	}}}
	if err := s.client.Status().Update(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	return workload
}

// isDeactivated waits until the operator has put a job out of its queue for the first time: a minute at least, if the job never fits.
func (s trainerServer) isDeactivated(t *testing.T, workload *unstructured.Unstructured) {
	t.Helper()
	eventuallyWithin(t, 90*time.Second, "the Workload "+workload.GetName()+" is deactivated", func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(workload), workload); err != nil {
			return err
		}
		active, _, _ := unstructured.NestedBool(workload.Object, "spec", "active")
		if times := workload.GetAnnotations()[mpi.AnnotationGangTimeouts]; active || !strings.HasPrefix(times, "1 ") {
			return fmt.Errorf("it is active: %t, and has timed out: %q", active, times)
		}
		return nil
	})
}

// hasEvent waits for an event about a job, whose message begins and ends as given.
func (s trainerServer) hasEvent(t *testing.T, job, begin, end string) {
	t.Helper()
	eventually(t, "an event tells it", func() error {
		var events corev1.EventList
		if err := s.client.List(t.Context(), &events, client.InNamespace("default")); err != nil {
			return err
		}
		var others []string
		for _, event := range events.Items {
			if event.InvolvedObject.Name == job && strings.HasPrefix(event.Message, begin) && strings.HasSuffix(event.Message, end) {
				return nil
			}
			others = append(others, event.Message)
		}
		return fmt.Errorf("the others are %q", others)
	})
}

// TestJobsThatNeverFitReleaseQuota: a job that Kueue has admitted, and that no nodes can ever hold, gives back its quota and says why. One
// whose user limits its wait fails.
func TestJobsThatNeverFitReleaseQuota(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t, filepath.Join("testdata", "workloads.yaml"))
	server.node(t, "one")
	server.runtime(t, "mpi")
	defer server.start(t)()
	labels := map[string]string{mpi.LabelQueue: "team"}
	trainJob := server.gatedJob(t, "never", func(g *gatedJob) {
		g.job.SetLabels(labels)
		if err := unstructured.SetNestedField(g.job.Object, int64(9), "spec", "trainer", "numNodes"); err != nil {
			t.Fatal(err)
		}
	})
	limited := mpitest.MPIJob("default", 8, func(j *kubeflow.MPIJob) {
		j.Labels, j.Annotations = labels, map[string]string{mpi.AnnotationRequeues: "0"}
		j.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(130))}
		for _, role := range j.Spec.MPIReplicaSpecs {
			role.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}
	})
	server.create(t, limited)
	before := time.Now().Add(-2 * time.Minute)
	for _, workload := range []*unstructured.Unstructured{
		server.admit(t, trainJob.job, trainjob.GroupVersion.WithKind(trainjob.Kind), before),
		server.admit(t, limited, kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind), before),
	} {
		server.isDeactivated(t, workload)
	}
	server.hasEvent(t, "never", "None of 9 pods scheduled. Only ", " UTC.")
	server.hasEvent(t, limited.Name, "None of 9 pods scheduled. Only ", "This happened once, so the job fails.")

	// Kueue suspends them.
	for object, patch := range map[client.Object]string{trainJob.job: `{"spec":{"suspend":true}}`, limited: `{"spec":{"runPolicy":{"suspend":true}}}`} {
		if err := server.client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	waits := trainJob.told(t, "it waits for its next attempt", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseQueued || len(status.Findings) == 0 || status.Findings[0].Code != codes.GangNeverFits {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Findings)
		}
		return nil
	})
	if said := waits.Scheduling.Message; !strings.Contains(said, "next attempt at") || !strings.Contains(said, "of 9 pods fit on the cluster's 1 node, even if it is empty") {
		t.Errorf("it says %q", said)
	}
	failed := (&trainGang{trainerServer: server, name: limited.Name, kind: kubeflow.Kind}).told(t, "it fails", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseFailed {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		return nil
	})
	if failed.Reason != codes.GangNeverFits || !strings.Contains(failed.Message, "of 9 pods fit on the cluster's 1 node") {
		t.Errorf("it failed with %s: %s", failed.Reason, failed.Message)
	}
}

// TestTrainJobWaitsForQuota: a TrainJob has no pods before the quotas of its namespace have room for all of them, and its report says
// what it waits for, also if nothing places its pods together.
func TestTrainJobWaitsForQuota(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{gang.Auto, gang.None} {
		t.Run(setting, func(t *testing.T) { trainJobWaitsForQuota(t, setting) })
	}
}

func trainJobWaitsForQuota(t *testing.T, setting string) {
	t.Helper()
	server := newTrainerServer(t)
	server.node(t, "one")
	server.runtime(t, "mpi")
	team := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}}
	server.create(t, team)
	room := func(cores string) {
		t.Helper()
		// Admission counts pods in its status.
		if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(team), team); err != nil {
			t.Fatal(err)
		}
		team.Spec.Hard = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cores)}
		if err := server.client.Update(t.Context(), team); err != nil {
			t.Fatal(err)
		}
		team.Status = corev1.ResourceQuotaStatus{Hard: team.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("3")}}
		if err := server.client.Status().Update(t.Context(), team); err != nil {
			t.Fatal(err)
		}
	}
	room("8")
	defer server.start(t, func(o *operator.Options) { o.GangScheduling = setting })()

	job := server.gatedJob(t, "one", func(g *gatedJob) { g.job.SetAnnotations(map[string]string{mpi.AnnotationWaitForQuota: "true"}) })
	status := job.told(t, "it waits for the quota", func(status v1alpha1.JobReportStatus) error {
		if status.Reason != codes.WaitingForQuota {
			return fmt.Errorf("it is %s (%s): %s", status.Phase, status.Reason, status.Message)
		}
		return nil
	})
	if want := "no pods created yet: 6 requests.cpu requested (the launcher with 2 and 2 workers with 2 each), 3 of 8 used in quota team, 5 free"; status.Phase != v1alpha1.PhasePending || !strings.Contains(status.Message, want) {
		t.Errorf("it is %s: %s, want %q", status.Phase, status.Message, want)
	}
	if len(status.Findings) != 1 || status.Findings[0].Code != codes.QuotaExhausted {
		t.Errorf("the findings are %+v", status.Findings)
	}
	if job.isOpen(t) {
		t.Fatal("its gate is open")
	}
	room("9")
	eventually(t, "it may have its pods", func() error {
		if !job.isOpen(t) {
			return errors.New("its gate is closed")
		}
		return nil
	})
	job.start(t, "one")
	// Its own pods use the quota up.
	room("8")
	job.told(t, "it runs", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseRunning {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		return nil
	})
	if !job.isOpen(t) {
		t.Error("its gate was closed while its pods run")
	}
}
