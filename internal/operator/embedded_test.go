package operator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// seats are a resource of the nodes of one test, of which each pod asks for one.
type seats struct {
	name      corev1.ResourceName
	namespace string
	nodes     []string
	// unbound is a pod that finds no node whatever is free.
	unbound string
}

// newSeats makes nodes with so many seats, and plays kube-scheduler, kubelets and the Job controller in a namespace.
func newSeats(t *testing.T, namespace string, counts ...int64) *seats {
	t.Helper()
	s := &seats{name: corev1.ResourceName("example.com/seat-" + namespace), namespace: namespace, unbound: "stuck-worker-1"}
	for i, n := range counts {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", namespace, i)}}
		create(t, node)
		t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
		// The API server takes a new node for one that is not ready.
		node.Spec.Taints = nil
		if err := api.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, node.Name)
		s.set(t, i, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.play(ctx)
			time.Sleep(30 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// set gives a node so many seats.
func (s *seats) set(t *testing.T, node int, seats int64) {
	t.Helper()
	object := get(t, "", s.nodes[node], &corev1.Node{})
	object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	object.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
		s.name: *resource.NewQuantity(seats, resource.DecimalSI),
	}
	object.Status.Capacity = object.Status.Allocatable
	if err := api.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// play makes one round: errors are met again in the next.
func (s *seats) play(ctx context.Context) {
	var pods corev1.PodList
	var jobs batchv1.JobList
	if api.List(ctx, &pods, client.InNamespace(s.namespace)) != nil || api.List(ctx, &jobs, client.InNamespace(s.namespace)) != nil {
		return
	}
	launchers := map[string]bool{}
	free := s.free(ctx, pods.Items)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
			launchers[owner.Name] = true
		}
		switch {
		case pod.DeletionTimestamp != nil:
			_ = api.Delete(ctx, pod, client.GracePeriodSeconds(0))
		case pod.Name == s.unbound:
		case pod.Spec.NodeName == "" && pinOf(pod) != "":
			_ = api.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: pinOf(pod)}})
		case pod.Spec.NodeName == "":
			// As kube-scheduler: one pod after the other.
			for _, node := range s.nodes {
				if free[node] > 0 {
					free[node]--
					_ = api.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
					break
				}
			}
		case pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending:
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
			}
			_ = api.Status().Update(ctx, pod)
		}
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		suspended := ptr.Deref(job.Spec.Suspend, false)
		switch {
		case launchers[job.Name] && suspended:
			_ = api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{mpi.LabelJob: job.Labels[mpi.LabelJob], mpi.LabelRole: string(mpi.RoleLauncher)})
		case !launchers[job.Name] && !suspended && job.DeletionTimestamp == nil:
			_ = api.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: s.namespace, GenerateName: job.Name + "-", Labels: job.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
				},
				Spec: job.Spec.Template.Spec,
			})
		}
	}
}

// free counts the free seats of each node.
func (s *seats) free(ctx context.Context, pods []corev1.Pod) map[string]int64 {
	free := map[string]int64{}
	for _, name := range s.nodes {
		var node corev1.Node
		if api.Get(ctx, client.ObjectKey{Name: name}, &node) == nil {
			free[name] = node.Status.Allocatable.Name(s.name, resource.DecimalSI).Value()
		}
	}
	for i := range pods {
		if pod := &pods[i]; pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			free[pod.Spec.NodeName]--
		}
	}
	return free
}

// pinOf is the node that a pod was told to go to, firmly or not.
func pinOf(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	affinity := pod.Spec.Affinity.NodeAffinity
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		return required.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return affinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchFields[0].Values[0]
}

// job is one of so many workers in which each pod asks for a seat.
func (s *seats) job(name string, workers int32, change ...func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
	job := mpitest.MPIJob(s.namespace, workers, change...)
	job.Name = name
	one := corev1.ResourceList{s.name: resource.MustParse("1")}
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
	return job
}

// pods counts a job's pods by their nodes.
func (s *seats) pods(t *testing.T, job string) map[string]int {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels{mpi.LabelJob: job}); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil {
			counts[pod.Spec.NodeName]++
			counts["all"]++
		}
	}
	return counts
}

