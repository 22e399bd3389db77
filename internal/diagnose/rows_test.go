package diagnose_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

const unreliable = `
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default
--------------------------------------------------------------------------`

const ncclFailed = `[rank1]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5
[rank1]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
[rank1]: Last error:
`

// TestWhatLogsShow has a row for each text that MPI, ssh and programs are known to fail with.
func TestWhatLogsShow(t *testing.T) {
	check(t, map[string]expect{
		"01-name-unresolved": {codes.NameUnresolved, failed(1, `ssh: Could not resolve hostname pi-worker-0.pi.ns.svc: Name or service not known`+unreliable, sshd)},
		"02-launcher-unresolved": {codes.LauncherNameUnresolved, failed(1, `[proxy:0:0@pi-worker-0] HYDU_sock_connect (utils/sock/sock.c:145): unable to get host address for pi-launcher (1)
[proxy:0:0@pi-worker-0] main (pm/pmiserv/pmip.c:183): unable to connect to server pi-launcher at port 41235 (check for firewalls!)`, mpich, sshd)},
		"03-connection-refused": {codes.ConnectionRefused, failed(1, `ssh: connect to host pi-worker-1.pi.ns.svc port 2222: Connection refused`+unreliable, sshd)},
		"04-connection-timeout": {codes.ConnectionTimedOut, failed(1, `ssh: connect to host pi-worker-1.pi.ns.svc port 2222: Connection timed out`+unreliable, sshd)},
		"05-key-refused": {codes.KeyRefused, failed(1, `Warning: Permanently added '[pi-worker-0.pi.ns.svc]:2222' (ECDSA) to the list of known hosts.
mpiuser@pi-worker-0.pi.ns.svc: Permission denied (publickey,password).`+unreliable, sshd)},
		"06-key-unprotected": {codes.KeyUnprotected, failed(1, `@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Permissions 0640 for '/root/.ssh/id_rsa' are too open.
This private key will be ignored.
Load key "/root/.ssh/id_rsa": bad permissions
root@pi-worker-0.pi.ns.svc: Permission denied (publickey).
ORTE does not know how to route a message to the specified daemon located on the indicated node:`, sshd)},
		"07-key-modes": {codes.KeyFileModes, failed(1, `root@pi-worker-0.pi.ns.svc: Permission denied (publickey).`, sshd).with(func(s *scene) {
			s.evidence.Logs["pi-worker-0"] = jobstate.Log{Lines: []string{
				"Server listening on 0.0.0.0 port 2222.",
				"Authentication refused: bad ownership or modes for file /root/.ssh/authorized_keys",
			}}
		})},
		"08-no-user": {codes.NoUserEntry, failed(1, `No user exists for uid 1000650000`+unreliable, sshd)},
		"09-no-host-keys": {codes.NoHostKeys, failed(1, `ssh: connect to host pi-worker-0.pi.ns.svc port 2222: Connection refused`, sshd).with(func(s *scene) {
			worker(0, corev1.PodFailed, mpitest.Exited(1, "Error"))(s)
			s.evidence.Logs["pi-worker-0"] = jobstate.Log{Lines: []string{"Could not load host key: /etc/ssh/ssh_host_rsa_key", "sshd: no hostkeys available -- exiting."}}
		})},
		"10-sshd-overloaded": {codes.SSHDOverloaded, failed(1, `kex_exchange_identification: read: Connection reset by peer
Connection reset by 10.244.1.17 port 2222`+unreliable, sshd)},
		"11-host-key": {codes.HostKeyMismatch, failed(1, `No ECDSA host key is known for [pi-worker-0.pi.ns.svc]:2222 and you have requested strict checking.
Host key verification failed.`+unreliable, sshd)},
		"12-daemons-not-started": {codes.DaemonsNotStarted, failed(1, unreliable, sshd)},
		"13-daemon-unroutable": {codes.DaemonUnroutable, failed(1, `--------------------------------------------------------------------------
ORTE does not know how to route a message to the specified daemon
located on the indicated node:

  my node:   pi-launcher-0
  target node:  pi-worker-1.pi.ns.svc`, sshd)},
		"14-daemon-lost": {codes.ConnectionLost, failed(1, `ORTE has lost communication with a remote daemon.

  HNP daemon   : [[41212,0],0] on node pi-launcher-0
  Remote daemon: [[41212,0],2] on node pi-worker-1`, sshd)},
		"14-daemon-lost-with-cause": {codes.Evicted, failed(1, `ORTE has lost communication with a remote daemon.`, sshd).with(
			worker(1, corev1.PodFailed, onNode("node-a"), evicted("The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi.")))},
		"15-hostfile-missing": {codes.HostfileMissing, failed(1, `--------------------------------------------------------------------------
Open RTE was unable to open the hostfile:
    /home/me/hosts
Check to make sure the path and filename are correct.
--------------------------------------------------------------------------
[pi-launcher:00001] [[5115,0],0] ORTE_ERROR_LOG: Not found in file base/ras_base_allocate.c at line 294`)},
		"20-mpi-error": {codes.ApplicationFailed, failed(15, `[pi-worker-0:00042] *** An error occurred in MPI_Recv
[pi-worker-0:00042] *** reported by process [3141599233,1]
[pi-worker-0:00042] *** on communicator MPI_COMM_WORLD
[pi-worker-0:00042] *** MPI_ERR_TRUNCATE: message truncated
[pi-worker-0:00042] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,`)},
		"23-launcher-library-missing": {codes.LibraryMissing, failed(127, `lmp: error while loading shared libraries: libfftw3.so.3: cannot open shared object file: No such file or directory`)},
		"15-not-enough-slots": {codes.NotEnoughSlots, failed(1, `--------------------------------------------------------------------------
There are not enough slots available in the system to satisfy the 16
slots that were requested by the application:

  python

Either request fewer procs for your application, or make more slots
available for use.`)},
		"15-not-enough-slots-with-ranks-on-the-launcher": {codes.NotEnoughSlots, failed(1, `There are not enough slots available in the system to satisfy the 16
slots that were requested by the application:`, func(j *mpi.Job) {
			j.Launcher.RunsRanks, j.Workers.Count = true, 1
		}).with(func(s *scene) { s.seen.Workers = s.seen.Workers[:1] })},
		"21-sshd-of-a-workers-script": {codes.ProgramMissing, running(4, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(127, "Error")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"/bin/sh: 1: /usr/sbin/sshd: not found"}}}
			s.job.Workers.Template.Spec.Containers[0].Command = []string{"sh", "-c", "/usr/sbin/sshd -De"}
		})},
		"15-slots-enough": {codes.NotEnoughSlots, failed(1, `There are not enough slots available in the system to satisfy the 8
slots that were requested by the application:`)},
		"15-too-few-cores": {codes.TooFewCores, failed(213, `--------------------------------------------------------------------------
A request was made to bind that would require binding
processes to more cpus than are available in your allocation:

   Application:     ranks
   #processes:      4
   Mapping policy:  BYCORE
   Binding policy:  CORE

You can override this protection by adding the "overload-allowed"
option to your binding directive.
--------------------------------------------------------------------------`)},
		"15-too-few-cores-by-an-option": {codes.TooFewCores, failed(213, ruler+"A request was made to bind that would require binding\nprocesses to more cpus than are available in your allocation:\n\n   #processes:      4"+ruler,
			launcherRuns("mpirun", "-n", "4", "--map-by", "slot", "--bind-to", "core", "ranks"))},
		"15-too-few-cores-by-a-variable": {codes.TooFewCores, failed(213, ruler+"A request was made to bind that would require binding\nprocesses to more cpus than are available in your allocation:\n\n   #processes:      4"+ruler).with(func(s *scene) {
			main := &s.job.Launcher.Template.Spec.Containers[0]
			main.Env = append(main.Env, corev1.EnvVar{Name: "OMPI_MCA_hwloc_base_binding_policy", Value: "core"})
		})},
		"16-rank-killed": {codes.Killed, failed(137, `--------------------------------------------------------------------------
mpirun noticed that process rank 3 with PID 27 on node pi-worker-1 exited on signal 9 (Killed).`, sshd)},
		"16-rank-killed-by-memory": {codes.OutOfMemory, failed(137, `prterun noticed that process rank 3 with PID 27 on node pi-worker-1 exited on signal 9 (Killed).`).with(
			launcherLeft(agentapi.Summary{
				Code: agentapi.OutOfMemory, Message: "Rank 3 (python) was killed by the kernel for lack of memory.", HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8,
				Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}}, OOMKills: 1,
			}, 137),
			worker(1, corev1.PodFailed, left(agentapi.Summary{
				Role: agentapi.RoleWorker, Code: agentapi.OutOfMemory, OOMKills: 1, MemoryLimit: 16 << 30, MemoryPeak: 16 << 30,
				Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}},
			}, 143)))},
		// JobSet deletes the workers as soon as their launcher has failed.
		"16-rank-killed-in-a-deleted-pod": {codes.OutOfMemory, failed(137, `prterun noticed that process rank 3 with PID 27 on node pi-worker-1 exited on signal 9 (Killed).`).with(
			launcherLeft(agentapi.Summary{
				Code: agentapi.OutOfMemory, Message: "Rank 3 (python) was killed by the kernel for lack of memory.", HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8,
				Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}}, OOMKills: 1,
			}, 137),
			func(s *scene) { s.seen.Workers = nil })},
		"failed-after-mpi": {codes.ApplicationFailed, failed(1, "final accuracy: 0.90").with(launcherLeft(agentapi.Summary{
			HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, Launches: 1, MPISucceeded: true, ExitCode: new(int32(1)),
		}, 1))},
		"one-process": {codes.ApplicationFailed, failed(1, "AssertionError: 1 rank(s) for 2 shards", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"python3", "shards.py"}
		}).with(launcherLeft(agentapi.Summary{HostsExpected: 4, SlotsExpected: 8, ExitCode: new(int32(1))}, 1))},
		"option-of-open-mpi": {codes.LaunchRefused, failed(255, "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument x\n[mpiexec@pi-launcher] HYDU_parse_array (lib/utils/args.c:181): argument matching returned error", mpich)},
		"script-in-many-words": {codes.LaunchRefused, failed(1, "--------------------------------------------------------------------------\nmpirun could not find anything to do.\n\nIt is possible that you forgot to specify how many processes to run\nvia the \"-np\" argument.\n--------------------------------------------------------------------------", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-c", "mpirun", "-np", "2", "python3", "train.py"}
		})},
		"16-more-memory-than-nodes": {codes.OutOfMemory, failed(137, `allocating 4.0 TiB for the mesh`).with(worker(1, corev1.PodFailed, left(agentapi.Summary{
			Role: agentapi.RoleWorker, Code: agentapi.OutOfMemory, OOMKills: 1, MemoryLimit: 512 << 20, MemoryPeak: 512 << 20,
			Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}},
		}, 143)), largeNodes("64Gi", "128Gi"))},
		"16-memory-that-a-node-has": {codes.OutOfMemory, failed(137, `allocating 40 GiB for the mesh`).with(worker(1, corev1.PodFailed, left(agentapi.Summary{
			Role: agentapi.RoleWorker, Code: agentapi.OutOfMemory, OOMKills: 1, MemoryLimit: 512 << 20, MemoryPeak: 512 << 20,
			Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}},
		}, 143)), largeNodes("64Gi", "128Gi"))},
		"16-limit-as-large-as-nodes": {codes.OutOfMemory, failed(137, `epoch 3`).with(worker(1, corev1.PodFailed, left(agentapi.Summary{
			Role: agentapi.RoleWorker, Code: agentapi.OutOfMemory, OOMKills: 1, MemoryLimit: 512 << 20, MemoryPeak: 512 << 20,
			Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, Program: "python"}},
		}, 143)), largeNodes("640Mi"))},
		"17-segmentation-fault": {codes.SegmentationFault, failed(139, `[pi-worker-1:00027] *** Process received signal ***
[pi-worker-1:00027] Signal: Segmentation fault (11)
mpirun noticed that process rank 2 with PID 27 on node pi-worker-1 exited on signal 11 (Segmentation fault).`)},
		"17-segmentation-fault-by-agent": {codes.SegmentationFault, failed(139, `starting`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, Message: "Rank 2 (solver) ended by signal 11 (SIGSEGV).",
			Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 143, Signal: 15, Program: "solver"}, {Rank: 2, ExitCode: 139, Signal: 11, Program: "solver"}},
		}, 139))},
		"17-crash-without-a-transport": {codes.NoTransport, failed(139, `[pi-worker-1:00027] *** Process received signal ***
[pi-worker-1:00027] Signal: Segmentation fault (11)
mpirun noticed that process rank 2 with PID 27 on node pi-worker-1 exited on signal 11 (Segmentation fault).`, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Env = append(j.Launcher.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "OMPI_MCA_btl", Value: "^tcp"})
		})},
		"17-segmentation-fault-in-two-lines": {codes.SegmentationFault, failed(139, `[pi-worker-1:35   :0:35] Caught signal 11 (Segmentation fault: tkill(2) or tgkill(2) at address 0x3ba4b51000000023)
prterun noticed that process rank 2 with PID 35 on node pi-worker-1 exited on
signal 11 (Segmentation fault).`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 139, Signal: 11, Program: "solver"}},
		}, 139))},
		"17-mpirun-crashes-after-an-exception": {codes.ApplicationFailed, failed(1, `ValueError: shard 2 has no rows
MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD
with errorcode 1.
[pi-launcher:00011] *** Process received signal ***
[pi-launcher:00011] Signal: Segmentation fault (11)
[pi-launcher:00011] [ 1] /lib/x86_64-linux-gnu/libpmix.so.2(PMIx_Finalize+0x703)[0x7fd703bede83]`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"17-proxy-crashes-after-an-exit": {codes.ApplicationFailed, failed(15, `Segmentation fault
[mpiexec@pi-launcher] control_cb (mpiexec/pmiserv_cb.c:280): assert (!closed) failed
[mpiexec@pi-launcher] HYDT_dmxu_poll_wait_for_event (lib/tools/demux/demux_poll.c:76): callback returned error status`, func(j *mpi.Job) { j.Implementation = mpi.MPICH }).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(15)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "ranks"}},
		}, 15))},
		"17-signal-not-sent-after-an-exit": {codes.ApplicationFailed, failed(42, `rank 2 of 4 on pi-worker-1
[mpiexec@pi-launcher] ui_cmd_cb (mpiexec/pmiserv_pmci.c:61): unable to send signal downstream
[mpiexec@pi-launcher] HYDT_dmxu_poll_wait_for_event (lib/tools/demux/demux_poll.c:76): callback returned error status`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(42)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "ranks"}},
		}, 42))},
		"17-peer-lost-after-an-exit": {codes.ApplicationFailed, failed(15, `rank 2 of 4 on pi-worker-1
Abort(675361551) on node 0 (rank 0 in comm 0): Fatal error in internal_Barrier: Other MPI error, error stack:
internal_Barrier(84).......................: MPI_Barrier(MPI_COMM_WORLD) failed
MPIDI_UCX_send(83).........................:  returned failed request in UCX netmod(ucx_send.h 83 MPIDI_UCX_send Connection reset by remote peer)`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(15)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "ranks"}},
		}, 15))},
		"17-another-rank-crashes-after-an-exit": {codes.ApplicationFailed, failed(42, `===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 27 RUNNING AT pi-worker-0
=   EXIT CODE: 139
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(42)),
			Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "ranks", At: 1000}, {Rank: 1, ExitCode: 139, Signal: 11, Program: "ranks", At: 1300}},
		}, 42))},
		"17-killed-because-another-rank-crashed": {codes.SegmentationFault, failed(139, `===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 2 PID 37 RUNNING AT pi-worker-1
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 3 PID 38 RUNNING AT pi-worker-1
=   KILLED BY SIGNAL: 11 (Segmentation fault)
===================================================================================`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)), Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 139, Signal: 11, Program: "ranks", At: 1000}},
		}, 139))},
		"17-crash-before-an-abort": {codes.SegmentationFault, failed(14, `[pi-worker-0:35   :0:35] Caught signal 11 (Segmentation fault: tkill(2) or tgkill(2) at address 0x3ba4b51000000023)
--------------------------------------------------------------------------
prterun has exited due to process rank 3 with PID 35 on node pi-worker-1 calling "abort". This may have caused other processes in the
application to be terminated by signals sent by prterun (as reported here).
--------------------------------------------------------------------------`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(14)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "ranks", At: 1000}, {Rank: 3, ExitCode: 14, Program: "ranks", At: 1400}},
		}, 14))},
		"17-killed-because-another-rank-aborts": {codes.ApplicationFailed, failed(1, `Abort(1) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 2`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}, {Rank: 0, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}},
		}, 1))},
		"17-killed-because-of-a-lost-abort": {codes.ApplicationFailed, failed(77, `rank 2 of 4 on pi-worker-1
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 27 RUNNING AT pi-worker-0
=   EXIT CODE: 9
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(77)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}, {Rank: 0, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}},
		}, 77))},
		"17-killed-by-somebody": {codes.Killed, failed(9, `rank 2 of 4 on pi-worker-1`, mpich).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(9)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}, {Rank: 0, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}},
		}, 9))},
		"17-killed-without-a-limit": {codes.Killed, failed(137, `rank 1 of 2 on pi-worker-1`, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(137)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}},
		}, 137))},
		"17-killed-by-somebody-in-a-script": {codes.Killed, failed(1, `rank 2 of 4 on pi-worker-1`, mpich, script).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9, Program: "ranks", At: 1000}},
		}, 1))},
		"17-crash-and-an-exception-because-of-it": {codes.SegmentationFault, failed(139, `mpirun noticed that process rank 1 with PID 27 on node pi-worker-0 exited on signal 11 (Segmentation fault).`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)),
			Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "python", At: 1000}, {Rank: 1, ExitCode: 139, Signal: 11, Program: "python", At: 1300}},
		}, 139))},
		"17-shell-tells-of-a-crash": {codes.SegmentationFault, failed(1, `Segmentation fault`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "sh"}},
		}, 1))},
		"18-bus-error": {codes.BusError, failed(135, `mpirun noticed that process rank 1 with PID 31 on node pi-worker-0 exited on signal 7 (Bus error).`)},
		"18-bus-error-of-a-volume": {codes.BusError, failed(135, `mpirun noticed that process rank 1 with PID 31 on node pi-worker-0 exited on signal 7 (Bus error).`).with(func(s *scene) {
			template := &s.job.Workers.Template.Spec
			template.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("16Mi"))}}}}
			template.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
		})},
		"18-bus-error-of-a-volume-without-a-limit": {codes.BusError, failed(135, `mpirun noticed that process rank 1 with PID 31 on node pi-worker-0 exited on signal 7 (Bus error).`).with(func(s *scene) {
			template := &s.job.Workers.Template.Spec
			template.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
			template.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
		})},
		"18-bus-error-of-a-volume-on-disk": {codes.BusError, failed(135, `mpirun noticed that process rank 1 with PID 31 on node pi-worker-0 exited on signal 7 (Bus error).`).with(func(s *scene) {
			template := &s.job.Workers.Template.Spec
			template.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			template.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
		})},
		// The launcher's log names no rank, and only the workers have the volume.
		"18-shared-memory-of-a-volume": {codes.BusError, failed(1, `RuntimeError: DataLoader worker (pid 412) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.`).with(func(s *scene) {
			pod := &s.job.Workers.Template.Spec
			pod.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev/shm"}}}}
			pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
		})},
		"25-variable-that-nothing-sets": {codes.LaunchRefused, failed(1, ruler+"Open MPI has detected that a parameter given to a command line\noption does not match the expected format:\n\n  Option: n\n  Param:  ranks\n\nThis is frequently caused by omitting to provide the parameter"+ruler,
			launcherRuns("bash", "-c", "#SBATCH --ntasks=2\nmpirun -n $SLURM_NTASKS ranks"))},
		"18-shared-memory":       {codes.BusError, failed(1, `RuntimeError: DataLoader worker (pid 412) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.`)},
		"19-illegal-instruction": {codes.IllegalInstruction, failed(132, `mpirun noticed that process rank 0 with PID 31 on node pi-worker-0 exited on signal 4 (Illegal instruction).`)},
		"20-application-failed": {codes.ApplicationFailed, failed(1, `Traceback (most recent call last):
  File "/app/train.py", line 41, in <module>
    loader = load("/data/train.csv")
FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[43242,1],3]
  Exit code:    1
--------------------------------------------------------------------------`)},
		"20-application-failed-in-plain-words": {codes.ApplicationFailed, failed(3, `loading shard 7
no such data: /data/shard-7
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, Message: "Rank 1 (solver) ended with code 3.", Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 3, Program: "solver"}},
		}, 3))},
		"20-written-to-a-read-only-mount": {codes.ApplicationFailed, failed(1, `Traceback (most recent call last):
  File "/app/train.py", line 16, in <module>
    np.save(f"/results/weights-{comm.rank}.npy", w)
  File "<__array_function__ internals>", line 200, in save
OSError: [Errno 30] Read-only file system: '/results/weights-1.npy'`).with(resultsIn("run-1"), func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].VolumeMounts[1].ReadOnly = true
		}, launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, Message: "Rank 1 (python3) ended with code 1.", Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"20-python-ends-with-a-value": {codes.ApplicationFailed, failed(1, `epoch=9 loss=0.1342
epoch=10 loss=0.1074
0.10737418240000006
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, Message: "Rank 1 (python3) ended with code 1.", Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"20-application-failed-by-agent": {codes.ApplicationFailed, failed(3, `[1,5]<stderr>: ValueError: could not convert string to float: 'abc'`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, Message: "Rank 5 (python) ended with code 3.", Ranks: []agentapi.RankEnd{{Rank: 5, ExitCode: 3, Program: "python"}},
		}, 3))},
		"20-abort-in-a-shell": {codes.Aborted, failed(134, `--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[43242,1],3]
  Exit code:    134
--------------------------------------------------------------------------`)},
		"20-timeout": {codes.ApplicationFailed, failed(124, `step 1`)},
		"20-abort": {codes.ApplicationFailed, failed(14, `MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD
with errorcode 14.`)},
		"20-abort-without-the-rank": {codes.Aborted, failed(134, `--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------`).with(launcherLeft(agentapi.Summary{ExitCode: new(int32(134))}, 134))},
		"21-program-missing-on-workers": {codes.ProgramMissing, failed(134, `--------------------------------------------------------------------------
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /app/solver
Node: pi-worker-0

while attempting to start process rank 0.`)},
		"21-program-missing-hydra": {codes.ProgramMissing, failed(255, `[proxy:0:1@pi-worker-1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file /app/solver (No such file or directory)`, mpich)},
		"21-launcher-command-missing": {codes.ProgramMissing, failed(127, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "mpirum" is not in its image: executable file not found in $PATH.`, ExitCode: new(int32(127)),
		}, 127))},
		"21-program-of-the-launchers-script": {codes.ProgramMissing, failed(127, `/bin/bash: line 1: conda: command not found`).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(127)), HostsExpected: 4, SlotsExpected: 8, HostsIdle: 4,
		}, 127))},
		"21-program-of-a-ranks-script": {codes.ProgramMissing, failed(127, `[1,2]<stderr>:sh: 1: conda: not found`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(127)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 127, Program: "sh"}},
		}, 127))},
		"21-program-of-a-script-file": {codes.ProgramMissing, failed(127, `[1,2]<stderr>:/scripts/run.sh: 2: wget: not found`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(127)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 127, Program: "sh"}},
		}, 127))},
		// The shell went on after a program that it did not find.
		"21-program-that-was-not-needed": {codes.ApplicationFailed, failed(1, "[1,2]<stderr>:/scripts/run.sh: 2: nvidia-smi: not found\n[1,2]<stderr>:Traceback (most recent call last):\n"+
			"[1,2]<stderr>:  File \"/app/train.py\", line 3, in <module>\n[1,2]<stderr>:    x = d[\"lr\"]\n[1,2]<stderr>:KeyError: 'lr'").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "sh"}},
		}, 1))},
		"26-usage-of-the-program": {codes.ApplicationFailed, failed(2, "pi: \"1e9\" is not a number of intervals\nusage: pi [INTERVALS]").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(2)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 2, Program: "pi"}},
		}, 2))},
		"26-time-of-timeout-over": {codes.ApplicationFailed, failed(124, "mpi-agent: waiting for 1 of 4 hosts for 19 s; pi-worker-1: nothing listens", launcherRuns("timeout", "20", "mpirun", "-n", "8", "pi")).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(124)), HostsExpected: 4, SlotsExpected: 8, Hosts: []agentapi.HostTrouble{{Host: "pi-worker-1", Code: agentapi.Unreachable, Message: "nothing listens"}},
		}, 124))},
		"26-variable-not-set": {codes.LaunchRefused, failed(243, "--------------------------------------------------------------------------\nNo executable was specified on the prterun command line.\n\nAborting.\n"+
			"--------------------------------------------------------------------------", launcherRuns("sh", "-c", "mpirun -n $NPROCS pi"))},
		"23-library-path-replaced": {codes.LibraryMissing, failed(127, `pi: error while loading shared libraries: libmpi.so.12: cannot open shared object file: No such file or directory`, intelMPI, func(j *mpi.Job) {
			for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
				template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LD_LIBRARY_PATH", Value: "/usr/local/cuda/lib64"}}
			}
		})},
		"23-library-path-of-the-launcher": {codes.LibraryMissing, failed(127, `pi: error while loading shared libraries: libfftw3.so.3: cannot open shared object file: No such file or directory`, launcherLibraries).with(
			launcherLeft(agentapi.Summary{Code: agentapi.RankFailed, HostsExpected: 4, HostsReached: 4, ExitCode: new(int32(127)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 127, Program: "pi"}}}, 127))},
		"23-library-path-of-the-launchers-program": {codes.LibraryMissing, failed(127, `prepare: error while loading shared libraries: libfftw3.so.3: cannot open shared object file: No such file or directory`, launcherLibraries).with(
			launcherLeft(agentapi.Summary{HostsExpected: 4, ExitCode: new(int32(127))}, 127))},
		"21-program-hidden-by-a-volume":          {codes.ProgramMissing, failed(134, notFound("solver"), codeAt("/usr/local/bin"))},
		"21-program-on-the-launchers-volume":     {codes.ProgramMissing, failed(134, notFound("/code/solver"), codeAt("/code"), func(j *mpi.Job) { j.Workers.Template.Spec.Containers[0].VolumeMounts = nil })},
		"21-program-is-a-number":                 {codes.ProgramMissing, failed(255, `[proxy:1@pi-worker-1] HYDU_create_process (lib/utils/launch.c:73): execvp error on file 2 (No such file or directory)`, mpich)},
		"21-program-is-a-value":                  {codes.ProgramMissing, failed(134, notFound("0.1"), launcherRuns("mpirun", "-n", "2", "-x", "LEARNING_RATE", "0.1", "train.py"))},
		"21-program-is-a-value-of-words":         {codes.ProgramMissing, failed(134, notFound("resnet50"), launcherRuns("mpirun", "-x", "MODEL", "resnet50", "train.py"))},
		"21-program-after-an-option":             {codes.ProgramMissing, failed(134, notFound("trian"), launcherRuns("mpirun", "-x", "PATH", "trian"))},
		"21-program-is-a-number-after-an-option": {codes.ProgramMissing, failed(134, notFound("4"), launcherRuns("mpirun", "--mca", "btl_tcp_links", "2", "4", "train"))},
		"27-no-transport-by-variables":           {codes.NoTransport, failed(17, unreachablePair, transportVariables("self,vader"))},
		"27-no-transport-with-tcp":               {codes.NoTransport, failed(17, unreachablePair, transportVariables("self,vader,tcp"))},
		"21-program-mounted-without-execution": {codes.ProgramMissing, failed(134, notFound("train.py"), codeAt("/usr/local/bin/train.py"), func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].VolumeMounts[0].SubPath = "train.py"
		})},
		"21-program-on-a-volume":                 {codes.ProgramMissing, failed(134, notFound("/code/bin/solver"), codeAt("/code"))},
		"03-no-server-on-the-workers":            {codes.SSHMissing, failed(243, "The value of the MCA parameter \"plm_rsh_agent\" was set to a path\nthat could not be found:\n\n  plm_rsh_agent: ssh : rsh", sshd, workersRun("sleep", "infinity"))},
		"03-no-server-on-the-workers-in-a-shell": {codes.ConnectionRefused, failed(1, `ssh: connect to host pi-worker-1.pi.ns.svc port 22: Connection refused`+unreliable, sshd, workersRun("sh", "-c", "tail -f /dev/null"))},
		"21-program-unknown":                     {codes.ProgramMissing, failed(127, `starting`)},
		"21-script-without-interpreter": {codes.ProgramMissing, failed(126, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, ExitCode: new(int32(126)),
			Message: `The launcher's command "/data/run" cannot be started: it is a script whose first line is not #! and an interpreter, such as #!/bin/sh, or a program for another CPU architecture.`,
		}, 126))},
		"21-script-of-a-missing-interpreter": {codes.ProgramMissing, failed(126, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, ExitCode: new(int32(126)),
			Message: `The launcher's command "/data/run.py" cannot be started: its interpreter /opt/conda/bin/python is not in the image.`,
		}, 126))},
		"21-rank-without-interpreter-openmpi-4": {codes.ProgramMissing, failed(1, notExecuted("Open MPI", "Exec format error"))},
		"21-rank-without-interpreter-and-how-it-ended": {codes.ProgramMissing, failed(131, notExecuted("Open MPI", "Exec format error")+`
--------------------------------------------------------------------------
mpirun was unable to start the specified application as it encountered an error
on node pi-worker-0. More information may be available above.
--------------------------------------------------------------------------`)},
		"21-rank-without-interpreter-openmpi-5":      {codes.ProgramMissing, failed(1, notExecuted("PRTE", "Exec format error"))},
		"21-rank-of-a-missing-interpreter-openmpi-5": {codes.ProgramMissing, failed(1, notExecuted("PRTE", "No such file or directory"))},
		"21-rank-without-permission-openmpi-5":       {codes.ProgramMissing, failed(1, notExecuted("PRTE", "Permission denied"))},
		"21-rank-without-interpreter-hydra":          {codes.ProgramMissing, failed(255, `[proxy:0:1@pi-worker-1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file /data/run (Exec format error)`, mpich)},
		"21-rank-without-permission-hydra":           {codes.ProgramMissing, failed(255, `[proxy:0:1@pi-worker-1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file /data/run (Permission denied)`, mpich)},
		"21-rank-of-a-missing-interpreter-intel":     {codes.ProgramMissing, failed(255, `[proxy:0:1@pi-worker-1] HYD_spawn (../../../../../src/pm/i_hydra/libhydra/spawn/intel/hydra_spawn.c:145): execvp error on file /data/run (No such file or directory)`, intelMPI)},
		"21-rank-of-another-cpu-by-a-shell": {codes.ApplicationFailed, failed(126, `[1,2]<stderr>:sh: 1: /data/solver: Exec format error`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(126)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 126, Program: "sh"}},
		}, 126))},
		"21-path-of-a-connection": {codes.ProgramMissing, failed(127, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "mpirun" is not in its image: executable file not found in $PATH.`, ExitCode: new(int32(127)),
		}, 127), func(s *scene) { s.job.Connections, s.evidence.PathFrom = []string{"data"}, []string{"data"} })},
		"21-path-of-the-template": {codes.ProgramMissing, failed(127, `/bin/sh: 1: mpirun: not found`).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PATH", Value: "/opt/tools"}}
		})},
		"21-path-does-not-matter": {codes.ProgramMissing, failed(127, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "/opt/mpirun" is not in its image: no such file or directory.`, ExitCode: new(int32(127)),
		}, 127), func(s *scene) { s.job.Connections, s.evidence.PathFrom = []string{"data"}, []string{"data"} })},
		"21-command-with-nul": {codes.ProgramMissing, failed(1, ``).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "a\x00b"}
		})},
		"21-launcher-command-in-one-word": {codes.ProgramMissing, failed(127, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "mpirun -n 4 python train.py" is not in its image: executable file not found in $PATH.`, ExitCode: new(int32(127)),
		}, 127))},
		"21-launcher-script-in-one-word": {codes.ProgramMissing, failed(127, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "cd /app && mpirun -n $RANKS python -c \"import train\"" is not in its image: no such file or directory.`, ExitCode: new(int32(127)),
		}, 127))},
		"21-program-missing-by-the-runtime": {codes.ProgramMissing, failed(1, "ssh: connect to host pi-worker-0.pi.ns.svc port 2222: Connection refused", sshd).with(
			worker(0, corev1.PodFailed, mpitest.Exited(128, "StartError"), func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].State.Terminated.Message = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/usr/sbin/sshd": stat /usr/sbin/sshd: no such file or directory: unknown`
			}))},
		"21-windows-line-ends": {codes.WindowsLineEnds, failed(127, "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines")},
		"21-windows-line-ends-in-a-rank": {codes.WindowsLineEnds, failed(127, `[1,2]<stderr>:/usr/bin/env: 'python3\r': No such file or directory`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(127)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 127, Program: "env"}},
		}, 127))},
		"21-windows-line-ends-of-bash": {codes.WindowsLineEnds, failed(126, `bash: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory`)},
		"21-script-continues-and-a-rank-crashes": {codes.SegmentationFault, failed(139, "/scripts/run.sh: line 1: module: command not found\nstep 1\nstep 2\nstep 3\nstep 4", launcherRuns("bash", "/scripts/run.sh")).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)), Launches: 1, Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 139, Signal: 11, Program: "solver"}},
		}, 139))},
		"21-script-continues-and-a-rank-fails": {codes.ApplicationFailed, failed(3, "/scripts/run.sh: line 1: module: command not found\nstep 1\nstep 2\nstep 3\nstep 4", launcherRuns("bash", "/scripts/run.sh")).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(3)), Launches: 1, Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 3, Program: "solver"}},
		}, 3))},
		"21-program-of-a-ranks-script-that-ends-otherwise": {codes.ProgramMissing, failed(1, "/scripts/rank.sh: line 1: prepare: command not found").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Launches: 1, Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "bash"}},
		}, 1))},
		"21-windows-line-ends-within-a-script": {codes.WindowsLineEnds, failed(127, `/data/train.sh: line 2: $'mpirun\r': command not found`)},
		"21-builtin-of-bash":                   {codes.ProgramMissing, failed(127, `sh: 1: source: not found`)},
		"21-python-without-its-number":         {codes.ProgramMissing, failed(127, `/bin/sh: 1: python: not found`)},
		"21-windows-line-ends-of-dash":         {codes.WindowsLineEnds, failed(127, `: not found`)},
		"21-windows-line-ends-by-agent": {codes.WindowsLineEnds, failed(126, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.WindowsLineEnds, ExitCode: new(int32(126)),
			Message: `The launcher's command "/data/run.sh" cannot be started: the first line, which names the interpreter /bin/bash, ends with a carriage return.`,
		}, 126))},
		"21-interpreter-missing": {codes.ProgramMissing, failed(126, `bash: ./train.py: /opt/conda/bin/python: bad interpreter: No such file or directory`)},
		"21-launcher-command-not-executable": {codes.ProgramMissing, failed(126, ``).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, Message: `The launcher's command "/data/run.sh" cannot be started: the file is not executable.`, ExitCode: new(int32(126)),
		}, 126))},
		"21-program-missing-own-code": {codes.ProgramMissing, failed(132, `mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /data/train
Node: pi-worker-1.pi.ns.svc

while attempting to start process rank 0.
4 total processes failed to start`).with(launcherLeft(agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(132))}, 132))},
		"22-daemon-missing":   {codes.MPINotInPath, failed(1, `bash: line 1: orted: command not found`+unreliable)},
		"22-daemon-missing-5": {codes.MPINotInPath, failed(1, `/bin/sh: 1: prted: not found`)},
		"22-daemon-missing-other-image": {codes.MPINotInPath, failed(1, `/bin/sh: 1: prted: not found`, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Image, j.Workers.Template.Spec.Containers[0].Image = "quay.io/team/train:5", "quay.io/team/train:4"
		})},
		"22-batch-launcher": {codes.LaunchRefused, failed(255, "whoami: cannot find name for user ID 65532", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-bootstrap", "slurm", "-n", "2", "pi"}
		}).with(launcherLeft(agentapi.Summary{
			HostsExpected: 4, SlotsExpected: 8, ExitCode: new(int32(255)), Hosts: []agentapi.HostTrouble{{Host: "2", Code: agentapi.UnknownHost, Message: "it is no host of this job, and its name cannot be resolved"}},
		}, 255))},
		"22-launcher-of-deepspeed": {codes.ApplicationFailed, failed(1, "ValueError: no data", launcherRuns("deepspeed", "--hostfile", "/etc/mpi/hostfile", "--launcher", "pdsh", "train.py")).with(
			launcherLeft(agentapi.Summary{HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, ExitCode: new(int32(1))}, 1))},
		"22-batch-launcher-before-mpirun": {codes.ApplicationFailed, failed(1, "ERROR: No matching distribution found for torch==9.9", launcherRuns("bash", "-ec", "pip install torch==9.9\nmpirun -n 4 pi"), batchVariable).with(
			launcherLeft(agentapi.Summary{HostsExpected: 4, SlotsExpected: 8, ExitCode: new(int32(1))}, 1))},
		"22-batch-launcher-by-a-variable": {codes.LaunchRefused, failed(255, "[mpiexec@pi-launcher] HYDT_bscd_slurm_launch_procs (tools/bootstrap/external/slurm_launch.c:63): error finding srun", launcherRuns("bash", "-ec", "mpirun -n 4 pi"), batchVariable).with(
			launcherLeft(agentapi.Summary{HostsExpected: 4, SlotsExpected: 8, Launches: 1, ExitCode: new(int32(255))}, 255))},
		"22-mode-without-execution": {codes.ProgramMissing, failed(1, "--------------------------------------------------------------------------\nprterun was unable to launch the specified application as it lacked\npermissions to execute an executable:\n\n   Executable: /app/bench.sh\n   Node: pi-worker-0\n\nwhile attempting to start process rank 0.\n--------------------------------------------------------------------------", func(j *mpi.Job) {
			spec := &j.Workers.Template.Spec
			spec.Volumes = []corev1.Volume{{Name: "app", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "bench"}}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "app", MountPath: "/app"}}
		})},
		"23-library-missing": {codes.LibraryMissing, failed(127, `/app/solver: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No such file or directory
mpirun detected that one or more processes exited with non-zero status, thus causing the job to be terminated.`)},
		"23-library-of-the-driver": {codes.LibraryMissing, failed(127, `/app/solver: error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file or directory`, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources.Limits = nil
		})},
		"23-library-of-cuda":     {codes.LibraryMissing, failed(1, `ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory`)},
		"23-library-of-mpich":    {codes.LibraryMissing, failed(1, `ImportError: libmpi.so.12: cannot open shared object file: No such file or directory`)},
		"23-library-of-open-mpi": {codes.LibraryMissing, failed(1, `ImportError: libmpi.so.40: cannot open shared object file: No such file or directory`, mpich)},
		"23-library-missing-in-python": {codes.LibraryMissing, failed(1, `Traceback (most recent call last):
  File "/app/train.py", line 3, in <module>
    solver = ctypes.CDLL("libsolver.so.2")
OSError: libsolver.so.2: cannot open shared object file: No such file or directory`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"23-library-optional": {codes.ApplicationFailed, failed(1, `W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
ValueError: shard 2 has no rows`)},
		"23-library-too-old": {codes.ApplicationFailed, failed(1, "/app/solver: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /app/solver)")},
		"23-library-missing-by-agent": {codes.LibraryMissing, failed(127, `/app/solver: error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file or directory
mpirun detected that one or more processes exited with non-zero status, thus causing the job to be terminated.`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(127)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 127, Program: "solver"}},
		}, 127))},
		"24-root-refused": {codes.RootRefused, failed(1, `mpirun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake (e.g., in
defining TMPDIR) or bug can result in catastrophic damage to the OS
file system, leaving your system in an unusable state.`, sshd)},
		"25-hostfile-ignored": {codes.HostfileIgnored, failed(125, `rank 0 of 8 on pi-launcher-0`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.HostfileIgnored, Message: "The command ended well, but all of the 8 ranks that it started ran beside the launcher.", ExitCode: new(int32(125)),
			HostsExpected: 4, SlotsExpected: 8, RanksSeen: 8,
		}, 125))},
		"25-image-with-another-mpi": {codes.HostfileIgnored, failed(125, `rank 0 of 8 on pi-launcher-0`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.HostfileIgnored, ExitCode: new(int32(125)), HostsExpected: 4, SlotsExpected: 8, RanksSeen: 8, MPIVersions: []string{"MPICH 4.2.1"},
		}, 125))},
		"25-image-with-another-mpi-in-a-trainjob": {codes.HostfileIgnored, failed(125, `rank 0 of 8 on pi-launcher-0`).with(trainJob, launcherLeft(agentapi.Summary{
			Code: agentapi.HostfileIgnored, ExitCode: new(int32(125)), HostsExpected: 4, SlotsExpected: 8, RanksSeen: 8, MPIVersions: []string{"MPICH 4.2.1"},
		}, 125))},
		"25-reference-in-the-command": {codes.LaunchRefused, failed(1, ruler+"Open MPI has detected that a parameter given to a command line\noption does not match the expected format:\n\n  Option: n\n  Param:  $(NP)\n\nThis is frequently caused by omitting to provide the parameter"+ruler, launcherRuns("mpirun", "-n", "$(NP)", "solver"))},
		"25-message-of-the-launcher":  {codes.LaunchRefused, failed(1, ruler+"An option is not known to this launcher, which gives up:\n\n  Option: n"+ruler).with(launcherLeft(agentapi.Summary{ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8}, 1))},
		"25-options-in-one-word":      {codes.LaunchRefused, failed(1, "mpirun: Error: option \"-n\" did not have enough parameters (1)\nType 'mpirun --help' for usage.", launcherRuns("mpirun", "-n 4 solver"))},
		"25-options-in-one-word-of-args": {codes.LaunchRefused, failed(1, "mpirun: Error: option \"-n\" did not have enough parameters (1)", func(j *mpi.Job) {
			main := &j.Launcher.Template.Spec.Containers[0]
			main.Command, main.Args = []string{"mpirun"}, []string{"-n 4", "solver"}
		})},
		"25-component-of-the-environment": {codes.NoTransport, failed(1, ruler+"No components were able to be opened in the pml framework."+ruler+"[pi-worker-0:00018] PML ucx cannot be selected", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMPI_MCA_pml", Value: "ucx"}}
		})},
		"26-mixed-mpi": {codes.MixedMPI, failed(0, "Hello from rank 0 of 1\nHello from rank 0 of 1\nHello from rank 0 of 1\nHello from rank 0 of 1", withCommand).with(succeededLauncher)},
		"25-hostfile-of-another-mpi": {codes.HostfileIgnored, failed(125, `rank 0 of 8 on pi-launcher-0`, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"mpiexec", "-n", "8", "ranks"}
		}).with(launcherLeft(agentapi.Summary{
			Code: agentapi.HostfileIgnored, Message: "The command ended well, but all of the 8 ranks that it started ran beside the launcher.", ExitCode: new(int32(125)),
			HostsExpected: 4, SlotsExpected: 8, RanksSeen: 8,
		}, 125))},
		"25-unknown-option":       {codes.LaunchRefused, failed(1, "mpirun: Error: unknown option \"--alow-run-as-root\"\nType 'mpirun --help' for usage.")},
		"25-unknown-option-hydra": {codes.LaunchRefused, failed(255, "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument alow-run\n[mpiexec@pi-launcher] HYDU_parse_array (lib/utils/args.c:181): argument matching returned error", mpich)},
		"26-unnoticed": {codes.RankFailed, failed(0, "done").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 2, Program: "solver"}, {Rank: 0, ExitCode: 143, Signal: 15, Program: "solver"}},
		}, 0), func(s *scene) {
			s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobComplete)
			s.seen.LauncherPods[0].Status.Phase = corev1.PodSucceeded
		})},
		"26-unnoticed-pipe": {codes.RankFailed, failed(0, "Traceback (most recent call last):\n  File \"/scripts/train.py\", line 5, in <module>\n    print(config['learning_rate'])\nKeyError: 'learning_rate'", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-c", "mpirun -np 8 python3 /scripts/train.py 2>&1 | tee /tmp/train.log"}
		}).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
		}, 0), succeededLauncher)},
		"26-mpi-not-awaited": {codes.MPINotAwaited, failed(0, "training started with pid 12").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsIdle: 4, LeftRunning: "mpirun",
		}, 0), succeededLauncher)},
		"27-wrong-interface": {codes.WrongInterface, failed(1, `--------------------------------------------------------------------------
WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
should not happen.

Your Open MPI job may now hang or fail.

  Local host: pi-worker-0
  PID:        33
  Message:    connect() to 192.168.122.1:1024 failed
  Error:      Connection timed out (110)
--------------------------------------------------------------------------`)},
		"27-interface-not-selected": {codes.NoTransport, failed(14, `[pi-worker-1:00031] *** An error occurred in MPI_Barrier
[pi-worker-1:00031] *** MPI_ERR_INTERN: internal error`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(14)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 14, Program: "ranks"}},
			NoInterface: &agentapi.InterfaceSetting{Name: "btl_tcp_if_include", Value: "ib0", Has: []string{"lo", "eth0"}},
		}, 14))},
		"27-interface-not-used": {codes.ApplicationFailed, failed(1, "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nNameError: name 'learning_rate' is not defined").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
			NoInterface: &agentapi.InterfaceSetting{Name: "NCCL_SOCKET_IFNAME", Value: "ib0", Has: []string{"lo", "eth0"}},
		}, 1))},
		"27-connection-lost-by-abort": {codes.ApplicationFailed, failed(77, `License server not reachable
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
with errorcode 77.
--------------------------------------------------------------------------
WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
should not happen.

  Local host: pi-worker-1
  Message:    connect() to 10.244.0.9:1024 failed
  Error:      Connection refused (111)
--------------------------------------------------------------------------`)},
		"27-no-transport": {codes.NoTransport, failed(1, `--------------------------------------------------------------------------
At least one pair of MPI processes are unable to reach each other for
MPI communications.  This means that no Open MPI device has indicated
that it can be used to communicate between these processes.
--------------------------------------------------------------------------
[pi-worker-0:00042] *** MPI_ERR_INTERN: internal error`)},
		"27-not-finalized": {codes.NotFinalized, failed(0, `--------------------------------------------------------------------------
mpirun has exited due to process rank 2 with PID 0 on
node pi-worker-1 exiting improperly. There are three reasons this could occur:
--------------------------------------------------------------------------
[pi-worker-0][[1,1],0][btl_tcp_endpoint.c:625:mca_btl_tcp_endpoint_recv_connect_ack] connect() to 10.244.0.9:1024 failed`)},
		"28-count-overflow": {codes.CountOverflow, failed(1, `[pi-worker-0:00031] *** An error occurred in MPI_Allreduce
[pi-worker-0:00031] *** MPI_ERR_COUNT: invalid count argument`)},
		"29-type-unsupported": {codes.DataTypeUnsupported, failed(1, "Traceback (most recent call last):\n  File \"/app/train.py\", line 12, in <module>\nIndexError: map::at")},
		"30-bstrap-ssh": {codes.SSHFailed, failed(255, `[mpiexec@pi-launcher] check_exit_codes (../../../../../src/pm/i_hydra/libhydra/demux/hydra_demux_poll.c:117): unable to run bstrap_proxy on pi-worker-0.pi.ns.svc (pid 31, exit code 65280)
[mpiexec@pi-launcher] poll_for_event (../../../../../src/pm/i_hydra/libhydra/demux/hydra_demux_poll.c:159): check exit codes error`, intelMPI, sshd)},
		"31-bstrap-command": {codes.RemoteCommandFailed, failed(255, `[mpiexec@pi-launcher] check_exit_codes (../../../../../src/pm/i_hydra/libhydra/demux/hydra_demux_poll.c:117): unable to run bstrap_proxy on pi-worker-0.pi.ns.svc (pid 31, exit code 256)`, intelMPI, sshd)},
		"32-bad-termination": {codes.Killed, failed(9, `===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 3 PID 27 RUNNING AT pi-worker-1
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================`, intelMPI)},
		"32-killed-after-another-ended": {codes.ApplicationFailed, failed(42, `=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 3 PID 18 RUNNING AT pi-worker-1.pi.ns.svc
=   KILLED BY SIGNAL: 9 (Killed)`, intelMPI).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(42)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "ranks"}, {Rank: 3, ExitCode: 137, Signal: 9, Program: "ranks"}},
		}, 42))},
		"33-proxy-lost": {codes.ConnectionLost, failed(1, `[mpiexec@pi-launcher-0] control_cb (pm/pmiserv/pmiserv_cb.c:206): assert (!closed) failed
[mpiexec@pi-launcher-0] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status`, mpich)},
		"34-memlock":            {codes.LockedMemoryLimit, failed(1, `The RLIMIT_MEMLOCK too small, cannot register memory`)},
		"35-collective-timeout": {codes.CollectiveTimeout, failed(134, `[rank3]:[E1121 09:58:12.123 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1204, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600044 milliseconds before timing out.`)},
		"36-nccl-system":        {codes.NCCLSystemError, failed(1, `RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5`)},
		"37-gpu-memory": {codes.GPUOutOfMemory, failed(1, `Traceback (most recent call last):
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.31 GiB is free.`)},
		"37-gpu-memory-of-jax":        {codes.GPUOutOfMemory, failed(1, `[1,1]<stderr>:jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.`)},
		"37-gpu-memory-of-tensorflow": {codes.GPUOutOfMemory, failed(1, "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\nOOM when allocating tensor with shape[64,56,56,256] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc")},
		"36-nccl-shared-memory":       {codes.NCCLSystemError, failed(1, ncclFailed+"Error while creating shared memory segment /dev/shm/nccl-ZqZx0I (size 9637888), error: No space left on device (28)")},
		"36-nccl-locked-memory":       {codes.LockedMemoryLimit, failed(1, ncclFailed+"Call to ibv_reg_mr failed with error Cannot allocate memory")},
		"36-nccl-connection":          {codes.WrongInterface, failed(1, ncclFailed+"Call to connect to 10.0.0.5<43211> failed : Connection timed out")},
		"38-nccl-without-gpu":         {codes.NoGPUVisible, failed(1, `[rank1]: ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!`)},
		"17-crash-of-fortran": {codes.SegmentationFault, failed(174, "[1,2]<stderr>:forrtl: severe (174): SIGSEGV, segmentation fault occurred").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(174)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 174, Program: "solver"}},
		}, 174))},
		"17-crash-without-threads": {codes.SegmentationFault, failed(139, "[1,2]<stderr>:OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64: Resource temporarily unavailable").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)), Ranks: []agentapi.RankEnd{{Rank: 2, Signal: 11, Program: "python3"}},
		}, 139))},
		"38-broken-gpu": {codes.ApplicationFailed, failed(1, `[1,1]<stderr>:RuntimeError: CUDA error: uncorrectable ECC error encountered`).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 1, Program: "python3"}},
		}, 1), func(s *scene) {
			s.seen.Workers[0].Pod.Spec.NodeName = "node-a"
		})},
		"44-port-not-permitted-sshd": {codes.ApplicationFailed, running(4, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(255, "Error")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"error: Bind to port 22 on 0.0.0.0 failed: Permission denied.", "fatal: Cannot bind any address."}}}
		})},
		"21-command-of-a-batch-system": {codes.ProgramMissing, failed(127, `/scripts/run.sh: line 4: srun: command not found`)},
		"21-modules-missing":           {codes.ProgramMissing, failed(127, `/scripts/run.sh: line 2: module: command not found`)},
		"21-launcher-after-modules":    {codes.ProgramMissing, failed(127, "/scripts/run.sh: line 2: module: command not found\n/scripts/run.sh: line 3: mpirun: command not found")},
		"clock-of-requests":            {codes.ClockSkew, failed(1, `botocore.exceptions.ClientError: An error occurred (RequestTimeTooSkewed) when calling the PutObject operation: The difference between the request time and the current time is too large.`)},
		"38-no-gpu":                    {codes.NoGPUVisible, failed(1, `RuntimeError: CUDA error: no CUDA-capable device is detected`)},
		"slots-over-gpus": {codes.MoreSlotsThanGPUs, failed(1, `[1,1]<stderr>:pi-worker-0:71:71 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 17000
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, invalid usage`, func(j *mpi.Job) { j.SlotsPerWorker = 4 })},
		"slots-over-gpus-fill-memory": {codes.GPUOutOfMemory, failed(1, `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.31 GiB is free.`, func(j *mpi.Job) { j.SlotsPerWorker = 4 })},
		"gpu-of-another-rank": {codes.WrongGPU, failed(1, `[1,3]<stderr>:pi-worker-1:71:71 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 17000
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, invalid usage`)},
		"gpu-of-a-short-list": {codes.WrongGPU, failed(1, `[1,5]<stderr>:torch.AcceleratorError: CUDA error: invalid device ordinal`, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "0"}}
		})},
		"gpu-of-the-rank-in-the-job": {codes.WrongGPU, failed(1, `[1,5]<stderr>:torch.AcceleratorError: CUDA error: invalid device ordinal`)},
		"39-horovodrun":              {codes.ShortHostNames, failed(1, "ssh not successful for hosts:\npi-worker-0\npi-worker-1", sshd)},
		"40-killed-not-by-memory": {codes.Killed, failed(1, `epoch 3`, sshd).with(
			worker(2, corev1.PodFailed, mpitest.Exited(137, "Error")))},
		"41-terminated": {codes.Terminated, failed(143, `epoch 3`)},
		"44-port-in-use": {codes.PortInUse, running(4, func(j *mpi.Job) { j.Workers.Template.Spec.HostNetwork = true }).with(worker(1, corev1.PodFailed, mpitest.Exited(1, "Error")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"mpi-agent: take connections: listen tcp :2222: bind: address already in use"}}}
		})},
		"44-port-in-use-by-a-sidecar": {codes.PortInUse, running(4).with(worker(1, corev1.PodFailed, mpitest.Exited(1, "Error")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"mpi-agent: take connections: listen tcp :2222: bind: address already in use"}}}
		})},
		"44-port-in-use-sshd": {codes.PortInUse, running(4, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(255, "Error")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"error: Bind to port 22 on 0.0.0.0 failed: Address already in use.", "fatal: Cannot bind any address."}}}
		})},
		"45-cpu-throttled-and-failed": {codes.ApplicationFailed, failed(3, "ValueError: no").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(3)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8, CPUSeconds: 60, ThrottledSeconds: 40,
		}, 3))},
		"45-cpu-throttled": {codes.CPUThrottled, failed(0, "done").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8, CPUSeconds: 60, ThrottledSeconds: 40,
		}, 0), succeededLauncher)},
		"46-workers-idle": {codes.WorkersIdle, failed(0, "done").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, HostsIdle: 3,
		}, 0), succeededLauncher)},
		"46-workers-without-slots-for-ranks": {codes.WorkersIdle, failed(0, "done", func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command, j.Launcher.Template.Spec.Containers[0].Args = []string{"mpirun", "-n", "4", "pi"}, nil
		}).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8,
		}, 0), succeededLauncher)},
		"46-nothing-started": {codes.ApplicationFailed, failed(1, "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/4 clients joined.", torchrun).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8,
		}, 1))},
		"46-ended-before-mpirun": {codes.ApplicationFailed, failed(1, "prepare.sh: done", script).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8,
		}, 1))},
		"46-ended-before-mpirun-at-a-command": {codes.ApplicationFailed, failed(1, "+ cd /tmp\n+ grep -q nothing /etc/hostname", script).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8,
		}, 1))},
		"46-workers-idle-beside-the-launcher": {codes.WorkersIdle, failed(0, "rank 1 of 2 on pi-launcher", mpich, func(j *mpi.Job) { j.Launcher.RunsRanks, j.Workers.Count = true, 1 }).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 1, SlotsExpected: 2, RanksSeen: 2, HostsIdle: 1,
		}, 0), succeededLauncher, func(s *scene) { s.seen.Workers = s.seen.Workers[:1] })},
		"46-ranks-with-windows-line-ends": {codes.WindowsLineEnds, failed(141, "starting", script).with(launcherLeft(agentapi.Summary{
			Code: agentapi.WindowsLineEnds, ExitCode: new(int32(141)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, Launches: 1,
			Message: `The ranks' program "/scripts/run.sh" cannot be started: the first line, which names the interpreter /bin/bash, ends with a carriage return.`,
		}, 141))},
		"46-ranks-without-interpreter": {codes.ProgramMissing, failed(255, "execve: No such file or directory", script).with(launcherLeft(agentapi.Summary{
			Code: agentapi.ProgramMissing, ExitCode: new(int32(255)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, Launches: 1,
			Message: `The ranks' program "/scripts/run.sh" cannot be started: its interpreter /opt/python is not in the image.`,
		}, 255))},
		"46-windows-line-ends-of-the-launchers-script": {codes.WindowsLineEnds, failed(134, `mpirun was unable to find the specified executable file, and therefore
did not launch the job.

Node:       pi-worker-0
Executable: ranks`, script).with(launcherLeft(agentapi.Summary{
			Code: agentapi.WindowsLineEnds, ExitCode: new(int32(134)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, Launches: 1,
			Message: `The launcher's command "/scripts/run.sh" is a shell script with Windows line ends (CR LF).`,
		}, 134))},
		"46-windows-line-ends-of-a-ranks-script": {codes.WindowsLineEnds, failed(2, "/scripts/run.sh: 1: set: Illegal option -").with(launcherLeft(agentapi.Summary{
			Code: agentapi.WindowsLineEnds, ExitCode: new(int32(2)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, Launches: 1, RanksSeen: 8,
			Message: `The ranks' program "/scripts/run.sh" is a shell script with Windows line ends (CR LF).`, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 2, Program: "sh"}},
		}, 2))},
		"21-rank-of-a-missing-interpreter-openmpi-4": {codes.ProgramMissing, failed(131, notExecuted("Open MPI", "/data/run has a bad interpreter on the first line."))},
		"46-workers-idle-all": {codes.WorkersIdle, failed(0, "done").with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsIdle: 4,
		}, 0), succeededLauncher)},
		"46-workers-idle-sshd": {codes.WorkersIdle, failed(0, "done", sshd).with(succeededLauncher, sshdLog("pi-worker-0", "Accepted publickey for mpi from 10.244.1.5 port 33338 ssh2: ECDSA SHA256:x"), sshdLog("pi-worker-1"))},
		"43-no-ssh": {codes.SSHMissing, failed(243, `--------------------------------------------------------------------------
The value of the MCA parameter "plm_rsh_agent" was set to a path
that could not be found:

  plm_rsh_agent: ssh : rsh

Please either unset the parameter, or check that the path is correct
--------------------------------------------------------------------------`, sshd)},
		"43-no-ssh-mpich": {codes.SSHMissing, failed(255, `[mpiexec@pi-launcher] HYDU_create_process (lib/utils/launch.c:24): execvp error on file /usr/bin/ssh (No such file or directory)`, mpich, sshd)},
		"42-ssh-255":      {codes.SSHFailed, failed(255, `starting`, sshd)},
	})
}

