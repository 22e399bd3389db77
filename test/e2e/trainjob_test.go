package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// runtimes are those of config/runtimes, by name, with this cluster's images. Those that mount the agent's image end with
// byImageVolume.
var runtimes = sync.OnceValues(func() (map[string]*unstructured.Unstructured, error) {
	found, err := runtimesOf("kubernetes")
	if err != nil {
		return nil, err
	}
	mounting, err := runtimesOf("kubernetes-image-volume")
	for name, runtime := range mounting {
		found[name+byImageVolume] = runtime
	}
	return found, err
})

// byImageVolume is the end of the names of runtimes that mount the agent's image.
const byImageVolume = ", image volume"

// runtimesOf returns the runtimes of a folder of config/runtimes.
func runtimesOf(folder string) (map[string]*unstructured.Unstructured, error) {
	text, err := exec.Command("kubectl", "kustomize", "../../config/runtimes/"+folder).Output() //nolint:noctx // it ends by itself
	if err != nil {
		return nil, fmt.Errorf("build the runtimes of %s: %w", folder, err)
	}
	agent := os.Getenv("AGENT_IMG")
	if agent == "" {
		agent = "odh/mpijob-agent:dev"
	}
	changed := strings.ReplaceAll(string(text), "quay.io/opendatahub/mpijob-agent:latest", agent)
	changed = regexp.MustCompile(`quay\.io/opendatahub/mpi-sample-(\w+):(?:latest|not-published)`).ReplaceAllStringFunc(changed, func(name string) string {
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "quay.io/opendatahub/mpi-sample-"), ":")
		return sampleImage(name)
	})
	found := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(changed, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		found[object.GetName()] = object
	}
	return found, nil
}

// needTrainer skips a test where Kubeflow Trainer is not installed.
func needTrainer(t *testing.T) {
	t.Helper()
	if _, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: trainjob.GroupVersion.Group, Kind: trainjob.Kind}); err != nil {
		if apimeta.IsNoMatchError(err) {
			t.Skip("SKIPPED: Kubeflow Trainer is not installed here; make cluster-up WITH=trainer does that")
		}
		t.Fatal(err)
	}
}

// runtimeIn puts one of our runtimes into a namespace, as a TrainingRuntime named mpi, changed in its text.
func runtimeIn(t *testing.T, namespace, name string, change ...string) {
	t.Helper()
	if err := tryRuntime(t, api, namespace, name, change...); err != nil {
		t.Fatalf("create runtime: %v", err)
	}
}

// runtimeWith is runtimeIn with changes of the pods.
func runtimeWith(t *testing.T, namespace, name string, changes []runtimeChange) {
	t.Helper()
	object := makeRuntime(t, namespace, name)
	replicated, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "replicatedJobs")
	for _, one := range replicated {
		one := one.(map[string]any)
		path := []string{"template", "spec", "template", "spec"}
		fields, _, _ := unstructured.NestedMap(one, path...)
		pod := &corev1.PodSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, pod); err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			change(one["name"].(string), pod)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err == nil {
			err = unstructured.SetNestedMap(one, fields, path...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(changes) > 0 {
		if err := unstructured.SetNestedSlice(object.Object, replicated, "spec", "template", "spec", "replicatedJobs"); err != nil {
			t.Fatal(err)
		}
	}
	create(t, object)
}

func tryRuntime(t *testing.T, by client.Client, namespace, name string, change ...string) error {
	t.Helper()
	return by.Create(t.Context(), makeRuntime(t, namespace, name, change...))
}

// makeRuntime is one of our runtimes as a TrainingRuntime named mpi, changed in its text.
func makeRuntime(t *testing.T, namespace, name string, change ...string) *unstructured.Unstructured {
	t.Helper()
	needTrainer(t)
	all, err := runtimes()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(all[name].Object)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(string(text), change[i]) {
			t.Fatalf("the runtime has no %q", change[i])
		}
	}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(change...).Replace(string(text))), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetKind(trainjob.RuntimeKind)
	object.SetNamespace(namespace)
	object.SetName("mpi")
	return object
}

