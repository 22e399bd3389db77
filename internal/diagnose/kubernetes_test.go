package diagnose_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
)

// nfsMount begins the kubelet's message about an NFS volume that cannot be mounted.
const nfsMount = "MountVolume.SetUp failed for volume \"data\" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs "

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
		s.evidence.Nodes = []jobstate.Node{{Name: "node-a", Ready: true}, {Name: "node-b"}}
	}
	cordoned := func(n *jobstate.Node) { n.Unschedulable = true }
	deleted := running(2).with(event("Pod", "pi-launcher-abcde", "Killing", "Stopping container main"))
	deleted.seen.Launcher, deleted.seen.LauncherPods = nil, nil
	for _, w := range deleted.seen.Workers {
		created(time.Hour)(w.Pod)
	}

	deletedWorker := running(4).with(launcherRanFor(time.Minute), worker(1, corev1.PodRunning, ranFor(time.Minute), deletedBefore(time.Second)))
	lostWorker := func(change ...func(*scene)) scene { return failed(1, "").with(loses("pi-worker-1")).with(change...) }

	check(t, map[string]expect{
		"quota-exhausted":              {codes.QuotaExhausted, without(20, short("32", "24"))},
		"quota-exhausted-of-train-job": {codes.QuotaExhausted, without(20, short("32", "24")).with(trainJob, func(s *scene) { s.job.Gated = true })},
		"quota-exhausted-behind-others": {codes.QuotaExhausted, without(20, short("64", "24"), func(s *scene) {
			s.seen.Shortages[0].Ahead = resource.MustParse("30")
		})},
		"quota-too-small":               {codes.QuotaTooSmall, without(20, short("32", "24"), asked("40"))},
		"quota-too-small-suspended":     {codes.QuotaTooSmall, without(20, short("32", "0"), asked("40"), func(s *scene) { s.job.Lifecycle.Suspended = true })},
		"image-not-found":               {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull", `failed to pull and unpack image "quay.io/nobody/nothing:1": failed to resolve reference "quay.io/nobody/nothing:1": quay.io/nobody/nothing:1: not found`))},
		"image-not-found-at-port-40125": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull", `failed to resolve image: 127.0.0.1:40125/team/trian:1: not found`))},
		"image-not-found-named-denied": {codes.ImagePullFailed, starting(2, func(pod *corev1.Pod) {
			mpitest.Waiting("ErrImagePull", `failed to resolve image: quay.io/denied/pi:401: not found`)(pod)
			pod.Status.ContainerStatuses[0].Image = "quay.io/denied/pi:401"
		})},
		"image-for-another-cpu": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`failed to pull and unpack image "quay.io/team/train:1": no match for platform in manifest: not found`))},
		"image-for-another-cpu-by-cri-o": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`choosing image instance: no image found in manifest list for architecture "arm64", variant "v8", OS "linux"`))},
		"image-for-another-cpu-by-cri-o-1.33": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"`))},
		"image-registry-not-trusted": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`failed to resolve reference "registry.corp/train:1": failed to do request: Head "https://registry.corp/v2/train/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority`))},
		"image-registry-without-tls": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`failed to do request: Head "https://registry.corp:5000/v2/train/manifests/1": http: server gave HTTP response to HTTPS client`))},
		"image-too-large-for-the-node": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ErrImagePull",
			`failed to extract layer sha256:0123: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/7/fs/opt/x: no space left on device`))},
		"image-name-without-registry": {codes.ImagePullFailed, starting(2, mpitest.Waiting("ImageInspectError",
			`short name mode is enforcing, but image name train:1 returns ambiguous list`))},
		"image-unauthorized": {codes.ImagePullFailed, starting(3, mpitest.Waiting("ImagePullBackOff",
			`Back-off pulling image "quay.io/nobody/nothing:1": ErrImagePull: failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`))},
		"image-registry-away-and-no-pull-secret": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`)).with(
			event("Pod", "pi-worker-0", "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (team-login); attempting to pull the image may not succeed."))},
		"image-registry-away": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`))},
		"image-registry-away-and-no-tag": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`), func(pod *corev1.Pod) {
			for i := range pod.Status.ContainerStatuses {
				pod.Status.ContainerStatuses[i].Image = "registry.example.com:5000/team/train"
			}
		})},
		"image-registry-away-for-all": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`)).with(registryFails)},
		"image-rate-limit-for-all":    {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `429 Too Many Requests - toomanyrequests: You have reached your pull rate limit.`)).with(registryFails)},
		"image-always-pulled": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImagePull", `dial tcp: lookup registry.example.com: no such host`)).with(func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		})},
		"image-never-pulled": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImageNeverPull", `Container image "quay.io/team/train:1" is not present with pull policy of Never`))},
		"image-tag-of-the-workers-alone": {codes.ImagePullFailed, starting(1, mpitest.Waiting("ErrImageNeverPull", `Container image "quay.io/nobody/nothing:1" is not present with pull policy of Never`)).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Name, s.job.Launcher.Template.Spec.Containers[0].Image = "main", "quay.io/nobody/nothing:dev"
			s.job.Workers.Template.Spec.Containers[0].Image = "quay.io/nobody/nothing:1"
			s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "quay.io/nobody/nothing:dev", ImageID: "sha256:1"}}
		})},
		"image-name-invalid": {codes.InvalidImageName, starting(2, mpitest.Waiting("InvalidImageName", `Failed to apply default image tag "Quay.io/Team/Image": couldn't parse image name: invalid reference format: repository name must be lowercase`))},
		"secret-missing":     {codes.MissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `secret "s3-credentials" not found`))},
		"connection-missing": {codes.MissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `secret "training-data" not found`)).with(func(s *scene) {
			s.job.Connections = []string{"results", "training-data"}
		})},
		"secret-key-missing": {codes.MissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `couldn't find key AWS_KEY in Secret ns/s3-credentials`))},
		"secret-key-missing-in-a-variable": {codes.MissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `couldn't find key AWS_KEY in Secret ns/s3-credentials`)).with(func(s *scene) {
			main := &s.job.Workers.Template.Spec.Containers[0]
			main.Env = append(main.Env, corev1.EnvVar{Name: "AWS_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "s3-credentials"}, Key: "AWS_KEY",
			}}})
		})},
		"configmap-missing":            {codes.MissingReference, starting(2, mpitest.Waiting("CreateContainerConfigError", `configmap "settings" not found`))},
		"runs-as-root":                 {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "pi-worker-0_ns(uid)", container: main)`))},
		"runs-as-root-by-its-template": {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("CreateContainerConfigError", `container's runAsUser breaks non-root policy (pod: "pi-worker-0_ns(uid)", container: main)`))},
		"runs-as-a-user-with-a-name":   {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (mpiuser), cannot verify user is non-root (pod: "pi-worker-0_ns(uid)", container: main)`))},
		"command-missing": {codes.ProgramMissing, starting(2, mpitest.Waiting("RunContainerError",
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "sshd": executable file not found in $PATH`))},
		"command-missing-by-crun": {codes.ProgramMissing, starting(2, mpitest.Waiting("CreateContainerError",
			"container create failed: executable file `sshd` not found in $PATH: No such file or directory"))},
		"interpreter-missing-by-runc": {codes.ProgramMissing, starting(2, mpitest.Waiting("RunContainerError", `failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec /app/run.sh: no such file or directory`))},
		"node-without-driver": {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("RunContainerError",
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'
nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown`))},
		"node-without-driver-for-no-gpu": {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("RunContainerError",
			`error running prestart hook #0: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown`)).with(func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Resources.Limits = nil
		})},
		"node-with-an-older-driver": {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("RunContainerError",
			`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error running prestart hook #0: exit status 1, stdout: , stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver to a newer version, or use an earlier cuda container: unknown`))},
		"seccomp-profile-missing": {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("CreateContainerError",
			`failed to generate seccomp spec opts: failed to load seccomp profile "/var/lib/kubelet/seccomp/profiles/x.json": open /var/lib/kubelet/seccomp/profiles/x.json: no such file or directory`))},
		"device-gone": {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("RunContainerError",
			`failed to generate spec: failed to generate spec: error gathering device information while adding custom device "/dev/infiniband/uverbs0": no such file or directory`))},
		"device-gone-when-it-started": {codes.ContainerCreateFailed, failed(1, `ORTE has lost communication with a remote daemon.`).with(
			worker(0, corev1.PodFailed, onNode("node-a"), mpitest.Exited(128, "StartError"), func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].State.Terminated.Message = `error gathering device information while adding custom device "/dev/nvidia3": no such file or directory`
			}))},
		"oom-killed": {codes.OutOfMemory, failed(1, `ORTE has lost communication with a remote daemon.`, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")))},
		"oom-killed-with-a-volume-in-memory": {codes.OutOfMemory, failed(1, `ORTE has lost communication with a remote daemon.`, sshd).with(worker(1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")), func(s *scene) {
			spec := &s.job.Workers.Template.Spec
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "shm", MountPath: "/dev/shm"})
		})},
		"oom-killed-and-restarted": {codes.OutOfMemory, running(2).with(worker(1, corev1.PodRunning, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
			}}
		}))},
		"evicted-for-disk": {codes.Evicted, running(4).with(
			worker(2, corev1.PodFailed, onNode("node-a"), evicted("The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi.")))},
		"evicted-for-its-limit-yet-alive": {codes.Evicted, failed(143, `ORTE has lost communication with a remote daemon.`).with(
			worker(1, corev1.PodRunning, onNode("node-a"), mpitest.Leaving),
			event("Pod", "pi-worker-1", "Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 50Mi. "))},
		"evicted-for-its-volume":  {codes.Evicted, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), evicted(`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `)))},
		"evicted-for-a-container": {codes.Evicted, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), evicted(`Container main exceeded its local ephemeral storage limit "2Gi". `)))},
		"evicted-for-memory": {codes.Evicted, running(4).with(
			worker(2, corev1.PodFailed, onNode("node-a"), evicted("The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container main was using 3Gi, request is 1Gi.")))},
		"evicted-by-kueue": {codes.Evicted, running(4).with(worker(2, corev1.PodFailed, onNode("node-a"), func(pod *corev1.Pod) {
			disrupted("UnschedulableOnAssignedNode", "Pod terminated by Kueue NodeController due to node taint")(pod)
			pod.Status.Conditions[0].Type = "TerminatedByKueue"
		}))},
		"evicted-by-api": {codes.Evicted, running(4).with(worker(2, corev1.PodRunning, onNode("node-a"), mpitest.Leaving, disrupted("EvictionByEvictionAPI", "Eviction API: evicting")))},
		"preempted": {codes.Preempted, running(4).with(worker(2, corev1.PodRunning, onNode("node-a"), mpitest.Leaving,
			disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")))},
		"refused-to-job-set": {codes.ObjectRefused, running(2).with(trainJob, withoutJobs, event("JobSet", "pi", "JobCreationFailed",
			`job "pi-node-0" creation failed with error: Job.batch "pi-node-0" is invalid: spec.template.spec.containers[0].resources.requests: Invalid value: "-1": must be greater than or equal to 0`))},
		"mounted-onto-a-file":               {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("RunContainerError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error mounting "/var/lib/kubelet/pods/0e3a/volumes/kubernetes.io~configmap/code" to rootfs at "/usr/local/bin/train.py": mount /var/lib/kubelet/pods/0e3a/volumes/kubernetes.io~configmap/code:/usr/local/bin/train.py (via /proc/self/fd/6), flags: 0x5001: not a directory`)).with(func(s *scene) { codeAt("/usr/local/bin/train.py")(&s.job) })},
		"mounted-within-a-read-only-volume": {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("RunContainerError", `runc create failed: unable to start container process: error during container init: error mounting "/var/lib/kubelet/pods/0e3a/volumes/kubernetes.io~empty-dir/out" to rootfs at "/code/out": create mountpoint for /code/out mount: make mountpoint "/code/out": mkdirat /run/containerd/rootfs/code/out: read-only file system`)).with(func(s *scene) { codeAt("/code/out")(&s.job) })},
		"folder-not-created":                {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("CreateContainerConfigError", `failed to create subPath directory for volumeMount "results" of container "main"`)).with(resultsIn("train"))},
		"folder-not-opened":                 {codes.ContainerCreateFailed, starting(2, onNode("node-a"), mpitest.Waiting("CreateContainerConfigError", `failed to prepare subPath for volumeMount "shared" of container "main"`)).with(resultsIn("train"))},
		"refused-patch-of-no-job": {codes.ObjectRefused, running(2).with(trainJob, withoutJobs, event("JobSet", "pi", "JobCreationFailed",
			`job "pi-worker-0" creation failed with error: Job.batch "pi-worker-0" is invalid: spec.template.spec.containers[0].image: Required value`))},
		"refused-to-trainer": {codes.ObjectRefused, running(2).with(trainJob, withoutJobs, event("TrainJob", "pi", "TrainJobResourcesCreationFailed",
			`TrainJob resources reconciliation failed: jobsets.jobset.x-k8s.io "pi" is forbidden: User "system:serviceaccount:trainer:trainer" cannot patch resource "jobsets"`))},
		"refused-to-trainer-by-webhook": {codes.AdmissionDenied, running(2).with(trainJob, withoutJobs, event("TrainJob", "pi", "TrainJobResourcesCreationFailed",
			`TrainJob resources reconciliation failed: admission webhook "vjobset.kb.io" denied the request: the name is too long`))},
		"webhook-away-for-trainer": {codes.WebhookUnreachable, running(2).with(trainJob, withoutJobs, event("TrainJob", "pi", "TrainJobResourcesCreationFailed",
			`TrainJob resources reconciliation failed: Internal error occurred: failed calling webhook "jobs.example.com": failed to call webhook: Post "https://gone.eyes.svc:443/?timeout=10s": service "gone" not found`))},
		"rejected-sysctl": {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`)))},
		"rejected-apparmor": {codes.PodRejected, running(4).with(
			worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("AppArmor", `Cannot enforce AppArmor: profile "mpi" is not loaded`)),
			worker(3, corev1.PodFailed, onNode("node-b"), rejectedFor("AppArmor", `Cannot enforce AppArmor: profile "mpi" is not loaded`)))},
		"rejected-without-room": {codes.PodRejected, running(4).with(
			worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 1, capacity: 2")))},
		"rejected-by-device-plugin": {codes.PodRejected, running(4).with(
			worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected")))},
		"rejected-for-numa":     {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("TopologyAffinityError", "Resources cannot be allocated with Topology locality")))},
		"rejected-for-its-node": {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")))},
		"rejected-for-its-os":   {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")))},
		"rejected-at-shutdown":  {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("NodeShutdown", "Pod was rejected as the node is shutting down.")))},
		"rejected-unknown":      {codes.PodRejected, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("SomethingNew", "the node does not like it")))},
		"rejected-launcher": {codes.PodRejected, failed(1, "").with(func(s *scene) {
			s.seen.LauncherPods[0] = mpitest.LauncherPod(s.job, 0, corev1.PodFailed, onNode("node-a"), rejectedFor("SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`))
			s.evidence.Logs = nil
		})},
		"rejected-worker-then-launcher-stopped": {codes.PodRejected, running(4).with(trainJob, olderWorkers,
			worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor("SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`)),
			func(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) }, event("Pod", "pi-launcher-0", "Killing", "Stopping container main"))},
		"pod-deadline": {codes.PodDeadlineExceeded, running(4, func(j *mpi.Job) { j.Workers.Template.Spec.ActiveDeadlineSeconds = new(int64(20)) }).with(worker(1, corev1.PodFailed, onNode("node-a"), pastDeadline))},
		"pod-deadline-then-launcher-stopped": {codes.PodDeadlineExceeded, running(4).with(trainJob, olderWorkers,
			worker(1, corev1.PodFailed, onNode("node-a"), pastDeadline),
			func(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) }, event("Pod", "pi-launcher-0", "Killing", "Stopping container main"))},
		"evicted-in-an-earlier-try": {codes.ApplicationFailed, failed(7, "").with(func(s *scene) {
			s.seen.LauncherPods = []*corev1.Pod{
				mpitest.LauncherPod(s.job, 0, corev1.PodFailed, evicted("The node was low on resource: ephemeral-storage."), mpitest.Exited(137, "Error")),
				mpitest.LauncherPod(s.job, 1, corev1.PodFailed, mpitest.Exited(7, "Error")),
			}
		})},
		"evicted-and-tried-again": {codes.Evicted, running(4).with(func(s *scene) {
			s.seen.LauncherPods = []*corev1.Pod{
				mpitest.LauncherPod(s.job, 0, corev1.PodFailed, evicted("The node was low on resource: ephemeral-storage."), mpitest.Exited(137, "Error")),
				mpitest.LauncherPod(s.job, 1, corev1.PodPending),
			}
		})},
		"node-shut-down": {codes.Evicted, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."), mpitest.Exited(143, "Error")))},
		"deadline-while-no-node-matches": {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")).with(olderWorkers, func(s *scene) {
			s.job.Lifecycle.Deadline = new(int64(20))
			s.seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-20 * time.Second)}
			mpitest.Leaving(s.seen.LauncherPods[0])
		}, event("Pod", "pi-launcher-0", "Killing", "Stopping container main"))},
		"deadline-of-train-job": {codes.DeadlineExceeded, scene{job: mpitest.Job(2, func(j *mpi.Job) {
			withResources(j)
			j.Kind, j.External, j.Lifecycle.Deadline = mpi.KindTrainJob, true, new(int64(20))
			j.Recorded.Finish = &mpi.Finish{Reason: "DeadlineExceeded", Message: "TrainJob exceeded its active deadline", At: mpitest.Now}
		})}},
		"deadline-of-train-job-whose-launcher-failed": {codes.DeadlineExceeded, failed(143, "step 7").with(trainJob, func(s *scene) {
			s.job.Lifecycle.Deadline = new(int64(20))
			s.job.Recorded.Finish = &mpi.Finish{Reason: "DeadlineExceeded", Message: "TrainJob exceeded its active deadline", At: mpitest.Now}
		})},
		"launcher-deleted-while-no-node-matches": {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")).with(olderWorkers,
			func(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) })},
		"node-missing":                  {codes.NodeMissing, running(4, func(j *mpi.Job) { j.Workers.Template.Spec.NodeName = "node-x" }).with(worker(2, corev1.PodFailed, onNode("node-x"), neverReported, mpitest.Leaving, disrupted("DeletionByPodGC", "PodGC: node no longer exists")))},
		"node-missing-yet":              {codes.NodeMissing, starting(2, onNode("node-x")).with(workersOn("node-x"), nodes(jobstate.Node{Name: "node-x", Missing: true}))},
		"node-silent-since-before":      {codes.NodeLost, starting(2, onNode("node-x")).with(workersOn("node-x"), nodes(jobstate.Node{Name: "node-x"}))},
		"node-removed-before-the-start": {codes.NodeLost, starting(2, onNode("node-x")).with(nodes(jobstate.Node{Name: "node-x", Missing: true}))},
		"node-lost":                     {codes.NodeLost, running(4).with(worker(2, corev1.PodRunning, onNode("node-b")), lost)},
		"node-lost-after-the-launcher": {codes.NodeLost, running(4).with(trainJob, worker(2, corev1.PodRunning, onNode("node-b")), lost, func(s *scene) {
			endedWell(time.Minute)(s.seen.LauncherPods[0])
			s.seen.LauncherPods[0].Status.Phase = corev1.PodSucceeded
			s.job.Recorded.Finish = &mpi.Finish{Reason: "JobsFailed", Message: "jobset failed due to one or more job failures", At: mpitest.Now}
		})},
		"node-busy": {codes.ApplicationFailed, failed(42, "rank 2 of 4").with(worker(2, corev1.PodRunning, onNode("node-b")), lost, launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(42)), Ranks: []agentapi.RankEnd{{Rank: 2, ExitCode: 42, Program: "solver"}},
		}, 42))},
		"node-lost-removed": {codes.NodeLost, running(4).with(worker(2, corev1.PodRunning, onNode("node-b"), mpitest.Leaving, disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")))},
		"gpus-taken": {codes.InsufficientResources, starting(4, unschedulable(gpus)).with(
			node("node-a", "16", "12", "4", "1"), node("node-b", "16", "16", "4", "0"))},
		"gpus-too-many": {codes.InsufficientResources, starting(2, unschedulable(gpus)).with(func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("8")
		}, node("node-a", "16", "12", "4", "4"), node("node-b", "16", "16", "4", "4", cordoned))},
		"gpus-none": {codes.InsufficientResources, starting(2, unschedulable("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")).with(
			node("node-a", "16", "12", "0", "0"), node("node-b", "16", "16", "0", "0"))},
		"cpus-too-few":    {codes.InsufficientResources, starting(6, unschedulable("0/2 nodes are available: 2 Insufficient cpu, 1 Insufficient memory."))},
		"no-labels-match": {codes.NoMatchingNode, starting(2, unschedulable("0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector."))},
		"no-label-matches": {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")).with(func(s *scene) {
			s.job.Workers.Template.Spec.NodeSelector = map[string]string{"disk": "ssd", "gpu": "h100"}
			s.evidence.Nodes = []jobstate.Node{{Name: "node-a", Ready: true, Labels: map[string]string{"disk": "ssd"}}, {Name: "node-b", Ready: true, Labels: map[string]string{"gpu": "a100"}}}
		})},
		"no-label-matches-unknown-nodes": {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")).with(func(s *scene) {
			s.job.Workers.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		})},
		"volume-by-name-missing": {codes.VolumeClaimPending, starting(2, unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "dataset", Phase: corev1.ClaimPending, Static: true, Volume: "pv-dataset", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}
		})},
		"volume-without-a-class": {codes.VolumeClaimPending, starting(2, unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "dataset", Phase: corev1.ClaimPending, Static: true, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}
		})},
		"volume-class-missing": {codes.VolumeClaimPending, starting(2, unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: not eligible due to unbound PVCs.")).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "data", Phase: corev1.ClaimPending, Class: "nfs-fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Problem: `storageclass.storage.k8s.io "nfs-fast" not found`}}
		})},
		"image-signature-refused": {codes.ImagePullFailed, starting(2, mpitest.Waiting("SignatureValidationFailed",
			"image pull failed for quay.io/nobody/nothing:1 because the signature validation failed: Source image rejected: A signature was required, but no signature exists"))},
		"image-volume-not-mounted":  {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("ImageVolumeMountFailed", "mount image volume agent: layer not known"))},
		"read-only-not-recursive":   {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("RROUnsupported", "recursive read-only mounts are not supported by the runtime"))},
		"container-new-reason":      {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("SomethingNewFailed", ""))},
		"node-network-not-ready":    {codes.ContainerCreateFailed, starting(1, onNode("node-a"), created(time.Hour)).with(event("Pod", "pi-worker-0", "NetworkNotReady", "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"))},
		"devices-not-prepared":      {codes.ContainerCreateFailed, starting(1, onNode("node-a"), created(time.Hour)).with(event("Pod", "pi-worker-0", "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.example.com is not registered"))},
		"device-tainted":            {codes.Evicted, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), disrupted("DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"), mpitest.Exited(137, "Error")))},
		"taken-away-for-new-reason": {codes.Evicted, running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), disrupted("DeletionByMaintenance", "the node is drained for maintenance"), mpitest.Exited(137, "Error")))},
		"volume-in-another-zone":    {codes.NoMatchingNode, starting(2, unschedulable("0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) didn't match PersistentVolume's node affinity. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."))},
		"volume-of-claim-is-gone":   {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."))},
		"excluded-by-other-pods":    {codes.Unschedulable, starting(2, unschedulable("0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) didn't satisfy existing pods anti-affinity rules."))},
		"excluded-by-its-own-workers": {codes.Unschedulable, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.")).with(func(s *scene) {
			s.job.Workers.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}}}
		})},
		"claim-of-one-pod":            {codes.Unschedulable, starting(2, unschedulable("0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod."))},
		"not-the-named-node":          {codes.NoMatchingNode, starting(2, unschedulable("0/2 nodes are available: 2 node(s) didn't match the requested node name."))},
		"tainted":                     {codes.NoMatchingNode, starting(2, unschedulable("0/5 nodes are available: 5 node(s) had untolerated taint {gpu: true}."))},
		"unschedulable-too-many-pods": {codes.Unschedulable, starting(2, unschedulable("0/5 nodes are available: 5 Too many pods."))},
		"unschedulable":               {codes.Unschedulable, starting(2, unschedulable("0/5 nodes are available: 5 node(s) didn't have free ports for the requested pod ports."))},
		"anti-affinity":               {codes.NoMatchingNode, running(2).with(worker(1, corev1.PodPending, unschedulable("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")))},
		// The launcher's agent waits for the pod's address as long as the operator waits for its node.
		"anti-affinity-and-agent-waits": {codes.NoMatchingNode, running(2).with(worker(1, corev1.PodPending, created(6*time.Minute), unschedulable("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.")), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now, Lines: []string{
				"mpi-agent: waiting for 1 of 2 hosts for 350 s; pi-worker-1: its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing",
			}}}
		})},
		"spread-over-a-label-that-no-node-has": {codes.NoMatchingNode, running(2, func(j *mpi.Job) {
			j.Workers.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway}, {TopologyKey: "topology.kubernetes.io/rack", WhenUnsatisfiable: corev1.DoNotSchedule},
			}
		}).with(worker(1, corev1.PodPending, unschedulable("0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label). preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")))},
		"gated":                  {codes.SchedulingGated, running(2, gatedBy("example.com/approval")).with(worker(1, corev1.PodPending, created(time.Minute), heldByGate))},
		"gated-by-others":        {codes.SchedulingGated, running(2).with(worker(1, corev1.PodPending, created(time.Minute), heldByGate))},
		"volume-not-provisioned": {codes.VolumeClaimPending, starting(2, created(2*time.Minute)).with(unprovisioned)},
		"volume-not-provisioned-in-time": {codes.VolumeClaimPending, starting(2, created(12*time.Minute), func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: `running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded`,
			}}
		}).with(unprovisioned)},
		"initializer-failed": {codes.ApplicationFailed, initializing("dataset-initializer", mpitest.Exited(1, "Error"),
			"Traceback (most recent call last):", `  File "/app/main.py", line 9, in <module>`, "huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/datasets/a/b")},
		"initializer-of-a-wrong-address":  {codes.ApplicationFailed, initializing("model-initializer", mpitest.Exited(1, "Error"), "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error.")},
		"initializer-without-a-way":       {codes.ApplicationFailed, initializing("model-initializer", mpitest.Exited(1, "Error"), "requests.exceptions.ConnectionError: HTTPConnectionPool(host='data.example', port=80): Max retries exceeded with url: /x")},
		"initializer-out-of-memory":       {codes.OutOfMemory, initializing("dataset-initializer", mpitest.Exited(137, "OOMKilled"), "downloading 3 of 9")},
		"initializer-without-its-image":   {codes.ImagePullFailed, preparing("dataset-initializer", mpitest.Waiting("ErrImagePull", `failed to resolve reference "quay.io/nobody/nothing:1": quay.io/nobody/nothing:1: not found`))},
		"initializer-without-a-node":      {codes.InsufficientResources, preparing("model-initializer", unschedulable("0/2 nodes are available: 2 Insufficient cpu."))},
		"initializer-without-its-claim":   {codes.VolumeClaimPending, preparing("model-initializer", unschedulable(`0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found.`)).with(unprovisioned)},
		"initializer-without-its-secret":  {codes.MissingReference, preparing("dataset-initializer", mpitest.Waiting("CreateContainerConfigError", `secret "hf-token" not found`))},
		"initializer-without-its-volume":  {codes.MissingReference, preparing("dataset-initializer", onNode("node-a")).with(event("Pod", "pi-dataset-initializer-0-0-abcde", "FailedMount", `MountVolume.SetUp failed for volume "login" : secret "s3-login" not found`))},
		"initializer-without-a-scheduler": {codes.NoScheduler, preparing("dataset-initializer", created(time.Minute), func(pod *corev1.Pod) { pod.Spec.SchedulerName = "volcano" })},
		"no-scheduler": {codes.NoScheduler, running(2, func(j *mpi.Job) { j.Workers.Template.Spec.SchedulerName = "volcano" }).with(
			worker(0, corev1.PodPending, created(time.Minute)), worker(1, corev1.PodPending, created(time.Minute)),
		)},
		"gated-for-long": {codes.SchedulingGated, running(2, gatedBy("example.com/approval")).with(worker(1, corev1.PodPending, created(time.Hour), heldByGate))},
		"claims-missing": {codes.MissingReference, running(2, func(j *mpi.Job) {
			j.Workers.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("shared-gpu")}, {Name: "nic", ResourceClaimTemplateName: new("roce")}}
		}).with(worker(0, corev1.PodPending, created(time.Minute)), worker(1, corev1.PodPending, created(time.Minute)))},
		"no-scheduler-for-long": {codes.NoScheduler, running(2, func(j *mpi.Job) { j.Workers.Template.Spec.SchedulerName = "volcano" }).with(
			worker(0, corev1.PodPending, created(time.Hour)), worker(1, corev1.PodPending, created(time.Hour)),
		)},
		"readiness": {codes.WorkersNotReady, running(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }).with(
			func(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil },
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Readiness probe failed: dial tcp 10.2.3.4:8080: connect: connection refused"),
		)},
		"readiness-without-output": {codes.WorkersNotReady, running(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }).with(
			func(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil },
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Readiness probe failed: "),
			func(s *scene) {
				probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/ready"}}}}
				s.job.Workers.Template.Spec.Containers[0].ReadinessProbe = probe
			},
		)},
		"readiness-without-output-with-a-secret": {codes.WorkersNotReady, running(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }).with(
			func(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil },
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Readiness probe failed: "),
			func(s *scene) {
				probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"mysqladmin", "ping", "--password=hunter2"}}}}
				s.job.Workers.Template.Spec.Containers[0].ReadinessProbe = probe
			},
			masksAll,
		)},
		"startup-probe-not-executed-before-the-launcher": {codes.WorkersNotReady, running(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }).with(
			func(s *scene) { s.seen.Launcher, s.seen.LauncherPods = nil, nil },
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)), event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored and resulted in Unknown state: "+runcLacks),
		)},
		"startup-probe-not-executed": {codes.ProbeFailed, running(2).with(
			worker(0, corev1.PodRunning, notReadyFor(time.Minute)), worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-0", "Unhealthy", "(combined from similar events): Startup probe errored: "+runcLacks),
			event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored and resulted in Unknown state: "+runcLacks),
		)},
		"readiness-probe-not-executed": {codes.ProbeFailed, running(2).with(
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Readiness probe errored and resulted in Unknown state: rpc error: code = Unknown desc = command error: executable file `ready` not found in $PATH: No such file or directory, stdout: , stderr: , exit code -1"),
		)},
		"startup-probe-of-a-port-without-number": {codes.ProbeFailed, running(2).with(
			worker(1, corev1.PodRunning, notReadyFor(time.Minute)),
			event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored and resulted in Unknown state: port \"health\" not found"),
		)},
		"startup-probe-of-a-sidecar-not-executed": {codes.ProbeFailed, running(2).with(
			worker(1, corev1.PodPending, created(time.Minute), onNode("node-a"), func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", Started: new(false), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-50 * time.Second))}}}}
			}),
			event("Pod", "pi-worker-1", "Unhealthy", "Startup probe errored and resulted in Unknown state: "+strings.Replace(runcLacks, "stat /opt/ready: no such file or directory", "permission denied", 1)),
		)},
		"liveness-probe-not-executed": {codes.ProbeFailed, running(2).with(event("Pod", "pi-worker-1", "Unhealthy", "Liveness probe errored and resulted in Unknown state: "+runcLacks))},
		"init-container-is-awaited": {codes.SlowStart, running(2).with(worker(1, corev1.PodPending, created(90*time.Second), onNode("node-a"), func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-for-db", Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-85 * time.Second))}}}}
		}), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-launcher-0": {LastAt: mpitest.Now, Lines: []string{
				"mpi-agent: waiting for 1 of 2 hosts for 79 s; pi-worker-1: nothing listens at pi-worker-1.pi.ns.svc:2222 (connection refused): its container has not started, or ended",
			}}}
		})},
		"init-container-works": {codes.SlowStart, running(2).with(worker(1, corev1.PodPending, created(90*time.Second), onNode("node-a"), func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch-data", Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-80 * time.Second))}}}}
		}), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {LastAt: mpitest.Now, Lines: []string{"waiting for features.data.svc", "nslookup: can't resolve 'features.data.svc'"}}}
		})},
		"memory-limit-for-no-process": {codes.ContainerCreateFailed, running(2).with(func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200m")}
		}, worker(1, corev1.PodFailed, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 128, Reason: "StartError", Message: "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: " +
					"error setting cgroup config for procHooks process: unable to set memory limit to 1 (current usage: 2297856, peak usage: 2519040)",
			}}}}
		}))},
		"hook-failed": {codes.ContainerCreateFailed, running(2, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "cp /licenses/solver.lic /tmp"}}}}
		}).with(
			worker(1, corev1.PodFailed, mpitest.Exited(137, "Error")),
			event("Pod", "pi-worker-1", "FailedPostStartHook", "PostStartHook failed"), event("Pod", "pi-worker-1", "Killing", "FailedPostStartHook"),
		)},
		"sidecar-failed":                   {codes.SidecarFailed, running(2).with(beside(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 2))},
		"sidecar-failed-the-pod":           {codes.SidecarFailed, failed(1, "").with(beside(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, 2))},
		"sidecar-failed-after-the-program": {codes.ApplicationFailed, failed(1, "").with(beside(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}, 2))},
		"quota": {codes.QuotaExceeded, running(2).with(
			refusal("Pod", "pi-worker-1", `pods "pi-worker-1" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8`),
			func(s *scene) {
				s.seen.Workers = s.seen.Workers[:1]
				s.evidence.Quotas = []quota.Quota{{
					Name: "team", Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("100")},
					Used: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("7"), "pods": resource.MustParse("3")},
				}}
			})},
		"quota-of-launcher": {codes.QuotaExceeded, running(2).with(func(s *scene) { s.seen.LauncherPods = nil },
			event("Job", "pi-launcher", "FailedCreate", noQuota))},
		"webhook-of-launcher": {codes.AdmissionDenied, running(2).with(func(s *scene) { s.seen.LauncherPods = nil }, made(60), denied(30))},
		"volume-pending": {codes.VolumeClaimPending, starting(2, unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: not eligible due to unbound PVCs.")).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "data", Phase: corev1.ClaimPending, Class: "nfs-fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}}
		})},
		"volume-missing": {codes.VolumeClaimPending, starting(2, unschedulable(`0/2 nodes are available: persistentvolumeclaim "data" not found.`)).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "data", Missing: true}}
		})},
		"volume-missing-of-gang": {codes.VolumeClaimPending, starting(2, func(pod *corev1.Pod) {
			unschedulable(`error in "DynamicResources" PodGroupPostFilter plugins: not found`)(pod)
			pod.Status.Conditions[0].Reason = corev1.PodReasonSchedulerError
		}).with(func(s *scene) {
			s.evidence.Claims = []jobstate.Claim{{Name: "data", Missing: true}}
		})},
		"volume-key-missing": {codes.MissingReference, starting(2, onNode("node-a")).with(
			func(s *scene) {
				s.job.Workers.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
			}, event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: b.yaml`),
		)},
		"volume-elsewhere": {codes.MountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-1", "FailedAttachVolume", `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) pi-worker-0`), func(s *scene) {
				s.evidence.Claims = []jobstate.Claim{{Name: "data", Phase: corev1.ClaimBound, Class: "block", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}}
			})},
		"host-path-missing": {codes.MountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "data" : hostPath type check failed: /mnt/data is not a directory`))},
		"host-path-missing-1.37": {codes.MountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "data" : hostPath type check failed, /mnt/data is not a directory, unable to determine its type: path "/mnt/data" does not exist`))},
		"nfs-no-client": {codes.MountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-0", "FailedMount", `Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition`),
			event("Pod", "pi-worker-0", "FailedMount", nfsMount+"10.0.0.9:/data /var/lib/kubelet/pods/0b6cb4f0/volumes/kubernetes.io~nfs/data\nOutput: mount: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program."))},
		"nfs-denied": {codes.MountFailed, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-1", "FailedMount", nfsMount+"-o nfsvers=4.1 10.0.0.9:/data /var/lib/kubelet/pods/0b6cb4f0/volumes/kubernetes.io~nfs/data\nOutput: mount.nfs: access denied by server while mounting 10.0.0.9:/data"))},
		"volume-secret-missing": {codes.MissingReference, starting(2, onNode("node-a")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "creds" : secret "s3-credentials" not found`))},
		"volumes-late": {codes.ImagePullFailed, starting(2, onNode("node-a"), mpitest.Waiting("ImagePullBackOff", "not found")).with(
			event("Pod", "pi-worker-0", "FailedMount", `MountVolume.SetUp failed for volume "mpi-agent-key" : failed to sync secret cache: timed out waiting for the condition`))},
		"pod-security": {codes.PodSecurityDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true`))},
		"pod-security-host-path": {codes.PodSecurityDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": restricted volume types (volume "data" uses restricted volume type "hostPath")`))},
		"pod-security-host-path-and-more": {codes.PodSecurityDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": restricted volume types (volume "data" uses restricted volume type "hostPath"), runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true)`))},
		"pod-security-capability": {codes.PodSecurityDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container "main" must not include "IPC_LOCK", "SYS_NICE" in securityContext.capabilities.add)`))},
		"security-context": {codes.SecurityContextDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`pods "pi-worker-0" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount, .spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [1000650000, 1000659999]]`))},
		"webhook": {codes.AdmissionDenied, running(2).with(refusal("Pod", "pi-worker-0",
			`admission webhook "validation.gatekeeper.sh" denied the request: [owner-label] every pod needs the label "owner"`))},
		"webhook-away": {codes.WebhookUnreachable, running(2).with(refusal("Pod", "pi-worker-0",
			`Internal error occurred: failed calling webhook "vpod.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-system.svc:443/validate--v1-pod?timeout=10s": no endpoints available for service "kueue-webhook-service"`))},
		"refused": {codes.ObjectRefused, running(2).with(refusal("Pod", "pi-worker-0", `pods "pi-worker-0" is forbidden: error looking up service account ns/trainer: serviceaccount "trainer" not found`))},
		"name-taken": {codes.NameTaken, running(2).with(func(s *scene) {
			s.evidence.Refusals = []jobstate.Refusal{{Kind: "ConfigMap", Name: "pi-config", Taken: true}}
		})},
		"probe-failed": {codes.ProbeFailed, failed(143, "rank 0 of 8 on pi-worker-0").with(
			event("Pod", "pi-worker-0", "Unhealthy", `Liveness probe failed: dial tcp 10.244.0.9:8080: connect: connection refused`),
			event("Pod", "pi-worker-0", "Killing", "Stopping container worker"),
		)},
		"probe-failed-without-output": {codes.ProbeFailed, running(4).with(
			worker(0, corev1.PodFailed, mpitest.Exited(137, "Error")),
			event("Pod", "pi-worker-0", "Unhealthy", `Liveness probe failed: `),
			event("Pod", "pi-worker-0", "Killing", "Container main failed liveness probe"),
		)},
		"probe-failed-and-restarted": {codes.ProbeFailed, failed(1, "").with(
			launcherLeft(agentapi.Summary{
				Code: agentapi.Unreachable, Message: "Host pi-worker-0 could not be used.", HostsExpected: 4, SlotsExpected: 8, HostsReached: 3, SlotsFound: 6,
				Hosts: []agentapi.HostTrouble{{Host: "pi-worker-0", Code: agentapi.Unreachable, Message: "its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing", Seconds: 200}},
			}, 1),
			event("Pod", "pi-worker-0", "Killing", "Container main failed startup probe, will be restarted"),
			func(s *scene) { s.evidence.Events[0].Last = mpitest.Now.Add(-20 * time.Second) },
			event("Pod", "pi-worker-0", "Unhealthy", `Startup probe failed: command timed out: "/ready" timed out after 1s`),
		)},
		"probe-failed-and-ended-well": {codes.ProbeFailed, running(4).with(
			worker(0, corev1.PodSucceeded, endedWell(time.Minute)),
			event("Pod", "pi-worker-0", "Unhealthy", `Liveness probe failed: `),
			event("Pod", "pi-worker-0", "Killing", "Container main failed liveness probe"),
		)},
		"worker-ended": {codes.WorkerEnded, running(4).with(
			worker(0, corev1.PodSucceeded, endedWell(time.Minute)), worker(2, corev1.PodSucceeded, endedWell(time.Minute)),
			func(s *scene) {
				s.evidence.Logs = map[string]jobstate.Log{"pi-worker-0": {Lines: []string{"epoch 3 done"}}}
			},
		)},
		"worker-ended-before-the-launcher-failed": {codes.WorkerEnded, failed(255, `ssh: connect to host pi-worker-0.pi port 22: Connection refused`).with(
			func(s *scene) {
				endedWell(0)(s.seen.LauncherPods[0])
				s.seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.ExitCode = 255
			},
			worker(0, corev1.PodSucceeded, endedWell(time.Minute)),
		)},
		"worker-ended-with-the-launcher": {codes.ApplicationFailed, failed(3, "Traceback: no such column").with(
			func(s *scene) {
				endedWell(0)(s.seen.LauncherPods[0])
				s.seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.ExitCode = 3
			},
			worker(0, corev1.PodSucceeded, endedWell(time.Second)),
		)},
		"probe-of-an-event-that-is-gone": {codes.ProbeFailed, running(4).with(
			worker(0, corev1.PodFailed, mpitest.Exited(137, "Error")), event("Pod", "pi-worker-0", "Killing", "Container main failed liveness probe"))},
		"sandbox-without-user-namespaces": {codes.ContainerCreateFailed, failed(1, "").with(
			func(s *scene) { s.job.Workers.Template.Spec.HostUsers = new(false) },
			launcherLeft(agentapi.Summary{
				Code: agentapi.Unreachable, Message: "Host pi-worker-0 could not be used.", HostsExpected: 4, SlotsExpected: 8, HostsReached: 3, SlotsFound: 6,
				Hosts: []agentapi.HostTrouble{{Host: "pi-worker-0", Code: agentapi.Unreachable, Message: "its name cannot be resolved (no such host): its pod has no address yet, or the job's Service is missing", Seconds: 200}},
			}, 1),
			worker(0, corev1.PodPending, onNode("node-a"), created(time.Minute)),
			event("Pod", "pi-worker-0", "FailedCreatePodSandBox", `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox "4c1ad2b3f5e60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90": failed to create containerd task: OCI runtime create failed: mount_setattr: idmap mounts are not supported: invalid argument`),
		)},
		"daemon-ended": {codes.DaemonsNotStarted, failed(205, lostDaemon).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(205)), HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, ConnectSeconds: 0.015,
		}, 205))},
		"time-limit-of-mpiexec": {codes.TimeLimitExceeded, failed(255, "rank 0 epoch 6 of 30\n[mpiexec@pi-launcher] APPLICATION TIMED OUT, TIMEOUT = 30s\n[proxy:0@pi-worker-0] HYD_pmcd_pmip_control_cmd_cb (proxy/pmip_cb.c:484): assert (!closed) failed", mpich).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpiexec", "-n", "8", "pi"}
			s.job.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MPIEXEC_TIMEOUT", Value: "30"}}
		}, launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(255)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 255, Signal: 127}},
		}, 255))},
		"restarted-too-often": {codes.RestartedTooOften, failed(1, "mpi-agent: The job was started again 102 times, mostly because its pods were evicted, preempted or drained, which is more often than it may be. Its command is not run again.").with(trainJob, launcherLeft(agentapi.Summary{
			Code: agentapi.RestartedTooOften, ExitCode: new(int32(1)),
			Message: "The job was started again 102 times, mostly because its pods were evicted, preempted or drained, which is more often than it may be. Its command is not run again.",
		}, 1))},
		"crash-of-ctypes": {codes.SegmentationFault, failed(139, "rank 1 allocates its buffer\nFatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1c5a2b1740 (most recent call first):\n  File \"<string>\", line 4 in <module>").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", "import ctypes\nlibc = ctypes.CDLL(None)"}
		}, launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(139)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "python3"}},
		}, 139))},
		"daemon-ended-with-cores-per-rank": {codes.DaemonsNotStarted, failed(205, lostDaemon).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-n", "2", "--map-by", "slot:PE=8", "--bind-to", "core", "pi"}
		}, launcherLeft(agentapi.Summary{
			ExitCode: new(int32(205)), HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, ConnectSeconds: 0.015,
		}, 205))},
		"script-stopped-by-a-search": {codes.ApplicationFailed, failed(1, "rank 0 epoch 5 loss 0.2").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-c", "set -e\ngrep -c x /etc/hosts\nmpirun train > /tmp/train.log\ntail -n 2 /tmp/train.log\nwarnings=$(grep -ci warning /tmp/train.log)\necho \"$warnings warnings\"\n"}
		}, launcherLeft(agentapi.Summary{
			ExitCode: new(int32(1)), MPISucceeded: true, HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, RanksSeen: 8, Launches: 1,
		}, 1))},
		"script-stopped-by-one-of-two": {codes.ApplicationFailed, failed(1, "rank 0 epoch 5 loss 0.2").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-ec", "mpirun train\ngrep -c x a\ngrep -c y a\n"}
		}, launcherLeft(agentapi.Summary{
			ExitCode: new(int32(1)), MPISucceeded: true, HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, RanksSeen: 8, Launches: 1,
		}, 1))},
		"program-ends-as-if-disrupted": {codes.ApplicationFailed, failed(1, "license server busy, try again").with(trainJob, launcherLeft(agentapi.Summary{
			ExitCode: new(int32(75)), HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, RanksSeen: 8, Launches: 1,
		}, 1))},
		"daemon-of-a-worker-that-restarted": {codes.ConnectionLost, failed(205, lostDaemon).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(205)), HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, ConnectSeconds: 0.015,
		}, 205), worker(1, corev1.PodRunning, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, RestartCount: 1}}
		}))},
		"sub-path-not-prepared": {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("CreateContainerConfigError", `failed to prepare subPath for volumeMount "data" of container "main"`))},
		"working-folder-missing": {codes.ContainerCreateFailed, starting(2, mpitest.Waiting("RunContainerError",
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: mkdir /proc/run: no such file or directory`))},
		"launcher-deleted":         {codes.LauncherDeleted, deleted},
		"launcher-being-deleted":   {codes.LauncherDeleted, running(2).with(func(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) })},
		"launcher-deleted-crashes": {codes.LauncherDeleted, crashing(mpitest.Leaving)},
		"launcher-deleted-crashes-finally": {codes.LauncherDeleted, crashing(mpitest.Leaving).with(func(s *scene) {
			s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobFailed)
			s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonBackoffLimitExceeded
		})},
		"launcher-deleted-later":                {codes.SegmentationFault, crashing(deletedAfterItsEnd)},
		"worker-being-deleted":                  {codes.WorkerDeleted, deletedWorker},
		"worker-deleted-and-the-launcher-fails": {codes.WorkerDeleted, lostWorker(worker(1, corev1.PodFailed, mpitest.Exited(137, "Error"), ranFor(time.Minute), deletedBefore(2*time.Second)))},
		"worker-deleted-of-train-job": {codes.WorkerDeleted, lostWorker(trainJob, worker(1, corev1.PodPending, created(time.Second)), func(s *scene) {
			s.job.Recorded.Finish = nil
			s.seen.Replaced = []jobstate.Worker{mpitest.Worker(s.job, 1, corev1.PodRunning, ranFor(time.Minute), deletedBefore(2*time.Second))}
			s.seen.Replaced[0].Pod.Name = "pi-node-0-1-xyz"
		})},
		"worker-deleted-at-once": {codes.WorkerDeleted, lostWorker(worker(1, corev1.PodRunning, created(time.Second), ranFor(time.Second)))},
		"keys-failed":            {codes.KeyGenerationFailed, running(2).with(event("MPIJob", "pi", "MPIJobFailed", "generate SSH keys: no entropy"))},
		"sidecar":                {codes.SidecarRunning, sidecar},
		"mesh":                   {codes.ServiceMesh, failed(1, `upstream connect error or disconnect/reset before headers. reset reason: connection failure`)},
		"clock-ahead":            {codes.ClockSkew, skewed},
		"clock-certificate":      {codes.ClockSkew, failed(1, `x509: certificate has expired or is not yet valid: current time 2026-11-21T09:00:00Z is before 2026-11-21T10:00:00Z`)},
		"crash-loop": {codes.CrashLoop, running(2).with(worker(0, corev1.PodRunning, mpitest.Waiting("CrashLoopBackOff", "back-off 40s restarting failed container"), func(pod *corev1.Pod) {
			pod.Status.Conditions = nil
			pod.Status.ContainerStatuses[0].RestartCount = 3
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}
		}))},
		"init-container-failed": {codes.ApplicationFailed, running(2).with(worker(1, corev1.PodFailed, failedInit(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"},
		})))},
		"init-container-failed-and-no-worker-was-reached": {codes.ApplicationFailed, failed(1, unreliable).with(unreachableWorker, worker(1, corev1.PodFailed, failedInit(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"},
		})))},
		"init-container-crashes-and-no-worker-was-reached": {codes.CrashLoop, failed(1, unreliable).with(unreachableWorker, worker(1, corev1.PodPending, failedInit(corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=fetch-data"},
		})))},
		"init-container-without-its-program": {codes.ProgramMissing, running(2).with(worker(1, corev1.PodFailed, failedInit(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 127, Reason: "Error"},
		})), func(s *scene) {
			s.evidence.Logs = map[string]jobstate.Log{"pi-worker-1": {Lines: []string{"sh: 1: git: not found"}, LastAt: mpitest.Now}}
		})},
		"init-container-crashes": {codes.CrashLoop, running(2).with(worker(1, corev1.PodPending, failedInit(corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=fetch-data"},
		})))},
		"earlier-job": {codes.EarlierJobLeaving, scene{job: mpitest.Job(1), seen: jobstate.Observed{Earlier: []*corev1.Pod{mpitest.Worker(mpitest.Job(1), 0, corev1.PodRunning, mpitest.Leaving, onNode("node-a")).Pod}}}},
		"earlier-job-kept": {codes.EarlierJobLeaving, scene{job: mpitest.Job(1), seen: jobstate.Observed{Earlier: []*corev1.Pod{mpitest.Worker(mpitest.Job(1), 0, corev1.PodFailed, mpitest.Leaving, onNode("node-a"), func(pod *corev1.Pod) {
			pod.Finalizers = []string{"example.com/accounting"}
		}).Pod}}}},
		"launcher-often-failed": {codes.ApplicationFailed, failed(1, `ModuleNotFoundError: No module named 'torch'`).with(func(s *scene) {
			s.seen.Launcher.Status.Failed = 7
			s.seen.LauncherPods[0].Status.ContainerStatuses[0].RestartCount = 6
		})},
		"deadline-for-lack-of-room": {codes.InsufficientResources, starting(2, unschedulable("0/2 nodes are available: 2 Insufficient cpu.")).with(func(s *scene) {
			s.seen.Launcher = mpitest.Launcher(s.job, batchv1.JobFailed)
			s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
		})},
	})
}

