package codes

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Topic explains a code without a job: what it means, and what to do.
type Topic struct {
	Code Code `json:"code"`
	// Phase is the phase in which the problem occurs.
	Phase v1alpha1.Phase `json:"phase"`
	// Meaning is the summary of findings with this code, without the names and figures of a job.
	Meaning string `json:"meaning"`
	Steps   []Step `json:"steps"`
}

// Step is a way to examine or to solve a problem.
type Step struct {
	Text string `json:"text"`
	// Command is run in a shell. Setting is a field or a line that is changed. At most one of them is set.
	Command string `json:"command,omitempty"`
	Setting string `json:"setting,omitempty"`
}

// Guide returns the topics of all codes that findings have, in the order of the definitions. Callers share them and must not change
// them.
var Guide = sync.OnceValue(guide)

func guide() []Topic {
	var topics []Topic
	for _, e := range Entries() {
		if !e.IsFinding() {
			continue
		}
		topic := Topic{Code: e.Code, Phase: e.Phase, Meaning: cmp.Or(meanings[e.Code], sentence(Fill(e.Summary, inWords))), Steps: []Step{}}
		for _, remedy := range slices.Concat(generalSteps[e.Code], e.Remedies) {
			if !isGeneral(remedy) {
				continue
			}
			step := Step{Text: sentence(Fill(remedy.Text, inWords))}
			if action := Fill(remedy.Action, inCommands(remedy.Action)); IsCommand(action) {
				step.Command = action
			} else {
				step.Setting = action
			}
			topic.Steps = append(topic.Steps, step)
		}
		topics = append(topics, topic)
	}
	return topics
}

// IsExplained reports whether the guide has a topic for a code.
func IsExplained(code Code) bool { return table[code].IsFinding() }

// generalSteps are the first steps of codes whose remedies depend on what was observed of a job.
var generalSteps = map[Code][]v1alpha1.Remedy{
	ImagePullFailed: {
		{Text: "Correct the name, the tag or the registry of the image, if the message says that it does not exist.", Action: "{field}.spec.containers[0].image"},
		{Text: "If the registry requires a login, add a Secret with it to the job's pods.", Action: "{field}.spec.imagePullSecrets"},
		{Text: "If the registry does not respond, wait: the pods retry, and start by themselves.", Action: describePod},
	},
	RDMANotUsed: {
		{Text: "See which network MPI or NCCL chose, and why. The remedies of the job's report depend on it.", Action: "kubectl odh mpijob explain {job} -n {namespace}"},
	},
	SlowStartupStep: {
		{Text: "See which step was slow, and in which pod. The remedies of the job's report depend on it.", Action: "kubectl odh mpijob explain {job} -n {namespace}"},
	},
}

// isGeneral reports whether a remedy has a text of its own, and not only a placeholder for what was observed.
func isGeneral(remedy v1alpha1.Remedy) bool {
	return placeholder.ReplaceAllString(remedy.Text, "$2") != ""
}

