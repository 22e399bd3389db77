package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var scheduling = []Entry{
	{
		Code: InsufficientResources, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} cannot be scheduled: {want} requested per pod, {have|which no node has free}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Wait until other workloads end, or request less per pod.}", Action: "{field}.spec.containers[0].resources"},
			{Text: "{second|Or use fewer workers.}", Action: "{secondAction}"},
			{Text: "See the capacity and usage of the nodes.", Action: nodeResources},
		},
	},
	{
		Code: NoMatchingNode, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError, Traits: BlocksScheduling,
		Status:  "No node matches its pods: compare their nodeSelector, affinity and tolerations with the nodes' labels and taints.",
		Summary: "{who} cannot be scheduled on any of {nodes|the nodes}: {why}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Compare the pod's nodeSelector, affinity and tolerations with the nodes' labels and taints.}", Action: "{field}.spec.{at|nodeSelector}"},
			{Text: "See the labels and taints of the nodes.", Action: "kubectl get nodes --show-labels"},
		},
	},
	{
		Code: Unschedulable, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Status:  "{who} cannot be scheduled: {message}",
		Summary: "{who} cannot be scheduled: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Compare the pod's requests with the nodes' capacity.}", Action: "{firstAction|kubectl describe nodes}"},
			{Text: "See the pod's conditions and events.", Action: describePod},
		},
	},
	{
		Code: SchedulingGated, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} not scheduled since {since}: held by {gates|a scheduling gate}, which another controller must remove.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If no controller removes it, remove the gate from the pod template.", Action: "{field}.spec.schedulingGates"},
			{Text: "See the gates of the pod.", Action: "kubectl -n {namespace} get pod {pod} -o jsonpath='{.spec.schedulingGates}'"},
		},
	},
	{
		Code: NoScheduler, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} not scheduled since {since}: no scheduler named {scheduler} responds.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove schedulerName. The scheduler of the cluster then places the pods.", Action: "{field}.spec.schedulerName", Rerun: true, Changes: set("{field}.spec.schedulerName", "null")},
			{Text: "Or correct the name. See which schedulers run.", Action: "kubectl get pods -A | grep -i scheduler"},
		},
	},
	{
		Code: RDMANotOffered, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary: "{who} cannot be scheduled: {want} requested per pod, which no node provides{offer}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Remove the request. The job then uses TCP, which is slower.}", Action: "{field}.spec.containers[0].resources.limits[{resource}]"},
			{Text: "Or let the job run over TCP, which is slower.", Action: "metadata.annotations[mpi.opendatahub.io/rdma]: optional", Rerun: true, Changes: setRDMA("optional")},
			{Text: rdmaOfNodes, Action: nodesWithRDMA},
		},
	},
	{
		Code: RDMAFallback, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "The job runs without RDMA, over TCP, and is slower: no node of the cluster offered the {resource} that its pods request.",
		Remedies: []v1alpha1.Remedy{
			{Text: rdmaOfNodes, Action: nodesWithRDMA},
			{Text: "To wait for nodes with RDMA instead, run the job again with this annotation.", Action: "metadata.annotations[mpi.opendatahub.io/rdma]: required", Rerun: true, Changes: setRDMA("required")},
		},
	},
	{
		Code: VolumeClaimPending, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary: "{who} cannot start: {claimText|a PersistentVolumeClaim is not bound}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Find out why the claim is not bound.}", Action: "{firstAction}"},
			{Text: "Or use another claim.", Action: "{field}.spec.volumes"},
		},
	},
}

