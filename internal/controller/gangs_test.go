package controller

import (
	"cmp"
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestPastOf: the time that a job waited for quota does not count as a wait for places, which its user can limit.
func TestPastOf(t *testing.T) {
	since := metav1.NewTime(mpitest.Now)
	for backend, want := range map[string]bool{"": false, "embedded": true, "kueue": true} {
		record := &v1alpha1.JobReport{}
		record.Status.Scheduling = &v1alpha1.SchedulingStatus{Backend: backend, Since: &since}
		if past := pastOf(record); (past != nil) != want || waitSoFar(past).Since.IsZero() == want {
			t.Errorf("backend %q: %+v", backend, past)
		}
	}
	record := &v1alpha1.JobReport{}
	record.Status.Scheduling = &v1alpha1.SchedulingStatus{Since: &since, Attempts: 2, EvictedAt: &since, NextTry: &since}
	if past := waitSoFar(pastOf(record)); !past.Since.IsZero() || past.Attempts != 2 || !past.EvictedAt.Equal(since.Time) || !past.NextTry.Equal(since.Time) {
		t.Errorf("one that was put back before: %+v", past)
	}
	if pastOf(nil) != nil || pastOf(&v1alpha1.JobReport{}) != nil {
		t.Error("a job without a report has waited")
	}
}

// idleScheduler is an embedded scheduler that has decided on no job.
type idleScheduler struct{}

func (idleScheduler) State(mpi.Job, jobstate.Observed) *jobstate.GangState { return nil }
func (idleScheduler) Enqueue(context.Context, mpi.Job, jobstate.Observed, *v1alpha1.SchedulingStatus, bool) *jobstate.GangState {
	return nil
}
func (idleScheduler) Forget(mpi.ID)  {}
func (idleScheduler) IsUsable() bool { return true }

// TestNeverSince: the time since when a job never fits lasts as long as that is so, also while the job rests, since its queue takes its
// quota back by that (kueue.TurnOf).
func TestNeverSince(t *testing.T) {
	job := mpitest.Job(2)
	rests := func(after time.Duration) gangRequest {
		return gangRequest{place: leaveQueue, state: &jobstate.GangState{Never: true, NeverSince: mpitest.Now.Add(after)}}
	}
	for name, test := range map[string]struct {
		request gangRequest
		forget  bool
		want    time.Duration
	}{
		"it rests":                 {request: rests(0), want: 0},
		"nothing places it":        {request: gangRequest{place: leaveQueue}, want: time.Minute},
		"it is gone, and is there": {request: rests(0), forget: true, want: time.Minute},
	} {
		g := &Gangs{setting: gang.Embedded, embedded: idleScheduler{}}
		g.never.of(job.ID(), true, mpitest.Now)
		g.reserve(t.Context(), job, jobstate.Observed{Now: mpitest.Now}, test.request)
		if test.forget {
			g.forget(job.ID())
		}
		if got := g.never.of(job.ID(), true, mpitest.Now.Add(time.Minute)); !got.Equal(mpitest.Now.Add(test.want)) {
			t.Errorf("%s: it never fits since %s", name, got)
		}
	}
}

// TestNeverSinceWhileAJobRests: passes of a job that rests do not restart the time since when it never fits.
func TestNeverSinceWhileAJobRests(t *testing.T) {
	g := &Gangs{setting: gang.Embedded, embedded: idleScheduler{}}
	job := mpitest.Job(2, func(j *mpi.Job) { j.Queue = "team" })
	record := &v1alpha1.JobReport{}
	evicted, next := metav1.NewTime(mpitest.Now.Add(-time.Second)), metav1.NewTime(mpitest.Now.Add(10*time.Minute))
	record.Status.Scheduling = &v1alpha1.SchedulingStatus{Backend: gang.Embedded, Since: &evicted, Attempts: 1, EvictedAt: &evicted, NextTry: &next}
	for pass := range 3 {
		seen := jobstate.Observed{Now: mpitest.Now.Add(time.Duration(pass) * time.Minute), Queue: &jobstate.QueueState{Admitted: true}}
		request := g.requestOf(t.Context(), job, seen, record)
		if request.place != leaveQueue || request.state == nil || !request.state.Hold {
			t.Fatalf("it does not rest: %+v", request)
		}
		// As the nodes would tell (addCapacity).
		request.state.Never = true
		request.state.NeverSince = g.never.of(job.ID(), true, seen.Now)
		if g.reserve(t.Context(), job, seen, request); !request.state.NeverSince.Equal(mpitest.Now) {
			t.Errorf("pass %d: it never fits since %s", pass, request.state.NeverSince)
		}
	}
}

// TestGates: the pods of a job that another controller runs are held back if the operator places them, or if they wait for quota.
func TestGates(t *testing.T) {
	gated := func(j *mpi.Job) { j.External, j.Gated = true, true }
	waits := func(j *mpi.Job) { j.WaitForQuota = true }
	own := func(j *mpi.Job) { j.Workers.Template.Spec.SchedulerName = "mine" }
	for name, test := range map[string]struct {
		setting string
		change  []func(*mpi.Job)
		want    bool
	}{
		"by default":                        {gang.Auto, []func(*mpi.Job){gated}, true},
		"nothing places it":                 {gang.None, []func(*mpi.Job){gated}, false},
		"nothing places it, but it waits":   {gang.None, []func(*mpi.Job){gated, waits}, true},
		"its own scheduler":                 {gang.Auto, []func(*mpi.Job){gated, own}, false},
		"its own scheduler, but it waits":   {gang.Auto, []func(*mpi.Job){gated, own, waits}, true},
		"its pods cannot be held back":      {gang.None, []func(*mpi.Job){func(j *mpi.Job) { j.External = true }, waits}, false},
		"the operator creates its pods":     {gang.Auto, []func(*mpi.Job){waits}, false},
		"Kubernetes' scheduler has gangs":   {gang.PodGroup, []func(*mpi.Job){gated}, true},
		"only jobs that ask to be placed":   {gang.Requested, []func(*mpi.Job){gated}, false},
		"a queue admits it by quota before": {gang.None, []func(*mpi.Job){gated, func(j *mpi.Job) { j.Queue = "team" }}, true},
	} {
		g := &Gangs{setting: test.setting, embedded: idleScheduler{}}
		if got := g.Gates(mpitest.Job(2, test.change...)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHasAdmitted: the gate of a job may be created open shortly after all reservations for its pods were made, for the job as it was then.
func TestHasAdmitted(t *testing.T) {
	gated := func(j *mpi.Job) { j.External, j.Gated = true, true }
	admits := jobstate.Outcome{PodsMayStart: true}
	for name, test := range map[string]struct {
		decided func(*mpi.Job)
		gate    *jobstate.Gate
		out     jobstate.Outcome
		policy  networkingv1.NetworkPolicy
		asked   func(*mpi.Job)
		after   time.Duration
		key     string
		want    bool
	}{
		"it fits":                      {out: admits, after: admissionAge, want: true},
		"the clocks differ a little":   {out: admits, after: time.Millisecond - admissionSkew, want: true},
		"it waits":                     {},
		"it has a gate already":        {out: admits, gate: &jobstate.Gate{Closed: true}},
		"it is suspended":              {out: admits, decided: func(j *mpi.Job) { j.Lifecycle.Suspended = true }},
		"it has ended":                 {out: jobstate.Outcome{PodsMayStart: true, Finish: &mpi.Finish{}}},
		"its pods cannot be held back": {out: admits, decided: func(j *mpi.Job) { j.Gated = false }},
		"it is of the operator itself": {out: admits, decided: func(j *mpi.Job) { j.External = false }},
		"its policy exists":            {out: admits, policy: networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{UID: "p"}}},
		"it was changed since":         {out: admits, asked: func(j *mpi.Job) { j.Generation++ }},
		"another one of the same name": {out: admits, asked: func(j *mpi.Job) { j.UID = "other" }},
		"another one":                  {out: admits, asked: func(j *mpi.Job) { j.Name = "other" }},
		"it has more pods":             {out: admits, asked: func(j *mpi.Job) { j.Workers.Count++ }},
		"its pods ask for more": {out: admits, asked: func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
		}},
		"its launcher is elsewhere":       {out: admits, asked: func(j *mpi.Job) { j.Launcher.Template.Spec.NodeSelector = map[string]string{"pool": "a"} }},
		"its pods must share a rack":      {out: admits, asked: func(j *mpi.Job) { j.Topology = mpi.Topology{Key: "rack", Required: true} }},
		"the decision is old":             {out: admits, after: admissionAge + time.Millisecond},
		"the decision is of the future":   {out: admits, after: -admissionSkew},
		"somebody else signed it":         {out: admits, key: "forged"},
		"no replica has a key at present": {out: admits, key: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			signing := func(key string) *Gangs {
				return &Gangs{sign: func(text string) string {
					if key == "none" {
						return ""
					}
					return key + text
				}}
			}
			change := func(f func(*mpi.Job)) mpi.Job {
				if f == nil {
					return mpitest.Job(2, gated)
				}
				return mpitest.Job(2, gated, f)
			}
			policy := test.policy
			key := cmp.Or(test.key, "key")
			seen := jobstate.Observed{Now: mpitest.Now, Gate: test.gate}
			signing(key).addAdmission(change(test.decided), seen, test.out, plan.Plan{Base: []plan.Object{&corev1.ConfigMap{}, &policy}})
			asked := signing("key")
			if key == "none" {
				asked = signing(key)
			}
			if got := asked.HasAdmitted(change(test.asked), policy.Annotations[mpi.AnnotationAdmitted], mpitest.Now.Add(test.after)); got != test.want {
				t.Errorf("%q: %t", policy.Annotations, got)
			}
		})
	}
	if (&Gangs{}).HasAdmitted(mpitest.Job(2, gated), "1.", time.Unix(1, 0)) {
		t.Error("an operator without a key takes an annotation without a signature")
	}
	if life := admissionAge + admissionSkew; life >= quotaWarmUp {
		t.Errorf("an admission counts for %s, and a new leader gives its room to others after %s", life, quotaWarmUp)
	}
}

// TestRevokeAdmission: what a NetworkPolicy states of an admission is removed once it no longer holds, as long as the job has no gate.
func TestRevokeAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		external bool
		gate     *jobstate.Gate
		out      jobstate.Outcome
		want     bool
	}{
		"it is put back":                 {external: true, want: true},
		"its pods still have room":       {external: true, out: jobstate.Outcome{PodsMayStart: true}},
		"it has a gate, which is closed": {external: true, gate: &jobstate.Gate{}},
		"the operator makes its pods":    {},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "pi.trainjob", UID: "p", Annotations: map[string]string{mpi.AnnotationAdmitted: "1.a", "other": "stays"},
			}}
			r := gatherer(t, trainjob.NewKind(), policy)
			job := mpitest.Job(2, func(j *mpi.Job) { j.External = test.external })
			if err := r.revokeAdmission(t.Context(), job, decision{seen: jobstate.Observed{Isolation: policy.DeepCopy(), Gate: test.gate}, out: test.out}); err != nil {
				t.Fatal(err)
			}
			if err := r.readers.Live.Get(t.Context(), keyOf("ns", "pi.trainjob"), policy); err != nil {
				t.Fatal(err)
			}
			if _, stays := policy.Annotations[mpi.AnnotationAdmitted]; stays == test.want || policy.Annotations["other"] != "stays" {
				t.Errorf("the policy has %v", policy.Annotations)
			}
		})
	}
}