// meanings replace summaries that do not read well without the names and figures of a job.
var meanings = map[Code]string{
	JobInvalid:             "Fields of the job are not valid. The message names each field, its value, and what is allowed.",
	InvalidChange:          "A job became invalid after it had been started. It goes on without the invalid annotation, or without new pods if another field is invalid.",
	NameTaken:              "An object that the job needs already exists under this name and does not belong to the job.",
	EarlierJobLeaving:      "The job waits until the pods of an earlier job with the same name are deleted. Both jobs use the same host names.",
	QuotaExceeded:          "The pods of the job exceed a ResourceQuota of the namespace. The message has the figures.",
	QuotaTooSmall:          "A ResourceQuota of the namespace is too small for the job, even when it is unused. The message has the figures.",
	QuotaExhausted:         "The job waits for quota of the namespace, and no pods are created yet. The message has the figures.",
	PodSecurityDenied:      "The pods violate the Pod Security level of the namespace. The message names the fields.",
	SecurityContextDenied:  "No OpenShift security context constraint allows the pods. The message names the fields.",
	WebhookUnreachable:     "The API server cannot call an admission webhook, so that it accepts no objects of the job.",
	AdmissionDenied:        "An admission webhook rejected the job, or an object that the job needs.",
	ObjectRefused:          "The API server rejected an object that the job needs.",
	QueueNeverFits:         "The job exceeds the maximum capacity of its queue, so waiting does not help.",
	QueueNeedsRequests:     "Pods of the job request nothing, and Kueue, which selects the nodes in this queue, does not admit such pods. Other jobs of the queue wait, too.",
	QueueLacksResource:     "The queue of the job has no quota for a resource that its pods request, so waiting does not help.",
	QueueLacksNodes:        "The queue of the job has no nodes that its pods accept, by their node selector, affinity, tolerations or topology.",
	QueueUnusable:          "The queue of the job cannot admit it: the queue does not exist, is stopped, or is misconfigured.",
	QueuePriorityMissing:   "The WorkloadPriorityClass that the label kueue.x-k8s.io/priority-class of the job names does not exist, so that Kueue does not queue the job.",
	WorkloadMissing:        "Kueue has created no Workload for the job for a minute: it does not run, does not manage this kind or namespace, or refuses the job.",
	QueueGaveUp:            "Kueue deactivated the job's Workload, usually because the pods did not start in time too often.",
	Evicted:                "A pod was evicted, for example because its node ran out of memory or disk space. An MPI program ends when it loses a worker.",
	Preempted:              "Pods of the job were preempted by pods with a higher priority.",
	NodeLost:               "A pod was lost with its node, which does not respond or is being removed. The job is not the cause.",
	NodeMissing:            "A pod cannot start: the node that the job's nodeName requires does not exist.",
	PodRejected:            "The kubelet of a node rejected a pod before its containers started. The message names the reason, such as a sysctl, a profile or a lack of room.",
	PodDeadlineExceeded:    "The kubelet stopped a pod that was active for longer than activeDeadlineSeconds of its own template.",
	WorkerDeleted:          "The pod of a worker was deleted by something else while the job was running. An MPI program ends when it loses a worker.",
	ProbeFailed:            "Kubernetes stopped a pod because a liveness or startup probe failed, and an MPI program ends when it loses a worker; or a probe cannot be executed.",
	RestartedTooOften:      "A TrainJob was started again too often, mostly because its pods were evicted, preempted or drained. Its program was not run again.",
	DeadlineExceeded:       "The job exceeded its deadline (activeDeadlineSeconds) and was stopped.",
	InsufficientResources:  "A pod cannot be scheduled: it requests more of a resource than any node has free.",
	NoMatchingNode:         "A pod cannot be scheduled: no node matches its nodeSelector, affinity and tolerations.",
	RDMANotOffered:         "A pod cannot be scheduled: it requests an RDMA resource that no node provides.",
	NetworkMissing:         "A pod cannot start: a network of its annotation k8s.v1.cni.cncf.io/networks does not exist.",
	InvalidImageName:       "A pod cannot start: the name of its image is not valid.",
	ImagePullFailed:        "A pod cannot start: its image cannot be pulled. The image or tag does not exist, the registry requires a login, or it does not respond.",
	MissingReference:       "A pod cannot start: a Secret or ConfigMap that it refers to does not exist in the namespace.",
	CrashLoop:              "A container of a pod ends with an error again and again, and Kubernetes restarts it with growing delays.",
	WorkerEnded:            "A worker ended with exit code 0 before the launcher did. MPI can start no rank there.",
	SchedulingGated:        "A pod is held by a scheduling gate, which another controller must remove.",
	NoScheduler:            "A pod is not scheduled: no scheduler with the name in its template responds.",
	WorkersNotReady:        "Workers run, but are not ready, and the launcher starts when all are. Their readiness probe usually fails.",
	SidecarFailed:          "A sidecar failed: a container other than the one that runs MPI.",
	SidecarRunning:         "The launcher's program has ended, but another container keeps its pod running.",
	LauncherNameUnresolved: "The workers could not resolve the launcher's host name. Its DNS record appears shortly after the pod.",
	ConnectionTimedOut:     "The launcher's connection to a worker timed out. A NetworkPolicy or a service mesh usually drops the packets.",
	UnknownHost:            "The command names a host that is none of the job's, and whose name cannot be resolved.",
	WorkerUnreachable:      "The launcher could not reach some of its workers.",
	KeyUnprotected:         "The launcher's ssh rejects the job's key because other users can read the file. Kubernetes mounts Secrets with this mode.",
	NoUserEntry:            "The user ID of the pod has no entry in the image's /etc/passwd, which ssh requires. OpenShift runs pods with such user IDs.",
	ShortHostNames:         "The job's horovodrun could not reach the workers by ssh: it uses host names that DNS does not resolve, such as short ones.",
	PortInUse:              "A worker cannot start: another process already uses its port. Containers of a pod share its ports, and with hostNetwork pods share the node's.",
	NotEnoughSlots:         "The command requests more ranks than the job has slots: workers times slots per worker.",
	TooFewCores:            "Open MPI could not bind each rank to a core of its own: the node has too few cores.",
	HostfileIgnored:        "MPI ran all ranks on the launcher and none on the job's workers: it did not use the job's hostfile.",
	HostfileMissing:        "The hostfile that the command names does not exist.",
	MixedMPI:               "Every process ran as rank 0 of 1, so that the same work was done several times: the program uses another MPI than mpirun.",
	RDMAFallback:           "The job runs without the RDMA that its pods request, because no node offers it. It is slower.",
	RDMANotUsed:            "The pods have an RDMA device, but MPI or NCCL does not use it. The job is slower.",
	RootRefused:            "Open MPI refuses to run as root.",
	OutOfMemory:            "A container exceeded its memory limit. The kernel killed the program, which ends the MPI job.",
	GPUOutOfMemory:         "The program requested more memory of a GPU than is free.",
	MoreSlotsThanGPUs:      "Workers have more slots than GPUs. Ranks share a GPU, which NCCL rejects, or find none.",
	GPUIdle:                "The GPUs of a pod have hardly been used for ten minutes. Those of AMD and NVIDIA are measured.",
	WrongGPU:               "A rank selected a GPU that its pod does not have, or that another rank of the pod uses.",
	NoGPUVisible:           "The program found no GPU.",
	RankFailed:             "A rank failed with an error, gave up or was ended early, but the job succeeded: the launcher's command ended with 0.",
	RankGone:               "A rank failed, but the job continues: the other ranks wait for it.",
	Killed:                 "A program was killed by signal 9, usually because of memory, or because its pod was removed and did not stop in time.",
	TimeLimitExceeded:      "MPI's launcher ended all ranks at its own time limit, which its command or MPIEXEC_TIMEOUT sets. The ranks did not fail.",
	Terminated:             "A program was terminated (signal 15): its pod was removed or its time expired. The program reported no error.",
	ProgramMissing:         "The image of the launcher or of a worker does not contain the program that the command starts.",
	WindowsLineEnds:        "A script has Windows line ends (CR LF), so that its interpreter or a program in it was not found.",
	MPINotInPath:           "A helper program of MPI was not found on a worker: MPI is not in its image, or not in PATH for remote logins.",
	LibraryMissing:         "The program cannot start: a shared library was not found.",
	RanksIdle:              "No rank has computed or transferred data for minutes: all sleep, perhaps on purpose, such as until a file exists.",
	NoAnswer:               "A pod tries to open a connection and gets no answer: a NetworkPolicy or a firewall drops the packets, or nothing has the address.",
	Straggler:              "Most ranks wait for one that computes: it has more work than the others, is slower, or is in an endless loop.",
	RanksWaiting:           "All ranks wait: none computes or transfers data. The job is probably stuck.",
	MPINotAwaited:          "The launcher's command ended with 0 while MPI was still running in the background, and the pod ended with it.",
	ResultsNotKept:         "The job succeeded, but by the paths that the program prints, its results are on no volume that stays, so that they are deleted with the pod.",
	WorkersIdle:            "The job succeeded, but no rank ran on some of its workers.",
	CPUThrottled:           "The CPU limit of the workers slows the ranks down: the kernel stopped them for a considerable part of the time.",
	RanksShareCores:        "Ranks of several pods on a node are bound to the same cores, although they could use others.",
	WorkersShareNodes:      "Several workers run on one node, and their ranks communicate much. They use TCP there, because pods do not share memory.",
	DeadlineNear:           "The deadline of the job ends it before it is done, or soon.",
	QueueEndsJob:           "The job's queue ends it before it is done, or soon: its Workload has a maximum execution time.",
	NodeCordoned:           "A node on which the job runs accepts no new pods, as before it is drained.",
	MemoryGrowing:          "The memory of a pod grows steadily towards its limit, at which the kernel kills the program.",
	TrainingDiverged:       "The loss of the training is not a number, or has become much larger than it was.",
	FigureConstant:         "The loss, the residual or the error that the program prints has not changed for many steps.",
	NoOutput:               "The program has printed nothing for a long time, although all pods run. It may be computing, or a rank is stuck.",
	SlowStart:              "A pod has not started for a long time.",
	SlowStartupStep:        "A part of the start, such as pulling an image or attaching a volume, took unusually long.",
	ProfileMissing:         "The job asks for a communication profile, but no rank has counted its calls of MPI.",
	Unknown:                "The job failed, and neither pods, events nor logs show a known cause.",
}