// largeNodes are nodes with so much memory.
func largeNodes(memory ...string) func(*scene) {
	return func(s *scene) {
		for i, size := range memory {
			s.evidence.Nodes = append(s.evidence.Nodes, jobstate.Node{Name: fmt.Sprintf("node-%d", i), Ready: true, Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}})
		}
	}
}

// succeededLauncher lets a job's launcher succeed.
func succeededLauncher(s *scene) {
	s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobComplete)
	s.seen.LauncherPods[0].Status.Phase = corev1.PodSucceeded
}

func torchrun(j *mpi.Job) {
	j.Launcher.Template.Spec.Containers[0].Command = []string{"torchrun", "--nnodes=4", "train.py"}
}

// inInit is a worker whose init container is in a state.
func inInit(index int, state corev1.ContainerState) func(*scene) {
	return worker(index, corev1.PodPending, func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch-data", State: state, Started: new(state.Running != nil)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	})
}

func isolated(s *scene) {
	s.seen.Isolation = &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pi"}}
}

func script(j *mpi.Job) {
	j.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-ec", "./prepare.sh; mpirun train"}
}

func withCommand(j *mpi.Job) {
	j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "pi"}
}

// sshdLog is the log of a worker's OpenSSH server.
func sshdLog(pod string, lines ...string) func(*scene) {
	return func(s *scene) {
		s.evidence.Logs[pod] = jobstate.Log{Lines: append([]string{"Server listening on 0.0.0.0 port 22.", "Server listening on :: port 22."}, lines...)}
	}
}

