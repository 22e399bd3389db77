package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestOperatorUpgraded replaces both replicas of the operator, as an upgrade does, while one job runs and others
// come: the one that runs is not disturbed, and the others start.
func TestOperatorUpgraded(t *testing.T) {
	namespace := newNamespace(t)
	job := sleeping(t, namespace, 600, func(job *kubeflow.MPIJob) { job.Name = "before" })
	create(t, job)
	waitFor(t, job, "it runs", runs)
	uids := func() map[string]types.UID {
		found := map[string]types.UID{}
		for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
			for _, pod := range podsOf(t, job, role) {
				found[pod.Name] = pod.UID
			}
		}
		return found
	}
	before := uids()

	operator := &appsv1.Deployment{}
	if err := api.Get(t.Context(), operatorKey, operator); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", operatorKey, err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"mpi.opendatahub.io/restarted-at":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if err := api.Patch(t.Context(), operator, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for i := 0; ; i++ {
		start := time.Now()
		next := sleeping(t, namespace, 0, func(job *kubeflow.MPIJob) { job.Name = fmt.Sprintf("during-%d", i) })
		create(t, next)
		eventually(t, next.Name+" has its pods", time.Minute, func() error {
			if pods := podsOf(t, next, mpi.RoleWorker); len(pods) != 2 {
				return fmt.Errorf("there are %d workers", len(pods))
			}
			return nil
		})
		slowest = max(slowest, time.Since(start))
		if err := api.Delete(t.Context(), next, client.PropagationPolicy("Background")); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), operatorKey, operator); err != nil {
			t.Fatal(err)
		}
		s := operator.Status
		if s.ObservedGeneration >= operator.Generation && s.UpdatedReplicas == *operator.Spec.Replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas {
			t.Logf("%d jobs came while the operator was replaced; the one that waited longest had its pods after %s", i+1, slowest.Round(10*time.Millisecond))
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for name, uid := range uids() {
		if before[name] != uid {
			t.Errorf("%s was %q before and is %q now", name, before[name], uid)
		}
	}
	if len(uids()) != len(before) {
		t.Errorf("there were pods %v, and now there are %v", before, uids())
	}
}

// TestUpgrade installs another version of the operator, by the command in UPGRADE, goes back to the first one, by that in ROLLBACK, which
// keeps the CRDs, and installs the other one again. Meanwhile jobs of both kinds wait, are suspended, start, run and are over: some of the
// first version, and some of the other one. No container is restarted, no pod is replaced, what waits goes on waiting, and no report loses
// anything. Then all jobs end, with pods and agents of both versions.
func TestUpgrade(t *testing.T) {
	upgrade, rollback := strings.Fields(os.Getenv("UPGRADE")), strings.Fields(os.Getenv("ROLLBACK"))
	if len(upgrade) == 0 || len(rollback) == 0 {
		t.Skip("SKIPPED: UPGRADE and ROLLBACK contain no commands; make e2e-upgrade installs an earlier version, upgrades it, and goes back")
	}
	namespace := newNamespace(t)
	const seat = "example.com/seat-upgrade"
	seats(t, seat, 2, 1)
	runtimeIn(t, namespace, "mpi-openmpi")
	runtimeThatStarts(t, namespace)
	first := seated(namespace, "first", seat, 2, "600")
	create(t, first)
	placed(t, first, 3)

	old := newUpgradeJobs(t, namespace, "old", seat)
	fields := fieldsOf(readReports(t, namespace))
	install(t, namespace, "upgrade", upgrade)
	old.remain(t)
	old.start(t)

	newer := newUpgradeJobs(t, namespace, "new", seat)
	written := reportsIn(t, namespace)
	t.Logf("reports of the other version have in addition %v", slices.DeleteFunc(fieldsOf(written), func(field string) bool { return slices.Contains(fields, field) }))
	install(t, namespace, "rollback", rollback)
	old.remain(t)
	newer.remain(t)
	wantReports(t, namespace, "the rollback", written)
	newer.start(t)

	written = reportsIn(t, namespace)
	install(t, namespace, "upgrade again", upgrade)
	old.remain(t)
	newer.remain(t)
	wantReports(t, namespace, "the rollback and another upgrade", written)

	if err := api.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	old.end(t)
	newer.end(t)
	wantReports(t, namespace, "the end of all jobs", written)
}