// runs waits until so many pods of a job have a node.
func (s *seats) runs(t *testing.T, job string, pods int) {
	t.Helper()
	eventually(t, fmt.Sprintf("all %d pods of %s have a node", pods, job), func() error {
		if have := s.pods(t, job); have["all"] != pods || have[""] > 0 {
			return fmt.Errorf("its pods are on %v", have)
		}
		return nil
	})
}

// waits waits until a job says that it waits for places, in words.
func (s *seats) waits(t *testing.T, job string, words ...string) string {
	t.Helper()
	var text string
	eventually(t, fmt.Sprintf("%s waits with %q", job, words), func() error {
		var now kubeflow.MPIJob
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: job}, &now); err != nil {
			return err
		}
		text = message(&now, kubeflow.JobRunning)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("it says %q", text)
			}
		}
		return nil
	})
	if have := s.pods(t, job); have["all"] > 0 {
		t.Errorf("%s waits, and has pods on %v", job, have)
	}
	return text
}

// placing starts an operator that places all jobs itself.
func placing(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	return operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, GangScheduling: gang.Embedded})
}

func TestEmbeddedMakesAllPodsOrNone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 3, 2)
	placing(t, namespace)
	create(t, s.job("big", 8))
	t.Log(s.waits(t, "big", "9 pods requested, 5 fit on 2 of ", "each worker requests 1 of "+string(s.name)))
	start := time.Now()
	s.set(t, 1, 6)
	s.runs(t, "big", 9)
	t.Logf("all 9 pods had a node %s after there was room", time.Since(start).Round(10*time.Millisecond))
	if have := s.pods(t, "big"); have[s.nodes[0]] != 3 || have[s.nodes[1]] != 6 {
		t.Errorf("its pods are on %v", have)
	}
}

func TestEmbeddedPlacesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 3, 3)
	placing(t, namespace)
	create(t, s.job("one", 3))
	create(t, s.job("two", 3))
	var first, second string
	eventually(t, "one of them has its pods", func() error {
		for name, other := range map[string]string{"one": "two", "two": "one"} {
			if s.pods(t, name)["all"] == 4 {
				first, second = name, other
				return nil
			}
		}
		return fmt.Errorf("one has %v, two has %v", s.pods(t, "one"), s.pods(t, "two"))
	})
	t.Log(s.waits(t, second, "4 pods requested, 2 fit on", "position 1 among jobs waiting", "request 3 of"))
	s.runs(t, first, 4)
	finish(t, get(t, namespace, first+"-launcher", &batchv1.Job{}))
	says(t, namespace, first, kubeflow.JobSucceeded, corev1.ConditionTrue, "MPIJobSucceeded")
	// Its pods still have their seats.
	s.waits(t, second)
	if err := api.Delete(t.Context(), get(t, namespace, first, &kubeflow.MPIJob{})); err != nil {
		t.Fatal(err)
	}
	if err := api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: first}); err != nil {
		t.Fatal(err)
	}
	s.runs(t, second, 4)
}

func TestEmbeddedPreemptsWholeJobs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 4, 4)
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high-" + namespace}, Value: 100}
	create(t, high)
	t.Cleanup(func() { _ = api.Delete(context.Background(), high) })
	order := &order{}
	config := rest.CopyConfig(restConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper(order.observe(next)) })
	operate(t, config, operator.Options{WatchNamespaces: []string{namespace}, GangScheduling: gang.Embedded})
	create(t, s.job("low", 5))
	s.runs(t, "low", 6)
	create(t, s.job("urgent", 3, func(job *kubeflow.MPIJob) {
		for _, role := range job.Spec.MPIReplicaSpecs {
			role.Template.Spec.PriorityClassName = high.Name
		}
	}))
	start := time.Now()
	s.runs(t, "urgent", 4)
	t.Logf("the other's pods had a node after %s", time.Since(start).Round(10*time.Millisecond))
	const why = "to make room for a job of a higher priority (100, over 0)"
	t.Log(s.waits(t, "low", "Its pods were stopped at", why, "6 pods requested"))
	eventually(t, "its timeline says so", func() error {
		var reports v1alpha1.JobReportList
		if err := api.List(t.Context(), &reports, client.InNamespace(namespace), client.MatchingLabels(mpi.Job{Kind: "MPIJob", Name: "low"}.ReportLabels())); err != nil {
			return err
		}
		told := slices.DeleteFunc(reports.Items[0].Status.Timeline, func(entry v1alpha1.TimelineEntry) bool { return entry.Event != codes.Preempted })
		if len(told) != 1 || !strings.Contains(told[0].Detail, why) {
			return fmt.Errorf("it tells of %+v", told)
		}
		return nil
	})
	if early := order.tooEarly(); early != "" {
		t.Errorf("another leader would not know why the pods are gone: before the report said so there was %s", early)
	}
	if err := api.Delete(t.Context(), get(t, namespace, "urgent", &kubeflow.MPIJob{})); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{&corev1.Pod{}, &batchv1.Job{}} {
		if err := api.DeleteAllOf(t.Context(), object, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: "urgent"}); err != nil {
			t.Fatal(err)
		}
	}
	start = time.Now()
	s.runs(t, "low", 6)
	t.Logf("it was back after %s", time.Since(start).Round(10*time.Millisecond))
	says(t, namespace, "low", kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
}