// TestIdleWorkers: workers are idle only if that is certain, whoever starts the launcher's program and the ranks.
func TestIdleWorkers(t *testing.T) {
	left := func(s agentapi.Summary) func(*scene) {
		s.ExitCode, s.HostsExpected = new(int32(0)), 4
		return launcherLeft(s, 0)
	}
	ended := func(message string) func(*scene) {
		return func(s *scene) {
			s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}
		}
	}
	ownCommand := func(j *mpi.Job) {
		j.Launch, j.Workers.Template.Spec.Containers[0].Command = mpi.LaunchAgent, []string{"run.sh"}
	}
	for name, test := range map[string]struct {
		scene scene
		// want is the first line of evidence; no finding if it is empty.
		want string
	}{
		"some":                 {failed(0, "done").with(left(agentapi.Summary{HostsReached: 4, HostsIdle: 1})), "Launcher's agent: ranks ran on 3 of 4 workers."},
		"some, with a command": {failed(0, "done", ownCommand).with(left(agentapi.Summary{HostsReached: 4, HostsIdle: 1})), "Launcher's agent: ranks ran on 3 of 4 workers."},
		"none is idle":         {failed(0, "done").with(left(agentapi.Summary{HostsReached: 4})), ""},
		"all":                  {failed(0, "done").with(left(agentapi.Summary{HostsIdle: 4})), "Agent: no process was started on any of 4 workers."},
		"all, with the agent as the command": {failed(0, "done", func(j *mpi.Job) {
			j.Launch, j.Workers.Template.Spec.Containers[0].Command = mpi.LaunchAgent, []string{agentapi.Binary, "serve"}
		}).with(left(agentapi.Summary{HostsIdle: 4})), "Agent: no process was started on any of 4 workers."},
		"all, with a command":              {failed(0, "done", ownCommand).with(left(agentapi.Summary{HostsIdle: 4})), ""},
		"the image's program, all":         {failed(0, "done").with(ended("")), "Agent: no process was started on any of 4 workers."},
		"the image's program, its message": {failed(0, "done").with(ended("accuracy 0.9")), ""},
		"the image's program, some":        {failed(0, "done").with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4, HostsIdle: 2}, 0)), "Launcher's agent: ranks ran on 2 of 4 workers."},
		"the image's program, and MPI cut its connection": {
			failed(0, "done").with(launcherLeft(agentapi.Summary{
				HostsExpected: 4, HostsReached: 4, HostsIdle: 2, Code: agentapi.ConnectionLost, Message: "Host pi-worker-1 was lost: the connection to it was lost while its ranks ran.",
			}, 0)),
			"Launcher's agent: ranks ran on 2 of 4 workers.",
		},
		"the image's program, for a moment": {failed(0, "done").with(launcherLeft(agentapi.Summary{HostsReached: 1}, 0)), ""},
		"no message of the agent":           {failed(0, "done", withCommand).with(ended("")), ""},
		"sshd without a login":              {failed(0, "done", sshd).with(sshdLog("pi-worker-3")), "The log of pi-worker-3 contains the start of sshd, but no login."},
		"sshd without a log":                {failed(0, "done", sshd).with(ended("")), ""},
		"sshd that does not log its start":  {failed(0, "done", sshd).with(func(s *scene) { s.evidence.Logs["pi-worker-3"] = jobstate.Log{Lines: []string{"motd"}} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, f := range test.scene.with(succeededLauncher).findings() {
				if f.Code == codes.WorkersIdle {
					got = f.Evidence[0]
				}
			}
			if got != test.want {
				t.Errorf("the evidence is %q, want %q", got, test.want)
			}
		})
	}
}

