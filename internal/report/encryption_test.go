package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestEncryption(t *testing.T) {
	before := &v1alpha1.Encryption{State: v1alpha1.Encrypted, By: []string{"Calico by WireGuard"}}
	for name, test := range map[string]struct {
		found  *jobstate.Encryption
		change func(*mpi.Job)
		want   v1alpha1.Encryption
	}{
		"it was not looked up": {want: *before},
		"a plug-in encrypts":   {found: &jobstate.Encryption{By: []string{"Cilium"}}, want: v1alpha1.Encryption{State: v1alpha1.Encrypted, By: []string{"Cilium"}}},
		"a plug-in encrypts, and another one could not be asked": {
			found: &jobstate.Encryption{By: []string{"Cilium"}, Err: errors.New("forbidden")}, want: v1alpha1.Encryption{State: v1alpha1.Encrypted, By: []string{"Cilium"}},
		},
		"nothing is known to": {found: &jobstate.Encryption{}, want: v1alpha1.Encryption{State: v1alpha1.NotEncrypted, Message: "no encryption of the traffic between pods was found"}},
		"it cannot be read":   {found: &jobstate.Encryption{Err: errors.New("read Network cluster: forbidden")}, want: v1alpha1.Encryption{State: v1alpha1.EncryptionUnknown, Message: "read Network cluster: forbidden"}},
		"pods communicate past it": {
			found: &jobstate.Encryption{By: []string{"Cilium"}}, change: func(job *mpi.Job) { job.Workers.Template.Spec.HostNetwork = true },
			want: v1alpha1.Encryption{State: v1alpha1.NotEncrypted, By: []string{"Cilium"}, Message: "pods use the host network, which no network plug-in encrypts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			if test.change != nil {
				test.change(&job)
			}
			m := maker{job: job, evidence: jobstate.Evidence{Encryption: test.found}, before: v1alpha1.JobReportStatus{Encryption: before}}
			if diff := cmp.Diff(&test.want, m.encryption()); diff != "" {
				t.Error(diff)
			}
		})
	}
	m := maker{job: mpitest.Job(2), evidence: jobstate.Evidence{Encryption: &jobstate.Encryption{Err: errors.New(strings.Repeat("x", 1000))}}}
	if message := m.encryption().Message; len(message) > maxEncryptionMessage {
		t.Errorf("the message has %d bytes", len(message))
	}
}

func TestNeedsEncryption(t *testing.T) {
	in := func(phase v1alpha1.Phase, state v1alpha1.EncryptionState) *v1alpha1.JobReport {
		report := &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Phase: phase}}
		if state != "" {
			report.Status.Encryption = &v1alpha1.Encryption{State: state}
		}
		return report
	}
	for name, test := range map[string]struct {
		workers int32
		phase   v1alpha1.Phase
		before  *v1alpha1.JobReport
		want    bool
	}{
		"the first report says that it runs":  {2, v1alpha1.PhaseRunning, nil, true},
		"the first report says that it waits": {2, v1alpha1.PhasePending, nil, false},
		"it starts to run":                    {2, v1alpha1.PhaseRunning, in(v1alpha1.PhaseInitializing, ""), true},
		"it runs again":                       {2, v1alpha1.PhaseRunning, in(v1alpha1.PhaseSuspended, v1alpha1.NotEncrypted), true},
		"it still runs":                       {2, v1alpha1.PhaseRunning, in(v1alpha1.PhaseRunning, v1alpha1.NotEncrypted), false},
		"it runs since an earlier version":    {2, v1alpha1.PhaseRunning, in(v1alpha1.PhaseRunning, ""), true},
		"it was unknown":                      {2, v1alpha1.PhaseRunning, in(v1alpha1.PhaseRunning, v1alpha1.EncryptionUnknown), true},
		"it ended before it was seen running": {2, v1alpha1.PhaseSucceeded, in(v1alpha1.PhaseInitializing, ""), true},
		"it ended":                            {2, v1alpha1.PhaseFailed, in(v1alpha1.PhaseRunning, v1alpha1.Encrypted), false},
		"it failed without pods":              {2, v1alpha1.PhaseFailed, in(v1alpha1.PhasePending, ""), false},
		"it was over in an earlier version":   {2, v1alpha1.PhaseSucceeded, in(v1alpha1.PhaseSucceeded, ""), false},
		"it has one pod":                      {0, v1alpha1.PhaseRunning, in(v1alpha1.PhaseInitializing, ""), false},
		"it has one pod and had no report":    {0, v1alpha1.PhaseRunning, nil, false},
		"it waits":                            {2, v1alpha1.PhaseQueued, in(v1alpha1.PhaseQueued, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsEncryption(mpitest.Job(test.workers), jobstate.Outcome{Phase: test.phase}, test.before); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
