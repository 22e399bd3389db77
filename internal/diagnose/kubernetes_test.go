package diagnose_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWhatKubernetesSays has a row for each way in which Kubernetes keeps a job from running.
func TestWhatKubernetesSays(t *testing.T) {
	const gpus = "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
	sidecar := running(2)
	sidecar.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed", FinishedAt: metav1.NewTime(mpitest.Now.Add(-5 * time.Minute))}}},
		{Name: "istio-proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	skewed := running(2)
	skewed.seen.Workers[1].Pod.Spec.NodeName = "node-b"
	skewed.seen.Workers[1].Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(time.Hour))}},
	}}
	lost := func(s *scene) {
		s.evidence.Nodes = []mpi.Node{{Name: "node-a", Ready: true}, {Name: "node-b"}}
	}
	cordoned := func(n *mpi.Node) { n.Unschedulable = true }
	deleted := running(2).with(event("Pod", "pi-launcher-abcde", "Killing", "Stopping container main"))
	deleted.seen.Launcher, deleted.seen.LauncherPods = nil, nil
	for _, w := range deleted.seen.Workers {
		created(time.Hour)(w.Pod)
	}

	check(t, map[string]expect{
		"quota-exhausted": {mpi.CodeQuotaExhausted, without(20, short("32", "24"))},
		"quota-exhausted-behind-others": {mpi.CodeQuotaExhausted, without(20, short("64", "24"), func(s *scene) {
			s.seen.Shortages[0].Ahead = resource.MustParse("30")
		})},
		"quota-too-small":           {mpi.CodeQuotaTooSmall, without(20, short("32", "24"), asked("40"))},
		"quota-too-small-suspended": {mpi.CodeQuotaTooSmall, without(20, short("32", "0"), asked("40"), func(s *scene) { s.job.Lifecycle.Suspended = true })},
		"image-not-found":           {mpi.CodeImagePull, starting(2, mpitest.Waiting("ErrImagePull", `failed to pull and unpack image "quay.io/nobody/nothing:1": failed to resolve reference "quay.io/nobody/nothing:1": quay.io/nobody/nothing:1: not found`))},
		"image-unauthorized": {mpi.CodeImagePull, starting(3, mpitest.Waiting("ImagePullBackOff",
			`Back-off pulling image "quay.io/nobody/nothing:1": ErrImagePull: failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`))},
		"image-registry-away": {mpi.CodeImagePull, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`))},
		"image-name-invalid":  {mpi.CodeImageName, starting(2, mpitest.Waiting("InvalidImageName", `Failed to apply default image tag "Quay.io/Team/Image": couldn't parse image name: invalid reference format: repository name must be lowercase`))},
		"secret-missing":      {mpi.CodeMissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `secret "s3-credentials" not found`))},
		"connection-missing": {mpi.CodeMissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `secret "training-data" not found`)).with(func(s *scene) {
			s.job.Connections = []string{"results", "training-data"}
		})},
		"secret-key-missing": {mpi.CodeMissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `couldn't find key AWS_KEY in Secret ns/s3-credentials`))},
		"configmap-missing":  {mpi.CodeMissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `configmap "settings" not found`))},
		"runs-as-root":       {mpi.CodeContainerCreate, starting(2, mpitest.Waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "pi-worker-0_ns(uid)", container: main)`))},
		"command-missing": {mpi.CodeProgramMissing, starting(2, mpitest.Waiting("RunContainerError",
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "sshd": executable file not found in $PATH`))},
		"oom-killed": {mpi.CodeOutOfMemory, failed(1, `ORTE has lost communication with a remote daemon.`, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")))},
		"oom-killed-and-restarted": {mpi.CodeOutOfMemory, running(2).with(worker(1, corev1.PodRunning, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
			}}
		}))},
		"evicted-for-disk": {mpi.CodeEvicted, running(4).with(
			worker(2, corev1.PodFailed, onNode("node-a"), evicted("The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi.")))},
		"evicted-for-memory": {mpi.CodeEvicted, running(4).with(
			worker(2, corev1.PodFailed, onNode("node-a"), evicted("The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container main was using 3Gi, request is 1Gi.")))},
		"evicted-by-api": {mpi.CodeEvicted, running(4).with(worker(2, corev1.PodRunning, onNode("node-a"), mpitest.Leaving, disrupted("EvictionByEvictionAPI", "Eviction API: evicting")))},
		"preempted": {mpi.CodePreempted, running(4).with(worker(2, corev1.PodRunning, onNode("node-a"), mpitest.Leaving,
			disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")))},
		"node-lost": {mpi.CodeNodeLost, running(4).with(worker(2, corev1.PodRunning, onNode("node-b")), lost)},
		"node-busy": {mpi.CodeApplicationFailed, failed(42, "rank 2 of 4").with(worker(2, corev1.PodRunning, onNode("node-b")), lost, launcherLeft(launch.Summary{
			Code: launch.RankFailed, ExitCode: new(int32(42)), Ranks: []launch.RankEnd{{Rank: 2, ExitCode: 42, Program: "solver"}},
		}, 42))},
		"node-lost-removed": {mpi.CodeNodeLost, running(4).with(worker(2, corev1.PodRunning, onNode("node-b"), mpitest.Leaving, disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")))},
		"gpus-taken": {mpi.CodeInsufficient, starting(4, unschedulable(gpus)).with(
			node("node-a", "16", "12", "4", "1"), node("node-b", "16", "16", "4", "0"))},
		"gpus-too-many": {mpi.CodeInsufficient, starting(2, unschedulable(gpus)).with(func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("8")
		}, node("node-a", "16", "12", "4", "4"), node("node-b", "16", "16", "4", "4", cordoned))},
		"gpus-none": {mpi.CodeInsufficient, starting(2, unschedulable("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")).with(
			node("node-a", "16", "12", "0", "0"), node("node-b", "16", "16", "0", "0"))},
		"cpus-too-few":    {mpi.CodeInsufficient, starting(6, unschedulable("0/2 nodes are available: 2 Insufficient cpu, 1 Insufficient memory."))},
		"no-labels-match": {mpi.CodeNoMatchingNode, starting(2, unschedulable("0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector."))},
		"tainted":         {mpi.CodeNoMatchingNode, starting(2, unschedulable("0/5 nodes are available: 5 node(s) had untolerated taint {gpu: true}."))},
		"unschedulable":   {mpi.CodeUnschedulable, starting(2, unschedulable("0/5 nodes are available: 5 node(s) didn't have free ports for the requested pod ports."))},
		"quota": {mpi.CodeQuotaExceeded, running(2).with(
			refusal("Pod", "pi-worker-1", `pods "pi-worker-1" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8`),
			func(s *scene) {
				s.seen.Workers = s.seen.Workers[:1]
				s.evidence.Quotas = []mpi.Quota{{
					Name: "team", Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("100")},
					Used: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("7"), "pods": resource.MustParse("3")},
				}}
			})},
		"quota-of-launcher": {mpi.CodeQuotaExceeded, running(2).with(func(s *scene) { s.seen.LauncherPods = nil },
			event("Job", "pi-launcher", "FailedCreate", noQuota))},
		"webhook-of-launcher": {mpi.CodeAdmissionDenied, running(2).with(func(s *scene) { s.seen.LauncherPods = nil }, made(60), denied(30))},
		"volume-pending": {mpi.CodeClaimPending, starting(2, unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: not eligible due to unbound PVCs.")).with(func(s *scene) {
			s.evidence.Claims = []mpi.Claim{{Name: "data", Phase: corev1.ClaimPending, Class: "nfs-fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}
		})},
		"volume-missing": {mpi.CodeClaimPending, starting(2, unschedulable(`0/2 nodes are available: persistentvolumeclaim "data" not found.`)).with(func(s *scene) {
			s.evidence.Claims = []mpi.Claim{{Name: "data", Missing: true}}
		})},
		"volume-elsewhere": {mpi.CodeMountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-1", "FailedAttachVolume", `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) pi-worker-0`), func(s *scene) {
				s.evidence.Claims = []mpi.Claim{{Name: "data", Phase: corev1.ClaimBound, Class: "block", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}}
			})},
		"volume-secret-missing": {mpi.CodeMissingReference, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "creds" : secret "s3-credentials" not found`))},
		"volumes-late": {mpi.CodeImagePull, starting(2, onNode("node-a"), mpitest.Waiting("ImagePullBackOff", "not found")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "mpi-agent-key" : failed to sync secret cache: timed out waiting for the condition`))},
		"pod-security": {mpi.CodePodSecurity, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true`))},
		"security-context": {mpi.CodeSCCDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount, .spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [1000650000, 1000659999]]`))},
		"webhook": {mpi.CodeAdmissionDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`admission webhook "validation.gatekeeper.sh" denied the request: [owner-label] every pod needs the label "owner"`))},
		"refused": {mpi.CodeRefused, running(2).with(refusal("Pod", "pi-worker-0", `pods "pi-worker-0" is forbidden: error looking up service account ns/trainer: serviceaccount "trainer" not found`))},
		"name-taken": {mpi.CodeNameTaken, running(2).with(func(s *scene) {
			s.evidence.Refusals = []mpi.Refusal{{Kind: "ConfigMap", Name: "pi-config", Taken: true}}
		})},
		"launcher-deleted":       {mpi.CodeLauncherDeleted, deleted},
		"launcher-being-deleted": {mpi.CodeLauncherDeleted, running(2).with(func(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) })},
		"keys-failed":            {mpi.CodeKeysFailed, running(2).with(event("MPIJob", "pi", "MPIJobFailed", "generate SSH keys: no entropy"))},
		"sidecar":                {mpi.CodeSidecar, sidecar},
		"mesh":                   {mpi.CodeServiceMesh, failed(1, `upstream connect error or disconnect/reset before headers. reset reason: connection failure`)},
		"clock-ahead":            {mpi.CodeClockSkew, skewed},
		"clock-certificate":      {mpi.CodeClockSkew, failed(1, `x509: certificate has expired or is not yet valid: current time 2026-11-21T09:00:00Z is before 2026-11-21T10:00:00Z`)},
		"crash-loop": {mpi.CodeCrashLoop, running(2).with(worker(0, corev1.PodRunning, mpitest.Waiting("CrashLoopBackOff", "back-off 40s restarting failed container"), func(pod *corev1.Pod) {
			pod.Status.Conditions = nil
			pod.Status.ContainerStatuses[0].RestartCount = 3
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}
		}))},
		"earlier-job": {mpi.CodeEarlierJob, scene{job: mpitest.Job(1), seen: mpi.Observed{Earlier: []*corev1.Pod{mpitest.Worker(mpitest.Job(1), 0, corev1.PodRunning, mpitest.Leaving, onNode("node-a")).Pod}}}},
		"launcher-often-failed": {mpi.CodeApplicationFailed, failed(1, `ModuleNotFoundError: No module named 'torch'`).with(func(s *scene) {
			s.seen.Launcher.Status.Failed = 7
			s.seen.LauncherPods[0].Status.ContainerStatuses[0].RestartCount = 6
		})},
		"deadline-for-lack-of-room": {mpi.CodeInsufficient, starting(2, unschedulable("0/2 nodes are available: 2 Insufficient cpu.")).with(func(s *scene) {
			s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobFailed)
			s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
		})},
	})
}

// without is a job of so many workers that has no pods yet.
func without(workers int32, change ...func(*scene)) scene {
	s := running(workers)
	s.seen = mpi.Observed{}
	return s.with(change...)
}

// short has a quota lack GPUs for a job of 20 workers with one each.
func short(hard, used string) func(*scene) {
	return func(s *scene) {
		s.seen.Shortages = []mpi.Shortage{{
			Quota: "team-a", Resource: "requests.nvidia.com/gpu", Asked: resource.MustParse("20"), Hard: resource.MustParse(hard), Used: resource.MustParse(used),
			By: []mpi.Share{{Role: mpi.RoleWorker, Count: 20, Each: resource.MustParse("1")}},
		}}
	}
}

// asked has the workers ask for two each, so much in all.
func asked(all string) func(*scene) {
	return func(s *scene) {
		s.seen.Shortages[0].Asked, s.seen.Shortages[0].By[0].Each = resource.MustParse(all), resource.MustParse("2")
	}
}
