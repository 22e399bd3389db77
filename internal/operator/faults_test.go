package operator_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpitest"
)

// mortal lets so many writes through and then none: to the API server it is an operator that was killed.
type mortal struct {
	next http.RoundTripper
	// left counts the writes that get through; the one that makes it 0 is the last.
	left *atomic.Int64
	// answered reports whether the last write's answer still reaches the operator. Dead is closed with that write.
	answered bool
	dead     chan struct{}
	writes   *atomic.Int64
}

var errKilled = errors.New("killed by the test")

func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return m.next.RoundTrip(request)
	}
	m.writes.Add(1)
	left := m.left.Add(-1)
	if left < 0 {
		return nil, errKilled
	}
	response, err := m.next.RoundTrip(request)
	if left == 0 {
		defer close(m.dead)
		if !m.answered && err == nil {
			_ = response.Body.Close()
			return nil, errKilled
		}
	}
	return response, err
}

// settled waits until a job of 2 workers has all it needs, and nothing twice.
func settled(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the job has all it needs", func() error {
		for list, want := range map[client.ObjectList]int{
			&corev1.PodList{}: 2, &corev1.ServiceList{}: 1, &corev1.ConfigMapList{}: 1, &corev1.SecretList{}: 1, &batchv1.JobList{}: 1, &networkingv1.NetworkPolicyList{}: 1,
		} {
			if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				return err
			}
			if have := meta.LenList(list); have != want {
				return fmt.Errorf("%T: %d, want %d", list, have, want)
			}
		}
		return nil
	})
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "PodsStarting")
}

// TestKilledBetweenAnyTwoWrites kills an operator after each of its writes in turn, with the answer and without;
// another takes over and finds the way from there.
func TestKilledBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	var writes atomic.Int64
	immortal := func(next http.RoundTripper) http.RoundTripper {
		left := &atomic.Int64{}
		left.Store(1 << 40)
		return &mortal{next: next, left: left, writes: &writes}
	}
	namespace := newNamespace(t)
	stop := startWith(t, namespace, func(config *rest.Config) { config.Wrap(immortal) })
	create(t, mpitest.MPIJob(namespace, 2))
	settled(t, namespace)
	events(t, namespace, "MPIJobCreated")
	stop()
	all := writes.Load()
	t.Logf("a job of 2 workers takes %d writes to start", all)
	for n := range all {
		for _, answered := range []bool{true, false} {
			t.Run(fmt.Sprintf("after write %d, answered=%v", n, answered), func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t)
				left, dead := &atomic.Int64{}, make(chan struct{})
				left.Store(n)
				if n == 0 {
					close(dead)
				}
				stop := startWith(t, namespace, func(config *rest.Config) {
					config.Wrap(func(next http.RoundTripper) http.RoundTripper {
						return &mortal{next: next, left: left, answered: answered, dead: dead, writes: &atomic.Int64{}}
					})
				})
				create(t, mpitest.MPIJob(namespace, 2))
				select {
				case <-dead:
				case <-time.After(30 * time.Second):
					t.Fatalf("the operator has not made %d writes", n)
				}
				stop()
				start(t, namespace)
				settled(t, namespace)
			})
		}
	}
}

// TestTwoOperatorsAtOnce: a second operator that works although it should not disturbs nothing.
func TestTwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	start(t, namespace)
	for i := range 10 {
		create(t, mpitest.MPIJob(namespace, 3, func(o *kubeflow.MPIJob) { o.Name = fmt.Sprintf("pi-%d", i) }))
	}
	uids := map[string]string{}
	for i := range 10 {
		name := fmt.Sprintf("pi-%d", i)
		launcher := exists(t, namespace, name+"-launcher", &batchv1.Job{})
		for w := range 3 {
			pod := exists(t, namespace, fmt.Sprintf("%s-worker-%d", name, w), &corev1.Pod{})
			uids[pod.Name] = string(pod.UID)
			setPhase(t, pod, corev1.PodRunning)
		}
		setPhase(t, launcherPod(t, launcher), corev1.PodRunning)
	}
	for i := range 10 {
		says(t, namespace, fmt.Sprintf("pi-%d", i), kubeflow.JobRunning, corev1.ConditionTrue, "MPIJobRunning")
	}
	for name, uid := range uids {
		if now := get(t, namespace, name, &corev1.Pod{}); string(now.UID) != uid {
			t.Errorf("%s was made twice", name)
		}
	}
}

// gate is a way to the API server that can be closed.
type gate struct {
	address, server string
	listener        net.Listener
	mu              sync.Mutex
	connections     []net.Conn
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	g := &gate{address: "127.0.0.1:0", server: server}
	g.open(t)
	t.Cleanup(g.close)
	return g
}

// open lets connections through, to the same address as before.
func (g *gate) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		t.Fatalf("open the way to the API server: %v", err)
	}
	g.listener, g.address = listener, listener.Addr().String()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", g.server)
			if err != nil {
				_ = near.Close()
				continue
			}
			g.mu.Lock()
			g.connections = append(g.connections, near, far)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
}

// close breaks every connection and takes no new ones, as a killed API server does.
func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, connection := range g.connections {
		_ = connection.Close()
	}
	g.connections = nil
}

// TestAPIServerAway takes the API server away from the operator while things change.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	way := newGate(t, strings.Trim(strings.TrimPrefix(restConfig.Host, "https:"), "/"))
	startWith(t, namespace, func(config *rest.Config) { config.Host = "https://" + way.address })
	create(t, mpitest.MPIJob(namespace, 2))
	settled(t, namespace)

	way.close()
	pod := get(t, namespace, "pi-worker-0", &corev1.Pod{})
	if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	create(t, mpitest.MPIJob(namespace, 1, func(o *kubeflow.MPIJob) { o.Name = "later" }))
	time.Sleep(3 * time.Second) // so long it is away
	way.open(t)
	exists(t, namespace, "pi-worker-0", &corev1.Pod{}, string(pod.UID))
	exists(t, namespace, "later-launcher", &batchv1.Job{})
}