// install runs a command that installs a version of the operator, and waits until it has taken over: a new job is for it to run. It fails
// the test if the pods of the namespace are not the same, or containers were restarted.
func install(t *testing.T, namespace, what string, command []string) {
	t.Helper()
	reportsIn(t, namespace) // what is over does not change from now on
	before := attempts(t, namespace)
	start := time.Now()
	if text, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil { //nolint:gosec // The command is the tester's own.
		t.Fatalf("%s: %v\n%s", what, err, text)
	}
	t.Logf("%s: installed after %s", what, time.Since(start).Round(time.Second))
	after := sleeping(t, namespace, 0, func(job *kubeflow.MPIJob) { job.Name = "after-" + strings.ReplaceAll(what, " ", "-") })
	create(t, after)
	waitFor(t, after, what+": a job of the installed version succeeds", succeeded)
	now := attempts(t, namespace)
	for pod, attempt := range before {
		if now[pod] != attempt {
			t.Errorf("%s: pod %s was %q, and is %q", what, pod, attempt, now[pod])
		}
	}
	for pod := range now {
		if _, was := before[pod]; !was && !strings.HasPrefix(pod, after.Name+"-") {
			t.Errorf("%s: pod %s is new", what, pod)
		}
	}
}

// attempts are the pods of a namespace, by name, with what tells whether a pod or one of its containers was started again.
func attempts(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		var restarts int32
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			restarts += container.RestartCount
		}
		found[pod.Name] = fmt.Sprintf("%s with %d restarts", pod.UID, restarts)
	}
	return found
}

// upgradeJobs are jobs in every state, made by one version of the operator.
type upgradeJobs struct {
	namespace                                                                string
	ended, failed, running, starting, suspended, waiting                     *kubeflow.MPIJob
	trainJob, trainJobStarting, trainJobSuspended, trainJobWaiting, trainEnd *unstructured.Unstructured
	hasStarted                                                               bool
}

// newUpgradeJobs creates jobs and waits until each is in its state. Those that wait need seats, of which none is free.
func newUpgradeJobs(t *testing.T, namespace, version, seat string) *upgradeJobs {
	t.Helper()
	named := func(name string) func(*kubeflow.MPIJob) {
		return func(job *kubeflow.MPIJob) { job.Name = version + "-" + name }
	}
	train := func(name, trainer string, rest ...string) *unstructured.Unstructured {
		job := trainJob(t, namespace, trainer, rest...)
		job.SetName(version + "-train-" + name)
		return job
	}
	j := &upgradeJobs{
		namespace: namespace,
		ended:     sleeping(t, namespace, 0, named("ended")),
		failed: sleeping(t, namespace, 0, named("failed"), func(job *kubeflow.MPIJob) {
			launcher(job).Command = []string{"mpirun", "-n", "2", "ranks", "--exit", "1:3"}
			job.Spec.RunPolicy.BackoffLimit = new(int32(0))
		}),
		running:   sleeping(t, namespace, 600, named("running"), secondTryEnds),
		starting:  sleeping(t, namespace, 0, named("starting"), waitsInInit),
		suspended: sleeping(t, namespace, 0, named("suspended"), func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) }),
		waiting:   seated(namespace, version+"-waiting", corev1.ResourceName(seat), 2, "1"),

		trainJob:          train("running", `{numNodes: 2, numProcPerNode: 1, command: [mpirun, sleep, "600"]}`),
		trainJobStarting:  train("starting", `{numNodes: 2, numProcPerNode: 1, command: [mpirun, sleep, "0"]}`),
		trainJobSuspended: train("suspended", `{numNodes: 2, numProcPerNode: 1, command: [mpirun, sleep, "0"]}`, "  suspend: true"),
		trainJobWaiting:   seatedTrainJob(t, namespace, version+"-train-waiting", seat, 2, "[mpirun, sleep, '0']"),
		trainEnd:          train("ended", `{numNodes: 2, numProcPerNode: 1, command: [mpirun, sleep, "0"]}`),
	}
	if err := unstructured.SetNestedField(j.trainJobStarting.Object, startingRuntime, "spec", "runtimeRef", "name"); err != nil {
		t.Fatal(err)
	}
	for _, job := range []*kubeflow.MPIJob{j.ended, j.failed, j.running, j.starting, j.suspended, j.waiting} {
		create(t, job)
	}
	for _, job := range []*unstructured.Unstructured{j.trainJob, j.trainJobStarting, j.trainJobSuspended, j.trainJobWaiting, j.trainEnd} {
		createTrainJob(t, job)
	}
	waitFor(t, j.ended, "it succeeds", succeeded)
	failedWith(t, j.failed, time.Minute)
	metricIs(t, j.running, 1, "mpi_agent_ranks_running", 1, time.Minute)
	ends(t, j.trainEnd, "Complete")
	noPodsLeft(t, j.trainEnd) // JobSet deletes the node's pod
	eventually(t, "the workers of jobs that start wait in their init containers", time.Minute, func() error { return j.isStarting(t) })
	j.reported(t)
	// What agents measured last, and the end of the logs, are written after a job's end.
	eventually(t, "the reports of jobs that are over are complete", time.Minute, func() error {
		for _, job := range []*kubeflow.MPIJob{j.ended, j.failed} {
			if report, err := record(t, job); err != nil || report.Status.Logs == nil {
				return fmt.Errorf("the report of %s has no logs yet, %w", job.Name, err)
			}
		}
		return nil
	})
	return j
}

