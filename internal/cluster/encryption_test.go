package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

func TestCheckEncryption(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotation string
		flag       bool
		objects    []client.Object
		fails      bool
		alone      bool
		change     func(*mpi.Job)
		want       []string
	}{
		"nobody requires it":               {},
		"the namespace does not":           {annotation: "false"},
		"the namespace does":               {annotation: "true", want: []string{"annotation mpi.opendatahub.io/require-encryption of namespace ns", "nothing on this cluster"}},
		"a value that is not allowed":      {annotation: "yes", want: []string{"annotation mpi.opendatahub.io/require-encryption"}},
		"the operator does":                {flag: true, want: []string{"flag --require-encryption", "ask a cluster administrator"}},
		"the operator does, not the other": {flag: true, annotation: "false", want: []string{"flag --require-encryption"}},
		"the cluster encrypts":             {annotation: "true", objects: mpitest.Encrypted()},
		"it is unknown":                    {annotation: "true", fails: true, want: []string{"could not be found out", "no answer"}},
		"one pod":                          {flag: true, alone: true},
		"one pod in the host network":      {flag: true, alone: true, change: func(job *mpi.Job) { job.Launcher.Template.Spec.HostNetwork = true }},
		"nobody requires it, and the pods are in the host network": {change: func(job *mpi.Job) { job.Workers.Template.Spec.HostNetwork = true }},
		"past the network that encrypts": {
			annotation: "true", objects: mpitest.Encrypted(),
			change: func(job *mpi.Job) {
				job.Launcher.Template.Annotations = map[string]string{mpi.MultusNetworks: "fabric/rdma", mpi.MultusDefaultNetwork: ""}
				job.Workers.Template.Spec.HostNetwork = true
			},
			want: []string{
				"spec.mpiReplicaSpecs[Launcher].template.metadata.annotations[k8s.v1.cni.cncf.io/networks]: Forbidden: the annotation mpi.opendatahub.io/require-encryption of namespace ns requires that the traffic between pods is encrypted, and no network plug-in encrypts secondary networks; remove the annotation k8s.v1.cni.cncf.io/networks",
				"spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: Forbidden: ",
			},
		},
		"a TrainJob past the network that encrypts": {
			annotation: "true", objects: mpitest.Encrypted(),
			change: func(job *mpi.Job) {
				job.External, job.Fields.Launch = true, field.NewPath("spec", "runtimeRef")
				job.Launcher.Template.Spec.HostNetwork, job.Workers.Template.Spec.HostNetwork = true, true
			},
			want: []string{"spec.runtimeRef: Forbidden: the annotation mpi.opendatahub.io/require-encryption of namespace ns requires that the traffic between pods is encrypted, and no network plug-in encrypts the host network; remove hostNetwork, in the job or its runtime\n"},
		},
		"past a network that does not encrypt": {
			flag: true, change: func(job *mpi.Job) {
				job.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"rdma/hca": resource.MustParse("1")}
			},
			want: []string{"nothing on this cluster", "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources: Forbidden: the operator's flag --require-encryption requires that the traffic between pods is encrypted, and no network plug-in encrypts RDMA (rdma/hca); remove the request, and ranks communicate over TCP"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
			if test.annotation != "" {
				namespace.Annotations = map[string]string{mpi.AnnotationRequireEncryption: test.annotation}
			}
			api := mpitest.FakeAPI().WithObjects(append(test.objects, namespace)...).Build()
			live := interceptor.NewClient(api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.fails {
						return errors.New("no answer")
					}
					return c.Get(ctx, key, object, options...)
				},
			})
			job := mpitest.Job(4)
			if test.alone {
				job = mpitest.Job(0)
			}
			role := field.NewPath("spec", "mpiReplicaSpecs")
			job.Fields.LauncherTemplate, job.Fields.WorkerTemplate = role.Key("Launcher").Child("template"), role.Key("Worker").Child("template")
			if test.change != nil {
				test.change(&job)
			}
			errs := cluster.New(api, live, nil, clocktesting.NewFakePassiveClock(mpitest.Now)).CheckEncryption(t.Context(), job, plan.Settings{RequireEncryption: test.flag})
			var said string
			for _, err := range errs {
				said += err.Error() + "\n"
			}
			if (len(errs) > 0) != (len(test.want) > 0) {
				t.Fatalf("the errors are %s", said)
			}
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q does not contain %q", said, want)
				}
			}
		})
	}
}

