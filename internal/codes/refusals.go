package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var refusals = []Entry{
	{
		Code: JobInvalid, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityError,
		Summary:  "{message}",
		Remedies: []v1alpha1.Remedy{{Text: "Correct these fields and create the job again."}},
	},
	{
		Code: InvalidChange, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary:  "The job became invalid after it had been started: {message}. {how}",
		Remedies: []v1alpha1.Remedy{{Text: "Correct the field, or remove the annotation.", Action: "kubectl -n {namespace} edit {kindLower} {job}"}},
	},
	{
		Code: NameTaken, Phase: v1alpha1.PhasePending,
		Summary: "{object} {name} already exists and does not belong to this job.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use another name for the job."},
			{Text: "Or check whether the existing object is still needed, and delete or rename it.", Action: "kubectl -n {namespace} get {object} {name} -o yaml"},
		},
	},
	{
		Code: EarlierJobLeaving, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityWarning,
		Status:  "Waiting for {object} {name} of an earlier job to be deleted.",
		Summary: "Waiting for {object} {name} of {of|an earlier job with the same name} to be deleted. Both {both|jobs} use the same host names.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Wait. This takes seconds, unless a finalizer keeps the object, or the node of a pod does not respond."},
			{Text: "See why it is not deleted.", Action: "kubectl -n {namespace} describe {object} {name}"},
			{Text: "Or create the job with another name."},
		},
	},
	{
		Code: QuotaExceeded, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Summary: "Quota{quota} of the namespace exceeded: {figures|it is used up}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request less: fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "Or wait until other jobs in the namespace end. The remaining pods are then created automatically."},
			{Text: "Or ask the cluster administrator for a larger quota.", Action: describeQuota},
		},
	},
	{
		Code: QuotaTooSmall, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityError,
		Summary: "The quota of namespace {namespace} is too small for the job, even when unused: {figures}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request less: fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "Ask the cluster administrator for a larger quota.", Action: describeQuota},
			{Text: "Or run the job in a namespace with a larger quota."},
		},
	},
	{
		Code: QuotaExhausted, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityWarning,
		Summary: "Waiting for quota, no pods created yet: {figures}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Wait until other workloads in the namespace end. The job then starts automatically."},
			{Text: "See what uses the quota, and delete what is not needed.", Action: "kubectl -n {namespace} get {jobKinds},pods"},
			{Text: "Or request less: fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "Or ask the cluster administrator for a larger quota.", Action: describeQuota},
		},
	},
	{
		Code: PodSecurityDenied, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Summary: "Pods violate Pod Security level {level|of the namespace}: {violations|see the message}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Set these fields in the pod templates. The agent needs no privileges.", Action: "securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"},
			{Text: "Or run the job in a namespace with a less restrictive level."},
		},
	},
	{
		Code: SecurityContextDenied, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Summary: "No OpenShift security context constraint allows the pods: {violations|see the message}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove fixed users, root, host paths and extra capabilities from the pod templates. The agent runs as any user.", Action: "{field}.spec.securityContext"},
			{Text: "If the program needs them, ask the cluster administrator for a constraint for the job's service account."},
		},
	},
	{
		Code: AdmissionDenied, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Summary: "{webhook|An admission webhook} rejected {object} {name}: {reason}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Change the job as the message requires."},
			{Text: "If the message is not clear, ask the cluster administrator about this webhook."},
		},
	},
	{
		Code: WebhookUnreachable, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Summary: "The API server accepts no {object} of the job, because it cannot call webhook {webhook}: {reason}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Wait if the webhook's operator is being updated: the job goes on by itself when the webhook answers."},
			{Text: "If it lasts longer than a minute, ask the cluster administrator: the pods behind the webhook's Service must be ready. To see who installed it:", Action: "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"},
		},
	},
	{
		Code: ObjectRefused, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
		Status:  "The API server rejected {object} {name}: {message}",
		Summary: "The API server rejected {object} {name}, which the job needs: {reason}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct what the message names. The operator retries every 15 seconds."},
		},
	},
	{
		Code: KeyGenerationFailed, Phase: v1alpha1.PhasePending,
		Summary: "The job's SSH keys could not be generated: {reason}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the operator's log. The job is not the cause.", Action: "kubectl -n mpijob-system logs deployment/mpijob-operator"},
		},
	},
}

// RefusedToController is the definition of ObjectRefused for objects that another controller creates for the job.
var RefusedToController = Entry{
	Code: ObjectRefused, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityError, Traits: BlocksPods,
	Summary: "The API server rejected {object} {name}, which the job needs: {reason}",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the fields that the message names, in the job or in its runtime, and create the job again."},
		{Text: "If it does not concern a field, remove what the message names. The controller retries by itself."},
	},
}

// VolumeDenied is the definition of PodSecurityDenied for pods with volumes of a type that the level forbids, and no other
// violation.
var VolumeDenied = Entry{
	Code: PodSecurityDenied, Phase: v1alpha1.PhasePending, Traits: BlocksPods,
	Summary: "Pods violate Pod Security level {level|of the namespace}: {violations|see the message}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use a PersistentVolumeClaim instead: the level forbids volumes of this type.", Action: "{field}.spec.volumes"},
		{Text: "Or run the job in a namespace with a less restrictive level."},
	},
}

// CapabilityDenied are the remedies of PodSecurityDenied for containers that add capabilities which the level forbids.
var CapabilityDenied = []v1alpha1.Remedy{
	{Text: "Remove {capabilities} from the capabilities that the containers add.", Action: "{field}.spec.containers[0].securityContext.capabilities.add"},
}

// PrivilegeDenied are the remedies of PodSecurityDenied for containers with privileges that the level baseline forbids.
var PrivilegeDenied = []v1alpha1.Remedy{
	{Text: "Remove privileged, and a seccompProfile of type Unconfined, from the containers. The agent needs no privileges.", Action: "{field}.spec.containers[0].securityContext"},
}

// PatchOfNoJob is the definition of ObjectRefused for a Job of a TrainJob's JobSet without an image: its patches name a job or a container
// that the runtime does not have, and become another one.
var PatchOfNoJob = Entry{
	Code: ObjectRefused, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityError, Traits: BlocksPods,
	Summary: "{object} {name} has a container without an image: the runtime names none, or the TrainJob changes a job or container that the runtime does not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the names in the TrainJob's patches. MPI runtimes have the jobs launcher and node, each with a container node.", Action: "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].name"},
		{Text: "If the TrainJob has no such patches, name the image in it, or in the runtime.", Action: "spec.trainer.image"},
		{Text: "See the jobs and containers of the runtime.", Action: "kubectl odh mpijob runtimes list -n {namespace}"},
	},
}