// inWords are values of placeholders in texts about no particular job. Others have the text after their bar, or none.
var inWords = map[string]string{
	"who": "A pod", "host": "a worker", "rankWho": "A rank", "role": "worker", "secret": "of the job", "ranks": "that many",
}

// inCommands returns values for the placeholders of an action: their names in capital letters, or the usual field.
func inCommands(action string) map[string]string {
	values := map[string]string{}
	for _, match := range placeholder.FindAllStringSubmatch(action, -1) {
		values[match[1]] = words.ReplaceAllStringFunc(match[1], func(letter string) string { return "-" + letter })
		values[match[1]] = strings.ToUpper(values[match[1]])
	}
	for name, field := range map[string]string{
		"field": "spec.mpiReplicaSpecs.Worker.template", "workerTemplate": "spec.mpiReplicaSpecs.Worker.template", "workersField": "spec.mpiReplicaSpecs.Worker.replicas",
		"slotsField": "spec.slotsPerWorker", "deadlineField": "spec.runPolicy.activeDeadlineSeconds", "gangField": "spec.runPolicy.schedulingPolicy", "kindLower": "mpijob", "jobKinds": "mpijobs",
		"logPod": "LAUNCHER-POD", "launcherPods": "training.kubeflow.org/job-name=JOB,training.kubeflow.org/job-role=launcher", "hostPod": "WORKER-POD", "worker": "WORKER-POD", "reference": "", "gpus": "GPUS",
		"firstAction": "kubectl -n NAMESPACE describe pvc", "secondAction": "", "action": "", "insist": "mpirun --mca pml ucx", "sidecarAction": "spec.mpiReplicaSpecs.Launcher.template.spec.containers",
		"selector": "training.kubeflow.org/job-name=JOB", "perWorker": "SLOTS", "probe": "liveness", "awaited": "readiness", "resource": "rdma/NAME",
	} {
		if _, used := values[name]; used {
			values[name] = field
		}
	}
	return values
}

var (
	words  = regexp.MustCompile(`[A-Z]`)
	spaces = regexp.MustCompile(` {2,}`)
	// before is a space before a mark, and a mark without a text after a name.
	before = regexp.MustCompile(` +([.,:;)])`)
	ends   = regexp.MustCompile(`[:,;]\.?$`)
)

// sentence returns a text without the gaps of placeholders that have no value.
func sentence(text string) string {
	text = spaces.ReplaceAllString(text, " ")
	text = before.ReplaceAllString(text, "$1")
	text = strings.NewReplacer(" ()", "", "()", "", ": .", ".", ":.", ".").Replace(text)
	text = ends.ReplaceAllString(strings.TrimSpace(text), "")
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// IsCommand reports whether an action is run in a shell, and not a setting.
func IsCommand(action string) bool {
	first, _, _ := strings.Cut(action, " ")
	switch first {
	case "kubectl", "mpirun", "ldd", "pip", "sed", "ssh-keygen", "sh", "horovodrun", "until", "echo":
		return true
	}
	return false
}