// trainJob is a TrainJob named pi with the runtime mpi; what follows is its trainer and the rest of it, in YAML.
func trainJob(t *testing.T, namespace, trainer string, rest ...string) *unstructured.Unstructured {
	t.Helper()
	text := "metadata: {name: pi}\nspec:\n  runtimeRef: {name: mpi, kind: TrainingRuntime}\n  trainer: " + trainer + "\n" + strings.Join(rest, "\n")
	object := trainjob.New()
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.Kind))
	object.SetNamespace(namespace)
	return object
}

// unknownRuntime is how Trainer's webhooks of TrainJobs report a runtime that they have not heard of.
var unknownRuntime = regexp.MustCompile(`must be created before the TrainJob|runtime '[^']*' not found`)

// submit creates a job, and tries again while Trainer's own webhook has not heard of a runtime that was just made.
func submit(t *testing.T, by client.Client, job client.Object) error {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := by.Create(t.Context(), job)
		if err == nil || time.Now().After(deadline) || !unknownRuntime.MatchString(err.Error()) {
			return err
		}
	}
}

func createTrainJob(t *testing.T, job client.Object) {
	t.Helper()
	if err := submit(t, api, job); err != nil {
		t.Fatalf("create TrainJob: %v", err)
	}
}

// trainerPods are the pods of a TrainJob with a role, by name, that are not being deleted.
func trainerPods(t *testing.T, job client.Object, role string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	err := api.List(t.Context(), &pods, client.InNamespace(job.GetNamespace()), client.MatchingLabels{trainjob.LabelJobSet: job.GetName(), "jobset.sigs.k8s.io/replicatedjob-name": role})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// ends waits until a TrainJob has one of its two ends.
func ends(t *testing.T, job *unstructured.Unstructured, how string) {
	t.Helper()
	eventually(t, "the TrainJob is "+how, time.Minute, func() error {
		now, err := trainjob.LoadJob(t.Context(), api, client.ObjectKeyFromObject(job))
		if err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if c.Status == metav1.ConditionTrue && c.Type == how {
				return nil
			}
			if c.Status == metav1.ConditionTrue && (c.Type == "Complete" || c.Type == "Failed") {
				dumpTrainJob(t, job)
				t.Fatalf("the TrainJob is %s: %s", c.Type, c.Message)
			}
		}
		return fmt.Errorf("its conditions are %+v", now.Status.Conditions)
	})
}

func dumpTrainJob(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	jobSet := jobSetOf(job)
	_ = api.Get(context.Background(), client.ObjectKeyFromObject(job), jobSet)
	text, _ := yaml.Marshal(jobSet.Object)
	t.Logf("%s", text)
}

func jobSetOf(job *unstructured.Unstructured) *unstructured.Unstructured {
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"})
	jobSet.SetNamespace(job.GetNamespace())
	jobSet.SetName(job.GetName())
	return jobSet
}

