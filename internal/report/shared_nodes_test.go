package report_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// communicates adds a profile with a share of the time in MPI, and transfers the KiB per second of all pods.
func communicates(share int64, change ...func(*agentapi.Profile)) func(*agentapi.Usage) {
	return func(u *agentapi.Usage) {
		u.Profile = &agentapi.Profile{
			Began: u.Since*1000 + 250, Runs: 1, RankCount: 4, Elapsed: 480_000, Communication: 4_800 * share, MaxComputation: 1200 * (100 - share),
			Calls: []agentapi.CallProfile{{Call: "Sendrecv", Count: 2000, Time: 4_700 * share, Bytes: 16_000_000}},
		}
		for _, c := range change {
			c(u.Profile)
		}
	}
}

func transfers(kib int64) func(*agentapi.Usage) {
	return func(u *agentapi.Usage) {
		u.Metrics = append(u.Metrics, agentapi.MetricUsage{Metric: agentapi.MetricNetwork, Mean: kib, P95: kib, Max: kib})
	}
}

// onNodes places a job's pods: the launcher first.
func onNodes(seen jobstate.Observed, nodes ...string) jobstate.Observed {
	for i, pod := range append([]*corev1.Pod{seen.LauncherPods[0]}, podsOf(seen.Workers)...) {
		pod.Spec.NodeName = nodes[i]
	}
	return seen
}

func shared(status v1alpha1.JobReportStatus) *v1alpha1.Finding {
	if i := slices.IndexFunc(status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.WorkersShareNodes }); i >= 0 {
		return &status.Findings[i]
	}
	return nil
}

// TestWorkersShareNodes: a job that certainly communicates much is told that its workers on one node use TCP, with the numbers to use instead.
func TestWorkersShareNodes(t *testing.T) {
	const minutes = 125 * time.Second
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		usage  []func(*agentapi.Usage)
		nodes  []string
		until  time.Duration
		want   bool
	}{
		"by the profile":              {usage: []func(*agentapi.Usage){communicates(45)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes, want: true},
		"on one of its nodes":         {usage: []func(*agentapi.Usage){communicates(45)}, nodes: []string{"c", "a", "a", "a", "b"}, until: minutes, want: true},
		"by what they transfer":       {usage: []func(*agentapi.Usage){transfers(300 << 10)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes, want: true},
		"TrainJob":                    {change: asTrainJob, usage: []func(*agentapi.Usage){communicates(45)}, nodes: []string{"a", "a", "a", "a", "a"}, until: minutes, want: true},
		"ranks per host are named":    {change: perHost, usage: []func(*agentapi.Usage){communicates(45)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes, want: true},
		"on different nodes":          {usage: []func(*agentapi.Usage){communicates(45)}, nodes: []string{"a", "a", "b", "c", "d"}, until: minutes},
		"little communication":        {usage: []func(*agentapi.Usage){communicates(15), transfers(300 << 10)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"a short run":                 {usage: []func(*agentapi.Usage){communicates(45), func(u *agentapi.Usage) { u.Profile.Elapsed, u.Profile.Communication = 60_000, 40_000 }}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"they wait for a late rank":   {usage: []func(*agentapi.Usage){communicates(45, func(p *agentapi.Profile) { p.Late = &agentapi.LateRank{Rank: 1, Waited: 36_000} })}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"they have uneven work":       {usage: []func(*agentapi.Usage){communicates(45, func(p *agentapi.Profile) { p.MaxComputation = 120_000 })}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"they transfer little":        {usage: []func(*agentapi.Usage){transfers(30 << 10)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"they have transferred a bit": {usage: []func(*agentapi.Usage){transfers(300 << 10)}, nodes: []string{"c", "a", "a", "b", "b"}, until: minutes - time.Minute},
		"nothing is known":            {nodes: []string{"c", "a", "a", "b", "b"}, until: minutes},
		"RDMA": {func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources.Limits["rdma/hca"] = resource.MustParse("1")
		}, []func(*agentapi.Usage){communicates(45)}, []string{"c", "a", "a", "b", "b"}, minutes, false},
		"the node's network": {func(j *mpi.Job) { j.Workers.Template.Spec.HostNetwork = true }, []func(*agentapi.Usage){communicates(45)}, []string{"c", "a", "a", "b", "b"}, minutes, false},
		"no MPI":             {func(j *mpi.Job) { j.Launcher.None = true }, []func(*agentapi.Usage){communicates(45)}, []string{"c", "a", "a", "b", "b"}, minutes, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(4, func(j *mpi.Job) {
				spec := field.NewPath("spec")
				worker := spec.Child("mpiReplicaSpecs").Key("Worker")
				j.Fields.Slots, j.Fields.WorkerCount, j.Fields.WorkerTemplate = spec.Child("slotsPerWorker"), worker.Child("replicas"), worker.Child("template")
				if test.change != nil {
					test.change(j)
				}
			})}
			running := onNodes(pods(h.job, corev1.PodRunning, time.Second), test.nodes...)
			evidence := jobstate.Evidence{}
			change := append([]func(*agentapi.Usage){func(u *agentapi.Usage) { u.PodCount = 4 }}, test.usage...)
			if test.usage != nil {
				evidence.Usage = used(h.job, time.Second, test.until, 1000, change...)
			}
			h.pass(10*time.Second, running, jobstate.Evidence{})
			found := shared(h.pass(130*time.Second, running, evidence).Status)
			if (found != nil) != test.want {
				t.Fatalf("the notice is %+v, want one: %v", found, test.want)
			}
			if found == nil {
				return
			}
			mpitest.Golden(t, "shared-nodes-"+goldenName(name), found)
			if h.last.Status.Message == found.Summary || found.Severity != v1alpha1.SeverityInfo {
				t.Errorf("a notice is taken for a problem: %s", h.last.Status.Message)
			}
			// Figures change all the time; the notice does not.
			before := h.last
			evidence.Usage = used(h.job, time.Second, test.until+5*time.Second, 1000, append(change, communicates(58))...)
			if h.pass(136*time.Second, running, evidence); report.Changed(before, *h.last) {
				t.Errorf("the report is written again: %+v", shared(h.last.Status))
			}
			// It stays in the record of a job that succeeds, and is nothing of one that fails.
			last := used(h.job, time.Second, 140*time.Second, 1000, change...)
			end := withUsage(ended(onNodes(pods(h.job, corev1.PodRunning, time.Second), test.nodes...), h.job, batchv1.JobComplete, 140*time.Second), last)
			if h.pass(150*time.Second, end, jobstate.Evidence{}); h.last.Status.Phase == v1alpha1.PhaseSucceeded && shared(h.last.Status) == nil {
				t.Errorf("it is not in the record: %+v", h.last.Status.Findings)
			}
		})
	}
}

func goldenName(name string) string {
	text := []byte(name)
	for i, c := range text {
		if c == ' ' || c == '\'' {
			text[i] = '-'
		}
	}
	return string(text)
}

func perHost(j *mpi.Job) {
	j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "--map-by", "ppr:1:node", "train"}
}

func asTrainJob(j *mpi.Job) {
	j.Kind, j.External, j.Launcher.RunsRanks = mpi.KindTrainJob, true, true
	trainer := field.NewPath("spec", "trainer")
	j.Fields.Slots, j.Fields.WorkerCount = trainer.Child("numProcPerNode"), trainer.Child("numNodes")
}