// heldByGate is a pod that the scheduler leaves alone until others remove its gates.
func heldByGate(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
}

// gatedBy gives the workers' template scheduling gates.
func gatedBy(names ...string) func(*mpi.Job) {
	return func(j *mpi.Job) {
		for _, name := range names {
			j.Workers.Template.Spec.SchedulingGates = append(j.Workers.Template.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	}
}

// runcLacks is what containerd and runc report of a command that is not in the image.
const runcLacks = `rpc error: code = Unknown desc = failed to exec in container: failed to start exec "1ee8c4ac1f2c2b9e1ec3b2fc0ba98c3f6ed8b1a4c9a1d0a5d8f6f1c0d1e2f3a4": ` +
	`OCI runtime exec failed: exec failed: unable to start container process: exec: "/opt/ready": stat /opt/ready: no such file or directory: unknown`

// notReadyFor is a pod whose container started so long ago and is not ready.
func notReadyFor(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-ago))}}}}
	}
}

// beside lets the launcher's pod have a container in a state, and one beside it that failed with a code.
func beside(main corev1.ContainerState, code int32) func(*scene) {
	return func(s *scene) {
		s.seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "logger", RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}},
			{Name: "main", State: main},
		}
	}
}

// endedWell ends a pod's container with exit code 0 so long ago.
func endedWell(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		mpitest.Exited(0, "Completed")(pod)
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(-ago))
	}
}

