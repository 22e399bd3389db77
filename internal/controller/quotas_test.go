package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/waiting"
)

// newTestQuotas returns quotas without a cluster.
func newTestQuotas(describe func(mpi.ID) waiting.Job) *quotas {
	return &quotas{describeRun: describe, jobs: map[string]claims{}, running: map[string]map[types.UID]quotaRun{}, turns: map[string]quotaTurns{}}
}

func podsOf(count int64) []quota.Pods {
	return []quota.Pods{quota.Counted(mpi.RoleWorker, count, &corev1.Pod{})}
}

// requestOf returns what a job of two pods requests of a quota of three.
func requestOf(q *quotas, name string, now time.Time) quotaRequest {
	r := newRequest(name, now)
	r.claim = q.jobs["ns"].assess(r)
	r.shortages = r.claim.shortages
	return r
}

// newRequest returns a request that is not compared with the quota.
func newRequest(name string, now time.Time) quotaRequest {
	return quotaRequest{
		namespace: "ns", job: types.UID(name), change: makeClaim, now: now,
		have: []quota.Quota{{Name: "team", Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}}},
		claim: claim{
			kind: "MPIJob", request: reconcile.Request{NamespacedName: keyOf("ns", name)}, managed: true,
			pods: podsOf(2),
		},
	}
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

// TestTurns: jobs that wait for quota know their place, and when they start by the deadlines of those before them.
func TestTurns(t *testing.T) {
	now := mpitest.Now
	runs := map[string]waiting.Job{"first": {Start: now, Deadline: time.Hour}, "second": {Deadline: 2 * time.Hour}}
	q := newTestQuotas(func(job mpi.ID) waiting.Job {
		run := runs[job.Name]
		run.Name = job.Name
		return run
	})
	running := quotaRequest{namespace: "ns", job: "first", now: now, run: &quotaRun{job: mpi.ID{Kind: "MPIJob", Namespace: "ns", Name: "first"}, pods: podsOf(2)}}
	q.reserve(running, true)
	turn := func(name string, at time.Time) jobstate.Turn {
		t.Helper()
		r := requestOf(q, name, at)
		r.have[0].Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
		r.claim = q.jobs["ns"].assess(r)
		if r.shortages = r.claim.shortages; len(r.shortages) == 0 {
			t.Fatalf("%s has room", name)
		}
		is := q.turnOf(r)
		if q.reserve(r, true); is == nil {
			t.Fatalf("%s has no turn", name)
		}
		return *is
	}
	second := turn("second", now)
	if second.Position != 1 || !second.Start.By.Equal(now.Add(time.Hour)) || second.Start.Basis != waiting.Deadlines {
		t.Errorf("second: %+v", second)
	}
	third := turn("third", now.Add(3*time.Second))
	if third.Position != 2 || !third.Start.By.Equal(now.Add(3*time.Hour)) {
		t.Errorf("third, which has no deadline: %+v", third)
	}
	if fourth := turn("fourth", now.Add(6*time.Second)); fourth.Position != 3 || fourth.Start.Reason != waiting.NoDeadline || fourth.Start.Other.Name != "third" {
		t.Errorf("fourth, behind it: %+v", fourth)
	}
	q.reserve(quotaRequest{namespace: "ns", job: "second", change: dropClaim}, true)
	if third = turn("third", now.Add(10*time.Second)); third.Position != 2 {
		t.Errorf("the places were computed again after a moment: %+v", third)
	}
	if third = turn("third", now.Add(40*time.Second)); third.Position != 1 {
		t.Errorf("the places are never computed again: %+v", third)
	}
	running.run.ended = true
	q.reserve(running, true)
	if third = turn("third", now.Add(80*time.Second)); !third.Start.By.Before(now.Add(3 * time.Minute)) {
		t.Errorf("the pods before it are being deleted: %+v", third)
	}
	q.forgetJob("MPIJob", keyOf("ns", "first"))
	if len(q.running) > 0 {
		t.Errorf("running jobs are left: %v", q.running)
	}
	if third = turn("third", now.Add(120*time.Second)); third.Start.Reason != waiting.NotReleased {
		t.Errorf("others use the quota: %+v", third)
	}
}

