package diagnose_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// Decisions beside the codes of findings.
const (
	// quotes is the decision to quote what is reported, because it explains a slow start, or nothing better is known.
	quotes = "quoted"
	// ignores is the decision to ignore what is reported of a pod: it is usual, or follows from something else.
	ignores = "ignored"
	// absent is the decision about what is reported of other objects than the job's, or cannot occur in its pods.
	absent = "absent"
)

// verb is a verb of package fmt in a text that is put together.
var verb = regexp.MustCompile(`%[+#]?[a-z]`)

// saidSo is a message without information.
const saidSo = "it says so"

// TestEachReasonIsDecided holds the list of what the components of the cluster can report of pods and jobs, from their source. A new
// version of them fails it with what is new, for which a decision is to be made: its code, or quotes, ignores or absent.
func TestEachReasonIsDecided(t *testing.T) {
	pending := func(pod *corev1.Pod) {
		onNode("node-a")(pod)
		created(10 * time.Minute)(pod)
	}
	finished := func(reason string) scene {
		return failed(1, "").with(trainJob, func(s *scene) {
			s.seen.Launcher, s.seen.LauncherPods = nil, nil
			s.job.Recorded.Finish = &mpi.Finish{Reason: reason, Message: reason + ": " + saidSo, At: mpitest.Now}
		})
	}
	for name, origin := range map[string]struct {
		mpitest.Origin
		scene   func(text string) scene
		decided map[string][]string
	}{
		"scheduler": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/scheduler/framework/plugins"}, Named: regexp.MustCompile("(?i)^errReason"), Statuses: true},
			func(text string) scene {
				return starting(2, unschedulable("0/2 nodes are available: 2 "+verb.ReplaceAllString(text, "example")+"."), created(10*time.Minute))
			},
			map[string][]string{
				codes.NoMatchingNode: {
					"node(s) didn't match PersistentVolume's node affinity", "node(s) didn't match Pod's node affinity/selector", "node(s) didn't match Pod's required features",
					"node(s) didn't match pod affinity rules", "node(s) didn't match pod anti-affinity rules", "node(s) didn't match pod topology spread constraints",
					"node(s) didn't match scheduler-enforced node affinity", "node(s) didn't match the requested node name", "node(s) had no available volume zone",
					"node(s) had taints that the pod didn't tolerate", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "node(s) were unschedulable",
					"pod affinity terms conflict", "node(s) had untolerated taint(s)",
				},
				codes.InsufficientResources: {"Insufficient %s", "Insufficient %v", "Insufficient cpu", "Insufficient ephemeral-storage", "Insufficient memory"},
				// The job's own message reports it.
				ignores:                  {"minCount (%d) cannot be satisfied: %d scheduled, %d remaining", "minCount (%d) is not yet satisfied: %d scheduled, %d remaining"},
				codes.VolumeClaimPending: {"pod has unbound immediate PersistentVolumeClaims"},
				// They are about pods that are running, or that are preempted for others, and of states in which the scheduler has another text.
				absent: {
					"No preemption victims found for incoming pod", "deallocation and deletion of ResourceClaims completed", "deallocation of PodGroup ResourceClaim completed",
					"deallocation of ResourceClaim completed", "deletion of ResourceClaim completed", "empty shared lister in InterPodAffinity PreScore", "node not found",
					"parsing pod: %+v", "pod assigned to different node", "pod resize fits, waiting for Kubelet actuation", "pods with InterPodAffinity are not signable",
					"pods with default topology constraints are not signable", "pods with dra resource claims are not signable", "pods with topology constraints are not signable",
					"resources not found", "signature disabled when dra extended resources are used in the cluster", "waiting for scheduling gates: %v",
					"waiting for the preemption for this pod group to be finished", "waiting for the preemption for this pod to be finished",
				},
				codes.Unschedulable: {
					"PersistentVolume had no name", "PersistentVolumeClaim had no name", "PersistentVolumeClaim had no pv name and storageClass name", "Too many pods",
					"VolumeBindingMode not set for StorageClass %q", "failed to build hierarchy snapshot: %v",
					"failed to build hierarchy snapshot: composite pod group object not found in state for %s", "node allocatable resource claim %s has a mapped device and cannot be shared across pods",
					"pod level limit for %s is insufficient to cover the aggregated container and node-allocatable DRA limits",
					"pod level limit for %s is insufficient to cover the limit and DRA overhead for container %s",
					"pod level request for %s is insufficient to cover the aggregated container and node-allocatable DRA requests",
					"waiting for composite pod group %q tree to meet quorum", "waiting for minCount pods from a gang to appear in scheduling queue",
					"waiting for minCount pods from a gang to be scheduled", "waiting for pods's pod group %q to appear in scheduling queue",
					"node had resize preemption disabled", "node(s) did not have enough free storage", "node(s) didn't find available persistent volumes to bind",
					"node(s) didn't have free ports for the requested pod ports", "node(s) didn't satisfy existing pods anti-affinity rules", "node(s) exceed max volume count",
					"node(s) had no available disk", "node(s) had unknown conditions",
					"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
				},
			},
		},
		"waiting container": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/kubelet/container", "pkg/kubelet/images", "pkg/kubelet/kuberuntime"}, Named: regexp.MustCompile("^Err[A-Z]")},
			func(text string) scene { return starting(2, pending, mpitest.Waiting(text, saidSo)) },
			map[string][]string{
				codes.ContainerCreateFailed: {
					"ConfigPodSandboxError", "CreateContainerConfigError", "CreateContainerError", "CreatePodSandboxError",
					"KillContainerError", "KillPodSandboxError", "PostStartHookError", "PreCreateHookError", "PreStartHookError",
					"RemoveContainerError", "ResizePodInPlaceError", "RunContainerError",
				},
				codes.CrashLoop:        {"CrashLoopBackOff"},
				codes.ImagePullFailed:  {"ErrImageNeverPull", "ErrImagePull", "ImageInspectError", "ImagePullBackOff"},
				codes.InvalidImageName: {"InvalidImageName"},
				absent:                 {"no matching container", "pod sandboxes not found", "runtime api version is not supported"},
			},
		},
		"container runtime": {
			mpitest.Origin{Module: "k8s.io/cri-api", Folders: []string{"pkg/errors"}, Named: regexp.MustCompile("^Err[A-Z]")},
			func(text string) scene { return starting(2, pending, mpitest.Waiting(text, saidSo)) },
			map[string][]string{
				codes.ContainerCreateFailed: {"ImageVolumeMountFailed", "RROUnsupported"},
				codes.ImagePullFailed:       {"RegistryUnavailable", "SignatureValidationFailed"},
			},
		},
		"rejection": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/kubelet"}, Named: regexp.MustCompile("NotAdmittedReason$|^ErrorReason|^ForbiddenReason$|LimitExceededReason$"), Types: true},
			func(text string) scene {
				return running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), rejectedFor(text, saidSo)))
			},
			map[string][]string{
				codes.PodRejected: {
					"AppArmor", "EmptyPodSharedPoolError", "NodeShutdown", "PodLevelResourcesNotSupported", "SMTAlignmentError",
					"SysctlForbidden", "TopologyAffinityError", "UnexpectedAdmissionError", "VolumeAttachmentLimitExceeded",
				},
			},
		},
		"disruption": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/controller", "pkg/kubelet", "pkg/registry/core/pod", "pkg/scheduler"}, Condition: "DisruptionTarget"},
			func(text string) scene {
				return running(4).with(worker(1, corev1.PodFailed, onNode("node-a"), disrupted(text, saidSo), mpitest.Exited(137, "Error")))
			},
			map[string][]string{
				codes.Evicted:   {"DeletionByDeviceTaintManager", "EvictionByEvictionAPI", "TerminationByKubelet"},
				codes.NodeLost:  {"DeletionByPodGC", "DeletionByTaintManager"},
				codes.Preempted: {"PreemptionByScheduler"},
			},
		},
		"event of the kubelet": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/kubelet/events"}, Named: regexp.MustCompile("")},
			func(text string) scene {
				return starting(2, pending, mpitest.Waiting("ContainerCreating", "")).with(event("Pod", "pi-worker-0", text, saidSo))
			},
			map[string][]string{
				codes.ContainerCreateFailed: {
					"FailedCreatePodContainer", "FailedCreatePodSandBox", "FailedPostStartHook", "FailedPrepareDynamicResources",
					"NetworkNotReady",
				},
				codes.MountFailed: {"FailedAttachVolume", "FailedMapVolume", "FailedMount"},
				absent: {
					"CgroupV1", "ContainerGCFailed", "FailedMountOnFilesystemMismatch", "FailedNodeAllocatableEnforcement",
					"FileSystemResizeFailed", "FileSystemResizeSuccessful", "FreeDiskSpaceFailed", "ImageGCFailed", "InvalidDiskCapacity",
					"InvalidImageID", "KubeletSetupFailed", "NodeAllocatableEnforced", "NodeNotReady", "NodeNotSchedulable", "NodeReady",
					"NodeSchedulable", "PossibleMemoryBackedVolumesOnDisk", "Rebooted", "Shutdown", "Starting", "VolumeResizeFailed",
					"VolumeResizeSuccessful",
				},
				quotes: {
					"AlreadyMountedVolume", "BackOff", "Created", "ErrImageNeverPull", "ExceededGracePeriod", "Failed", "FailedKillPod",
					"FailedNodeDeclaredFeaturesCheck", "FailedPodSandBoxStatus", "FailedPreStopHook", "FailedSync", "FailedValidation",
					"InspectFailed", "Killing", "Preempting", "ProbeWarning", "Pulled", "Pulling", "ResizeCompleted", "ResizeDeferred",
					"ResizeError", "ResizeInfeasible", "ResizeStarted", "SandboxChanged", "Started", "SuccessfulAttachVolume",
					"SuccessfulMountVolume", "Unhealthy", "VolumePermissionChangeInProgress",
				},
			},
		},
		"recorded event of the kubelet": {
			mpitest.Origin{Module: "k8s.io/kubernetes", Folders: []string{"pkg/kubelet"}, Events: true},
			func(text string) scene {
				return starting(2, pending, mpitest.Waiting("ContainerCreating", "")).with(event("Pod", "pi-worker-0", text, saidSo))
			},
			map[string][]string{
				codes.ContainerCreateFailed: {"FailedCreatePodContainer", "FailedCreatePodSandBox", "FailedPrepareDynamicResources", "NetworkNotReady"},
				codes.Evicted:               {"Evicted"},
				codes.MountFailed:           {"FailedMount"},
				absent: {
					"CertificateExpired", "CertificateOverdueForRefresh", "CgroupV1", "CheckLimitsForResolvConf", "ContainerGCFailed",
					"EvictionThresholdMet", "FailedNodeAllocatableEnforcement", "FreeDiskSpaceFailed", "HostIPsIPFamilyMismatch",
					"ImageGCFailed", "InvalidDiskCapacity", "InvalidImageID", "KubeletSetupFailed", "NodeAllocatableEnforced",
					"PossibleMemoryBackedVolumesOnDisk", "Shutdown", "Starting", "SystemOOM",
				},
				quotes: {
					"BackOff", "DNSConfigForming", "DeadlineExceeded", "ExceededGracePeriod", "Failed", "FailedKillPod",
					"FailedNodeDeclaredFeaturesCheck", "FailedPodSandBoxStatus", "FailedSync", "FailedToRetrieveImagePullSecret",
					"FailedValidation", "LifecycleHTTPFallback", "MissingClusterDNS", "Preempting", "ResizeCompleted", "ResizeError",
					"ResizeStarted", "SandboxChanged",
				},
			},
		},
		"batch Job": {
			mpitest.Origin{Module: "k8s.io/api", Folders: []string{"batch/v1"}, Named: regexp.MustCompile("^JobReason")},
			func(text string) scene {
				s := failed(1, "")
				s.seen.Launcher.Status.Conditions[0].Reason, s.seen.Launcher.Status.Conditions[0].Message = text, text+": "+saidSo
				s.seen.LauncherPods = nil
				return s
			},
			map[string][]string{
				codes.DeadlineExceeded: {"DeadlineExceeded"},
				quotes: {
					"BackoffLimitExceeded", "CompletionsReached", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
					"SuccessPolicy",
				},
			},
		},
		"event of JobSet": {
			mpitest.Origin{Module: "sigs.k8s.io/jobset", Folders: []string{"pkg"}, Events: true, Named: regexp.MustCompile("CreationFailedReason$")},
			func(text string) scene {
				return running(2).with(trainJob, withoutJobs, event("JobSet", "pi", text, saidSo))
			},
			map[string][]string{
				codes.ObjectRefused: {"HeadlessServiceCreationFailed", "JobCreationFailed", "PVCCreationFailed"},
				ignores:             {"Reconciling"},
			},
		},
		"end of JobSet": {
			mpitest.Origin{Module: "sigs.k8s.io/jobset", Folders: []string{"pkg/constants"}, Named: regexp.MustCompile("^(ReachedMaxRestarts|FailedJobs|Fail.*Action)Reason$")},
			finished,
			map[string][]string{
				quotes: {"FailJobSetFailurePolicyAction", "FailedJobs", "ReachedMaxRestarts"},
			},
		},
		"end of TrainJob": {
			mpitest.Origin{Module: "github.com/kubeflow/trainer/v2", Folders: []string{"pkg/apis"}, Named: regexp.MustCompile("^TrainJob.*Reason$")},
			finished,
			map[string][]string{
				codes.DeadlineExceeded: {"DeadlineExceeded"},
				absent:                 {"Resumed", "Suspended", "TrainingRuntimeNotSupported"},
			},
		},
		"event of TrainJob": {
			mpitest.Origin{Module: "github.com/kubeflow/trainer/v2", Folders: []string{"pkg"}, Events: true},
			func(text string) scene {
				return running(2).with(trainJob, withoutJobs, event("TrainJob", "pi", text, saidSo))
			},
			map[string][]string{
				codes.ObjectRefused: {"TrainJobResourcesCreationFailed"},
				ignores:             {"Reconciling"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var decided []string
			for decision, texts := range origin.decided {
				decided = append(decided, texts...)
				for _, text := range texts {
					if got := decisionOf(origin.scene(text).findings(), text); decision != absent && got != decision {
						t.Errorf("%s: %s, want %s", text, got, decision)
					}
				}
			}
			slices.Sort(decided)
			if diff := cmp.Diff(decided, origin.Reported(t)); diff != "" {
				t.Errorf("what is decided, and what is reported (-decided +reported):\n%s", diff)
			}
		})
	}
}

// decisionOf returns the code of the cause, or whether a finding without a cause quotes a text.
func decisionOf(findings []diagnose.Finding, text string) string {
	if len(findings) == 0 {
		return ignores
	}
	first := findings[0]
	if first.Code != codes.SlowStart && first.Code != codes.Unknown {
		return first.Code
	}
	if slices.ContainsFunc(append(first.Evidence, first.Summary), func(line string) bool { return strings.Contains(line, text) }) {
		return quotes
	}
	return ignores
}
