package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// fault is a part of the cluster that fails for some time.
type fault struct {
	name string
	// jobs is how many jobs are created: the first half before the fault, the others while it lasts.
	jobs int
	// lasts is how long the fault lasts.
	lasts time.Duration
	// always is set if every run inflicts the fault. The others take minutes and require FAULTS=all.
	always bool
	// inflict starts the fault. The returned function ends it, and may be called twice.
	inflict func(t *testing.T) (end func())
}

func faults() []fault {
	return []fault{
		{name: "webhooks down", jobs: 8, lasts: 15 * time.Second, always: true, inflict: stopOperator},
		{name: "leader killed every 15 s", jobs: 60, lasts: 90 * time.Second, inflict: killLeaders},
		{name: "API server away for 20 s", jobs: 12, lasts: 20 * time.Second, inflict: stopAPIServer},
		{name: "API server away for 5 min", jobs: 12, lasts: 5 * time.Minute, inflict: stopAPIServer},
		{name: "etcd takes 500 ms", jobs: 12, lasts: 90 * time.Second, inflict: slowEtcd},
		{name: "node cut off", jobs: 12, lasts: 90 * time.Second, inflict: cutNodeOff},
		{name: "disk of a node full", jobs: 12, lasts: 90 * time.Second, inflict: fillDisk},
	}
}

// stopOperator removes all replicas of the operator, and with them its webhooks.
func stopOperator(t *testing.T) func() {
	scale := func(ctx context.Context, replicas int) error {
		deployment := &appsv1.Deployment{}
		deployment.Namespace, deployment.Name = operatorKey.Namespace, operatorKey.Name
		return api.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)))
	}
	var before appsv1.Deployment
	if err := api.Get(t.Context(), operatorKey, &before); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", operatorKey, err)
	}
	if err := scale(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := scale(context.Background(), int(*before.Spec.Replicas)); err != nil {
			t.Error(err)
		}
	}
}

