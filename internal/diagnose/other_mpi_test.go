package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// Texts of launchers of MPI that failed in a job which is set up for another MPI.
const (
	ofORTE = "[pi-launcher:00013] *** Process received signal ***\n[pi-launcher:00013] Signal: Segmentation fault (11)\n" + `The value of the MCA parameter "plm_rsh_agent" was set to a path` +
		"\nthat could not be found:\nORTE was unable to reliably start one or more daemons."
	ofPRRTE = "PRTE was unable to reliably start one or more daemons.\nThis usually is caused by:"
	ofMPICH = "[mpiexec@pi-launcher] control_cb (pm/pmiserv/pmiserv_cb.c:280): assert (!closed) failed\nSegmentation fault"
	ofIntel = "[bstrap:0:1@pi-worker-1] HYD_sock_connect (../../../../../src/pm/i_hydra/libhydra/sock/hydra_sock_intel.c:209): getaddrinfo returned error -2\nAborted"
)

// TestImageWithOtherMPI: the MPI of the image, by its version or by what its launcher prints, outranks the crash that follows.
func TestImageWithOtherMPI(t *testing.T) {
	images := []struct {
		of                    mpi.Implementation
		version, log, runtime string
	}{
		{mpi.OpenMPI, "Open MPI 4.1.4", ofORTE, "mpi-openmpi"},
		{mpi.OpenMPI, "Open MPI 5.0.6", ofPRRTE, "mpi-openmpi5"},
		{mpi.MPICH, "MPICH 4.2.1", ofMPICH, "mpi-mpich"},
		{mpi.IntelMPI, "Intel MPI 2021.14", ofIntel, "mpi-intel"},
	}
	for _, wanted := range mpi.Implementations {
		for _, image := range images {
			for _, known := range []bool{true, false} {
				for _, change := range []func(*scene){func(*scene) {}, trainJob} {
					summary := agentapi.Summary{ExitCode: new(int32(139)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 1}
					if known {
						summary.MPIVersions = []string{image.version}
					}
					s := failed(139, image.log, func(j *mpi.Job) { j.Implementation = wanted }).with(change, launcherLeft(summary, 139))
					found := s.findings()
					isOther := len(found) > 0 && found[0].Code == codes.LaunchRefused && strings.Contains(found[0].Summary, "the image has ")
					if want := wanted != image.of && (known || wanted != mpi.IntelMPI || image.of != mpi.MPICH); isOther != want {
						t.Errorf("%s with the image of %s, known %t, %s: %+v", wanted, image.version, known, s.job.Kind, found)
						continue
					}
					if !isOther {
						continue
					}
					remedy := found[0].Remedies[0]
					want := "spec.mpiImplementation: " + string(image.of)
					if s.job.Kind == mpi.KindTrainJob {
						want = "spec.runtimeRef.name: " + image.runtime
					}
					if remedy.Action != want {
						t.Errorf("%s with the image of %s: the remedy is %q, want %q", wanted, image.version, remedy.Action, want)
					}
				}
			}
		}
	}
}

// TestRanksOfOtherMPIRan: what a program fails with after its ranks have run is not attributed to the image's MPI, such as that of a job whose own
// variables give it the hosts.
func TestRanksOfOtherMPIRan(t *testing.T) {
	found := failed(1, "ValueError: no").with(launcherLeft(agentapi.Summary{
		ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8, MPIVersions: []string{"MPICH 4.2.1"},
	}, 1)).findings()
	if len(found) == 0 || found[0].Code != codes.ApplicationFailed {
		t.Errorf("found %+v", found)
	}
}

// TestForeignHostOfTheCommand: a host that the command names and the job does not have is the cause, and not the hosts that MPI did not get to.
func TestForeignHostOfTheCommand(t *testing.T) {
	nameless := "its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing"
	troubles := []agentapi.HostTrouble{
		{Host: "pi-worker-4", Code: agentapi.Unreachable, Message: nameless, Seconds: 119}, {Host: "pi-worker-1", Code: agentapi.Unreachable, Message: nameless, Seconds: 119},
	}
	check(t, map[string]expect{
		"agent-host-of-the-command": {codes.UnknownHost, failed(1, unreliable, launcherRuns("mpirun", "--host", "pi-worker-1:2,pi-worker-4:2", "pi")).with(launcherLeft(agentapi.Summary{
			Code: agentapi.Unreachable, ExitCode: new(int32(1)), HostsExpected: 4, Hosts: troubles,
		}, 1))},
		"agent-waits-for-host-of-the-command": {codes.UnknownHost, running(4, launcherRuns("mpirun", "--host", "pi-worker-1,pi-worker-4", "pi")).with(func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now, Lines: []string{
				"mpi-agent: waiting for 2 of 4 hosts for 90 s; pi-worker-1, pi-worker-4: " + nameless,
			}}}
		})},
		// The job was scaled down.
		"agent-host-of-no-command": {codes.WorkerUnreachable, failed(1, unreliable, launcherRuns("mpirun", "pi")).with(launcherLeft(agentapi.Summary{
			Code: agentapi.Unreachable, ExitCode: new(int32(1)), HostsExpected: 4, Hosts: troubles[:1],
		}, 1))},
	})
}
