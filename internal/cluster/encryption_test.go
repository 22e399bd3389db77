package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	cilium := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"}, Data: map[string]string{"enable-wireguard": "true"}}
	for name, test := range map[string]struct {
		annotation string
		flag       bool
		objects    []client.Object
		fails      bool
		alone      bool
		want       []string
	}{
		"nobody requires it":               {},
		"the namespace does not":           {annotation: "false"},
		"the namespace does":               {annotation: "true", want: []string{"annotation mpi.opendatahub.io/require-encryption of namespace ns", "nothing on this cluster"}},
		"a value that is not allowed":      {annotation: "yes", want: []string{"annotation mpi.opendatahub.io/require-encryption"}},
		"the operator does":                {flag: true, want: []string{"flag --require-encryption", "ask a cluster administrator"}},
		"the operator does, not the other": {flag: true, annotation: "false", want: []string{"flag --require-encryption"}},
		"the cluster encrypts":             {annotation: "true", objects: []client.Object{cilium}},
		"it is unknown":                    {annotation: "true", fails: true, want: []string{"could not be found out", "no answer"}},
		"one pod":                          {flag: true, alone: true},
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
			errs := cluster.New(api, live, nil, clocktesting.NewFakePassiveClock(mpitest.Now)).CheckEncryption(t.Context(), job, plan.Settings{RequireEncryption: test.flag})
			if (len(errs) > 0) != (len(test.want) > 0) {
				t.Fatalf("the errors are %v", errs)
			}
			for _, want := range test.want {
				if !strings.Contains(errs[0].Error(), want) {
					t.Errorf("%q does not contain %q", errs[0], want)
				}
			}
		})
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
	for range 2 {
		if check() == 0 {
			t.Error("nothing encrypts")
		}
	}
	if reads != 3 {
		t.Errorf("%d reads for two jobs, want 3", reads)
	}
	if err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"}, Data: map[string]string{"enable-ipsec": "true"}}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(mpitest.Now.Add(time.Minute - time.Second))
	if check() == 0 {
		t.Error("it was read again within a minute")
	}
	clock.SetTime(mpitest.Now.Add(time.Minute))
	if check() != 0 {
		t.Error("it was not read again after a minute")
	}
}