// order observes the requests of an operator that stops the job "low".
type order struct {
	mu       sync.Mutex
	reported bool
	early    string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (o *order) observe(next http.RoundTripper) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		stops := request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/pods/low-worker-")
		reports := request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/jobreports/") && strings.Contains(bodyOf(request), `"event":"`+codes.Preempted+`"`)
		o.mu.Lock()
		if stops && !o.reported && o.early == "" {
			o.early = request.Method + " " + request.URL.Path
		}
		o.mu.Unlock()
		response, err := next.RoundTrip(request)
		if reports && err == nil && response.StatusCode == http.StatusOK {
			o.mu.Lock()
			o.reported = true
			o.mu.Unlock()
		}
		return response, err
	}
}

// bodyOf returns a copy of a request's body.
func bodyOf(request *http.Request) string {
	if request.GetBody == nil {
		return ""
	}
	body, err := request.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	data, _ := io.ReadAll(body)
	return string(data)
}

// tooEarly returns the first request that stopped a pod before its reason was reported, or that none was.
func (o *order) tooEarly() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.reported {
		return "no report"
	}
	return o.early
}

// TestEmbeddedGoesOnAfterARestart: another operator knows from pods who runs, gives back what is missing of them, and
// places those that wait.
func TestEmbeddedGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 4, 4)
	stop := placing(t, namespace)
	create(t, s.job("runs", 5))
	s.runs(t, "runs", 6)
	create(t, s.job("waits", 3))
	s.waits(t, "waits", "2 fit on")
	stop()
	for i := range 3 {
		if err := api.Delete(t.Context(), get(t, namespace, fmt.Sprint("runs-worker-", i), &corev1.Pod{}), client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	placing(t, namespace)
	s.runs(t, "runs", 6)
	s.waits(t, "waits", "2 fit on")
	s.set(t, 0, 6)
	s.runs(t, "waits", 4)
	if runs, other := s.pods(t, "runs"), s.pods(t, "waits"); runs[s.nodes[0]]+other[s.nodes[0]] != 6 || runs[s.nodes[1]]+other[s.nodes[1]] != 4 {
		t.Errorf("pods are on %v and %v", runs, other)
	}
}

// TestEmbeddedPutsBackWhatIsNotPlaced: if a pod of a job finds no node after all, its other pods are deleted, although their launcher runs,
// and another job gets their nodes.
func TestEmbeddedPutsBackWhatIsNotPlaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 2, 2)
	placing(t, namespace)
	create(t, s.job("stuck", 3, func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationRequeues: "0"}
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(10))}
	}))
	eventually(t, "all but one of its pods have a node", func() error {
		if have := s.pods(t, "stuck"); have["all"] != 4 || have[""] != 1 {
			return fmt.Errorf("its pods are on %v", have)
		}
		return nil
	})
	create(t, s.job("next", 2))
	s.waits(t, "next", "3 pods requested")
	job := says(t, namespace, "stuck", kubeflow.JobFailed, corev1.ConditionTrue, "GangTimeout")
	t.Log(message(job, kubeflow.JobFailed))
	s.runs(t, "next", 3)
}