// rejectedFor is a pod that a kubelet did not admit.
func rejectedFor(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, "Pod was rejected: "+message }
}

// pastDeadline is a pod that a kubelet stopped because of the pod's own deadline.
func pastDeadline(pod *corev1.Pod) {
	mpitest.Exited(137, "Error")(pod)
	pod.Status.Reason, pod.Status.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
}

// trainJob makes a job a TrainJob, whose pods JobSet stops.
func trainJob(s *scene) { makeTrainJob(&s.job) }

// withoutJobs is a job for which JobSet has created nothing.
func withoutJobs(s *scene) { s.seen = jobstate.Observed{} }

// olderWorkers are an hour old.
func olderWorkers(s *scene) {
	for _, w := range s.seen.Workers {
		created(time.Hour)(w.Pod)
	}
}

// TestStoppedByControllers: what stops a launcher because something else has failed is not reported as a deletion.
func TestStoppedByControllers(t *testing.T) {
	for name, s := range map[string]scene{
		"a worker of a TrainJob failed": running(4).with(trainJob, olderWorkers, worker(1, corev1.PodFailed, rejectedFor("SysctlForbidden", "no")), leavingLauncher),
		"a worker has exited":           running(4).with(trainJob, olderWorkers, worker(1, corev1.PodFailed, mpitest.Exited(1, "Error")), leavingLauncher),
		"the Job of the workers failed": running(4).with(trainJob, olderWorkers, func(s *scene) { s.seen.WorkerJob = mpitest.Launcher(s.job, batchv1.JobFailed) }, leavingLauncher),
		"the time is over": running(4).with(olderWorkers, func(s *scene) {
			s.job.Lifecycle.Deadline = new(int64(20))
			s.seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-time.Minute)}
		}, leavingLauncher),
		"the time of a second Job is over": running(4).with(olderWorkers, func(s *scene) {
			s.job.Lifecycle.Deadline = new(int64(90))
			s.seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-time.Minute)}
			s.seen.Launcher.Annotations = map[string]string{mpi.AnnotationEarlierAttempts: "1"}
			s.seen.Config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				mpi.AnnotationEarlierAttempts: "1", mpi.AnnotationActiveSince: mpitest.Now.Add(-2 * time.Minute).Format(time.RFC3339),
			}}}
		}, leavingLauncher),
		"the operator ended an MPIJob":   running(4).with(olderWorkers, func(s *scene) { s.job.Recorded.Finish = &mpi.Finish{Reason: codes.WorkerFailed, At: mpitest.Now} }, leavingLauncher),
		"the time of a TrainJob is over": running(4).with(trainJob, olderWorkers, func(s *scene) { s.job.Recorded.Finish = &mpi.Finish{Reason: codes.DeadlineExceeded, At: mpitest.Now} }, leavingLauncher),
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range s.findings() {
				if f.Code == codes.LauncherDeleted {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// launcherRanFor has the launcher's container run since a time, or end now after it.
func launcherRanFor(time time.Duration) func(*scene) {
	return func(s *scene) {
		ranFor(time)(s.seen.LauncherPods[0])
	}
}

// ranFor has a pod's container run since a time, or end now after it.
func ranFor(time time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		began := metav1.NewTime(mpitest.Now.Add(-time))
		if len(pod.Status.ContainerStatuses) == 0 {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}}}
		} else if ended := pod.Status.ContainerStatuses[0].State.Terminated; ended != nil {
			ended.StartedAt, ended.FinishedAt = began, metav1.NewTime(mpitest.Now)
		}
	}
}