var startup = []Entry{
	{
		Code: NetworkMissing, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: network {network} of annotation k8s.v1.cni.cncf.io/networks does not exist in namespace {in}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the name. Write a network of another namespace as namespace/name.", Action: "kubectl get network-attachment-definitions -A"},
			{Text: "The annotation is set here.", Action: "{field}.metadata.annotations"},
		},
	},
	{
		Code: InvalidImageName, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary:  "{who} cannot start: {imageNow} is not a valid image name.",
		Remedies: []v1alpha1.Remedy{{Text: "Correct the name: registry/folder/name:tag, in lower case.", Action: "{field}.spec.containers[0].image"}},
	},
	{
		Code: ImagePullFailed, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Status:  "{who} cannot start: image {imageNow} cannot be pulled: {message} Check the image name and the pull secret.",
		Summary: "{who} cannot start: image {imageNow} cannot be pulled{why}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first}", Action: "{firstAction}"},
			{Text: "{second}", Action: "{secondAction}"},
		},
	},
	{
		Code: MissingReference, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: {missing|a Secret or ConfigMap} does not exist in namespace {namespace}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Create it with this name. The pods then start automatically.", Action: "kubectl -n {namespace} get secrets,configmaps"},
			{Text: "Or correct the name in the job.", Action: "{reference}"},
		},
	},
	{
		Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
		Status:  "{who} cannot start: container {container} cannot be created: {message}",
		Summary: "{who} cannot start: the container cannot be created: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Correct the command, mount or user in the message.}", Action: "{field}.spec.containers[0]"},
			{Text: "See the pod's conditions and events.", Action: describePod},
		},
	},
	{
		Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: a volume cannot be mounted: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Check the volume in the message, and its claim.}", Action: describePod},
			{Text: "Pods on several nodes can share a volume only with access mode ReadWriteMany.", Action: "kubectl -n {namespace} get pvc"},
		},
	},
	{
		Code: CrashLoop, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Status:  "{who} keeps crashing: container {container} {exit} {tries}. Check its log.",
		Summary: "{who} in a crash loop: container {container} ended with exit code {code}, started {times} times.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the log of the previous run.", Action: "kubectl -n {namespace} logs {pod} --previous"},
			{Text: "A worker must keep running. Remove its command, and the agent runs there.", Action: "{field}.spec.containers[0].command"},
		},
	},
	{
		Code: WorkerEnded, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} ended with exit code 0 before the launcher did. MPI can start no rank there.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the workers have a command, remove it: a worker must keep running, and MPI starts the program there.", Action: "{field}.spec.containers[0].command"},
			{Text: "Read its log.", Action: "kubectl -n {namespace} logs {pod}"},
			{Text: "Check the events: they show whether something stopped it.", Action: listEvents},
		},
	},
	{
		Code: WorkersNotReady, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
		Summary: "{who} running, but not ready since {since}{message}. The launcher starts when all workers are ready.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the readiness probe, or correct it.", Action: "{field}.spec.containers[].readinessProbe"},
			{Text: "Or start the launcher at once. It waits for the workers' agents.", Action: "spec.launcherCreationPolicy: AtStartup", Rerun: true, Changes: set("spec.launcherCreationPolicy", "AtStartup")},
		},
	},
	{
		Code: SidecarFailed, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "Container {container} of {whoLower} failed with exit code {code}. It is not the container that runs MPI.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read its log.", Action: "kubectl -n {namespace} logs {pod} -c {container}"},
			{Text: "If the job does not need it, remove it.", Action: "{field}.spec.containers"},
		},
	},
	{
		Code: SidecarRunning, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "The launcher's program has ended, but container {container} keeps its pod running.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the container from the job's pods.", Action: "{sidecarAction|Remove it from the pod template}"},
			{Text: "Or make it a sidecar that Kubernetes stops: an init container with restartPolicy Always.", Action: "initContainers[].restartPolicy: Always"},
		},
	},
	{
		Code: ServiceMesh, Phase: v1alpha1.PhaseInitializing,
		Summary: "A service mesh (Istio) intercepts the connections between the job's pods, which breaks MPI.",
		Remedies: []v1alpha1.Remedy{{
			Text: "Exclude the job's pods from the mesh.", Action: "{field}.metadata.labels: {sidecar.istio.io/inject: \"false\"}", Rerun: true,
			Changes: set("{workerTemplate}.metadata.labels[sidecar.istio.io/inject]", "\"false\"", "{launcherTemplate}.metadata.labels[sidecar.istio.io/inject]", "\"false\""),
		}},
	},
	{
		Code: ClockSkew, Phase: v1alpha1.PhaseRunning,
		Summary: "Clock skew between nodes: a certificate or token is rejected as expired or not yet valid.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Ask the cluster administrator to synchronize the node's clock (NTP).", Action: "kubectl get nodes"},
			{Text: "If all clocks are correct, a certificate that the program uses has expired; renew it."},
		},
	},
}

