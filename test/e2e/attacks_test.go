package e2e

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// keepKilling kills the operators every few seconds, each time before another leads for long. The returned function ends that and
// waits until an operator leads again.
func keepKilling(t *testing.T) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for {
			killOperators(t)
			select {
			case <-done:
				return
			case <-time.After(3 * time.Second):
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		killing.Wait()
	})
}

// podUIDs are the UIDs of the pods of a job.
func podUIDs(t *testing.T, job *kubeflow.MPIJob) map[types.UID]bool {
	t.Helper()
	uids := map[types.UID]bool{}
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, job, role) {
			uids[pod.UID] = true
		}
	}
	return uids
}

// forgedPod is a pod that looks like a worker of a job, asks for seats of a node, and is never scheduled.
func forgedPod(namespace string, seat corev1.ResourceName, node string, index int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("forged-worker-%d", index)}}
	pod.Labels = map[string]string{mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "forged", mpi.LabelRole: string(mpi.RoleWorker)}
	pod.Spec.NodeSelector = map[string]string{"example.com/no-such-node": "true"}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
	}}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "main", Image: image,
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{seat: resource.MustParse("2"), corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}}
	return pod
}

// TestAttacksFailWhileOperatorsAreKilled: while all operators are killed again and again, so that webhooks often do not answer,
// another tenant cannot forge a priority, an author, a record or the use of seats, nor get pods without a NetworkPolicy.
func TestAttacksFailWhileOperatorsAreKilled(t *testing.T) {
	embeddedGangs(t)
	const seat = "example.com/seat-attacks"
	seats(t, seat, 2, 2)
	alice, mallory := newTenant(t, "alice-attacked"), newTenant(t, "mallory")
	victim := seatJob(alice.namespace, "victim", seat)
	if err := alice.api.Create(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	placed(t, victim, 2)
	reported(t, "MPIJob", alice.namespace, victim.Name, "it runs", inPhase(v1alpha1.PhaseRunning))
	before := podUIDs(t, victim)
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}

	stop := keepKilling(t)
	defer stop()
	refusedOr := func(what string, err error) {
		t.Helper()
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A priority that only the API server may set. Without a webhook, the job is created.
	first := seatJob(mallory.namespace, "first", seat)
	first.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{}
	for _, role := range first.Spec.MPIReplicaSpecs {
		role.Template.Spec.Priority = new(int32(2000000000))
	}
	refusedOr("create a job with a priority", mallory.api.Create(t.Context(), first))
	// Another author: again and again, so that some requests find no webhook.
	recorded := 0
	for i := range 20 {
		job := seatJob(mallory.namespace, fmt.Sprintf("by-alice-%d", i), seat)
		job.Spec.RunPolicy.Suspend = new(true)
		job.Annotations = map[string]string{mpi.AnnotationCreator: alice.name}
		err := mallory.api.Create(t.Context(), job)
		refusedOr("create a job in the name of another user", err)
		if err == nil {
			recorded++
			if by := job.Annotations[mpi.AnnotationCreator]; by != mallory.name {
				t.Errorf("%s was created by %q, as it says", job.Name, by)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("of 20 jobs in the name of another user, %d were created in her own, and the others refused", recorded)
	// A record of her own job that says something else.
	var reports v1alpha1.JobReportList
	if err := mallory.api.List(t.Context(), &reports, client.InNamespace(mallory.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range reports.Items {
		report := &reports.Items[i]
		report.Status.Phase = v1alpha1.PhaseSucceeded
		for what, err := range map[string]error{
			"change": mallory.api.Update(t.Context(), report), "change the status of": mallory.api.Status().Update(t.Context(), report), "delete": mallory.api.Delete(t.Context(), report),
		} {
			if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				t.Errorf("she may %s a record: %v", what, err)
			}
		}
	}
	// Pods that look as if they used all seats. Whoever may create pods can create them.
	for i := range 4 {
		create(t, forgedPod(mallory.namespace, seat, nodes.Items[i%len(nodes.Items)].Name, i))
	}
	// A job whose pods start while no operator lives for long.
	own := agentJob(mallory.namespace, "own", "openmpi", kubeflow.MPIImplementationOpenMPI, 2, "sleep", "600")
	refusedOr("create a job", mallory.api.Create(t.Context(), own))
	time.Sleep(5 * time.Second)
	stop()

	next := seatJob(alice.namespace, "next", seat)
	eventually(t, "an operator answers", time.Minute, func() error { return client.IgnoreAlreadyExists(alice.api.Create(t.Context(), next)) })
	t.Logf("the other tenant's next job has its pods after %s", placed(t, next, 2))
	if after := podUIDs(t, victim); !maps.Equal(before, after) {
		t.Errorf("the pods of the victim were %v and are %v", before, after)
	}
	if pods := podUIDs(t, first); len(pods) > 0 {
		t.Errorf("the job with a forged priority has %d pods", len(pods))
	}
	var policy networkingv1.NetworkPolicy
	eventually(t, "her own job runs", time.Minute, func() error {
		if n := len(podUIDs(t, own)); n != 3 {
			return fmt.Errorf("it has %d pods", n)
		}
		return api.Get(t.Context(), client.ObjectKeyFromObject(own), &policy)
	})
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, own, role) {
			if pod.CreationTimestamp.Before(&policy.CreationTimestamp) {
				t.Errorf("%s was created at %s, before its NetworkPolicy at %s", pod.Name, pod.CreationTimestamp, policy.CreationTimestamp)
			}
		}
	}
	eventually(t, "no record says what she wrote", time.Minute, func() error {
		var now v1alpha1.JobReportList
		if err := api.List(t.Context(), &now, client.InNamespace(mallory.namespace)); err != nil {
			return err
		}
		for i := range now.Items {
			if now.Items[i].Status.Phase == v1alpha1.PhaseSucceeded {
				t.Errorf("the record of %s says that it has succeeded", now.Items[i].Spec.JobRef.Name)
			}
		}
		return nil
	})
}
