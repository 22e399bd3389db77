package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// amounts reads "pods=3 requests.cpu=2".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(part, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

// setQuota makes or changes the quota "team". No controller counts what is used here.
func setQuota(t *testing.T, namespace, hard, used string) {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: amounts(hard)}}
	err := api.Create(t.Context(), quota)
	if apierrors.IsAlreadyExists(err) {
		quota = get(t, namespace, "team", &corev1.ResourceQuota{})
		quota.Spec.Hard = amounts(hard)
		err = api.Update(t.Context(), quota)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: amounts(hard), Used: corev1.ResourceList{}}
	for name := range quota.Spec.Hard {
		quota.Status.Used[name] = resource.Quantity{}
	}
	maps.Copy(quota.Status.Used, amounts(used))
	if err := errors.Join(err, api.Status().Update(t.Context(), quota)); err != nil {
		t.Fatal(err)
	}
}

func gpus(job *kubeflow.MPIJob) {
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("nvidia.com/gpu=2")
}

func annotated(name, value string) func(*kubeflow.MPIJob) {
	return func(job *kubeflow.MPIJob) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, name, value) }
}

// TestTooLargeForAnyNode: a job whose pods no node can hold is refused with the figures and the largest node.
func TestTooLargeForAnyNode(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	pool := map[string]string{"pool": namespace}
	for i, cpu := range []string{"4", "8"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", namespace, i), Labels: pool}}
		create(t, node)
		t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
		node.Status.Allocatable = amounts("cpu=" + cpu + " memory=16Gi pods=110")
		if err := api.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	job := func(cpu string) *kubeflow.MPIJob {
		job := mpitest.MPIJob(namespace, 2)
		spec := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec
		spec.NodeSelector = pool
		spec.Containers[0].Resources.Requests = amounts("cpu=" + cpu)
		return job
	}
	eventually(t, "a job that is too large is refused", func() error {
		err := api.Create(t.Context(), job("9"), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		for _, want := range []string{
			`spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.requests[cpu]: Invalid value: "9"`,
			"each worker requests 9 of cpu in total", "of 2 nodes that it may run on, the largest (" + namespace + "-1) has 8 of cpu", "ask the cluster administrator",
		} {
			if !strings.Contains(err.Error(), want) {
				return fmt.Errorf("the error is not %q: %w", want, err)
			}
		}
		return nil
	})
	if err := api.Create(t.Context(), job("8"), client.DryRunAll); err != nil {
		t.Errorf("a job that fits the largest node is refused: %v", err)
	}
}

// TestQuotaPreflight: a job that its namespace has no room for is refused with the figures of the whole job.
func TestQuotaPreflight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	broken := mpitest.MPIJob(namespace, 0)
	eventually(t, "the webhook answers", func() error {
		if err := api.Create(t.Context(), broken.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("it took a job of no workers")
		}
		return nil
	})
	tests := []struct {
		name             string
		workers          int32
		change           func(*kubeflow.MPIJob)
		hard, used       string
		limits           []corev1.LimitRangeItem
		there            map[string]string
		taken, forbidden bool
		says             []string
	}{
		{name: "exactly full", workers: 4, change: gpus, hard: "requests.nvidia.com/gpu=8 pods=5 count/jobs.batch=1 services=1", taken: true},
		{name: "exactly full beside others", workers: 4, change: gpus, hard: "requests.nvidia.com/gpu=9", used: "requests.nvidia.com/gpu=1", taken: true},
		{
			name: "one over", workers: 4, change: gpus, hard: "requests.nvidia.com/gpu=7 pods=4",
			says: []string{
				"spec.mpiReplicaSpecs[Worker].replicas", "exceeds the quota", "8 requests.nvidia.com/gpu requested (4 workers with 2 each), quota team allows 7",
				"5 pods requested (the launcher and 4 workers), quota team allows 4", "use at most 3 workers",
			},
		},
		{
			name: "one over what is free", workers: 4, change: gpus, hard: "requests.nvidia.com/gpu=32", used: "requests.nvidia.com/gpu=25", forbidden: true,
			says: []string{"exceeded quota", "8 requests.nvidia.com/gpu requested (4 workers with 2 each), 25 of 32 used in quota team, 7 free", "use at most 3 workers", mpi.AnnotationWaitForQuota},
		},
		{name: "nothing is free", workers: 1, change: gpus, hard: "requests.nvidia.com/gpu=32", used: "requests.nvidia.com/gpu=32", forbidden: true, says: []string{"2 requests.nvidia.com/gpu requested (1 worker with 2)", "0 free; request less"}},
		{
			name: "what is left of an earlier job of its name goes", workers: 4, hard: "pods=5", used: "pods=1", taken: true,
			there: map[string]string{mpi.LabelJob: "pi", mpi.LabelOperator: mpi.OperatorName},
		},
		{
			name: "others stay", workers: 4, hard: "pods=5", used: "pods=1", forbidden: true, says: []string{"1 of 5 used"},
			there: map[string]string{mpi.LabelJob: "e", mpi.LabelOperator: mpi.OperatorName},
		},
		{name: "it waits", workers: 4, change: annotated(mpi.AnnotationWaitForQuota, "true"), hard: "pods=5", used: "pods=3", taken: true},
		{name: "it waits in a queue", workers: 4, change: func(o *kubeflow.MPIJob) { o.Labels = map[string]string{mpi.LabelQueue: "team"} }, hard: "pods=5", used: "pods=3", taken: true},
		{name: "it would wait for ever", workers: 5, change: annotated(mpi.AnnotationWaitForQuota, "true"), hard: "pods=5", says: []string{"6 pods"}},
		{name: "a word that means nothing", workers: 1, change: annotated(mpi.AnnotationWaitForQuota, "yes"), says: []string{`supported values: "true", "false"`}},
		{
			name: "defaults of a LimitRange count", workers: 3, hard: "requests.memory=3Gi", says: []string{"4Gi requests.memory requested (the launcher with 1Gi and 3 workers with 1Gi each)"},
			limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("memory=1Gi")}},
		},
		{
			name: "also where the quota has no room for a single pod", workers: 3, hard: "requests.memory=512Mi", says: []string{"4Gi requests.memory"},
			limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("memory=1Gi")}},
		},
		{
			name: "beyond a LimitRange", workers: 1, says: []string{"LimitRange ", " of the namespace", "maximum nvidia.com/gpu usage per Container is 1"}, change: gpus,
			limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amounts("nvidia.com/gpu=1")}},
		},
		{name: "no sizes", workers: 1, hard: "requests.cpu=4", says: []string{"the quota team", "missing: requests.cpu for: main"}},
		{
			name: "no such priority class", workers: 1, says: []string{"spec.runPolicy.schedulingPolicy.priorityClass", "priority class does not exist"},
			change: func(o *kubeflow.MPIJob) {
				o.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{PriorityClass: "huge"}
			},
		},
		{
			name: "the launcher's own is none", workers: 1, says: []string{"spec.mpiReplicaSpecs[Launcher].template.spec.priorityClassName"},
			change: func(o *kubeflow.MPIJob) {
				o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.PriorityClassName = "huge"
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.hard == "" {
				test.hard = "count/events=9"
			}
			setQuota(t, namespace, test.hard, test.used)
			if test.limits != nil {
				limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, Spec: corev1.LimitRangeSpec{Limits: test.limits}}
				create(t, limits)
				defer func() { _ = api.Delete(t.Context(), limits) }()
			}
			if test.there != nil {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there", Labels: test.there}, Spec: mpitest.Template().Spec}
				eventually(t, "a pod is there", func() error { return api.Create(t.Context(), pod) })
				defer func() { _ = api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)) }()
				setQuota(t, namespace, test.hard, test.used)
			}
			job := mpitest.MPIJob(namespace, test.workers)
			if test.change != nil {
				test.change(job)
			}
			try := func() error {
				err := api.Create(t.Context(), job.DeepCopy(), client.DryRunAll)
				switch {
				case test.taken:
					return err
				case err == nil:
					return errors.New("it is taken")
				case apierrors.IsForbidden(err) != test.forbidden, apierrors.IsInvalid(err) == test.forbidden:
					return fmt.Errorf("the refusal is of the wrong kind: %w", err)
				}
				for _, word := range test.says {
					if !strings.Contains(err.Error(), word) {
						return fmt.Errorf("the answer lacks %q: %w", word, err)
					}
				}
				t.Log(err)
				return nil
			}
			// The API server's own admission sees quotas and LimitRanges through a cache.
			eventually(t, "the answer is as wanted", try)
		})
	}
}