// printed is what a TrainJob's launcher has printed.
func printed(t *testing.T, job client.Object) string {
	t.Helper()
	pods := trainerPods(t, job, "launcher")
	if len(pods) == 0 {
		t.Fatal("the launcher has no pod")
	}
	text, err := logs.CoreV1().Pods(job.GetNamespace()).GetLogs(pods[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("read the launcher's log: %v", err)
	}
	return string(text)
}

// ranksByPod counts the ranks that said where they are.
func ranksByPod(text string) map[string]int {
	found := map[string]int{}
	for _, match := range rankOn.FindAllStringSubmatch(text, -1) {
		found[match[3]]++
	}
	return found
}

// TestTrainJobAnyMPI: TrainJobs of 4 nodes have 2 ranks on each of their 4 pods, on more than one of the cluster's nodes, in a namespace
// that enforces restricted.
func TestTrainJobAnyMPI(t *testing.T) {
	t.Parallel()
	// Each implementation with one of the two ways by which the agent gets into pods.
	for i, with := range implementations {
		t.Run(with.sample, func(t *testing.T) {
			parallel(t, 8)
			namespace := newNamespace(t)
			runtime := strings.Replace("mpi-"+with.sample, "intelmpi", "intel", 1)
			if i%2 == 1 {
				runtime += byImageVolume
			}
			runtimeIn(t, namespace, runtime)
			job := trainJob(t, namespace, fmt.Sprintf("{numNodes: 4, numProcPerNode: 2, command: [%s, -n, '8', ranks, --sleep, '2']}", with.mpirun))
			start := time.Now()
			createTrainJob(t, job)
			nodes := map[string]bool{}
			eventually(t, "it has a launcher and 3 workers", time.Minute, func() error {
				pods := slices.Concat(trainerPods(t, job, "node"), trainerPods(t, job, "launcher"))
				for i := range pods {
					if pods[i].Spec.NodeName == "" {
						return fmt.Errorf("%s is on no node", pods[i].Name)
					}
					nodes[pods[i].Spec.NodeName] = true
					if pods[i].Annotations[mpi.IstioInject] != "false" || pods[i].Labels[mpi.IstioInject] != "false" {
						t.Errorf("%s would get a mesh's proxy", pods[i].Name)
					}
				}
				if len(pods) != 4 {
					return fmt.Errorf("it has %d pods", len(pods))
				}
				return nil
			})
			ends(t, job, "Complete")
			accusesNobody(t, trainjob.Kind, job.GetNamespace(), job.GetName())
			text := printed(t, job)
			t.Logf("%s after %s", with.sample, time.Since(start).Round(100*time.Millisecond))
			for _, pod := range []string{"pi-launcher-0-0", "pi-node-0-0", "pi-node-0-1", "pi-node-0-2"} {
				if n := ranksByPod(text)[pod]; n != 2 {
					t.Errorf("%d ranks ran on %s, want 2", n, pod)
				}
			}
			if !strings.Contains(text, "sum 28\n") {
				t.Errorf("it printed %q", text)
			}
			var all corev1.NodeList
			if err := api.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			// Kueue's TAS selects as few nodes as it can.
			if len(all.Items) > 1 && len(nodes) < 2 && !isQueuedByTopology() {
				t.Errorf("all pods were on %v", nodes)
			}
		})
	}
}

// TestTrainJobImageReachesWorkers: an image and variables of the TrainJob's own; the runtime names an image that does
// not exist. With a runtime that is not ours they reach the launcher alone, as Trainer has it.
func TestTrainJobImageReachesWorkers(t *testing.T) {
	t.Parallel()
	const missing = "registry.invalid/none:none"
	for name, ours := range map[string]bool{"a runtime of ours": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			change := []string{"image: " + image, "image: " + missing, "runLauncherAsNode: true", "runLauncherAsNode: false"}
			if !ours {
				change = append(change, mpi.AnnotationImplementation, "example.com/was-ours")
			}
			runtimeIn(t, namespace, "mpi-openmpi", change...)
			job := trainJob(t, namespace, "{numNodes: 2, image: '"+image+"', env: [{name: GREETING, value: hello}], command: [mpirun, -n, '2', sh, -c, 'echo $GREETING from $(hostname)']}")
			createTrainJob(t, job)
			if ours {
				ends(t, job, "Complete")
				for _, want := range []string{"hello from pi-node-0-0", "hello from pi-node-0-1"} {
					if text := printed(t, job); !strings.Contains(text, want) {
						t.Errorf("it printed %q, want %q", text, want)
					}
				}
				return
			}
			eventually(t, "it has workers", time.Minute, func() error {
				if n := len(trainerPods(t, job, "node")); n != 2 {
					return fmt.Errorf("it has %d", n)
				}
				return nil
			})
			worker := trainerPods(t, job, "node")[0].Spec.Containers[0]
			if worker.Image != missing || slices.ContainsFunc(worker.Env, func(v corev1.EnvVar) bool { return v.Name == "GREETING" }) {
				t.Errorf("the worker has image %s and variables %v: Trainer does by itself what we do in its place", worker.Image, worker.Env)
			}
		})
	}
}

