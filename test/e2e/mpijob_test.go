package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	rankLine = regexp.MustCompile(`(?m)^rank (\d+) of (\d+) on (\S+)$`)
	piLine   = regexp.MustCompile(`pi is approximately (\S+),`)
)

// TestPi runs 4 ranks on 4 workers on 2 nodes.
func TestPi(t *testing.T) {
	parallel(t, 4)
	job := sample(t, "pi", newNamespace(t), func(job *kubeflow.MPIJob) {
		spread := job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.TopologySpreadConstraints
		spread[0].WhenUnsatisfiable = corev1.DoNotSchedule
	})
	create(t, job)
	running := waitFor(t, job, "the job runs or is done", func(now *kubeflow.MPIJob) error {
		if c := condition(now, kubeflow.JobRunning); c.Reason == "MPIJobRunning" {
			return nil
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})
	nodes := map[string]bool{}
	for _, pod := range podsOf(t, running, mpi.RoleWorker) {
		nodes[pod.Spec.NodeName] = true
	}
	if len(nodes) < 2 {
		t.Errorf("the workers run on %d node, want 2: %v", len(nodes), nodes)
	}
	waitFor(t, job, "the job succeeds", succeeded)
	accusesNobody(t, kubeflow.Kind, job.Namespace, job.Name)

	printed := output(t, job)
	pods := map[string]string{}
	for _, match := range rankLine.FindAllStringSubmatch(printed, -1) {
		if match[2] != "4" {
			t.Errorf("a rank counts %s ranks, want 4", match[2])
		}
		pods[match[1]] = match[3]
	}
	for rank := range 4 {
		if want := fmt.Sprintf("pi-worker-%d", rank); pods[strconv.Itoa(rank)] != want {
			t.Errorf("rank %d ran on %q, want %s", rank, pods[strconv.Itoa(rank)], want)
		}
	}
	match := piLine.FindStringSubmatch(printed)
	if match == nil {
		t.Fatalf("no result in:\n%s", printed)
	}
	if got, err := strconv.ParseFloat(match[1], 64); err != nil || math.Abs(got-math.Pi) > 1e-6 {
		t.Errorf("pi is %s (%v)", match[1], err)
	}
}

// TestTraining trains a network over 4 ranks and reads the loss that it prints for each epoch.
func TestTraining(t *testing.T) {
	parallel(t, 4)
	job := sample(t, "train", newNamespace(t))
	create(t, job)
	waitFor(t, job, "the job succeeds", succeeded)
	accusesNobody(t, kubeflow.Kind, job.Namespace, job.Name)

	type epoch struct {
		Epoch, Ranks   int
		Loss, Accuracy float64
	}
	var epochs []epoch
	printed := output(t, job)
	for lines := bufio.NewScanner(strings.NewReader(printed)); lines.Scan(); {
		var e epoch
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Epoch > 0 {
			epochs = append(epochs, e)
		}
	}
	if len(epochs) != 10 {
		t.Fatalf("%d epochs, want 10, in:\n%s", len(epochs), printed)
	}
	first, last := epochs[0], epochs[len(epochs)-1]
	if last.Ranks != 4 {
		t.Errorf("trained on %d ranks, want 4", last.Ranks)
	}
	if last.Loss > first.Loss/2 || last.Accuracy < 0.9 {
		t.Errorf("the loss went from %.3f to %.3f and the accuracy to %.3f; want half the loss and 0.9", first.Loss, last.Loss, last.Accuracy)
	}
}

// TestWrongImage: the job says which image cannot be pulled, and goes on once it is deleted and created right.
func TestWrongImage(t *testing.T) {
	parallel(t, 4)
	namespace := newNamespace(t)
	wrong := func(job *kubeflow.MPIJob) { worker(job).Image = "registry.invalid/nobody/nothing:1" }
	job := sample(t, "pi", namespace, wrong)
	create(t, job)
	now := waitFor(t, job, "the job says that its image cannot be pulled", func(now *kubeflow.MPIJob) error {
		if c := condition(now, kubeflow.JobRunning); c.Status == corev1.ConditionFalse && c.Reason == codes.ImagePullFailed {
			return nil
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})
	text := condition(now, kubeflow.JobRunning).Message
	t.Log(text)
	for _, want := range []string{`"registry.invalid/nobody/nothing:1"`, "cannot be pulled", "pull secret"} {
		if !strings.Contains(text, want) {
			t.Errorf("the message lacks %q: %s", want, text)
		}
	}
	warned := func() error {
		var events corev1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": "pi", "reason": codes.ImagePullFailed}); err != nil {
			return err
		}
		if n := len(events.Items); n != 1 {
			return fmt.Errorf("%d events tell it", n)
		}
		return nil
	}
	eventually(t, "one event tells it", 10*time.Second, warned)
	if err := api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	create(t, sample(t, "pi", namespace))
	waitFor(t, job, "a right job of the same name succeeds", succeeded)
}

// TestFailingProgram: the exit code of a rank ends the MPIJob, whose status has the code.
func TestFailingProgram(t *testing.T) {
	t.Parallel()
	job := sample(t, "pi", newNamespace(t), func(job *kubeflow.MPIJob) {
		job.Spec.RunPolicy.BackoffLimit = new(int32(0))
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
		launcher(job).Command = []string{"mpirun", "-n", "4", "sh", "-c", "exit 13"}
	})
	create(t, job)
	if why := failedWith(t, job, time.Minute); why.Reason != "BackoffLimitExceeded" || !strings.Contains(why.Message, "the launcher exited with code 13") {
		t.Errorf("it says %s: %s", why.Reason, why.Message)
	}
	noPods(t, job, mpi.RoleWorker)
}

// TestDeletedWhileStarting deletes jobs at several moments of their start; nothing of them is left.
func TestDeletedWhileStarting(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			job := sample(t, "pi", namespace)
			create(t, job)
			time.Sleep(after) // the moment is what is tested
			if err := api.Delete(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			eventually(t, "nothing is left of the job", 90*time.Second, func() error {
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &kubeflow.MPIJob{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the job is there: %w", err)
				}
				if left := children(t, namespace); len(left) > 0 {
					return fmt.Errorf("left: %v", left)
				}
				return nil
			})
		})
	}
}

