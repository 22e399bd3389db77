package report_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// withProfile adds a profile of two ranks to a usage.
func withProfile(u *agentapi.Usage) {
	u.Profile = &agentapi.Profile{
		Began: u.Since*1000 + 250, Runs: 2, RankCount: 2, Elapsed: 120_000, Communication: 48_000, MaxComputation: 54_000, Late: &agentapi.LateRank{Rank: 1, Waited: 36_000},
		Ranks: []agentapi.RankProfile{{Rank: 0, Elapsed: 60_000, Communication: 42_000}, {Rank: 1, Elapsed: 60_000, Communication: 6_000}},
		Calls: []agentapi.CallProfile{{Call: "Allreduce", Count: 2000, Time: 47_000, Bytes: 16_000_000}, {Call: "Bcast", Count: 2, Time: 1000, Bytes: 80}},
		Sizes: []int64{2, 0, 2000, 0, 0, 0},
	}
}

// TestProfile: the profile that was reported last stays; the launcher's last message, which is shorter, completes it.
func TestProfile(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.job.Profile = true
	running := pods(h.job, corev1.PodRunning, time.Second)
	h.pass(10*time.Second, running, jobstate.Evidence{})
	h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000, withProfile)})
	before := h.last
	if h.pass(85*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 75*time.Second, 1000, withProfile)}); report.Changed(before, *h.last) {
		t.Error("the report is written again after 10 s")
	}
	short := used(h.job, 5*time.Second, 150*time.Second, 1300, withProfile, func(u *agentapi.Usage) {
		u.Profile.Ranks, u.Profile.Calls, u.Profile.Elapsed = nil, u.Profile.Calls[:1], 240_000
		u.Profile.Communication, u.Profile.MaxComputation = 96_000, 108_000
	})
	h.pass(155*time.Second, withUsage(ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, 150*time.Second), short), jobstate.Evidence{})
	mpitest.Golden(t, "profile", h.last.Status.Profile)
	if len(h.last.Status.Findings) > 0 {
		t.Errorf("%+v", h.last.Status.Findings)
	}
	other := used(h.job, 400*time.Second, 460*time.Second, 7, withProfile, func(u *agentapi.Usage) { u.Profile.Calls = nil })
	if h.pass(500*time.Second, running, jobstate.Evidence{Usage: other}); len(h.last.Status.Profile.Calls) > 0 {
		t.Errorf("another run keeps the calls of the one before: %+v", h.last.Status.Profile)
	}
	next := used(h.job, 400*time.Second, 520*time.Second, 7, withProfile, func(u *agentapi.Usage) {
		u.Profile.Calls, u.Profile.Began, u.Profile.Runs = u.Profile.Calls[:1], u.Profile.Began+100_000, 1000
	})
	h.pass(560*time.Second, running, jobstate.Evidence{Usage: next})
	if p := h.last.Status.Profile; len(p.Calls) != 1 || p.Runs != 33 || p.Since.Sub(mpitest.Now) != 500*time.Second {
		t.Errorf("the next run of the same pods began at %s: %+v", p.Since, p)
	}
}

// TestProfileMissing: a job that asks for a profile and gets none has a finding with the reason. It succeeds all the same.
func TestProfileMissing(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*mpi.Job)
		profile *agentapi.Profile
		// asked is whether the pods have the variable for profiles.
		asked bool
		want  string
	}{
		"no library":         {func(j *mpi.Job) { j.Profile = true }, &agentapi.Profile{NoLibrary: true}, true, "does not contain the library"},
		"no rank counted":    {func(j *mpi.Job) { j.Profile = true }, &agentapi.Profile{}, true, "No rank has counted"},
		"asked for too late": {func(j *mpi.Job) { j.Profile = true }, nil, false, "after its pods had been created"},
		"not asked for":      {func(*mpi.Job) {}, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			test.change(&h.job)
			last := used(h.job, 5*time.Second, 150*time.Second, 1300, func(u *agentapi.Usage) { u.Profile = test.profile })
			end := ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, 150*time.Second)
			if test.asked {
				for _, pod := range end.AllPods() {
					pod.Spec.Containers = []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: agentapi.EnvProfile, Value: agentapi.ProfileFolder}}}}
				}
			}
			h.pass(155*time.Second, withUsage(end, last), jobstate.Evidence{})
			h.pass(160*time.Second, end, jobstate.Evidence{})
			h.pass(165*time.Second, end, jobstate.Evidence{})
			status := h.last.Status
			if len(status.Findings) > 1 {
				t.Errorf("there are %d findings: %+v", len(status.Findings), status.Findings)
			}
			got := ""
			if len(status.Findings) > 0 {
				got = status.Findings[0].Summary
			}
			if status.Phase != v1alpha1.PhaseSucceeded || status.Profile != nil || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%s, %+v, %+v", status.Phase, status.Profile, status.Findings)
			}
			if got != "" && (status.Findings[0].Code != codes.ProfileMissing || status.Findings[0].Severity != v1alpha1.SeverityInfo || len(status.Findings[0].Remedies) == 0) {
				t.Errorf("%+v", status.Findings[0])
			}
		})
	}
}

// TestHostileProfile: programs of a job can write what its agents report. Nonsense is left out, and the rest is bounded.
func TestHostileProfile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*agentapi.Profile)
		isBad  func(v1alpha1.Profile) bool
	}{
		"too many ranks": {func(p *agentapi.Profile) { p.Ranks = make([]agentapi.RankProfile, 100_000) }, func(p v1alpha1.Profile) bool { return len(p.PerRank) != 32 }},
		"too many calls": {func(p *agentapi.Profile) { p.Calls = make([]agentapi.CallProfile, 100_000) }, func(p v1alpha1.Profile) bool { return len(p.Calls) > 12 }},
		"a call twice":   {func(p *agentapi.Profile) { p.Calls = append(p.Calls, p.Calls...) }, func(p v1alpha1.Profile) bool { return len(p.Calls) != 2 }},
		"an odd name":    {func(p *agentapi.Profile) { p.Calls[0].Call = "x\n" }, func(p v1alpha1.Profile) bool { return len(p.Calls) != 1 }},
		"a long name":    {func(p *agentapi.Profile) { p.Calls[0].Call = strings.Repeat("x", 1<<20) }, func(p v1alpha1.Profile) bool { return len(p.Calls) != 1 }},
		"more in functions of MPI than time": {
			func(p *agentapi.Profile) { p.Communication = 1 << 60 }, func(p v1alpha1.Profile) bool { return p.CommunicationPercent != 100 },
		},
		"negative figures": {
			func(p *agentapi.Profile) { p.Elapsed, p.MaxComputation, p.Calls[0].Bytes, p.Late.Rank = -1, -1, -1, -1 },
			func(p v1alpha1.Profile) bool {
				return p.Milliseconds != 0 || p.Calls[0].Bytes != 0 || p.LateRank != nil
			},
		},
		"other sizes": {func(p *agentapi.Profile) { p.Sizes = make([]int64, 1000) }, func(p v1alpha1.Profile) bool { return len(p.MessageSizes) > 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			h.pass(10*time.Second, pods(h.job, corev1.PodRunning, time.Second), jobstate.Evidence{})
			told := used(h.job, 5*time.Second, 65*time.Second, 1000, withProfile, func(u *agentapi.Usage) { test.change(u.Profile) })
			h.pass(75*time.Second, pods(h.job, corev1.PodRunning, time.Second), jobstate.Evidence{Usage: told})
			if p := h.last.Status.Profile; p == nil || test.isBad(*p) {
				t.Errorf("%+v", p)
			}
		})
	}
}