// TestTrainJobSuspendAndResume: a TrainJob that is created suspended, and suspended again while it runs, has no pods meanwhile, and
// succeeds when it is resumed.
func TestTrainJobSuspendAndResume(t *testing.T) {
	parallel(t, 3)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi", "image: "+image, "image: registry.invalid/none:none")
	job := trainJob(t, namespace, "{numNodes: 3, image: '"+image+"', command: [mpirun, -n, '3', ranks, --sleep, '8']}", "  suspend: true")
	createTrainJob(t, job)
	eventually(t, "it is suspended", time.Minute, func() error {
		now, err := trainjob.LoadJob(t.Context(), api, client.ObjectKeyFromObject(job))
		if err == nil && !apimeta.IsStatusConditionTrue(now.Status.Conditions, "Suspended") {
			err = fmt.Errorf("conditions are %+v", now.Status.Conditions)
		}
		return err
	})
	pods := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d pods run", want), time.Minute, func() error {
			running := 0
			all := slices.Concat(trainerPods(t, job, "node"), trainerPods(t, job, "launcher"))
			for i := range all {
				if all[i].Status.Phase == corev1.PodRunning {
					running++
				}
			}
			if running != want || len(all) != want {
				return fmt.Errorf("%d of %d pods run", running, len(all))
			}
			return nil
		})
	}
	pods(0)
	suspend(t, job, false)
	pods(3)
	suspend(t, job, true)
	pods(0)
	suspend(t, job, false)
	ends(t, job, "Complete")
	if found := ranksByPod(printed(t, job)); len(found) != 3 {
		t.Errorf("ranks were on %v, want 3 pods", found)
	}
}

func suspend(t *testing.T, job *unstructured.Unstructured, yes bool) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, yes))
	if err := api.Patch(t.Context(), job.DeepCopy(), patch); err != nil {
		t.Fatalf("set suspend to %t: %v", yes, err)
	}
}

// TestTrainJobDeleted: a running TrainJob that is deleted leaves nothing.
func TestTrainJobDeleted(t *testing.T) {
	parallel(t, 3)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 3, command: [mpirun, -n, '3', ranks, --sleep, '600']}")
	createTrainJob(t, job)
	eventually(t, "its ranks run", time.Minute, func() error {
		pods := trainerPods(t, job, "launcher")
		if len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning && strings.Contains(printed(t, job), "rank 2 of 3") {
			return nil
		}
		return fmt.Errorf("no rank has said anything")
	})
	if err := api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", time.Minute, func() error {
		if left := children(t, namespace); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

// TestTrainJobFails: the launcher's exit code is told, at once and after one try.
func TestTrainJobFails(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', sh, -c, 'exit 3']}")
	createTrainJob(t, job)
	ends(t, job, "Failed")
	pods := trainerPods(t, job, "launcher")
	if len(pods) != 1 {
		t.Fatalf("the launcher was tried %d times", len(pods))
	}
	if told, has := mpi.AgentSummary(&pods[0]); !has || told.ExitCode == nil || *told.ExitCode != 3 {
		t.Errorf("the agent's summary is %+v", told)
	}
}

// TestTrainJobRestarts: JobSet starts all pods once more, as the annotation says, and the report has both attempts.
func TestTrainJobRestarts(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', sh, -c, 'exit 3']}")
	job.SetAnnotations(map[string]string{mpi.AnnotationMaxRestarts: "1"})
	createTrainJob(t, job)
	ends(t, job, "Failed")
	eventually(t, "the report has both attempts", time.Minute, func() error {
		report := reportOf(t, trainjob.Kind, namespace, job.GetName())
		if report == nil || report.Status.Run == nil || report.Status.Run.Attempts != 2 {
			return fmt.Errorf("it is %+v", report)
		}
		i := slices.IndexFunc(report.Status.Timeline, func(e v1alpha1.TimelineEntry) bool { return e.Event == codes.LauncherRestarted })
		if i < 0 || !strings.HasPrefix(report.Status.Timeline[i].Detail, "Attempt 2 of 2. The previous one ended: ApplicationFailed") {
			return fmt.Errorf("the timeline is %+v", report.Status.Timeline)
		}
		if failure := report.Status.Failure; failure == nil || failure.Code != codes.ApplicationFailed || len(failure.LogTail) == 0 {
			return fmt.Errorf("the failure is %+v", failure)
		}
		return nil
	})
}