// deletedBefore has the deletion of a pod be requested a time ago, with a grace period of 30 s.
func deletedBefore(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(mpitest.Now.Add(30*time.Second - ago))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, new(int64(30))
	}
}

// loses lets the launcher's agent have lost a host.
func loses(host string) func(*scene) {
	return func(s *scene) {
		launcherLeft(agentapi.Summary{
			Code: agentapi.ConnectionLost, Message: "Host " + host + " was lost.", HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, RanksSeen: 8, ExitCode: new(int32(1)),
			Hosts: []agentapi.HostTrouble{{Host: host, Code: agentapi.ConnectionLost, Message: "the connection to it was lost while its ranks ran"}},
		}, 1)(s)
		launcherRanFor(time.Minute)(s)
	}
}

// TestWorkersThatWereNotDeleted: what the operator or a controller deletes, and what had failed before, is not reported as deleted by
// something else.
func TestWorkersThatWereNotDeleted(t *testing.T) {
	t.Parallel()
	leaving := func(ago time.Duration, change ...func(*corev1.Pod)) func(*scene) {
		return worker(1, corev1.PodRunning, append([]func(*corev1.Pod){ranFor(time.Minute), deletedBefore(ago)}, change...)...)
	}
	ended := failed(1, "ValueError: x").with(launcherLeft(agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8}, 1), launcherRanFor(time.Minute))
	for name, s := range map[string]scene{
		"after the launcher's end":     ended.with(leaving(-time.Second)),
		"at the launcher's end":        ended.with(leaving(0)),
		"evicted":                      running(4).with(launcherRanFor(time.Minute), leaving(time.Second, disrupted("EvictionByEvictionAPI", "Eviction API: evicting"))),
		"with its job":                 running(4).with(launcherRanFor(time.Minute), leaving(time.Second), func(s *scene) { s.job.Lifecycle.Deleting = true }),
		"of a suspended job":           running(4).with(launcherRanFor(time.Minute), leaving(time.Second), func(s *scene) { s.job.Lifecycle.Suspended = true }),
		"with the launcher":            running(4).with(launcherRanFor(time.Minute), leaving(time.Second), func(s *scene) { deletedBefore(time.Second)(s.seen.LauncherPods[0]) }),
		"a second before the launcher": running(4).with(launcherRanFor(time.Minute), leaving(2*time.Second), func(s *scene) { deletedBefore(time.Second)(s.seen.LauncherPods[0]) }),
		"as all workers": running(4).with(launcherRanFor(time.Minute), func(s *scene) {
			for i := range s.seen.Workers {
				worker(i, corev1.PodRunning, ranFor(time.Minute), deletedBefore(time.Second))(s)
			}
		}),
		"of a Job that is suspended": running(4).with(trainJob, launcherRanFor(time.Minute), leaving(time.Second), func(s *scene) {
			s.seen.WorkerJob = mpitest.Launcher(s.job)
			s.seen.WorkerJob.Spec.Suspend = new(true)
		}),
		"before it started":           running(4).with(launcherRanFor(time.Minute), worker(1, corev1.PodPending, deletedBefore(time.Second))),
		"before the launcher":         running(4).with(launcherRanFor(0), leaving(time.Second)),
		"by the deadline":             running(4).with(launcherRanFor(time.Minute), leaving(time.Second), func(s *scene) { s.job.Recorded.Finish = &mpi.Finish{Reason: codes.DeadlineExceeded, At: mpitest.Now} }),
		"after another worker failed": running(4).with(launcherRanFor(time.Minute), leaving(time.Second), worker(2, corev1.PodFailed, mpitest.Exited(1, "Error"))),
		"after its own end":           running(4).with(launcherRanFor(time.Minute), worker(1, corev1.PodFailed, mpitest.Exited(1, "Error"), deletedBefore(time.Second))),
		"after a rank failed":         failed(1, "").with(launcherLeft(agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(1)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 1, At: mpitest.Now.Add(-time.Minute).UnixMilli()}}}, 1), launcherRanFor(2*time.Minute), leaving(time.Second)),
		"created after the launcher":  running(4).with(launcherRanFor(time.Minute), worker(1, corev1.PodRunning, created(time.Second))),
		"replaced after a failure":    failed(1, "").with(loses("pi-worker-1"), func(s *scene) { s.job.Workers.RestartPolicy = corev1.RestartPolicyOnFailure }, worker(1, corev1.PodRunning, created(time.Second))),
		"replaced after a failure, Job's": failed(1, "").with(trainJob, loses("pi-worker-1"), worker(1, corev1.PodRunning, created(time.Second)), func(s *scene) {
			s.seen.Replaced = []jobstate.Worker{mpitest.Worker(s.job, 1, corev1.PodFailed, mpitest.Exited(1, "Error"))}
		}),
	} {
		for _, f := range s.findings() {
			if f.Code == codes.WorkerDeleted {
				t.Errorf("%s: found %+v", name, f)
			}
		}
	}
}