// TestNamespaceDeleted deletes a namespace under a starting job.
func TestNamespaceDeleted(t *testing.T) {
	t.Parallel()
	name := newNamespace(t)
	create(t, sample(t, "pi", name))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := api.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", time.Minute, func() error {
		if err := api.Get(context.Background(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there, with %v: %w", children(t, name), err)
		}
		return nil
	})
}

// TestBadInputIsRefused: an invalid MPIJob is refused when it is created, with all errors at once.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	job := sample(t, "pi", newNamespace(t), func(job *kubeflow.MPIJob) {
		job.Name = strings.Repeat("a", 60)
		job.Spec.SlotsPerWorker = new(int32(-1))
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(0))
	})
	// While a webhook's pod has just started, the API server may not reach it yet and lets jobs pass.
	var err error
	eventually(t, "the job is refused", 30*time.Second, func() error {
		if err = api.Create(t.Context(), job.DeepCopy()); err == nil {
			_ = api.Delete(t.Context(), job)
			return fmt.Errorf("it was taken")
		}
		return nil
	})
	t.Log(err)
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("it is refused for another reason: %v", err)
	}
	wants := []string{"metadata.name", "at most 54 characters instead of 60", "spec.slotsPerWorker: Invalid value: -1", "spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0"}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q", want)
		}
	}
	resources := sample(t, "pi", job.Namespace, func(job *kubeflow.MPIJob) {
		worker(job).Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("2Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	})
	err = api.Create(t.Context(), resources)
	if err == nil {
		t.Fatal("resources out of range were taken")
	}
	t.Log(err)
	for _, want := range []string{"containers[0].resources.requests[memory]: Invalid value: \"2Gi\": must be at most its limit, 512Mi", "containers[0].resources.limits[nvidia.com/gpu]: Required value"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q", want)
		}
	}
	if isQueued() {
		// The nodes of the queue decide.
		return
	}
	large := sample(t, "pi", job.Namespace, func(job *kubeflow.MPIJob) {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("512"), corev1.ResourceMemory: resource.MustParse("512Mi")}
		worker(job).Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	})
	if err = api.Create(t.Context(), large); err == nil {
		t.Fatal("a job that no node can hold was taken")
	}
	t.Log(err)
	for _, want := range []string{"[Worker].template.spec.containers[0].resources.requests[cpu]: Invalid value: \"512\"", "each worker requests 512 of cpu in total", "the largest (node-"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q", want)
		}
	}
}

// TestStrangersServiceIsLeftAlone: a Service that has the job's name already stays what it is, and the job waits
// for it to go.
func TestStrangersServiceIsLeftAlone(t *testing.T) {
	parallel(t, 4)
	namespace := newNamespace(t)
	stranger := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pi"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	create(t, stranger)
	job := sample(t, "pi", namespace)
	create(t, job)
	now := waitFor(t, job, "the job says whose name it cannot have", func(now *kubeflow.MPIJob) error {
		if c := condition(now, kubeflow.JobRunning); c.Reason == codes.ErrResourceExists {
			return nil
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})
	t.Log(condition(now, kubeflow.JobRunning).Message)
	var service corev1.Service
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(stranger), &service); err != nil || service.ResourceVersion != stranger.ResourceVersion {
		t.Errorf("the stranger's Service was touched: %v", err)
	}
	if left := slices.DeleteFunc(children(t, namespace), func(name string) bool {
		return !strings.HasPrefix(name, "*v1.Pod") && !strings.HasPrefix(name, "*v1.Job")
	}); len(left) > 0 {
		t.Errorf("pods were made although their names cannot be looked up: %v", left)
	}
	if err := api.Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	waitFor(t, job, "the job succeeds once the Service is gone", succeeded)
}