// TestMixedMPINeedsMoreRanksThanLaunches: a script that starts one rank after the other prints "rank 0 of 1" as often.
func TestMixedMPINeedsMoreRanksThanLaunches(t *testing.T) {
	for launches, want := range map[int32]bool{0: true, 1: true, 2: true, 3: false} {
		found := failed(0, "rank 0 of 1\nrank 0 of 1\nrank 0 of 1", withCommand).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, HostsReached: 4, Launches: launches,
		}, 0), succeededLauncher).findings()
		if got := len(found) > 0 && found[0].Code == codes.MixedMPI; got != want {
			t.Errorf("%d launches: %v, want %v", launches, got, want)
		}
	}
}

// TestThrottlingIsWorthAFinding: a CPU limit that stops the ranks for less than a fifth of the time, or a few seconds, is none.
func TestThrottlingIsWorthAFinding(t *testing.T) {
	for name, test := range map[string]struct {
		used, throttled float64
		want            bool
	}{
		"a fifth":              {80, 20, true},
		"most of it":           {10, 90, true},
		"less than a fifth":    {82, 18, false},
		"only for a moment":    {1, 4.9, false},
		"no limit":             {100, 0, false},
		"nothing was measured": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := failed(0, "done").with(launcherLeft(agentapi.Summary{
				ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, CPUSeconds: test.used, ThrottledSeconds: test.throttled,
			}, 0), succeededLauncher).findings()
			if got := len(found) > 0 && found[0].Code == codes.CPUThrottled; got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, found)
			}
		})
	}
}