// TestDeletedBySomethingElse: nothing of that hides a deletion.
func TestDeletedBySomethingElse(t *testing.T) {
	for name, s := range map[string]scene{
		"of a TrainJob": running(4).with(trainJob, olderWorkers, leavingLauncher),
		"a worker of a TrainJob failed later": running(4).with(trainJob, olderWorkers, worker(1, corev1.PodFailed, mpitest.Exited(1, "Error"), func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(time.Minute))
		}), leavingLauncher),
		"a worker of an MPIJob failed": running(4).with(olderWorkers, worker(1, corev1.PodFailed, mpitest.Exited(1, "Error")), leavingLauncher),
		"before the time is over": running(4).with(olderWorkers, func(s *scene) {
			s.job.Lifecycle.Deadline = new(int64(90))
			s.seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now.Add(-time.Minute)}
		}, leavingLauncher),
	} {
		t.Run(name, func(t *testing.T) {
			found := s.findings()
			if len(found) == 0 || found[0].Code != codes.LauncherDeleted {
				t.Errorf("%+v", found)
			}
		})
	}
}

func leavingLauncher(s *scene) { mpitest.Leaving(s.seen.LauncherPods[0]) }

// workersOn has the job's workers run on a node.
func workersOn(name string) func(*scene) {
	return func(s *scene) { s.job.Workers.Template.Spec.NodeName = name }
}