// killLeaders deletes the pod that leads, without a grace period, every 15 s.
func killLeaders(t *testing.T) func() {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var lease coordinationv1.Lease
			if err := api.Get(ctx, operatorKey, &lease); err == nil && lease.Spec.HolderIdentity != nil {
				pod := &corev1.Pod{}
				pod.Namespace = operatorKey.Namespace
				pod.Name, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
				if err := api.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
					t.Logf("delete the leader %s: %v", pod.Name, err)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(15 * time.Second):
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func stopAPIServer(t *testing.T) func() {
	cluster := ownCluster(t)
	cluster("stop-apiserver")
	return func() { cluster("start-apiserver") }
}

// slowEtcd stops etcd for 500 ms out of every 600 ms.
func slowEtcd(t *testing.T) func() {
	ownCluster(t)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "run", "etcd.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Identity struct{ PID int } }
	if err := json.Unmarshal(text, &record); err != nil || record.Identity.PID == 0 {
		t.Fatalf("etcd's process ID in %q: %v", text, err)
	}
	etcd := record.Identity.PID
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = syscall.Kill(etcd, syscall.SIGSTOP)
			time.Sleep(500 * time.Millisecond)
			_ = syscall.Kill(etcd, syscall.SIGCONT)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// cutNodeOff stops the kubelet of the last node, whose containers go on.
func cutNodeOff(t *testing.T) func() {
	cluster := ownCluster(t)
	nodes := machines(t)
	name := nodes[len(nodes)-1].Name
	cluster("stop-node", name, "--kubelet-only")
	return func() { cluster("start-node", name) }
}

// fillDisk has the kubelet of the last node regard its disk as full: it evicts the pods of the node, and new ones are placed
// elsewhere. Filling the machine's own disk would stop etcd as well. A kubelet that lacks room also deletes images, which the
// one-machine cluster cannot pull: they are loaded again.
func fillDisk(t *testing.T) func() {
	cluster := ownCluster(t)
	nodes := machines(t)
	name := nodes[len(nodes)-1].Name
	path := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "nodes", name, "config", "kubelet.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(before, &config); err != nil {
		t.Fatal(err)
	}
	config["evictionHard"] = map[string]string{"nodefs.available": "99%"}
	full, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	restart := func(config []byte) {
		cluster("stop-node", name, "--kubelet-only")
		if err := os.WriteFile(path, config, 0o600); err != nil {
			t.Error(err)
		}
		cluster("start-node", name)
	}
	end := sync.OnceFunc(func() {
		restart(before)
		images, err := filepath.Glob(filepath.Join("..", "..", "dist", "*.tar"))
		if err != nil {
			t.Error(err)
		}
		for i, path := range images {
			if images[i], err = filepath.Abs(path); err != nil {
				t.Error(err)
			}
		}
		cluster(append([]string{"load"}, images...)...)
	})
	t.Cleanup(end)
	restart(full)
	eventually(t, "the node reports that its disk is full", time.Minute, func() error {
		var node corev1.Node
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", node.Status.Conditions)
	})
	return end
}

// faultJob is a job that a fault meets, and how it must end.
type faultJob struct {
	object client.Object
	kind   string
	fails  bool
}

// newFaultJob builds the job with an index: an MPIJob or a TrainJob whose ranks sleep for some seconds and then exit with 0 or 7.
// It may be retried once: a job whose pods start when the API server goes away cannot find them.
func newFaultJob(t *testing.T, namespace string, index int) faultJob {
	t.Helper()
	job := faultJob{kind: kubeflow.Kind, fails: index%3 == 2}
	script := fmt.Sprintf("sleep %d", 5+index%4*5)
	if job.fails {
		script += "; exit 7"
	}
	name := fmt.Sprintf("job-%d", index)
	if index%2 == 0 {
		made := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "mpirun", "-n", "2", "sh", "-c", script)
		made.Spec.RunPolicy.BackoffLimit = new(int32(1))
		job.object = made
		return job
	}
	command, err := json.Marshal([]string{"mpirun", "-n", "2", "sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	made := trainJob(t, namespace, fmt.Sprintf("{numNodes: 2, numProcPerNode: 1, command: %s}", command))
	made.SetName(name)
	made.SetAnnotations(map[string]string{mpi.AnnotationMaxRestarts: "1"})
	job.kind, job.object = trainjob.Kind, made
	return job
}

// ended reports what is missing until a job's report says how the job ended, and why.
func (j faultJob) ended(t *testing.T) error {
	t.Helper()
	report := reportOf(t, j.kind, j.object.GetNamespace(), j.object.GetName())
	switch {
	case report == nil:
		return errors.New("there is no report")
	case !j.fails:
		return inPhase(v1alpha1.PhaseSucceeded)(report.Status)
	case report.Status.Phase != v1alpha1.PhaseFailed:
		return inPhase(v1alpha1.PhaseFailed)(report.Status)
	case len(report.Status.Findings) == 0 || !strings.Contains(report.Status.Findings[0].Summary, "exit code 7"):
		return fmt.Errorf("its findings are %+v", report.Status.Findings)
	case report.Status.CompletionTime == nil:
		return errors.New("its report is not closed")
	}
	return nil
}

// createUntil creates a job, and tries again while the API server or a webhook does not answer.
func (j faultJob) createUntil(t *testing.T, deadline time.Time) {
	t.Helper()
	for ; ; time.Sleep(time.Second) {
		err := api.Create(t.Context(), j.object)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("create %s: %v", j.object.GetName(), err)
			return
		}
	}
}

// TestFaults creates jobs of both kinds before and while a part of the cluster fails. Every job ends as it would have without the
// fault, its report says how and why, and nothing is left when the jobs have been deleted. FAULTS=all inflicts the faults that last
// for minutes as well.
func TestFaults(t *testing.T) {
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			if !fault.always && os.Getenv("FAULTS") != "all" {
				t.Skip("SKIPPED: this fault takes minutes; FAULTS=all inflicts it")
			}
			namespace := newNamespace(t)
			runtimeIn(t, namespace, "mpi-openmpi")
			jobs := make([]faultJob, fault.jobs)
			for i := range jobs {
				jobs[i] = newFaultJob(t, namespace, i)
			}
			for _, job := range jobs[:len(jobs)/2] {
				if err := submit(t, api, job.object); err != nil {
					t.Fatal(err)
				}
			}
			// The first jobs are in different states when the fault begins.
			time.Sleep(5 * time.Second)
			end := fault.inflict(t)
			t.Cleanup(end)
			until := time.Now().Add(fault.lasts)
			created := make(chan struct{})
			go func() {
				defer close(created)
				for _, job := range jobs[len(jobs)/2:] {
					job.createUntil(t, until.Add(2*time.Minute))
				}
			}()
			time.Sleep(time.Until(until))
			end()
			over := time.Now()
			<-created
			for _, job := range jobs {
				eventually(t, job.object.GetName()+" ends as it should", 3*time.Minute, func() error { return job.ended(t) })
			}
			t.Logf("fault %q for %s: %d jobs of %d ended as they should, the last one %s after the fault", fault.name, fault.lasts, len(jobs), len(jobs), time.Since(over).Round(time.Second))
			for _, job := range jobs {
				if err := api.Delete(t.Context(), job.object, client.PropagationPolicy("Background")); err != nil {
					t.Error(err)
				}
			}
			eventually(t, "nothing is left", time.Minute, func() error {
				if left := children(t, namespace); len(left) > 0 {
					return fmt.Errorf("left are %v", left)
				}
				return nil
			})
		})
	}
}