var stalls = []Entry{
	{
		Code: RankGone, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
		Summary: "{rankWho|A rank} failed{errorText}, but the job continues: {message|the other ranks wait for it}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Delete the launcher's pod. The job then fails or starts its next attempt; it does not continue by itself.", Action: "kubectl -n {namespace} delete pod {logPod}"},
			{Text: "Read the output of the rank that failed.", Action: launcherLog},
			{Text: "Python: let an exception end all ranks.", Action: "mpirun ... python -m mpi4py SCRIPT"},
			{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"},
		},
	},
	{
		Code: RanksWaiting, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "All {ranksNow|ranks} wait since {since}: none computes or transfers data ({message}). The job is probably stuck.",
		Remedies: []v1alpha1.Remedy{
			{Text: "See what the kernel reports of each rank: its state, and the system call in which it waits.", Action: processStates},
			{Text: "Python: run the job again with this variable. A rank that receives the signal ABRT (kill -ABRT) then prints its call stacks and ends.", Action: "env: PYTHONFAULTHANDLER=1", Rerun: true, Changes: set("env.PYTHONFAULTHANDLER", "1")},
			{Text: "Check that each receive has a matching send, and that all ranks call the same collective operations in the same order."},
			{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"},
		},
	},
	{
		Code: RanksIdle, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
		Summary: "{ranksNow|The ranks} idle since {since}: none computes or transfers data ({message}). This may be on purpose, such as waiting for a file.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what the program printed last: it may say what it waits for.", Action: launcherLog},
			{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"},
		},
	},
	{
		Code: Straggler, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo,
		Summary: "{ranksNow|The other ranks} wait since {since} for {rankWho|one rank} ({message}), which may have more work than the others, be slower, or be in an endless loop.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read what the program printed last, and check what the program does on that rank between two messages.", Action: launcherLog},
			{Text: "Check whether another program uses the CPUs of its node.", Action: "kubectl -n {namespace} top pods -l {selector}"},
			{Text: "If only one rank has work, as when it loads the data, divide it among the ranks."},
			{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"},
		},
	},
	{
		Code: CPUThrottled, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "The CPU limit of the workers slows the ranks down: the kernel stopped them for {seconds} s, {share} % of the time that they needed.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Increase the CPU limit to one CPU per rank, or remove it.", Action: "{workerTemplate}.spec.containers[0].resources.limits.cpu"},
			{Text: "Or use as many slots as CPUs.", Action: "{slotsField}"},
		},
	},
	{
		Code: NoOutput, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "No output since {since}, although all pods run. The program may be computing, or a rank is stuck.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the CPU usage of the ranks. A stuck rank uses none; those that wait for it use a full core.", Action: "kubectl -n {namespace} top pods -l {selector}"},
			{Text: "See what the kernel reports of each rank: its state, and the system call in which it waits.", Action: processStates},
			{Text: "Python: run the job again with this variable. A rank that receives the signal ABRT (kill -ABRT) then prints its call stacks and ends.", Action: "env: PYTHONFAULTHANDLER=1", Rerun: true, Changes: set("env.PYTHONFAULTHANDLER", "1")},
			{Text: "Set a deadline, so that a stuck job releases its nodes.", Action: "{deadlineField}"},
		},
	},
	{
		Code: SlowStart, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
		Summary: "{who} not started since {since}: {state}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "See the pod's conditions and events.", Action: describePod},
			{Text: "A node takes minutes to pull a large image for the first time. Later starts are faster."},
		},
	},
	{
		Code: SlowStartupStep, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityInfo,
		Summary: "The start was slow: {step} took {time}{where}{median}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{advice}"},
			{Text: "See the pod's conditions and events.", Action: describePod},
		},
	},
	{
		Code: Unknown, Phase: v1alpha1.PhaseFailed, Strength: Unexplained, Traits: FollowsPodLoss,
		Summary: "{state} The cause is unknown. {known}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the launcher's log. The first error is usually the cause.", Action: "kubectl -n {namespace} logs -l {launcherPods} --tail=200"},
			{Text: "Check the events.", Action: listEvents},
			{Text: "Check the state of the pods.", Action: "kubectl -n {namespace} describe pods -l {selector}"},
		},
	},
}