// startingFile is what the workers of waitsInInit wait for.
const startingFile = "/tmp/go"

// waitsInInit has the workers of a job wait in an init container: the job is starting.
func waitsInInit(job *kubeflow.MPIJob) {
	pod := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec
	wait := *pod.Containers[0].DeepCopy()
	wait.Name, wait.Command, wait.Args = "wait", waitForStart, nil
	pod.InitContainers = append(pod.InitContainers, wait)
}

var waitForStart = []string{"sh", "-c", "until [ -e " + startingFile + " ]; do sleep 0.5; done"}

// startingRuntime is the name of the runtime of runtimeThatStarts.
const startingRuntime = "mpi-starting"

// runtimeThatStarts creates a runtime whose nodes wait in an init container: its TrainJobs are starting.
func runtimeThatStarts(t *testing.T, namespace string) {
	t.Helper()
	all, err := runtimes()
	if err != nil {
		t.Fatal(err)
	}
	object := all["mpi-openmpi"].DeepCopy()
	object.SetKind(trainjob.RuntimeKind)
	object.SetNamespace(namespace)
	object.SetName(startingRuntime)
	path := []string{"spec", "template", "spec", "replicatedJobs"}
	replicated, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(replicated, func(job any) bool { return job.(map[string]any)["name"] == "node" })
	pod, _, err := unstructured.NestedMap(replicated[i].(map[string]any), "template", "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	wait := map[string]any{"name": "wait", "command": []any{waitForStart[0], waitForStart[1], waitForStart[2]}}
	main := pod["containers"].([]any)[0].(map[string]any)
	for _, field := range []string{"image", "imagePullPolicy", "resources", "securityContext"} {
		wait[field] = main[field]
	}
	pod["initContainers"] = append(pod["initContainers"].([]any), wait)
	if err := unstructured.SetNestedMap(replicated[i].(map[string]any), pod, "template", "spec", "template", "spec"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(object.Object, replicated, path...); err != nil {
		t.Fatal(err)
	}
	create(t, object)
}

// startingWorkers are the pods of the jobs that start which wait.
func (j *upgradeJobs) startingWorkers(t *testing.T) []corev1.Pod {
	t.Helper()
	return slices.Concat(podsOf(t, j.starting, mpi.RoleWorker), trainerPods(t, j.trainJobStarting, "node"))
}

// isStarting returns why the jobs that start are in another state.
func (j *upgradeJobs) isStarting(t *testing.T) error {
	t.Helper()
	workers := j.startingWorkers(t)
	if len(workers) != 3 {
		return fmt.Errorf("the jobs that start have %d workers, want 3", len(workers))
	}
	for _, pod := range workers {
		i := slices.IndexFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "wait" })
		if i < 0 || pod.Status.InitContainerStatuses[i].State.Running == nil {
			return fmt.Errorf("%s has the init containers %+v", pod.Name, pod.Status.InitContainerStatuses)
		}
	}
	return nil
}