// TestWaitsForQuota: a job that waits has no pods until quotas have room for all of them; one that they can never take
// says so, also while it is suspended.
func TestWaitsForQuota(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	setQuota(t, namespace, "pods=5", "pods=3")
	create(t, mpitest.MPIJob(namespace, 3, annotated(mpi.AnnotationWaitForQuota, "true")))
	finding := func(code codes.Code, words ...string) {
		t.Helper()
		eventually(t, "the report has "+code, func() error {
			var list v1alpha1.JobReportList
			if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			if len(list.Items) != 1 {
				return fmt.Errorf("there are %d reports", len(list.Items))
			}
			status := list.Items[0].Status
			if code == "" && len(status.Findings) == 0 {
				return nil
			}
			if code == "" || len(status.Findings) == 0 || status.Findings[0].Code != code {
				return fmt.Errorf("it is %s: %s: %+v", status.Phase, status.Message, status.Findings)
			}
			for _, word := range words {
				if !strings.Contains(status.Findings[0].Summary, word) {
					return fmt.Errorf("it says %q, not %q", status.Findings[0].Summary, word)
				}
			}
			t.Log(status.Findings[0].Summary)
			return nil
		})
	}
	finding(codes.QuotaExhausted, "4 pods requested (the launcher and 3 workers), 3 of 5 used in quota team, 2 free")
	job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForQuota)
	t.Log(message(job, kubeflow.JobRunning))
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
		t.Fatalf("%d pods are there, want none: %v", len(pods.Items), err)
	}
	setQuota(t, namespace, "pods=3", "")
	finding(codes.QuotaTooSmall, "quota team allows 3")
	setQuota(t, namespace, "pods=5", "pods=1")
	for i := range 3 {
		exists(t, namespace, fmt.Sprintf("pi-worker-%d", i), &corev1.Pod{})
	}

	setQuota(t, namespace, "pods=50", "")
	other := newNamespace(t)
	start(t, other)
	namespace = other
	setQuota(t, namespace, "pods=5", "")
	create(t, mpitest.MPIJob(namespace, 3, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) }))
	reported(t, namespace, "Suspended")
	setQuota(t, namespace, "pods=3", "")
	finding(codes.QuotaTooSmall, "4 pods requested (the launcher and 3 workers), quota team allows 3")
	job = get(t, namespace, "pi", &kubeflow.MPIJob{})
	if err := api.Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(resume))); err != nil {
		t.Fatal(err)
	}
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForQuota)
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi-worker-0"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has a worker although not all of its pods fit: %v", err)
	}
	setQuota(t, namespace, "pods=4", "")
	exists(t, namespace, "pi-worker-2", &corev1.Pod{})
	finding("")
}

// TestQuotaInTurn: jobs that wait for room get it in the order in which they came, and one that has just got it is not
// robbed of it by the next.
func TestQuotaInTurn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	setQuota(t, namespace, "pods=4", "pods=2")
	named := func(name string, workers int32) *kubeflow.MPIJob {
		return mpitest.MPIJob(namespace, workers, annotated(mpi.AnnotationWaitForQuota, "true"), func(o *kubeflow.MPIJob) { o.Name = name })
	}
	create(t, named("big", 3))
	says(t, namespace, "big", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForQuota)
	create(t, named("small", 1))
	job := says(t, namespace, "small", kubeflow.JobRunning, corev1.ConditionFalse, codes.WaitingForQuota)
	if text := message(job, kubeflow.JobRunning); !strings.Contains(text, " used in quota team, 4 reserved for earlier jobs, 0 free") {
		t.Errorf("the small one says %q", text)
	}
	setQuota(t, namespace, "pods=4", "")
	exists(t, namespace, "big-worker-2", &corev1.Pod{})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "small-worker-0"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the small one got in at once: %v", err)
	}
}