// nodes are those that the cluster is known to have, or not to have.
func nodes(list ...jobstate.Node) func(*scene) {
	return func(s *scene) { s.evidence.Nodes = list }
}

// without is a job of so many workers that has no pods yet.
func without(workers int32, change ...func(*scene)) scene {
	s := running(workers)
	s.seen = jobstate.Observed{}
	return s.with(change...)
}

// short has a quota lack GPUs for a job of 20 workers with one each.
func short(hard, used string) func(*scene) {
	return func(s *scene) {
		s.seen.Shortages = []quota.Shortage{{
			Quota: "team-a", Resource: "requests.nvidia.com/gpu", Asked: resource.MustParse("20"), Hard: resource.MustParse(hard), Used: resource.MustParse(used),
			By: []quota.Share{{Role: mpi.RoleWorker, Count: 20, Each: resource.MustParse("1")}},
		}}
	}
}

// neverReported is a pod that no kubelet has taken.
func neverReported(pod *corev1.Pod) { pod.Status.ContainerStatuses = nil }

// asked has the workers ask for two each, so much in all.
func asked(all string) func(*scene) {
	return func(s *scene) {
		s.seen.Shortages[0].Asked, s.seen.Shortages[0].By[0].Each = resource.MustParse(all), resource.MustParse("2")
	}
}