// start has the jobs that start go on, and waits for their end.
func (j *upgradeJobs) start(t *testing.T) {
	t.Helper()
	if err := j.isStarting(t); err != nil {
		t.Error(err)
	}
	for _, pod := range j.startingWorkers(t) {
		if text, err := exec.CommandContext(t.Context(), "kubectl", "exec", "-n", pod.Namespace, pod.Name, "-c", "wait", "--", "touch", startingFile).CombinedOutput(); err != nil { //nolint:gosec // names of our own
			t.Fatalf("%s: %v %s", pod.Name, err, text)
		}
	}
	waitFor(t, j.starting, "the job that was starting succeeds", succeeded)
	ends(t, j.trainJobStarting, "Complete")
	noPodsLeft(t, j.trainJobStarting)
	j.hasStarted = true
}

// reported waits until the reports have the phases of the jobs.
func (j *upgradeJobs) reported(t *testing.T) {
	t.Helper()
	starting := v1alpha1.PhaseInitializing
	if j.hasStarted {
		starting = v1alpha1.PhaseSucceeded
	}
	for _, of := range []struct {
		kind  string
		job   client.Object
		phase v1alpha1.Phase
	}{
		{kubeflow.Kind, j.ended, v1alpha1.PhaseSucceeded},
		{kubeflow.Kind, j.failed, v1alpha1.PhaseFailed},
		{kubeflow.Kind, j.running, v1alpha1.PhaseRunning},
		{kubeflow.Kind, j.starting, starting},
		{trainjob.Kind, j.trainJobStarting, starting},
		{kubeflow.Kind, j.suspended, v1alpha1.PhaseSuspended},
		{kubeflow.Kind, j.waiting, v1alpha1.PhaseGangScheduling},
		{trainjob.Kind, j.trainEnd, v1alpha1.PhaseSucceeded},
		{trainjob.Kind, j.trainJob, v1alpha1.PhaseRunning},
		{trainjob.Kind, j.trainJobSuspended, v1alpha1.PhaseSuspended},
		{trainjob.Kind, j.trainJobWaiting, v1alpha1.PhaseGangScheduling},
	} {
		reported(t, of.kind, j.namespace, of.job.GetName(), of.job.GetName()+" is "+string(of.phase), inPhase(of.phase))
	}
}

// remain checks that the jobs are in the states that newUpgradeJobs left them in, and none has pods that should wait.
func (j *upgradeJobs) remain(t *testing.T) {
	t.Helper()
	j.reported(t)
	podless(t, j.waiting)
	podless(t, j.suspended)
	for _, job := range []*unstructured.Unstructured{j.trainJobSuspended, j.trainJobWaiting} {
		if n := trainJobPods(t, job); n > 0 {
			t.Errorf("%s has %d pods, want none", job.GetName(), n)
		}
	}
}

// end ends all jobs once seats are free. A worker that is replaced has the agent of the installed version, and the launcher that of the
// version before.
func (j *upgradeJobs) end(t *testing.T) {
	t.Helper()
	if err := api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: j.running.Name + "-worker-1"}}, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	edit(t, j.suspended, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	suspend(t, j.trainJobSuspended, false)
	waitFor(t, j.running, "the job succeeds with a worker of another version", succeeded)
	waitFor(t, j.waiting, "the job that waited succeeds", succeeded)
	waitFor(t, j.suspended, "the job that was suspended succeeds", succeeded)
	ends(t, j.trainJobWaiting, "Complete")
	ends(t, j.trainJobSuspended, "Complete")
	reported(t, trainjob.Kind, j.namespace, j.trainJob.GetName(), "the TrainJob still runs", inPhase(v1alpha1.PhaseRunning))
}

// reportsIn are the reports of a namespace as the API server has them, by name, without the help of types: with the fields of all versions.
func reportsIn(t *testing.T, namespace string) map[string]map[string]any {
	t.Helper()
	var found map[string]map[string]any
	// A report still changes while the pods of a job that is over end.
	eventually(t, "the pods of jobs that are over have ended", time.Minute, func() error {
		found = readReports(t, namespace)
		for name, status := range found {
			if held, holds, _ := unstructured.NestedMap(status, "consumption", "held"); holds && status["completionTime"] != nil {
				return fmt.Errorf("%s holds %v", name, held)
			}
		}
		return nil
	})
	return found
}

