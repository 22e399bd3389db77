package contestant

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/process"
)

// operator is a program that watches MPIJobs, with the rights that its own manifests give it.
type operator struct {
	name, program      string
	args, env          []string
	namespace, account string
	manifests          []string
	rest               time.Duration
	// electsByFlag is set if leader election can be turned off.
	electsByFlag bool
}

// Alone returns a contestant without leader election, if its program has a flag for that.
func Alone(c Contestant) Contestant {
	if o, is := c.(operator); is && o.electsByFlag {
		o.args = append(slices.Clone(o.args), "--leader-elect=false")
		return o
	}
	return c
}

// Name implements Contestant.
func (o operator) Name() string { return o.name }

// Start implements Contestant. An earlier one that was killed may still hold the lease, so it is deleted.
func (o operator) Start(ctx context.Context, server *apiserver.Server, log string) (Runner, error) {
	admin, err := client.New(server.Admin(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	if err := admin.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	if err := server.Install(ctx, o.namespace, o.manifests...); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	account, err := server.Account(o.namespace, o.account)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	jobs, err := newClient(server)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	r := &operatorRunner{
		of: o, admin: admin, jobs: jobs, account: account, log: log,
		failed: make(chan error, 1), stopping: make(chan struct{}),
	}
	return r, r.Restart(ctx, true)
}

type operatorRunner struct {
	of          operator
	admin, jobs client.Client
	account     apiserver.Account
	log         string
	failed      chan error
	stopping    chan struct{}

	mu         sync.Mutex
	process    *process.Process
	started    int
	supervised bool
	restarts   int
}

// Restart implements Restarter.
func (r *operatorRunner) Restart(ctx context.Context, takeLease bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if killed := r.process; killed != nil {
		r.process = nil
		if err := killed.Kill(); err != nil {
			return err
		}
	}
	if takeLease {
		if err := r.admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(r.of.namespace)); err != nil {
			return fmt.Errorf("start %s: %w", r.of.name, err)
		}
	}
	return r.start()
}

// start starts a process. The caller has locked.
func (r *operatorRunner) start() error {
	log := r.log
	if r.started++; r.started > 1 {
		log = fmt.Sprintf("%s.%d", r.log, r.started)
	}
	started, err := process.Start(r.of.name, r.of.program, r.of.args, append(slices.Clone(r.of.env), "KUBECONFIG="+r.account.Kubeconfig), log)
	if err != nil {
		return err
	}
	r.process = started
	go r.watch(started)
	return nil
}

// watch fails the run when a process ends that was not killed, or starts another one.
func (r *operatorRunner) watch(started *process.Process) {
	select {
	case <-r.stopping:
		return
	case <-started.Exited():
	}
	err := started.Complaint()
	if wait, supervised := r.backOff(started); supervised {
		select {
		case <-r.stopping:
			return
		case <-time.After(wait):
		}
		err = r.replace(started)
	} else if !r.runs(started) {
		return
	}
	if err != nil {
		r.failed <- err
	}
}

// runs reports whether a process is the one that should run.
func (r *operatorRunner) runs(started *process.Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process == started
}

// backOff counts the end of a process that is supervised, and returns after what time another one starts. As the kubelet does:
// at once, then after 10 s, and after twice as long each time.
func (r *operatorRunner) backOff(ended *process.Process) (wait time.Duration, supervised bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.supervised || r.process != ended {
		return 0, false
	}
	r.restarts++
	if r.restarts == 1 {
		return 0, true
	}
	return 10 * time.Second << (r.restarts - 2), true
}

// replace starts another process unless that was done already.
func (r *operatorRunner) replace(ended *process.Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != ended {
		return nil
	}
	return r.start()
}

// Supervise implements Restarter.
func (r *operatorRunner) Supervise() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.supervised = true
}

// Restarts implements Restarter.
func (r *operatorRunner) Restarts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restarts
}

func (r *operatorRunner) Submit(ctx context.Context, job *kubeflow.MPIJob) error {
	if err := r.jobs.Create(ctx, job); err != nil {
		return fmt.Errorf("create MPIJob %s: %w", job.Name, err)
	}
	return nil
}

func (r *operatorRunner) Failed() <-chan error { return r.failed }

func (r *operatorRunner) User() string { return r.account.User }

func (r *operatorRunner) Usage() (process.Usage, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	usage, err := r.process.Usage()
	return usage, true, err
}

func (r *operatorRunner) Rest() time.Duration { return r.of.rest }

func (r *operatorRunner) RunsJobs() bool { return true }

func (r *operatorRunner) Stop() error {
	close(r.stopping)
	r.mu.Lock()
	defer r.mu.Unlock()
	killed := r.process
	r.process = nil
	if killed == nil {
		return nil
	}
	return killed.Kill()
}
