package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
)

// requestOf returns what a job of two pods requests of a quota of three.
func requestOf(q *quotas, name string, now time.Time) quotaRequest {
	r := quotaRequest{
		namespace: "ns", job: types.UID(name), change: makeClaim, now: now,
		have: []quota.Quota{{Name: "team", Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}}},
		claim: claim{
			kind: "MPIJob", request: reconcile.Request{NamespacedName: keyOf("ns", name)}, managed: true,
			pods: []quota.Pods{quota.Counted(mpi.RoleWorker, 2, &corev1.Pod{})},
		},
	}
	r.claim = q.jobs["ns"].assess(r)
	r.shortages = r.claim.shortages
	return r
}

func TestQuotaReservations(t *testing.T) {
	now := mpitest.Now
	q := &quotas{jobs: map[string]claims{}}
	first, second := requestOf(q, "first", now), requestOf(q, "second", now)
	if len(first.shortages)+len(second.shortages) > 0 || len(q.jobs) > 0 {
		t.Fatalf("observing reserved: %v, %v, %v", first.shortages, second.shortages, q.jobs)
	}
	if !q.reserve(first, true) {
		t.Fatal("the first job has no room")
	}
	if q.reserve(second, true) {
		t.Fatal("two jobs have room that is only enough for one")
	}
	second = requestOf(q, "second", now)
	if len(second.shortages) != 1 || !q.reserve(second, true) {
		t.Fatalf("gathered again, the second job lacks %v", second.shortages)
	}
	if third := requestOf(q, "third", now.Add(reservedFor+time.Second)); len(third.shortages) != 1 {
		t.Error("a job that came later goes before one that waits")
	}
	if again := requestOf(q, "second", now.Add(reservedFor)); len(again.shortages) != 1 {
		t.Error("a reservation ends before its time")
	}
	again := requestOf(q, "second", now.Add(reservedFor+time.Second))
	if len(again.shortages) != 0 || !q.reserve(again, true) {
		t.Errorf("after the reservation the second job lacks %v", again.shortages)
	}
	if _, kept := q.jobs["ns"]["first"]; kept {
		t.Error("an expired reservation is kept")
	}
}

// TestQuotaIsGivenBack: a job that may not start for another reason keeps no room from others.
func TestQuotaIsGivenBack(t *testing.T) {
	now := mpitest.Now
	q := &quotas{jobs: map[string]claims{}}
	if !q.reserve(requestOf(q, "first", now), false) {
		t.Fatal("the first job has no room")
	}
	if second := requestOf(q, "second", now); len(second.shortages) > 0 {
		t.Errorf("the second job lacks %v", second.shortages)
	}
	if !q.reserve(requestOf(q, "first", now), true) || len(requestOf(q, "second", now).shortages) != 1 {
		t.Error("room is not reserved once the job may start")
	}
	q.reserve(quotaRequest{namespace: "ns", job: "first", change: keepClaim}, true)
	if len(requestOf(q, "second", now).shortages) != 1 {
		t.Error("the room is given back while pods are being created")
	}
	q.reserve(quotaRequest{namespace: "ns", job: "first", change: dropClaim}, true)
	if len(q.jobs) > 0 {
		t.Errorf("claims are left: %v", q.jobs)
	}
}

// TestShortagesAreStable: the usage of others changes all the time, and is only reported now and then.
func TestShortagesAreStable(t *testing.T) {
	now := mpitest.Now
	q := &quotas{jobs: map[string]claims{}}
	using := func(pods string, at time.Time) []quota.Shortage {
		r := requestOf(q, "pi", at)
		r.have[0].Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
		r.claim = q.jobs["ns"].assess(r)
		r.shortages = r.claim.shortages
		if !q.reserve(r, true) {
			t.Fatal("nobody else reserves anything")
		}
		return r.shortages
	}
	if got := using("2", now); got[0].Used.String() != "2" {
		t.Fatalf("%s are used", got[0].Used.String())
	}
	if got := using("3", now.Add(time.Second)); got[0].Used.String() != "2" {
		t.Errorf("a second later %s are used, want the same as before", got[0].Used.String())
	}
	if got := using("3", now.Add(shortageRefresh)); got[0].Used.String() != "3" {
		t.Errorf("after %s %s are used, want 3", shortageRefresh, got[0].Used.String())
	}
}