// TestAgentsTell has what an agent finds by itself.
func TestAgentsTell(t *testing.T) {
	trouble := func(code agentapi.Code, message string, seconds int32) func(*scene) {
		return launcherLeft(agentapi.Summary{
			Code: code, Message: "Host pi-worker-2 could not be used: " + message + ".", HostsExpected: 4, SlotsExpected: 8, HostsReached: 3, SlotsFound: 6,
			Hosts: []agentapi.HostTrouble{{Host: "pi-worker-2", Code: code, Message: message, Seconds: seconds}},
		}, 1)
	}
	check(t, map[string]expect{
		"agent-unreachable": {codes.WorkerUnreachable, failed(1, unreliable).with(trouble(agentapi.Unreachable,
			"nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended", 120))},
		"agent-unreachable-while-its-init-container-works": {codes.WorkerUnreachable, failed(1, unreliable).with(trouble(agentapi.Unreachable,
			"nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended", 120), inInit(2, corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-3 * time.Minute))},
		}))},
		"agent-unreachable-while-its-init-container-waits": {codes.WorkerUnreachable, failed(1, unreliable).with(trouble(agentapi.Unreachable,
			"nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended", 120), inInit(2, corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-3 * time.Minute))},
		}), func(s *scene) {
			s.evidence.Logs["pi-worker-2"] = jobstate.Log{Lines: []string{"waiting for redis", "waiting for redis"}, LastAt: mpitest.Now}
		})},
		"agent-unreachable-while-its-init-container-worked": {codes.WorkerUnreachable, failed(1, unreliable).with(trouble(agentapi.Unreachable,
			"nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended", 120), inInit(2, corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, StartedAt: metav1.NewTime(mpitest.Now.Add(-3 * time.Minute)), FinishedAt: metav1.NewTime(mpitest.Now)},
		}), func(s *scene) {
			s.seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(-time.Minute))
		})},
		"agent-unreachable-by-its-dns-policy": {codes.WorkerUnreachable, failed(1, unreliable, withDNSPolicy).with(trouble(agentapi.Unreachable,
			"its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing", 120), worker(2, corev1.PodRunning))},
		"name-unresolved-by-its-dns-policy":   {codes.NameUnresolved, failed(1, `ssh: Could not resolve hostname pi-worker-0.pi.ns.svc: Name or service not known`+unreliable, sshd, withDNSPolicy)},
		"daemon-unroutable-by-its-dns-policy": {codes.DaemonUnroutable, failed(255, "ORTE does not know how to route a message to the specified daemon\n"+unreliable, sshd, withDNSPolicy)},
		"launcher-unresolved-by-the-workers-dns-policy": {codes.LauncherNameUnresolved, failed(1, `ssh: Could not resolve hostname pi-launcher-0: Name or service not known`+unreliable, sshd, func(j *mpi.Job) {
			j.Workers.Template.Spec.DNSPolicy = corev1.DNSNone
		})},
		"agent-waits-by-its-dns-policy": {codes.WorkerUnreachable, running(4, withDNSPolicy).with(func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{s.seen.LauncherPods[0].Name: {Lines: []string{
				"mpi-agent: waiting for 4 of 4 hosts for 90 s; pi-worker-0: its name cannot be looked up: read udp 127.0.0.1:38358->127.0.0.9:53: read: connection refused",
			}, LastAt: mpitest.Now}}
		})},
		// Its name is known: the policy is not the cause.
		"agent-refused-with-a-dns-policy": {codes.WorkerUnreachable, failed(1, unreliable, withDNSPolicy).with(trouble(agentapi.Unreachable,
			"nothing listens at pi-worker-2.pi.ns.svc:2222 (connection refused): its container has not started, or ended", 120), worker(2, corev1.PodRunning))},
		"agent-blocked": {codes.ConnectionTimedOut, failed(1, unreliable).with(trouble(agentapi.Unreachable,
			"10.244.1.9:2222 does not answer (connection timed out): a NetworkPolicy or a service mesh may drop the traffic, or its node is down", 120))},
		"agent-unreachable-for-an-image": {codes.ImagePullFailed, failed(1, unreliable).with(
			trouble(agentapi.Unreachable, "its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing", 120),
			worker(2, corev1.PodPending, mpitest.Waiting("ImagePullBackOff", `Back-off pulling image "quay.io/nobody/nothing:1": ErrImagePull: unauthorized: access to the requested resource is not authorized`)))},
		"agent-still-waiting": {codes.LauncherNameUnresolved, failed(255, `[mpiexec@pi-launcher] Error: Unable to run bstrap_proxy on pi-worker-1.pi.ns.svc (pid 16, exit code 768)
[bstrap:0:1@pi-worker-1] HYD_sock_connect (../../../../../src/pm/i_hydra/libhydra/sock/hydra_sock_intel.c:209): getaddrinfo returned error -2 (Name or service not known)
[bstrap:0:1@pi-worker-1] main (../../../../../src/pm/i_hydra/libhydra/bstrap/src/hydra_bstrap_proxy.c:532): unable to connect to server pi-launcher at port 34791 (check for firewalls!)`, intelMPI).with(launcherLeft(agentapi.Summary{
			Code: agentapi.Unreachable, ExitCode: new(int32(255)), HostsExpected: 4, HostsReached: 3,
			Hosts: []agentapi.HostTrouble{{Host: "pi-worker-0", Code: agentapi.Unreachable, Message: "its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing"}},
		}, 255))},
		"agent-key-refused": {codes.KeyRefused, failed(1, unreliable).with(trouble(agentapi.KeyRefused, "it does not accept this job's key (Permission denied): do both pods mount the same Secret?", 8))},
		"agent-host-key":    {codes.HostKeyMismatch, failed(1, unreliable).with(trouble(agentapi.HostKeyMismatch, "what answers at 10.244.1.9:2222 is not this job's worker: host key differs", 8))},
		"agent-unknown-host": {codes.UnknownHost, failed(255, `[mpiexec@pi-launcher] Error: Unable to run bstrap_proxy on node01 (pid 16, exit code 768)`, intelMPI).with(launcherLeft(agentapi.Summary{
			Code: agentapi.UnknownHost, ExitCode: new(int32(255)), HostsExpected: 4, Hosts: []agentapi.HostTrouble{{
				Host: "node01", Code: agentapi.UnknownHost, Seconds: 15,
				Message: "it is no host of this job, and its name cannot be resolved; the job's hosts are pi-worker-0, pi-worker-1",
			}},
		}, 255))},
		"agent-worker-lost": {codes.ConnectionLost, failed(1, `PRTE has lost communication with a remote daemon.`).with(trouble(agentapi.ConnectionLost,
			"the connection to it was lost while its ranks ran: its pod ended or was deleted, its node failed, or the network was cut", 300))},
		"agent-worker-lost-and-mpirun-crashed": {codes.ConnectionLost, failed(139, `mpirun: abort is already in progress...hit ctrl-c again to forcibly terminate
[pi-launcher:00014] *** Process received signal ***
[pi-launcher:00014] Signal: Segmentation fault (11)
[pi-launcher:00014] Signal code: Address not mapped (1)
[pi-launcher:00014] [ 1] /lib/x86_64-linux-gnu/libpmix.so.2(PMIx_Finalize+0x703)[0x7fbecf742e83]
[pi-launcher:00014] *** End of error message ***
Segmentation fault`).with(trouble(agentapi.ConnectionLost,
			"the connection to it was lost while its ranks ran: its pod ended or was deleted, its node failed, or the network was cut", 300))},
		"agent-waits": {codes.WorkerUnreachable, running(4).with(func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now, Lines: []string{
				"mpi-agent: waiting for 2 of 4 hosts for 90 s; pi-worker-0, pi-worker-3: connection timed out",
			}}}
		})},
	})
}