// crashing is a job without further attempts whose launcher's pod was changed, and whose mpirun has ended by a segmentation fault.
func crashing(change func(*corev1.Pod)) scene {
	const said = `rank 0 of 8 on pi-worker-0
[pi-launcher:00017] *** Process received signal ***
[pi-launcher:00017] Signal: Segmentation fault (11)
[pi-launcher:00017] Signal code: Address not mapped (1)`
	s := failed(139, said)
	s.seen.Launcher = mpitest.Launcher(s.job)
	s.seen.Launcher.Spec.BackoffLimit = new(int32(0))
	s.job.Lifecycle.BackoffLimit = new(int32(0))
	pod := s.seen.LauncherPods[0]
	left(agentapi.Summary{
		Role: agentapi.RoleLauncher, Code: agentapi.RankFailed, Message: "The command ended by signal 11 (SIGSEGV).", ExitCode: new(int32(139)), Signal: 11,
		Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "ranks", At: mpitest.Now.UnixMilli() + 300}},
	}, 139)(pod)
	pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now)
	change(pod)
	for _, w := range s.seen.Workers {
		created(time.Hour)(w.Pod)
	}
	return s
}

// deletedAfterItsEnd is a pod that was deleted a minute after its container had ended.
func deletedAfterItsEnd(pod *corev1.Pod) {
	mpitest.Leaving(pod)
	pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(-time.Minute))
}