// TestTrainJobSurvivesEvictions: all pods are started again if one is evicted, as by a drain of its node, which costs no retry. Afterwards,
// the program's own failure ends the job: at once without retries, and after one more attempt with one.
func TestTrainJobSurvivesEvictions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		role, retries string
		attempts      int32
	}{
		"worker":                  {role: "node", attempts: 2},
		"launcher":                {role: "launcher", attempts: 2},
		"worker, without retries": {role: "node", retries: "0", attempts: 2},
		"worker, with a retry":    {role: "node", retries: "1", attempts: 3},
		"launcher, with a retry":  {role: "launcher", retries: "1", attempts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			namespace := newNamespace(t)
			runtimeIn(t, namespace, "mpi-openmpi")
			// The attempt that is evicted sleeps, and the second one ends at once.
			create(t, configMap(namespace, "attempt", "seconds", "600"))
			job := trainJob(t, namespace, "{numNodes: 2, command: [sh, -c, 'mpirun -n 2 ranks --sleep $SECONDS_TO_SLEEP && exit 3'], "+
				"env: [{name: SECONDS_TO_SLEEP, valueFrom: {configMapKeyRef: {name: attempt, key: seconds}}}]}")
			if test.retries != "" {
				job.SetAnnotations(map[string]string{mpi.AnnotationMaxRestarts: test.retries})
			}
			createTrainJob(t, job)
			reported(t, trainjob.Kind, namespace, job.GetName(), "its ranks run", func(seen v1alpha1.JobReportStatus) error {
				if seen.Phase != v1alpha1.PhaseRunning || !strings.Contains(printed(t, job), "sum 1") {
					return fmt.Errorf("it is %s", seen.Phase)
				}
				return nil
			})
			second := configMap(namespace, "attempt", "seconds", "1")
			if err := api.Update(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			pod := trainerPods(t, job, test.role)[0]
			if err := logs.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}}); err != nil {
				t.Fatal(err)
			}
			ends(t, job, "Failed")
			eventually(t, "the report has all attempts", time.Minute, func() error {
				report := reportOf(t, trainjob.Kind, namespace, job.GetName())
				if report == nil || report.Status.Run == nil || report.Status.Run.Attempts != test.attempts {
					return fmt.Errorf("it is %+v", report)
				}
				i := slices.IndexFunc(report.Status.Timeline, func(e v1alpha1.TimelineEntry) bool { return e.Event == codes.LauncherRestarted })
				if i < 0 || !strings.HasPrefix(report.Status.Timeline[i].Detail, "Attempt 2 of 2. The previous one ended: Preempted") &&
					!strings.HasPrefix(report.Status.Timeline[i].Detail, "Attempt 2 of 2. The previous one ended: Evicted") {
					return fmt.Errorf("the timeline is %+v", report.Status.Timeline)
				}
				if failure := report.Status.Failure; failure == nil || failure.Code != codes.ApplicationFailed || failure.ExitCode == nil || *failure.ExitCode != 3 {
					return fmt.Errorf("the failure is %+v", failure)
				}
				return nil
			})
		})
	}
}

// TestEvictionsOfTrainJobAreBounded: a TrainJob that may be started again once after a failure, and was started again 101 times, runs its
// program. It ends when a worker is evicted once more, and its report has the cause: it was started again too often.
func TestEvictionsOfTrainJobAreBounded(t *testing.T) {
	parallel(t, 2)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}")
	job.SetAnnotations(map[string]string{mpi.AnnotationMaxRestarts: "1"})
	createTrainJob(t, job)
	runs := func(after string) {
		reported(t, trainjob.Kind, namespace, job.GetName(), "its ranks run after "+after+" restarts", func(seen v1alpha1.JobReportStatus) error {
			launchers := trainerPods(t, job, "launcher")
			if len(launchers) != 1 || launchers[0].Labels["jobset.sigs.k8s.io/restart-attempt"] != after || launchers[0].Status.Phase != corev1.PodRunning {
				return fmt.Errorf("it has %d launchers", len(launchers))
			}
			if seen.Phase != v1alpha1.PhaseRunning || !strings.Contains(printed(t, job), "sum 1") {
				return fmt.Errorf("it is %s: %s", seen.Phase, seen.Message)
			}
			return nil
		})
	}
	runs("0")
	// JobSet starts jobs again whose pods were made before the last restart that it has counted: this stands for 101 evictions.
	if err := api.Status().Patch(t.Context(), jobSetOf(job), client.RawPatch(types.MergePatchType, []byte(`{"status": {"restarts": 101}}`))); err != nil {
		t.Fatal(err)
	}
	runs("101")
	pod := trainerPods(t, job, "node")[0]
	if err := logs.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}}); err != nil {
		t.Fatal(err)
	}
	ends(t, job, "Failed")
	report := reported(t, trainjob.Kind, namespace, job.GetName(), "it has failed", inPhase(v1alpha1.PhaseFailed))
	if failure := report.Status.Failure; failure == nil || failure.Code != codes.RestartedTooOften || !strings.Contains(report.Status.Message, "started again 103 times") {
		t.Errorf("%s: the failure is %+v", report.Status.Message, failure)
	}
}

