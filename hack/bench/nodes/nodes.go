// Package nodes has pods seem to run: Kubernetes' own scheduler and Job controller, and nodes of KWOK, on which
// a pod runs as soon as it is placed, and a launcher succeeds after a while.
package nodes

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/process"
)

// stages is how KWOK plays nodes and pods.
//
//go:embed stages.yaml
var stages []byte

// Count nodes of 110 pods each hold a job of 64 workers several times over.
const Count = 10

// RunsOn is a label with which a launcher's pod does not succeed (see stages.yaml).
const RunsOn = "bench-runs-on"

// Name is that of a node; there is one for every number.
func Name(number int) string { return fmt.Sprintf("fake-%d", number%Count) }

// Options say which nodes and controllers to run.
type Options struct {
	// Assets is the folder with kube-scheduler and kube-controller-manager, KWOK its program, Logs a folder.
	Assets, KWOK, Logs string
	// Gangs has the scheduler place the pods of a PodGroup together.
	Gangs bool
	// Count is how many nodes there are; 0: Count.
	Count int
	// Collects runs the garbage collector, which deletes the objects of deleted jobs.
	Collects bool
}

// Nodes are what makes pods run.
type Nodes struct {
	processes []*process.Process
	count     int
}

// Start gets nodes going and returns when they are ready.
func Start(ctx context.Context, server *apiserver.Server, options Options) (*Nodes, error) {
	kubeconfig, err := server.AdminKubeconfig()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(options.Logs, "kwok.yaml")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		return nil, fmt.Errorf("start nodes: %w", err)
	}
	n := &Nodes{count: cmp.Or(options.Count, Count)}
	scheduler := []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"}
	if options.Gangs {
		scheduler = append(scheduler, "--feature-gates="+apiserver.GangGate)
	}
	controllers := "job-controller"
	if options.Collects {
		controllers += ",garbage-collector-controller"
	}
	for _, program := range []struct {
		name, path string
		args       []string
	}{
		// Every port is off or any that is free: other clusters may be on this machine.
		{"kube-scheduler", filepath.Join(options.Assets, "kube-scheduler"), scheduler},
		// Hundreds of launchers must not wait for its rate limiter.
		{"kube-controller-manager", filepath.Join(options.Assets, "kube-controller-manager"), []string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers=" + controllers,
			"--kube-api-qps=1000", "--kube-api-burst=1000", "--concurrent-job-syncs=20",
		}},
		{"kwok", options.KWOK, []string{"--kubeconfig=" + kubeconfig, "--config=" + config, "--manage-all-nodes=true", "--server-address=127.0.0.1:0", "--node-lease-duration-seconds=0"}},
	} {
		started, err := process.Start(program.name, program.path, program.args, nil, filepath.Join(options.Logs, program.name+".log"))
		if err != nil {
			return nil, errors.Join(err, n.Stop())
		}
		n.processes = append(n.processes, started)
	}
	if err := n.add(ctx, server); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Stop ends what makes pods run.
func (n *Nodes) Stop() error {
	var errs []error
	for _, p := range n.processes {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

func (n *Nodes) add(ctx context.Context, server *apiserver.Server) error {
	clients, err := kubernetes.NewForConfig(server.Admin())
	if err != nil {
		return fmt.Errorf("add nodes: %w", err)
	}
	room := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	for i := range n.count {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fake-%d", i)},
			Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
		}
		if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("add nodes: %w", err)
		}
	}
	ready := func(ctx context.Context) (bool, error) {
		for _, p := range n.processes {
			select {
			case <-p.Exited():
				return false, p.Complaint()
			default:
			}
		}
		nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return countReady(nodes.Items) == n.count, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, ready); err != nil {
		return fmt.Errorf("wait for %d nodes to be ready: %w", n.count, err)
	}
	return nil
}

func countReady(nodes []corev1.Node) int {
	n := 0
	for _, node := range nodes {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n
}
