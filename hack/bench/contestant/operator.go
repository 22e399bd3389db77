package contestant

import (
	"context"
	"fmt"
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
}

// Name implements Contestant.
func (o operator) Name() string { return o.name }

// Start implements Contestant. An earlier one that was killed may still hold the lease, so it is taken away.
func (o operator) Start(ctx context.Context, server *apiserver.Server, log string) (Runner, error) {
	admin, err := client.New(server.Admin(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	if err := admin.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("start %s: %w", o.name, err)
	}
	if err := admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(o.namespace)); err != nil {
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
	running, err := process.Start(o.name, o.program, o.args, append(o.env, "KUBECONFIG="+account.Kubeconfig), log)
	if err != nil {
		return nil, err
	}
	r := &operatorRunner{jobs: jobs, user: account.User, process: running, failed: make(chan error, 1), stopping: make(chan struct{}), rest: o.rest}
	go r.watch()
	return r, nil
}

type operatorRunner struct {
	jobs     client.Client
	user     string
	process  *process.Process
	failed   chan error
	stopping chan struct{}
	rest     time.Duration
}

func (r *operatorRunner) watch() {
	select {
	case <-r.stopping:
	case <-r.process.Exited():
		r.failed <- r.process.Complaint()
	}
}

func (r *operatorRunner) Submit(ctx context.Context, job *kubeflow.MPIJob) error {
	if err := r.jobs.Create(ctx, job); err != nil {
		return fmt.Errorf("create MPIJob %s: %w", job.Name, err)
	}
	return nil
}

func (r *operatorRunner) Failed() <-chan error { return r.failed }

func (r *operatorRunner) User() string { return r.user }

func (r *operatorRunner) Usage() (process.Usage, bool, error) {
	usage, err := r.process.Usage()
	return usage, true, err
}

func (r *operatorRunner) Rest() time.Duration { return r.rest }

func (r *operatorRunner) RunsJobs() bool { return true }

func (r *operatorRunner) Stop() error {
	close(r.stopping)
	return r.process.Kill()
}