func readReports(t *testing.T, namespace string) map[string]map[string]any {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("JobReportList"))
	if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, item := range list.Items {
		status, _, err := unstructured.NestedMap(item.Object, "status")
		if err != nil {
			t.Fatal(err)
		}
		found[item.GetName()] = status
	}
	return found
}

// wantReports fails the test if a report was lost, or has lost something.
func wantReports(t *testing.T, namespace, after string, before map[string]map[string]any) {
	t.Helper()
	now, failed := readReports(t, namespace), t.Failed()
	for name, old := range before {
		if now[name] == nil {
			t.Errorf("after %s, the report %s is gone", after, name)
			continue
		}
		for _, lost := range lostFields(old, now[name]) {
			t.Errorf("after %s, the report %s has lost %s", after, name, lost)
		}
	}
	if failed == t.Failed() {
		t.Logf("after %s, %d reports have all that they had", after, len(before))
	}
}

// passingFields are fields of the status that are only there in some states of a job.
var passingFields = []string{"scheduling", "endEstimate", "podsOmitted", "findings", "consumption.held"}

// lostFields returns the fields of a report that a later state of it does not have. A job that was over has all values as they were; of
// others, values change, and the fields of a state go with it.
func lostFields(before, now map[string]any) (lost []string) {
	isOver := before["completionTime"] != nil
	for name, value := range before {
		switch later, exists := now[name]; {
		case isOver && !reflect.DeepEqual(value, later):
			lost = append(lost, fmt.Sprintf("%s: it was %v, and is %v", name, value, later))
		case !isOver && !exists && !slices.Contains(passingFields, name):
			lost = append(lost, name)
		case !isOver && exists:
			old, wasMap := value.(map[string]any)
			if recent, isMap := later.(map[string]any); wasMap && isMap && !slices.Contains(passingFields, name) {
				for field := range old {
					if _, exists := recent[field]; !exists && !slices.Contains(passingFields, name+"."+field) {
						lost = append(lost, name+"."+field)
					}
				}
			}
		}
	}
	slices.Sort(lost)
	return lost
}

// fieldsOf returns the fields of several reports, sorted.
func fieldsOf(reports map[string]map[string]any) []string {
	fields := map[string]bool{}
	for _, status := range reports {
		for name := range status {
			fields[name] = true
		}
	}
	return slices.Sorted(maps.Keys(fields))
}

func TestLostFields(t *testing.T) {
	report := func(text string) map[string]any {
		var status map[string]any
		if err := yaml.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		return status
	}
	const over, live = "{completionTime: x, encryption: {state: Encrypted}, logs: {a: b}}", "{phase: Running, encryption: {state: Encrypted}, mpi: {ranks: 2, binding: none}, scheduling: {a: b}}"
	for name, test := range map[string]struct {
		before, now string
		want        []string
	}{
		"over, the same":               {over, "{completionTime: x, encryption: {state: Encrypted}, logs: {a: b}, more: 1}", nil},
		"over, a field less":           {over, "{completionTime: x, encryption: {}, logs: {a: b}}", []string{"encryption: it was map[state:Encrypted], and is map[]"}},
		"over, less":                   {over, "{completionTime: x, encryption: {state: Encrypted}}", []string{"logs: it was map[a:b], and is <nil>"}},
		"runs, holds nothing any more": {"{phase: Running, consumption: {held: {cpu: 1}, cpuCoreSeconds: 1}}", "{phase: Succeeded, consumption: {cpuCoreSeconds: 2}}", nil},
		"runs, other values":           {live, "{phase: Succeeded, encryption: {state: Unknown}, mpi: {ranks: 4, binding: none}}", nil},
		"runs, a field less":           {live, "{phase: Running, mpi: {ranks: 2, binding: none}}", []string{"encryption"}},
		"runs, one less in it":         {live, "{phase: Running, encryption: {state: Encrypted}, mpi: {ranks: 2}}", []string{"mpi.binding"}},
	} {
		if diff := cmp.Diff(test.want, lostFields(report(test.before), report(test.now))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