// TestManyTurns: the passes of a thousand waiting jobs in half a minute compute their places a few times, not in each pass.
func TestManyTurns(t *testing.T) {
	const n = 1000
	now, described := mpitest.Now, 0
	q := newTestQuotas(func(job mpi.ID) waiting.Job { described++; return waiting.Job{Name: job.Name, Deadline: time.Hour} })
	used := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
	pass := func(i int, at time.Time) {
		r := newRequest(fmt.Sprintf("job-%04d", i), at)
		r.have[0].Used = used
		r.claim.since, r.claim.shortages = now, quota.Shortages(r.claim.pods, nil, r.have)
		q.turnOf(r)
		if q.jobs["ns"] == nil {
			q.jobs["ns"] = claims{}
		}
		q.jobs["ns"][r.job] = &r.claim
	}
	for i := range n {
		pass(i, now)
	}
	if described > 2 {
		t.Fatalf("while a thousand jobs were created at once, %d were described", described)
	}
	described = 0
	for second := range 60 {
		for i := second; i < n; i += 30 {
			pass(i, now.Add(time.Duration(second)*time.Second))
		}
	}
	// Once every half a minute, and once for those that were not there before.
	if described < n || described > 4*n {
		t.Errorf("in a minute, jobs were described %d times: each of %d at most 4 times", described, n)
	}
	if got := q.turns["ns"].byJob["job-0999"].Position; got != n {
		t.Errorf("the last one has position %d", got)
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

// TestQuotaOrderOfCreation: a job that was created first goes first, even if it is seen last, as after a restart of the operator.
func TestQuotaOrderOfCreation(t *testing.T) {
	now := mpitest.Now
	q := newTestQuotas(nil)
	wait := func(name string, age, after time.Duration, used string) quotaRequest {
		r := newRequest(name, now.Add(after))
		r.claim.created = now.Add(-age)
		r.have[0].Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)}
		r.claim = q.jobs["ns"].assess(r)
		if r.shortages = r.claim.shortages; !q.reserve(r, true) {
			t.Fatalf("%s: nobody else reserves anything", name)
		}
		return r
	}
	for i, name := range []string{"young", "older", "oldest"} {
		if r := wait(name, time.Duration(i)*time.Hour, time.Duration(i)*time.Second, "3"); len(r.shortages) == 0 {
			t.Fatalf("%s has room", name)
		}
	}
	var next []string
	for _, request := range q.nextInLine("MPIJob", "ns") {
		next = append(next, request.Name)
	}
	if want := []string{"oldest", "older", "young"}; !slices.Equal(next, want) {
		t.Errorf("the next ones are %q, want %q", next, want)
	}
	for _, name := range []string{"young", "older"} {
		if r := wait(name, map[string]time.Duration{"older": time.Hour}[name], time.Minute, "1"); len(r.shortages) == 0 {
			t.Errorf("%s goes before the oldest", name)
		}
	}
	if r := wait("oldest", 2*time.Hour, time.Minute, "1"); len(r.shortages) > 0 {
		t.Errorf("the oldest lacks %v", r.shortages)
	}
}

// TestQuotaWarmUp: a new leader gives no job room before it can have seen those that wait longer.
func TestQuotaWarmUp(t *testing.T) {
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")},
	}}
	q := newTestQuotas(func(job mpi.ID) waiting.Job { return waiting.Job{Name: job.Name} })
	q.cluster = gatherer(t, mpijob.Kind{}, limit).cluster
	ask := func(name string, age, after time.Duration) quotaRequest {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.Namespace, j.Name, j.UID, j.Created = "ns", name, types.UID(name), mpitest.Now.Add(-age)
		})
		r := q.observe(t.Context(), job, jobstate.Observed{Now: mpitest.Now.Add(after)})
		if !q.reserve(r, r.warmUp == 0) {
			t.Fatalf("%s: the reservations have changed", name)
		}
		return r
	}
	if young := ask("young", time.Minute, 0); young.warmUp != quotaWarmUp || len(young.shortages) > 0 {
		t.Errorf("the young job waits for %s in the warm-up, and lacks %v", young.warmUp, young.shortages)
	}
	if old := ask("old", time.Hour, time.Second); old.warmUp != quotaWarmUp-time.Second || len(old.shortages) > 0 {
		t.Errorf("the old job waits for %s in the warm-up, and lacks %v", old.warmUp, old.shortages)
	}
	if young := ask("young", time.Minute, quotaWarmUp); len(young.shortages) == 0 || young.warmUp != 0 {
		t.Errorf("the young job goes before the old one: it lacks %v, and waits for %s", young.shortages, young.warmUp)
	}
	if old := ask("old", time.Hour, quotaWarmUp); len(old.shortages) > 0 || old.warmUp != 0 {
		t.Errorf("the old job lacks %v, and waits for %s", old.shortages, old.warmUp)
	}
	if claim := q.jobs["ns"]["old"]; claim.until.IsZero() {
		t.Error("the old job's room is not reserved")
	}
	if late := ask("late", 0, time.Hour); late.warmUp != 0 {
		t.Errorf("a new job waits for %s", late.warmUp)
	}
}

// TestReconcileWaitsForWarmUp: in the warm-up, a job that may have room is looked at again at its end, and has nothing created.
func TestReconcileWaitsForWarmUp(t *testing.T) {
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")},
	}}
	object := mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) { o.APIVersion, o.Kind, o.UID = "kubeflow.org/v2beta1", "MPIJob", "uid-pi" })
	r := gatherer(t, mpijob.Kind{}, object, limit)
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: keyOf("ns", "pi")})
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > quotaWarmUp {
		t.Errorf("the result is %+v, %v", result, err)
	}
	if claim := r.quotas.jobs["ns"]["uid-pi"]; claim == nil || !claim.unsettled || !claim.until.IsZero() {
		t.Errorf("its claim is %+v", claim)
	}
}