// encrypt adds what encrypts the traffic between pods to a cluster.
func encrypt(t *testing.T, api client.Client) {
	t.Helper()
	for _, object := range mpitest.Encrypted() {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEncryptionIsLookedUpAgain: what encrypts is read once a minute, however many jobs there are.
func TestEncryptionIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	api := mpitest.FakeAPI().Build()
	reads := 0
	live := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, object, options...)
		},
	})
	clock := clocktesting.NewFakePassiveClock(mpitest.Now)
	c := cluster.New(api, live, nil, clock)
	check := func() int {
		return len(c.CheckEncryption(t.Context(), mpitest.Job(4), plan.Settings{RequireEncryption: true}))
	}
	if check() == 0 {
		t.Error("nothing encrypts")
	}
	once := reads
	if check() == 0 {
		t.Error("nothing encrypts")
	}
	if reads != once {
		t.Errorf("%d reads for two jobs, and %d for one", reads, once)
	}
	encrypt(t, api)
	clock.SetTime(mpitest.Now.Add(time.Minute - time.Second))
	if check() == 0 {
		t.Error("it was read again within a minute")
	}
	clock.SetTime(mpitest.Now.Add(time.Minute))
	if check() != 0 {
		t.Error("it was not read again after a minute")
	}
}

// TestEncryptionOutlivesRequests: a request that is given up does not decide for others, those that come meanwhile wait for one answer, and a
// failure is not kept for a minute.
func TestEncryptionOutlivesRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := mpitest.FakeAPI().WithObjects(mpitest.Encrypted()...).Build()
		answered, reads, fails := make(chan struct{}), 0, false
		live := interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				reads++
				select {
				case <-answered:
				case <-ctx.Done():
					return ctx.Err()
				}
				if fails {
					return errors.New("no answer")
				}
				return c.Get(ctx, key, object, options...)
			},
		})
		clock := clocktesting.NewFakePassiveClock(mpitest.Now)
		c := cluster.New(api, live, nil, clock)

		request, giveUp := context.WithCancel(t.Context())
		ends := make(chan error, 3)
		ask := func(ctx context.Context) {
			_, err := c.EncryptedBy(ctx)
			ends <- err
		}
		go ask(request)
		synctest.Wait()
		giveUp()
		if err := <-ends; !errors.Is(err, context.Canceled) {
			t.Errorf("the request that was given up ends by %v", err)
		}
		go ask(t.Context())
		go ask(t.Context())
		synctest.Wait()
		if reads != 1 {
			t.Errorf("3 requests have read %d times", reads)
		}
		close(answered)
		for range 2 {
			if err := <-ends; err != nil {
				t.Errorf("a request that waited: %v", err)
			}
		}

		fails = true
		clock.SetTime(mpitest.Now.Add(cluster.EncryptionInterval))
		if by, err := c.EncryptedBy(t.Context()); err == nil {
			t.Errorf("%v encrypts, although nothing can be read", by)
		}
		fails = false
		clock.SetTime(mpitest.Now.Add(cluster.EncryptionInterval + 10*time.Second))
		if by, err := c.EncryptedBy(t.Context()); err != nil || len(by) == 0 {
			t.Errorf("10 seconds after a failure %v encrypts: %v", by, err)
		}
	})
}

// TestEncryptionWithoutAnswer: an API server that does not answer blocks no later look.
func TestEncryptionWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := mpitest.FakeAPI().Build()
		live := interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		start := time.Now()
		if _, err := cluster.New(api, live, nil, clocktesting.NewFakePassiveClock(mpitest.Now)).EncryptedBy(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends by %v", err)
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