// TestRanksThatFailedBeforeTheirLauncherWasDeleted: a deletion does not hide what had happened before.
func TestRanksThatFailedBeforeTheirLauncherWasDeleted(t *testing.T) {
	s := crashing(func(pod *corev1.Pod) {
		left(agentapi.Summary{
			Role: agentapi.RoleLauncher, Code: agentapi.RankFailed, ExitCode: new(int32(139)),
			Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 139, Signal: 11, Program: "ranks", At: mpitest.Now.Add(-20 * time.Second).UnixMilli()}},
		}, 139)(pod)
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now)
		mpitest.Leaving(pod)
	})
	found := s.findings()
	if len(found) < 2 || found[1].Code != codes.SegmentationFault || found[1].Rank == nil || *found[1].Rank != 3 {
		t.Errorf("the fault of rank 3 is not among the findings: %+v", found)
	}
}

// failedInit is a pod whose init container ended with code 3 and is now in a state; the other has not started.
func failedInit(state corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: "fetch-data", State: state, RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
		}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	}
}

// TestFailureOfAPodThatIsGone: the last state of a launcher's pod explains a failure as the pod itself did.
func TestFailureOfAPodThatIsGone(t *testing.T) {
	s := crashing(func(*corev1.Pod) {})
	s.seen.Launcher.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded}}
	want := s.findings()
	s.evidence.Gone, s.seen.LauncherPods = s.seen.LauncherPods, nil
	got := s.findings()
	if len(got) == 0 || len(want) == 0 || got[0].Code != codes.SegmentationFault || got[0].Code != want[0].Code || got[0].Pod != want[0].Pod {
		t.Errorf("found %+v, with the pod %+v", got, want)
	}
}

// unprovisioned lets the provisioner of a claim fail.
func unprovisioned(s *scene) {
	s.evidence.Claims = []jobstate.Claim{
		{Name: "results", Phase: corev1.ClaimPending, Class: "block"},
		{Name: "data", Phase: corev1.ClaimPending, Class: "block", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Problem: `failed to provision volume with StorageClass "block": multi-node access modes are only supported on block volumes`},
	}
}

// preparing is a TrainJob whose other pods wait for an initializer, which has not started.
func preparing(name string, change ...func(*corev1.Pod)) scene {
	return running(2).with(trainJob, func(s *scene) {
		s.seen.Launcher, s.seen.LauncherPods, s.seen.Workers = nil, nil, nil
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pi-" + name + "-0-0-abcde", Labels: map[string]string{mpi.LabelJobSetJob: name}, CreationTimestamp: metav1.NewTime(mpitest.Now.Add(-time.Minute))},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "quay.io/nobody/nothing:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}}}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		}
		for _, c := range change {
			c(pod)
		}
		s.seen.Initializers = []*corev1.Pod{pod}
	})
}

// initializing is a TrainJob that failed because of its initializer, whose container ended in a way and printed lines.
func initializing(name string, end func(*corev1.Pod), lines ...string) scene {
	return failed(1, "").with(trainJob, func(s *scene) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pi-" + name + "-0-0-abcde", Labels: map[string]string{mpi.LabelJobSetJob: name}}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
		end(pod)
		s.seen.Launcher, s.seen.LauncherPods, s.seen.Workers, s.seen.Initializers = nil, nil, nil, []*corev1.Pod{pod}
		s.job.Recorded.Finish = &mpi.Finish{Reason: "FailedJobs", Message: "jobset failed", At: mpitest.Now}
		s.evidence.Logs = map[string]jobstate.Log{pod.Name: {Lines: lines}}
	})
}

// lostDaemon is what mpirun of Open MPI 4 prints when a daemon has ended.
const lostDaemon = `ORTE has lost communication with a remote daemon.

  HNP daemon   : [[19911,0],0] on node pi-launcher
  Remote daemon: [[19911,0],1] on node pi-worker-0.pi.ns.svc

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.`

// TestSandboxThatIsCreatedLater: a sandbox that was created at last, or has failed only once yet, is no cause.
func TestSandboxThatIsCreatedLater(t *testing.T) {
	const message = "Failed to create pod sandbox: plugin not ready"
	for name, test := range map[string]struct {
		change func(*scene)
		want   bool
	}{
		"often":          {func(*scene) {}, true},
		"once, just now": {func(s *scene) { s.evidence.Events[0].Count = 1 }, false},
		"once, for long": {func(s *scene) { s.evidence.Events[0].Count = 1; created(2 * time.Minute)(s.seen.Workers[0].Pod) }, true},
		"long ago":       {func(s *scene) { s.evidence.Events[0].Last = mpitest.Now.Add(-time.Hour) }, false},
		"created since": {func(s *scene) {
			s.seen.Workers[0].Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(mpitest.Now)}}
		}, false},
		"its container waits for something else": {func(s *scene) { mpitest.Waiting("ErrImagePull", "not found")(s.seen.Workers[0].Pod) }, false},
		"its pod is running":                     {worker(0, corev1.PodRunning), false},
	} {
		t.Run(name, func(t *testing.T) {
			found := starting(2, onNode("node-a"), created(time.Second)).with(event("Pod", "pi-worker-0", "FailedCreatePodSandBox", message), test.change).findings()
			if got := len(found) > 0 && found[0].Code == codes.ContainerCreateFailed; got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, found)
			}
		})
	}
}

// unreachableWorker lets the launcher's agent have missed worker 1.
func unreachableWorker(s *scene) {
	launcherLeft(agentapi.Summary{
		Code: agentapi.Unreachable, Message: "Host pi-worker-1 could not be used: nothing listens.", HostsExpected: 4, SlotsExpected: 8, HostsReached: 3, SlotsFound: 6,
		Hosts: []agentapi.HostTrouble{{Host: "pi-worker-1", Code: agentapi.Unreachable, Message: "nothing listens at 10.244.1.9:2222 (connection refused): its container has not started, or ended", Seconds: 120}},
	}, 1)(s)
}

// registryFails has several other jobs fail to pull from the registry of the job's image.
func registryFails(s *scene) { s.evidence.RegistryFails = true }

// TestFailingRegistry: a registry fails for all jobs only if it does not respond or exceeds its rate limit. Its answer decides, not the name of an image.
func TestFailingRegistry(t *testing.T) {
	const away, limited = `failed to do request: dial tcp 10.0.0.1:443: i/o timeout`, `Back-off pulling image "me/train": ErrImagePull: toomanyrequests: You have reached your pull rate limit.`
	for name, test := range map[string]struct{ reason, message, image, want string }{
		"unreachable":            {"ErrImagePull", away, "Registry.example.com:5000/team/train:1", "registry.example.com:5000"},
		"with the rate limit":    {"ImagePullBackOff", limited, "me/train", "docker.io"},
		"unavailable":            {"RegistryUnavailable", "", "localhost/train", "localhost"},
		"without a host":         {"ErrImagePull", away, "train", "docker.io"},
		"an image without a tag": {"ErrImagePull", "manifest unknown", "quay.io/me/train", ""},
		"an odd name":            {"ErrImagePull", `"quay.io/me/i/o timeout": not found`, "quay.io/me/i/o timeout", ""},
		"pulled":                 {"ContainerCreating", away, "quay.io/me/train", ""},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Image: test.image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: test.reason, Message: test.message}}},
		}}}
		if got := diagnose.FailingRegistry(jobstate.Observed{LauncherPods: []*corev1.Pod{pod}}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
