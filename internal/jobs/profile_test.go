package jobs_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestLateRanks: all ranks are named that the others may wait for, or some of many.
func TestLateRanks(t *testing.T) {
	t.Parallel()
	const prefix, suffix = "the others may wait for ", ": they were in MPI for 50.0 s more"
	for want, seconds := range map[string][]int64{
		"": {60, 61}, prefix + "rank 1" + suffix: {60, 10, 61}, prefix + "ranks 1, 3" + suffix: {60, 10, 61, 12, 62}, prefix + "rank 0" + suffix: nil,
		prefix + "ranks 1, 2, 3, 4 and 1 more" + suffix: {60, 10, 11, 12, 10, 11, 60, 60, 60, 60},
	} {
		profile := &v1alpha1.Profile{LateRank: &v1alpha1.LateRank{Rank: 1, WaitedMilliseconds: 50_000}}
		switch {
		case want == "":
			profile.LateRank = nil
		case seconds == nil:
			profile.LateRank.Rank = 0
		}
		for rank, in := range seconds {
			profile.PerRank = append(profile.PerRank, v1alpha1.RankProfile{Rank: int32(rank), Milliseconds: 100_000, CommunicationMilliseconds: 1000 * in})
		}
		if got := jobs.LateRankText(profile); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
}

// TestNoProfile: a job without a communication profile reports why, and whether a clone can have one.
func TestNoProfile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	const asks = `mpi.opendatahub.io/profile: "true"`
	ranks := v1alpha1.MPIStatus{Implementation: "OpenMPI"}
	running := v1alpha1.JobReportStatus{MPI: ranks, RunningTime: at(time.Hour), Usage: &v1alpha1.Usage{}}
	ended := v1alpha1.JobReportStatus{MPI: ranks, RunningTime: at(time.Hour), CompletionTime: at(time.Minute), Usage: &v1alpha1.Usage{}}
	missing := v1alpha1.JobReportStatus{MPI: ranks, Findings: []v1alpha1.Finding{{Code: "ProfileMissing", Summary: "The image has no library."}}}
	for name, test := range map[string]struct {
		kind, annotations, worker string
		status                    v1alpha1.JobReportStatus
		want                      string
		asks, can                 bool
	}{
		"a profile":             {"MPIJob", asks, "", v1alpha1.JobReportStatus{MPI: ranks, Profile: &v1alpha1.Profile{}}, "", true, true},
		"not asked for":         {"MPIJob", "", "", running, "create it with --profile, or with the annotation mpi.opendatahub.io/profile.", false, true},
		"too early":             {"MPIJob", asks, "", v1alpha1.JobReportStatus{MPI: ranks}, "is reported a minute after the ranks have started.", true, true},
		"no calls yet":          {"MPIJob", asks, "", running, "yet: no rank has counted a call of MPI so far.", true, true},
		"no calls":              {"MPIJob", asks, "", ended, "profile: no rank has counted a call of MPI.", true, true},
		"a finding":             {"MPIJob", asks, "", missing, "The image has no library.", true, true},
		"the image's sshd":      {"MPIJob", "mpi.opendatahub.io/launch: sshd", "", running, "create it with", false, false},
		"workers with commands": {"MPIJob", "", "command: [/usr/sbin/sshd]", running, "create it with", false, false},
		"a TrainJob with MPI":   {"TrainJob", "", "", running, "create it with", false, true},
		"another framework":     {"TrainJob", "", "", v1alpha1.JobReportStatus{}, "create it with", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var object unstructured.Unstructured
			manifest := "{apiVersion: kubeflow.org/v2beta1, kind: " + test.kind + ", metadata: {name: a, annotations: {" + test.annotations + "}}, spec: {mpiReplicaSpecs: {Worker: {template: {spec: {containers: [{name: w, " + test.worker + "}]}}}}}}"
			if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
				t.Fatal(err)
			}
			job := jobs.FromObject(&object)
			job.Report = &v1alpha1.JobReport{Status: test.status}
			if got := jobs.NoProfileText(job, now); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("the reason is %q, want %q", got, test.want)
			}
			if asks, can := jobs.AsksForProfile(job), jobs.CanProfile(job); asks != test.asks || can != test.can {
				t.Errorf("it asks: %t, want %t; it can: %t, want %t", asks, test.asks, can, test.can)
			}
		})
	}
	// Of a deleted job, the report has the annotations, if anything.
	gone := jobs.FromReport(&v1alpha1.JobReport{Status: running})
	if jobs.AsksForProfile(gone) || jobs.CanProfile(gone) {
		t.Error("a job whose fields are unknown asks for a profile, or can have one")
	}
}

// TestProfileText: a call is only named as most of the time in MPI if it is, and calls that have not returned are in no row.
func TestProfileText(t *testing.T) {
	t.Parallel()
	calls := func(milliseconds ...int64) []v1alpha1.ProfileCall {
		var all []v1alpha1.ProfileCall
		for i, each := range milliseconds {
			all = append(all, v1alpha1.ProfileCall{Call: "MPI_" + string(rune('A'+i)), Milliseconds: each})
		}
		return all
	}
	for name, test := range map[string]struct {
		profile v1alpha1.Profile
		want    string
		open    int64
	}{
		"one call":          {v1alpha1.Profile{CommunicationPercent: 40, CommunicationMilliseconds: 1000, Calls: calls(700, 300)}, "40 % of the time in MPI, most of it in MPI_A", 0},
		"several calls":     {v1alpha1.Profile{CommunicationPercent: 40, CommunicationMilliseconds: 1000, Calls: calls(400, 350, 250)}, "40 % of the time in MPI", 0},
		"a call that hangs": {v1alpha1.Profile{CommunicationPercent: 94, CommunicationMilliseconds: 1000, Calls: calls(200)}, "94 % of the time in MPI, most of it in calls that have not returned", 800},
		"calls left out":    {v1alpha1.Profile{CommunicationPercent: 40, CommunicationMilliseconds: 10_000, Calls: calls(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "40 % of the time in MPI", 0},
		"no calls":          {v1alpha1.Profile{CommunicationPercent: 0}, "0 % of the time in MPI", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, open := jobs.ProfileText(&test.profile), jobs.OpenCalls(&test.profile); got != test.want || open != test.open {
				t.Errorf("%q, %d; want %q, %d", got, open, test.want, test.open)
			}
		})
	}
}