// TestTime has what only time shows.
func TestTime(t *testing.T) {
	late := func(line string) scene {
		s := failed(143, line, func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(600)) })
		s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
		s.seen.Launcher.Status.Conditions[0].Message = "Job was active longer than specified deadline"
		return s
	}
	deadline := late(`step 100 loss 0.4`)
	restarted := running(2)
	restarted.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
	}}
	check(t, map[string]expect{
		"deadline": {codes.DeadlineExceeded, deadline},
		"deadline-while-waiting": {codes.DeadlineExceeded, late("mpi-agent: waiting for 1 of 4 hosts for 10 s; pi-worker-2: nothing listens (connection refused)").with(launcherLeft(agentapi.Summary{
			Code: agentapi.Unreachable, HostsExpected: 4, HostsReached: 3, Message: "Host pi-worker-2 could not be used: nothing listens at 10.244.1.9:2222 (connection refused).",
			Hosts: []agentapi.HostTrouble{{Host: "pi-worker-2", Code: agentapi.Unreachable, Message: "nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended"}},
		}, 143))},
		"deadline-log-removed": {codes.DeadlineExceeded, deadline.with(func(s *scene) {
			s.seen.LauncherPods, s.evidence.Logs = nil, nil
		}, event("Job", "pi-launcher", "SuccessfulCreate", "Created pod: pi-launcher-x2x4z"))},
		"deadline-pod-removed": {codes.DeadlineExceeded, deadline.with(func(s *scene) {
			s.seen.LauncherPods = nil
		})},
		"hangs": {codes.NoOutput, running(2).with(func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now.Add(-time.Hour), Lines: []string{"step 41"}}}
		})},
		"hangs-from-the-start": {codes.NoOutput, running(2).with(func(s *scene) {
			s.job.Lifecycle.SilentAfter = time.Minute
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {}}
			s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-2 * time.Minute))}},
			}}
		})},
		"ranks-wait":                 {codes.RanksWaiting, hanging("step 41", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0, 2, 3")},
		"ranks-wait-for-one-blocked": {codes.RanksWaiting, hanging("step 41", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 0, 2, 3; rank 1 waits for the lock of /data/index.lock")},
		"ranks-idle":                 {codes.RanksIdle, hanging("step 41", "mpi-agent: no progress: all 4 ranks are idle, since 10:00:00 UTC; sleeping: 0, 1, 2, 3")},
		"ranks-wait-in-their-code": {codes.RanksWaiting, hanging("step 41", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0, 2, 3",
			"mpi-agent: stack of rank 1: load_batch (/app/train.py:42) < main (/app/train.py:60) < <module> (/app/train.py:70)", "mpi-agent: stack of ranks 0, 2, 3: main (/app/train.py:61) < <module> (/app/train.py:70)")},
		"ranks-wait-in-their-code-trainjob": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3",
			"mpi-agent: stack of ranks 0, 1, 2, 3: Trainer.step (/workspace/train.py:61) < <module> (/workspace/train.py:70)").with(trainJob)},
		"straggler-in-its-code": {codes.Straggler, hanging("mpi-agent: no progress: 3 of 4 ranks wait for rank 1, since 10:00:00 UTC; busy: 1; polling: 0, 2, 3",
			"mpi-agent: stack of rank 1: <module> (train.py:5) | while not os.path.exists(marker):", "mpi-agent: stack of ranks 0, 2, 3: wait (train.py:9) < <module> (train.py:12) | comm.Barrier()")},
		"straggler-in-its-code-trainjob": {codes.Straggler, hanging("mpi-agent: no progress: 3 of 4 ranks wait for rank 1, since 10:00:00 UTC; busy: 1; polling: 0, 2, 3",
			"mpi-agent: stack of rank 1: <module> (train.py:5)", "mpi-agent: stack of ranks 0, 2, 3: wait (train.py:9) < <module> (train.py:12)").with(trainJob)},
		"ranks-idle-in-two-programs": {codes.RanksIdle, hanging("mpi-agent: no progress: all 2 ranks are idle, since 10:00:00 UTC; sleeping: 0, 1",
			"mpi-agent: stack of rank 0: <module> (python -c 'open('/a/b'); wait()':2) | wait()", "mpi-agent: stack of rank 1: <module> (python -c 'serve()':2)")},
		"ranks-idle-in-their-code": {codes.RanksIdle, hanging("mpi-agent: no progress: all 4 ranks are idle, since 10:00:00 UTC; sleeping: 0, 1, 2, 3",
			"mpi-agent: stack of rank 0: a (a.py:1)", "mpi-agent: stack of rank 1: b (b.py)", "mpi-agent: stack of ranks 2, 3: c (c.py:3)")},
		"rank-ended-and-others-wait": {codes.RanksWaiting, hanging("rank 1 has nothing to do", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3",
			"mpi-agent: stack of rank 1: its program has ended", "mpi-agent: stack of ranks 0, 2, 3: <module> (/app/train.py:8) | total = comm.allreduce(1)")},
		"rank-failed-and-others-wait": {codes.RankGone, hanging("Traceback (most recent call last):", "  File \"/app/train.py\", line 7, in <module>", "TypeError: 'NoneType' object is not subscriptable",
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3", "mpi-agent: stack of rank 2: its program has ended", "mpi-agent: stack of ranks 0, 1, 3: <module> (/app/train.py:9)")},
		// Ranks end while rank 0 still saves the model.
		"ranks-wait-for-one-with-a-child": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 0",
			"mpi-agent: stack of rank 0: <module> (<string>:17) | lib.MPI_Barrier(world)", "mpi-agent: stack of rank 1: <module> (<string>:14) | code = check.wait()").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", "import subprocess\ncheck = subprocess.Popen(['fetch'])"}
		})},
		"ranks-ended-and-one-saves": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; blocked: 0; polling: 1, 2, 3; rank 0 waits for a file server",
			"mpi-agent: stack of ranks 1, 2, 3: its program has ended", "mpi-agent: stack of rank 0: save (/app/train.py:80)")},
		"ranks-ended-and-one-is-blocked": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 64 ranks wait, since 10:00:00 UTC; blocked: 0; polling: 1, 2, 3, 4 and 59 more",
			"mpi-agent: stack of ranks 1, 2, 3, 4 and 59 more: its program has ended", "mpi-agent: stack of rank 0: save (/app/train.py:80)")},
		"ranks-ended-and-some-are-blocked": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; sleeping: 0; blocked: 1; polling: 2, 3",
			"mpi-agent: stack of ranks 2, 3: its program has ended", "mpi-agent: stack of ranks 0, 1: save (/app/train.py:80)")},
		"rank-ended-in-its-end": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0, 2, 3",
			"mpi-agent: stack of rank 1: its program has ended", "mpi-agent: stack of ranks 0, 2, 3: <module> (/app/train.py:8)")},
		// An exception that the program handled long before.
		"ranks-wait-long-after-an-exception": {codes.RanksWaiting, hanging("Traceback (most recent call last):", "  File \"/app/train.py\", line 7, in <module>", "ConnectionError: no answer", "retried",
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3", "mpi-agent: stack of ranks 0, 1, 2, 3: <module> (/app/train.py:9)")},
		"ranks-end-long-after-an-exception": {codes.RanksWaiting, hanging("ConnectionError: no answer", "retried",
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; blocked: 0; polling: 1, 2, 3", "mpi-agent: stack of ranks 1, 2, 3: its program has ended", "mpi-agent: stack of rank 0: save (/app/train.py:80)")},
		"ranks-wait-after-a-figure": {codes.RanksWaiting, hanging("MeanSquaredError: 0.0123", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3")},
		"ranks-wait-for-storage":    {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; blocked: 2; polling: 0, 1, 3; rank 2 waits for storage")},
		"ranks-wait-unlisted": {codes.RanksWaiting, hanging("ERROR: no shard", "mpi-agent: no progress: all 6 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3 and 2 more").with(func(s *scene) {
			launcherRuns("mpirun", "-n", "6", "solver")(&s.job)
		})},
		"ranks-wait-of-a-program-with-n": {codes.RanksWaiting, hanging("ERROR: no shard", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3").with(func(s *scene) {
			launcherRuns("mpirun", "solver", "-n", "5", "x")(&s.job)
		})},
		"rank-gone-and-others-in-their-code": {codes.RankGone, hanging("mpi-agent: no progress: Rank 1 (train) ended by signal 11 (SIGSEGV), but 3 other ranks still run, since 10:00:00 UTC",
			"mpi-agent: stack of ranks 0, 2, 3: main (/app/train.py:61)")},
		"ranks-wait-and-a-program-prints-stacks": {codes.RanksWaiting, hanging("mpi-agent: stack of rank 1: early (train.py:1)", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3",
			"mpi-agent: stack of rank 1: no call", "mpi-agent: stack of nothing: f (a.py:1)", "mpi-agent: stack of rank x: f (a.py:1)")},
		"hangs-without-agents": {codes.NoOutput, running(2).with(func(s *scene) {
			s.job.Launch = mpi.LaunchSSHD
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now.Add(-time.Hour), Lines: []string{"step 41"}}}
		})},
		"ranks-wait-without-an-interface": {codes.NoTransport, hanging("step 41", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3; btl_tcp_if_include selects ib0, pods have lo, eth0; pi-worker-1 gets no answer from 10.0.0.7:80")},
		"ranks-idle-for-a-lock":           {codes.RanksIdle, hanging("mpi-agent: no progress: the only rank is idle, since 10:00:00 UTC; blocked: 0; rank 0 waits for the lock of /data/index.lock")},
		"no-answer":                       {codes.NoAnswer, hanging("Downloading http://data.corp/x.tar", "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 0, 2, 3; pi-worker-1 gets no answer from 10.0.0.7:80")},
		"no-answer-isolated":              {codes.NoAnswer, hanging("downloading http://data.example.com/train.csv?key=abc", "mpi-agent: no progress: the only rank is idle, since 10:00:00 UTC; blocked: 0; pi-worker-0 gets no answer from 10.0.0.7:80").with(isolated)},
		"no-answer-before-mpirun":         {codes.NoAnswer, hanging("mpi-agent: no progress: the launcher gets no answer from [2001:db8::1]:80, since 10:00:00 UTC").with(isolated)},
		"no-answer-of-a-peer": {codes.RanksWaiting, hanging("mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3; pi-worker-1 gets no answer from 10.244.1.9:1024").with(func(s *scene) {
			s.seen.Workers[0].Pod.Status.PodIP = "10.244.1.9"
		})},
		"command-sleeps-after-mpi": {codes.RanksIdle, hanging("final accuracy: 0.90", "mpi-agent: no progress: mpirun ended with exit code 0, but the launcher's command continues and is idle, since 10:00:00 UTC").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-c", "mpirun -n 2 ranks; sleep infinity"}
		})},
		"command-continues-after-mpi": {codes.RanksIdle, hanging("final accuracy: 0.90", "mpi-agent: no progress: mpirun ended with exit code 0, but the launcher's command continues and is idle, since 10:00:00 UTC")},
		"rank-idle":                   {codes.RanksIdle, hanging("mpi-agent: no progress: the only rank is idle, since 10:00:00 UTC; sleeping: 0")},
		"straggler":                   {codes.Straggler, hanging("step 41", "mpi-agent: no progress: 3 of 4 ranks wait for rank 1, since 10:00:00 UTC; busy: 1; polling: 0, 2, 3")},
		"straggler-throttled":         {codes.Straggler, hanging("mpi-agent: no progress: 3 of 4 ranks wait for rank 2 (slower: pi-worker-1 is throttled 40 % of the time), since 10:00:00 UTC; busy: 2; polling: 0, 1, 3")},
		"stragglers-from-disk":        {codes.Straggler, hanging("mpi-agent: no progress: 2 of 4 ranks wait for ranks 2, 3 (slower: pi-worker-1 has 150 major page faults per second), since 10:00:00 UTC; mostly waiting: 0, 1")},
		"stragglers-without-cpu":      {codes.Straggler, hanging("mpi-agent: no progress: 2 of 4 ranks wait for ranks 2, 3 (slower: the ranks of pi-worker-1 wait for a CPU 60 % of the time), since 10:00:00 UTC; busy: 2, 3; polling: 0, 1").with(trainJob)},
		"stragglers-on-a-busy-node": {codes.Straggler, hanging("mpi-agent: no progress: 4 of 8 ranks wait for ranks 0, 2 (slower: the ranks of pi-worker-0, pi-worker-1 wait for a CPU 60 % or more of the time), since 10:00:00 UTC; mostly waiting: 4, 5, 6, 7").with(func(s *scene) {
			for _, worker := range s.seen.Workers {
				worker.Pod.Spec.NodeName = "node-7"
			}
		})},
		"stragglers-throttled":       {codes.Straggler, hanging("mpi-agent: no progress: 4 of 8 ranks wait for ranks 0, 2 (slower: pi-worker-0, pi-worker-1 are throttled 40 % of the time), since 10:00:00 UTC; mostly waiting: 4, 5, 6, 7")},
		"straggler-with-an-idle-gpu": {codes.Straggler, hanging("step 41", "mpi-agent: no progress: the GPU of rank 2 is idle while those of 3 other ranks are busy, since 10:00:00 UTC; busy: 0, 1, 3; blocked: 2")},
		"straggler-of-the-launcher":  {codes.Straggler, hanging("mpi-agent: no progress: 3 of 4 ranks wait for rank 0 (slower: the ranks of the launcher's pod wait for a CPU 60 % of the time), since 10:00:00 UTC; busy: 0; polling: 1, 2, 3")},
		"stragglers-of-two-pods":     {codes.Straggler, hanging("mpi-agent: no progress: 2 of 4 ranks wait for ranks 0, 2 (slower: pi-worker-1, the launcher's pod are throttled 40 % of the time), since 10:00:00 UTC; busy: 0, 2; polling: 1, 3")},
		"stragglers":                 {codes.Straggler, hanging("mpi-agent: no progress: 58 of 64 ranks wait for ranks 1, 2, 3, 4 and 2 more, since 10:00:00 UTC; busy: 1, 2, 3, 4 and 2 more; polling: 0, 5, 6, 7 and 54 more")},
		"rank-gone-by-an-unusual-exception": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "/app/train.py", line 7, in connect`,
			`socket.gaierror: [Errno -2] Name or service not known`, "mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3")},
		"rank-gone-before-mpi": {codes.RankGone, hanging("/scripts/run.sh: 3: cannot open /scripts/part-3.csv: No such file",
			"mpi-agent: no progress: all 3 ranks wait, since 10:00:00 UTC; blocked: 0, 1, 2").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-n", "4", "sh", "/scripts/run.sh"}
		})},
		// A collective operation in a condition, and ranks with different numbers of steps.
		"ranks-in-different-collectives": {codes.RanksWaiting, hanging("epoch=0 loss=1.0000", "mpi-agent: no progress: all 2 ranks wait, since 03:04:27 UTC; polling: 1, 0",
			"mpi-agent: stack of rank 0: save (/app/train.py:12) < <module> (/app/train.py:20) | comm.Barrier() # all ranks wait until the file exists",
			"mpi-agent: stack of rank 1: <module> (/app/train.py:17) | loss = comm.allreduce(1.0 / (epoch + 1)) / size")},
		"ranks-with-different-steps": {codes.RanksWaiting, hanging("step=40 norm=0.010", "mpi-agent: no progress: all 2 ranks wait, since 03:00:35 UTC; sleeping: 1; polling: 0",
			"mpi-agent: stack of rank 1: its program has ended", "mpi-agent: stack of rank 0: <module> (/app/train.py:16) | comm.Allreduce(gradient, total)")},
		"rank-gone-without-an-answer": {codes.NoAnswer, hanging("epoch=0 loss=1.0000",
			"mpi-agent: no progress: all 2 ranks wait, since 02:57:45 UTC; blocked: 0; polling: 1; pi-worker-0 gets no answer from 10.96.51.234:5000",
			"Traceback (most recent call last):", `  File "/usr/lib/python3.12/urllib/request.py", line 1344, in do_open`, "TimeoutError: [Errno 110] Connection timed out",
			"mpi-agent: no progress: all 2 ranks wait, since 02:59:59 UTC; blocked: 0; polling: 1", "mpi-agent: stack of rank 0: its program has ended",
			"mpi-agent: stack of rank 1: <module> (/app/train.py:19) | loss = comm.allreduce(1.0 / (epoch + 1)) / size").with(isolated)},
		"rank-gone-by-a-time-out-without-a-call": {codes.RankGone, hanging("Traceback (most recent call last):", `  File "/app/train.py", line 7, in <module>`, "TimeoutError: [Errno 110] Connection timed out",
			"mpi-agent: no progress: all 2 ranks wait, since 02:59:59 UTC; blocked: 0; polling: 1", "mpi-agent: stack of rank 0: its program has ended",
			"mpi-agent: stack of rank 1: <module> (/app/train.py:19)").with(isolated)},
		"rank-gone-long-after-a-call": {codes.RankGone, hanging("mpi-agent: no progress: all 2 ranks wait, since 02:57:45 UTC; blocked: 0; polling: 1; pi-worker-0 gets no answer from 10.96.51.234:5000",
			"Traceback (most recent call last):", `  File "/app/train.py", line 7, in <module>`, "KeyError: 'lr'",
			"mpi-agent: no progress: all 2 ranks wait, since 02:59:59 UTC; blocked: 0; polling: 1", "mpi-agent: stack of rank 0: its program has ended",
			"mpi-agent: stack of rank 1: <module> (/app/train.py:19)").with(isolated)},
		"ranks-idle-in-a-shell-script": {codes.RanksIdle, hanging("mpi-agent: no progress: all 2 ranks are idle, since 03:03:53 UTC; sleeping: 0, 1").with(func(s *scene) {
			launcherRuns("mpirun", "-n", "2", "sh", "/app/run.sh")(&s.job)
		})},
		"ranks-idle-in-a-shell": {codes.RanksIdle, hanging("mpi-agent: no progress: all 4 ranks are idle, since 10:00:00 UTC; blocked: 0, 1, 2, 3").with(func(s *scene) {
			launcherRuns("mpirun", "sh", "-ec", "until [ -e /tmp/go ]; do sleep 1; done; ranks")(&s.job)
		})},
		"rank-idle-after-its-thread-failed": {codes.RankGone, hanging("Exception in thread Thread-1 (_manager_spawn):", "Traceback (most recent call last):",
			`  File "/usr/lib/python3.12/threading.py", line 1073, in _bootstrap_inner`, "    self.run()", `  File "/usr/lib/python3/dist-packages/mpi4py/futures/_lib.py", line 605, in client_spawn`,
			`  File "mpi4py/MPI/Comm.pyx", line 1931, in mpi4py.MPI.Intracomm.Spawn`, "mpi4py.MPI.Exception: MPI_ERR_SPAWN: could not spawn processes",
			"mpi-agent: no progress: the only rank is idle, since 03:11:04 UTC; blocked: 0",
			"mpi-agent: stack of rank 0: <module> (/app/sweep.py:10) | for lr, score in pool.map(evaluate, [0.01 * i for i in range(1, 40)]):")},
		"ranks-idle-after-a-thread-failed": {codes.RankGone, hanging(strings.Split(strings.TrimSpace(retried+threadEnded)+`
mpi-agent: no progress: all 2 ranks are idle, since 03:11:04 UTC; sleeping: 0, 1
mpi-agent: stack of ranks 0, 1: <module> (/code/train.py:30) | done.get()`, "\n")...)},
		"ranks-idle-after-an-exception": {codes.RanksIdle, hanging("Traceback (most recent call last):", `  File "/app/train.py", line 7, in <module>`, "ConnectionError: no answer", "retried",
			"mpi-agent: no progress: all 2 ranks are idle, since 03:11:04 UTC; sleeping: 0, 1")},
		"rank-gone": {codes.RankGone, hanging("mpi-agent: no progress: Rank 1 (train) ended by signal 11 (SIGSEGV), but 3 other ranks still run, since 10:00:00 UTC")},
		"rank-gone-by-an-exception": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "train.py", line 3, in <module>`, `KeyError: 'lr'`,
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3")},
		"rank-gone-of-a-known-script": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "train.py", line 3, in <module>`, `KeyError: 'lr'`,
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3").with(func(s *scene) {
			launcherRuns("mpirun", "-np", "4", "--bind-to", "core", "python3", "-u", "train.py", "--lr", "0.1")(&s.job)
		})},
		"rank-gone-that-finalizes": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "train.py", line 3, in <module>`, `KeyError: 'lr'`,
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; sleeping: 2; polling: 0, 1, 3")},
		"rank-gone-with-its-traceback": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "train.py", line 3, in <module>`, `KeyError: 'lr'`,
			"mpi-agent: no progress: Rank 1 (python3) ended with code 1, but 3 other ranks still run, since 10:00:00 UTC")},
		"rank-gone-with-its-port-in-use": {codes.RankGone, hanging(`Traceback (most recent call last):`, `  File "train.py", line 3, in <module>`, `OSError: [Errno 98] Address already in use`,
			"mpi-agent: no progress: all 4 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2, 3")},
		"exception-before-a-lost-peer": {codes.ApplicationFailed, failed(1, "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nNameError: name 'learning_rate' is not defined\n"+
			"WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"lost-peer-before-an-exception": {codes.WrongInterface, failed(1, "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"+
			"mpi4py.MPI.Exception: MPI_ERR_INTERN: internal error").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
		}, 1))},
		"launcher-restarted": {codes.ApplicationFailed, restarted},
		"unknown":            {codes.Unknown, scene{job: mpitest.Job(2), seen: jobstate.Observed{Launcher: mpitest.Launcher(mpitest.Job(2), batchv1.JobFailed)}}},
		"slow-start":         {codes.SlowStart, starting(2, created(10*time.Minute), onNode("node-a")).with(event("Pod", "pi-worker-0", "Pulling", `Pulling image "quay.io/team/huge:1"`))},
	})
}

// hanging is a job that runs, with a launcher's log.
func hanging(lines ...string) scene {
	return running(2).with(func(s *scene) {
		s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now, Lines: lines}}
	})
}

// notFound is what Open MPI 4 prints if a rank's program does not exist.
func notFound(program string) string {
	return strings.ReplaceAll(`--------------------------------------------------------------------------
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 0; it may have occurred for other processes as well.

Node:       pi-worker-0
Executable: PROGRAM
--------------------------------------------------------------------------`, "PROGRAM", program)
}

// workersRun gives the workers a command of their own.
func workersRun(words ...string) func(*mpi.Job) {
	return func(j *mpi.Job) { j.Workers.Template.Spec.Containers[0].Command = words }
}

// batchVariable has MPI start its processes by a batch system.
func batchVariable(j *mpi.Job) {
	mpich(j)
	main := &j.Launcher.Template.Spec.Containers[0]
	main.Env = append(main.Env, corev1.EnvVar{Name: "HYDRA_LAUNCHER", Value: "slurm"})
}

// launcherLibraries has a path of libraries in the launcher only.
func launcherLibraries(j *mpi.Job) {
	j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LD_LIBRARY_PATH", Value: "/opt/fftw/lib"}}
}

// unreachablePair is what Open MPI prints if no transport connects two ranks.
const unreachablePair = "At least one pair of MPI processes are unable to reach each other for\nMPI communications."

// transportVariables selects Open MPI's components in both pod templates.
func transportVariables(btl string) func(*mpi.Job) {
	return func(j *mpi.Job) {
		for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
			template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMPI_MCA_pml", Value: "ob1"}, {Name: "OMPI_MCA_btl", Value: btl}}
		}
	}
}

// launcherRuns gives the launcher a command.
func launcherRuns(words ...string) func(*mpi.Job) {
	return func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Command = words }
}

// codeAt mounts a ConfigMap in all pods.
func codeAt(folder string) func(*mpi.Job) {
	return func(j *mpi.Job) {
		for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
			template.Spec.Volumes = []corev1.Volume{{Name: "code", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "train-code"}}}}}
			template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "code", MountPath: folder}}
		}
	}
}

// resultsIn has all pods keep results in a folder of a claim.
func resultsIn(folder string) func(*scene) {
	return func(s *scene) {
		for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
			template.Spec.Volumes = []corev1.Volume{{Name: "results", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
			template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "results", MountPath: "/data"}, {Name: "results", MountPath: "/results", SubPath: folder}}
		}
	}
}

// notExecuted is what Open MPI 4, or PRTE of version 5, prints if the kernel does not execute a rank's program.
func notExecuted(who, errno string) string {
	return strings.NewReplacer("WHO", who, "ERRNO", errno).Replace(`--------------------------------------------------------------------------
WHO tried to fork a new process via the "execve" system call but
failed.  WHO checks many things before attempting to launch a
child process, but nothing is perfect. This error may be indicative
of another problem on the target host, or even something as silly as
having specified a directory for your application. Your job will now
abort.

  Local host:        pi-worker-0
  Working dir:       /home/mpiuser
  Application name:  /data/run
  Error:             ERRNO
--------------------------------------------------------------------------`)
}