// warnings collects what the API server warns of.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// clientWith is a client that keeps the API server's warnings, and may act as somebody else.
func clientWith(t *testing.T, w *warnings, change func(*rest.Config)) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = w
	change(config)
	made, err := client.New(config, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestTrainerFaultsAreRefused: mistakes in MPI runtimes and TrainJobs that Kubeflow Trainer would accept and run as something else are
// refused, or cause a warning, with the field.
func TestTrainerFaultsAreRefused(t *testing.T) {
	needTrainer(t)
	t.Parallel()
	limits := []string{
		`mpi.opendatahub.io/max-workers: "100"`, "mpi.opendatahub.io/max-workers: '4'\n    mpi.opendatahub.io/required-node-labels: pool=mpi",
		`mpi.opendatahub.io/max-gpus-per-worker: "16"`, "mpi.opendatahub.io/max-gpus-per-worker: '2'",
	}
	tests := map[string]struct {
		runtime []string
		trainer string
		// rest are further lines of the TrainJob.
		rest string
		// refused are parts of the one message; warned are parts of warnings.
		runtimeRefused, refused, warned []string
	}{
		"4 launchers":     {runtime: []string{"numNodes: 1", "numNodes: 4"}, runtimeRefused: []string{"must be 1: Trainer would start 4 launchers"}},
		"a gang in order": {runtime: []string{"spec:\n  mlPolicy", "spec:\n  podGroupPolicy: {coscheduling: {}}\n  mlPolicy", "name: launcher\n", "name: launcher\n        dependsOn: [{name: node, status: Ready}]\n"}, runtimeRefused: []string{"all pods are scheduled together"}},
		"an unknown MPI":  {runtime: []string{"mpi-implementation: OpenMPI", "mpi-implementation: LAM"}, runtimeRefused: []string{`"LAM": supported values: "OpenMPI", "Intel", "MPICH"`}},
		"no command":      {trainer: "{numNodes: 2}", refused: []string{"spec.trainer.command: Required value: must say what the launcher runs"}},
		"every limit": {
			runtime: limits, trainer: "{numNodes: 5, command: [ranks], resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}",
			refused: []string{"must be at most 4", "must be at most 2 GPUs", `job "launcher" must have pool: mpi`, `job "node" must have pool: mpi`},
		},
		"sizes that no pod has": {
			trainer: "{numNodes: 2, command: [ranks], resourcesPerNode: {requests: {memory: 2Gi, nvidia.com/gpu: 1}, limits: {memory: 512Mi}}}",
			refused: []string{`spec.trainer.resourcesPerNode.requests[memory]: Invalid value: "2Gi": must be at most its limit, 512Mi`, "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]: Required value"},
		},
		"an invalid variable": {trainer: "{numNodes: 2, command: [ranks], env: [{name: 'A=B', value: c}]}", refused: []string{"spec.trainer.env[0].name: Invalid value"}},
		"a mount without a volume": {
			trainer: "{numNodes: 2, command: [ranks]}",
			rest:    podsPatched(t, "spec: {containers: [{name: node, volumeMounts: [{name: none, mountPath: /data}]}]}"),
			refused: []string{`.spec.containers[0].volumeMounts[0].name: Not found: "none"`},
		},
		"a runtime that Pod Security refuses": {
			runtime: []string{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"}, trainer: "{numNodes: 2, command: [ranks]}",
			warned: []string{"spec.trainer: the API server currently refuses the pod: violates PodSecurity"},
		},
		"1 node":         {trainer: "{numNodes: 1, command: [ranks]}", warned: []string{"1 makes 2 pods with ranks"}},
		"slots and GPUs": {trainer: "{numNodes: 2, numProcPerNode: 4, command: [ranks], resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", warned: []string{"4 ranks per node with 2 GPUs"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			heard := &warnings{}
			by := clientWith(t, heard, func(*rest.Config) {})
			keepOperators(t)
			err := tryRuntime(t, by, namespace, "mpi-openmpi", test.runtime...)
			refusedWith(t, err, test.runtimeRefused)
			if test.trainer == "" {
				return
			}
			refusedWith(t, submit(t, by, trainJob(t, namespace, test.trainer, "  suspend: true", test.rest)), test.refused)
			for _, want := range test.warned {
				if !strings.Contains(strings.Join(heard.texts, "\n"), want) {
					t.Errorf("warnings are %q, want %q", heard.texts, want)
				}
			}
		})
	}
}

func refusedWith(t *testing.T, err error, parts []string) {
	t.Helper()
	if (err != nil) != (len(parts) > 0) {
		t.Fatalf("the answer is %v, want %q", err, parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the answer is %v, want %q", err, part)
		}
	}
}

// TestCreatorIsRecorded: jobs of both kinds name their creator, whatever they say themselves, for good.
func TestCreatorIsRecorded(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	keepOperators(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	ada := clientWith(t, &warnings{}, func(config *rest.Config) {
		config.Impersonate = rest.ImpersonationConfig{UserName: "ada", Groups: []string{"system:masters", "system:authenticated"}}
	})
	forged := map[string]string{mpi.AnnotationCreator: "somebody else"}
	mpiJob := openMPI(namespace, 1, "true")
	mpiJob.Spec.RunPolicy.Suspend = new(true)
	for _, job := range []client.Object{trainJob(t, namespace, "{numNodes: 2, command: ['true']}", "  suspend: true"), mpiJob} {
		job.SetAnnotations(forged)
		if err := submit(t, ada, job); err != nil {
			t.Fatal(err)
		}
		if creator := job.GetAnnotations()[mpi.AnnotationCreator]; creator != "ada" {
			t.Errorf("%T names %q as its creator", job, creator)
		}
		for _, patch := range []string{`{"metadata":{"annotations":{"mpi.opendatahub.io/created-by":"bob"}}}`, `{"metadata":{"annotations":null}}`} {
			if err := api.Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				t.Fatal(err)
			}
			if creator := job.GetAnnotations()[mpi.AnnotationCreator]; creator != "ada" {
				t.Errorf("%T names %q as its creator after %s", job, creator, patch)
			}
		}
	}
}

// TestTrainJobBesideMPIJob measures how long a first rank takes, with 3 workers each, one after the other.
func TestTrainJobBesideMPIJob(t *testing.T) {
	parallel(t, 8)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	firstRank := func(job client.Object, pods func() []corev1.Pod) time.Duration {
		start := time.Now()
		createTrainJob(t, job)
		eventually(t, "a rank says where it is", time.Minute, func() error {
			for _, pod := range pods() {
				text, _ := logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
				if rankOn.Match(text) {
					return nil
				}
			}
			return fmt.Errorf("none has")
		})
		return time.Since(start).Round(100 * time.Millisecond)
	}
	mpiJob := agentJob(namespace, "job", "openmpi", kubeflow.MPIImplementationOpenMPI, 3, "mpirun", "-n", "6", "ranks")
	took := firstRank(mpiJob, func() []corev1.Pod { return podsOf(t, mpiJob, mpi.RoleLauncher) })
	train := trainJob(t, namespace, "{numNodes: 4, numProcPerNode: 2, command: [mpirun, -n, '8', ranks]}")
	t.Logf("from create to the first rank's line: MPIJob %s, TrainJob %s", took, firstRank(train, func() []corev1.Pod { return trainerPods(t, train, "launcher") }))
}