// TestEmbeddedIgnoresForgedPriority: a job whose templates contain a priority that its user has not been given neither
// preempts others nor keeps capacity.
func TestEmbeddedIgnoresForgedPriority(t *testing.T) {
	t.Parallel()
	namespace, attacker := newNamespace(t), newNamespace(t)
	s := newSeats(t, namespace, 4, 4)
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace, attacker}, GangScheduling: gang.Embedded})
	create(t, s.job("victim", 4))
	s.runs(t, "victim", 5)
	forged := s.job("forged", 3, func(job *kubeflow.MPIJob) {
		job.Namespace = attacker
		for _, role := range job.Spec.MPIReplicaSpecs {
			role.Template.Spec.Priority = new(int32(2000000000))
		}
	})
	create(t, forged)
	eventually(t, "its refusal is reported", func() error {
		now := get(t, attacker, forged.Name, &kubeflow.MPIJob{})
		if text := message(now, kubeflow.JobRunning); !strings.Contains(text, "the integer value of priority (2000000000) must not be provided") {
			return fmt.Errorf("it says %q", text)
		}
		return nil
	})
	// The free capacity is not kept for it.
	create(t, s.job("next", 2))
	s.runs(t, "next", 3)
	if have := s.pods(t, "victim"); have["all"] != 5 {
		t.Errorf("the victim has pods on %v", have)
	}
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(attacker)); err != nil || len(list.Items) > 0 {
		t.Errorf("the forged job has %d pods, %v", len(list.Items), err)
	}
}

// TestGangsByDefault: of two jobs that ask for nothing, and each of which fits alone, one runs and the other has no pods until
// the first has ended. A job of which only a part ever fits has none, and its condition shows why.
func TestGangsByDefault(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 3, 3)
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, GangScheduling: gang.Auto})
	const one, two = "one", "two"
	create(t, s.job(one, 3))
	create(t, s.job(two, 3))
	var first, second string
	eventually(t, "one of them has its pods", func() error {
		for name, other := range map[string]string{one: two, two: one} {
			if have := s.pods(t, name); have["all"] == 4 && have[""] == 0 {
				first, second = name, other
				return nil
			}
		}
		return fmt.Errorf("%v and %v", s.pods(t, one), s.pods(t, two))
	})
	s.waits(t, second, "4 pods requested, 2 fit on")
	says(t, namespace, first, kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	remove := func(name string) {
		if err := api.Delete(t.Context(), get(t, namespace, name, &kubeflow.MPIJob{})); err != nil {
			t.Fatal(err)
		}
		// The Jobs first: they make pods again.
		for _, object := range []client.Object{&batchv1.Job{}, &corev1.Pod{}} {
			if err := api.DeleteAllOf(t.Context(), object, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: name}, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(first)
	s.runs(t, second, 4)
	remove(second)
	create(t, s.job("huge", 20))
	s.waits(t, "huge", "6 of 21 pods fit on the cluster's ")
	if have := s.pods(t, "huge"); have["all"] > 0 {
		t.Errorf("a job that never fits has pods: %v", have)
	}
}

// TestLauncherWaitsForAWorkersNode: of a job of which no node can hold a worker, the workers exist and show why, and the launcher does not
// hold a node, also after the operator has restarted. It is created when a worker has a node.
func TestLauncherWaitsForAWorkersNode(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	s := newSeats(t, namespace, 0)
	options := operator.Options{WatchNamespaces: []string{namespace}, GangScheduling: gang.Auto}
	stop := operate(t, rest.CopyConfig(restConfig), options)
	job := s.job("nowhere", 2)
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	create(t, job)
	hasNoLauncher := func() {
		t.Helper()
		eventually(t, "its workers exist", func() error {
			if have := s.pods(t, "nowhere"); have["all"] != 2 || have[""] != 2 {
				return fmt.Errorf("its pods are on %v", have)
			}
			return nil
		})
		// Long enough for the operator to look at it several times, also after the time in which it admits no job.
		time.Sleep(4 * time.Second)
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "nowhere-launcher"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
			t.Errorf("its launcher exists: %v", err)
		}
	}
	hasNoLauncher()
	stop()
	operate(t, rest.CopyConfig(restConfig), options)
	hasNoLauncher()
	s.set(t, 0, 3)
	s.runs(t, "nowhere", 3)
}