// NodeNetworkDown is the definition of ContainerCreateFailed for a pod on a node whose network plugin does not run.
var NodeNetworkDown = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the network of node {node} is not ready: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "Report it to the cluster administrator: the node's network plugin does not run.", Action: "kubectl describe node {node}"},
		{Text: "Or let the job run on other nodes.", Action: "{field}.spec.nodeSelector"},
	},
}

// DevicesNotPrepared is the definition of ContainerCreateFailed for a pod whose ResourceClaims the driver on its node cannot prepare.
var DevicesNotPrepared = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the driver on node {node} cannot prepare the devices of its ResourceClaims: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "See whether the driver's pod runs on the node, and report its errors to the cluster administrator.", Action: "kubectl get pods -A --field-selector spec.nodeName={node}"},
		{Text: "See the claims and the devices that are allocated to them.", Action: "kubectl -n {namespace} get resourceclaims -o yaml"},
	},
}

// SandboxFailed is the definition of ContainerCreateFailed for a pod whose sandbox cannot be created: its network, or its namespaces.
var SandboxFailed = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: node {node} cannot create the pod's sandbox: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "{first|If other pods start on this node, correct what the message names in the pod template, such as hostUsers, runtimeClassName or sysctls.}", Action: "{field}.spec"},
		{Text: "If no pods start on this node, report it to the cluster administrator: its network or container runtime does not work.", Action: "kubectl describe node {node}"},
	},
}

// RemoteMountFailed is the definition of MountFailed for a file system of another machine, such as an NFS server.
var RemoteMountFailed = Entry{
	Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: node {node} cannot mount {source}: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "{first}"},
		{Text: "Read the message of mount in the pod's events.", Action: describePod},
	},
}

// HostPathMissing is the definition of MountFailed for a path that the pod's node does not have.
var HostPathMissing = Entry{
	Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: hostPath {message} on node {node}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use a PersistentVolumeClaim. A hostPath is a path of the node on which the pod happens to run.", Action: "{field}.spec.volumes"},
		{Text: "Or ask the cluster administrator to create the path on all nodes, or select the nodes that have it.", Action: "{field}.spec.nodeSelector"},
		{Text: "See the pod's conditions and events.", Action: describePod},
	},
}

// initRemedies are those of init containers that fail.
var initRemedies = []v1alpha1.Remedy{
	{Text: "Read the log of the init container.", Action: "kubectl -n {namespace} logs {pod} -c {container}"},
	{Text: "Correct its command and what it needs, or remove it.", Action: "{field}.spec.initContainers"},
}

// InitContainerFailed is the definition of ApplicationFailed for an init container: no program of the job has started.
var InitContainerFailed = Entry{
	Code: ApplicationFailed, Phase: v1alpha1.PhaseInitializing,
	Summary:  "{who} cannot start: init container {container} failed{codeText}{errorText}.",
	Remedies: initRemedies,
}

// InitContainerCrashes is the definition of CrashLoop for an init container.
var InitContainerCrashes = Entry{
	Code: CrashLoop, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
	Summary:  "{who} cannot start: init container {container} ended with exit code {code}, started {times} times.",
	Remedies: initRemedies,
}

// ClaimsMissing is the definition of MissingReference for pods that the scheduler does not look at until their ResourceClaims exist.
var ClaimsMissing = Entry{
	Code: MissingReference, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
	Summary: "{who} not scheduled since {since}: the scheduler waits for {claims}, and reports nothing meanwhile.",
	Remedies: []v1alpha1.Remedy{
		{Text: "See whether the claim exists. The pods are then scheduled automatically.", Action: "kubectl -n {namespace} get resourceclaims,resourceclaimtemplates"},
		{Text: "Or correct its name in the job.", Action: "{field}.spec.resourceClaims"},
	},
}

// HookFailed is the definition of ContainerCreateFailed for a container whose postStart hook failed.
var HookFailed = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the postStart hook of a container failed, and Kubernetes stopped the container.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the hook, or remove it.", Action: "{field}.spec.containers[].lifecycle.postStart"},
		{Text: "See the pod's conditions and events.", Action: describePod},
	},
}
