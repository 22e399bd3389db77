package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
)

func TestRequeueAfter(t *testing.T) {
	refused := []jobstate.Refusal{{Kind: "Pod", Name: "pi-worker-0"}}
	short := quotaRequest{shortages: []quota.Shortage{{Quota: "team", Resource: corev1.ResourcePods}}}
	hour := time.Hour
	hourOld := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(mpitest.Now.Add(-hour))}}
	tests := map[string]struct {
		g    gathered
		d    decision
		a    acted
		want time.Duration
	}{
		"when something changes":             {},
		"the report changes":                 {a: acted{reportIn: time.Minute}, want: time.Minute},
		"an object was refused":              {a: acted{refusals: refused, reportIn: time.Minute}, want: refusalRetry},
		"the TTL expires":                    {d: decision{expiresIn: &hour}, want: time.Hour},
		"the TTL has expired":                {d: decision{expiresIn: new(-time.Second)}},
		"refused, although it has expired":   {d: decision{expiresIn: &hour}, a: acted{refusals: refused}, want: refusalRetry},
		"the queue's clock":                  {d: decision{turn: kueue.Turn{Again: time.Second}}, a: acted{reportIn: time.Minute}, want: time.Second},
		"the gang's clock":                   {d: decision{seen: jobstate.Observed{Gang: &jobstate.GangState{Again: time.Second}}}, a: acted{reportIn: time.Minute}, want: time.Second},
		"it waits for quota":                 {g: gathered{quota: short}, want: shortageRefresh},
		"a suspended job waits for none":     {g: gathered{quota: short, job: mpi.Job{Lifecycle: mpi.Lifecycle{Suspended: true}}}},
		"a connection is missing":            {d: decision{seen: jobstate.Observed{EndpointsMissing: true}}, want: minEndpointRetry},
		"it has been missing for an hour":    {d: decision{seen: jobstate.Observed{EndpointsMissing: true, Now: mpitest.Now, Isolation: hourOld}}, want: 12 * time.Minute},
		"a connection of a job that is over": {d: decision{seen: jobstate.Observed{EndpointsMissing: true}, out: jobstate.Outcome{Finish: &mpi.Finish{}}}},
		"another controller runs it":         {g: gathered{quota: short, job: mpi.Job{External: true}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := requeueAfter(test.g, test.d, test.a); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestResultFor(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "mpijobs"}, "pi", nil)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		err      error
		wait     time.Duration
		priority int
		fails    bool
	}{
		"nothing is wrong": {wait: time.Hour, priority: priorityBatched},
		"a conflict":       {err: asOutdated(fmt.Errorf("write status: %w", conflict)), wait: outdatedRetry},
		"an error":         {err: asOutdated(broken), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := resultFor(time.Hour, test.err)
			if result.RequeueAfter != test.wait || *result.Priority != test.priority || (err != nil) != test.fails {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
}
