package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/observer"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// arena is where one contestant makes one run.
type arena struct {
	server    *apiserver.Server
	admin     client.Client
	runner    contestant.Runner
	seen      *observer.Observer
	namespace string
	// who is the contestant's name.
	who      string
	settings Settings
	requests apiserver.Requests
}

// measure makes one run of a case: a fresh contestant warms up with a job of one worker, rests, is measured,
// is stopped, and what it made is removed.
func measure(ctx context.Context, c Case, server *apiserver.Server, who contestant.Contestant, namespace, log string, settings Settings) (values map[string]report.Value, requests apiserver.Requests, err error) {
	admin, err := newAdmin(server.Admin())
	if err != nil {
		return nil, nil, err
	}
	a := &arena{server: server, admin: admin, namespace: namespace, who: who.Name(), settings: settings}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, nil, fmt.Errorf("create namespace: %w", err)
	}
	if c.Alone {
		who = contestant.Alone(who)
	}
	if a.runner, err = who.Start(ctx, server, log); err != nil {
		return nil, nil, err
	}
	defer func() {
		err = errors.Join(err, a.runner.Stop())
		if !c.Once {
			err = errors.Join(err, a.clear(context.WithoutCancel(ctx)))
		}
	}()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-a.runner.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	if err := a.warmUp(ctx); err != nil {
		return nil, nil, err
	}
	if a.seen, err = observer.Watch(ctx, server.Admin(), namespace); err != nil {
		return nil, nil, err
	}
	defer a.seen.Stop()
	values, err = c.measure(ctx, a)
	return values, a.requests, err
}

func (a *arena) warmUp(ctx context.Context) error {
	seen, err := observer.Watch(ctx, a.server.Admin(), a.namespace)
	if err != nil {
		return err
	}
	defer seen.Stop()
	if err := a.runner.Submit(ctx, a.job("warm-up", 1)); err != nil {
		return err
	}
	if err := within(ctx, time.Minute, func(ctx context.Context) error { return seen.Wait(ctx, "warm-up", 1) }); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := a.clear(ctx); err != nil {
		return err
	}
	return wait.For(ctx, a.runner.Rest())
}

// await waits for all of so many objects. If they take longer than the limit the value is extrapolated. The
// share is how many of them came.
func (a *arena) await(ctx context.Context, start time.Time, objects int) (value report.Value, share float64, err error) {
	err = within(ctx, a.settings.Limit, func(ctx context.Context) error { return a.seen.WaitForAll(ctx, objects) })
	pace := report.Pace{Start: start, Cut: time.Now(), Arrivals: a.seen.Arrivals(), Want: objects}
	switch {
	case err == nil:
		return report.Value{Value: pace.Cut.Sub(start).Seconds()}, 1, nil
	case !errors.Is(err, errLimit):
		return report.Value{}, 0, err
	case pace.Whole() == 0:
		return report.Value{}, 0, fmt.Errorf("stuck with %d of %d objects: %w", len(pace.Arrivals), objects, err)
	}
	return report.Value{Value: pace.Whole().Seconds(), Extrapolated: true}, pace.Share(), nil
}

var errLimit = errors.New("it took longer than the limit")

// within runs f under a time limit; 0 is none.
func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if limit == 0 {
		return f(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	return f(ctx)
}

// quiet waits until the contestant has written nothing for a while, and counts its requests. It may go on reading: the
// logs of jobs that run are read for their progress as long as they do.
func (a *arena) quiet(ctx context.Context) (apiserver.Requests, error) {
	for last := -1; ; {
		requests, err := a.server.Requests(a.runner.User())
		writes, _ := countWrites(requests)
		if err != nil || writes == last {
			return requests, err
		}
		last = writes
		if err := wait.For(ctx, 2*time.Second); err != nil {
			return nil, err
		}
	}
}

// jobReport is the kind of the records that our operator keeps of jobs.
var jobReport = schema.GroupVersionKind{Group: "mpi.opendatahub.io", Version: "v1alpha1", Kind: "JobReport"}

// clear removes the objects of a run: no garbage collector runs here.
func (a *arena) clear(ctx context.Context) error {
	reports := &metav1.PartialObjectMetadata{}
	reports.SetGroupVersionKind(jobReport)
	for _, kind := range []client.Object{&kubeflow.MPIJob{}, &batchv1.Job{}, &corev1.Pod{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{}, reports} {
		err := a.admin.DeleteAllOf(ctx, kind, client.InNamespace(a.namespace), client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("clear %s: %w", a.namespace, err)
		}
	}
	// A launcher's pods go when the Job controller has let go of them.
	gone := func(ctx context.Context) error {
		for {
			var pods corev1.PodList
			if err := a.admin.List(ctx, &pods, client.InNamespace(a.namespace), client.Limit(1)); err != nil || len(pods.Items) == 0 {
				return err
			}
			if err := wait.For(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	}
	if err := within(ctx, time.Minute, gone); err != nil {
		return fmt.Errorf("clear %s: %w", a.namespace, err)
	}
	return nil
}

func newAdmin(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to API server: %w", err)
	}
	return admin, nil
}

func pod(command ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/mpi:1", Command: command}}}}
}
