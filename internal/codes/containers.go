package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var creations = []Entry{
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
}

// ReferenceWithoutKey is the definition of MissingReference for a Secret or ConfigMap that exists and lacks a key.
var ReferenceWithoutKey = Entry{
	Code: MissingReference, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: {missing} does not exist in namespace {namespace}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "See which keys it has.", Action: "kubectl -n {namespace} describe {object} {name}"},
		{Text: "Write one of them in the job.", Action: "{reference}"},
		{Text: "Or add the key. The pods then start automatically."},
	},
}

// SubPathVariable is the definition of ContainerCreateFailed for a subPathExpr with a variable that the container does not define.
var SubPathVariable = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: subPathExpr refers to $({variable}), which the env of the container does not define.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Define {variable} in env of this container, for example as the name of the pod.", Action: "{field}.spec.containers[0].env: [{name: {variable}, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"},
		{Text: "Or use subPath, or no folder of its own.", Action: "{field}.spec.containers[0].volumeMounts"},
	},
}

var crashLoops = []Entry{
	{
		Code: CrashLoop, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Status:  "{who} keeps crashing: container {container} {exit} {tries}. Check its log.",
		Summary: "{who} in a crash loop: container {container} ended with exit code {code}, started {times} times.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read the log of the previous run.", Action: "kubectl -n {namespace} logs {pod} --previous"},
			{Text: "A worker must keep running. Remove its command, and the agent runs there.", Action: "{field}.spec.containers[0].command"},
		},
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
	Summary:  "{who} cannot start: init container {container} failed{codeText}{errorText}{placeText}.",
	Remedies: initRemedies,
}

// InitContainerRuns is the definition of SlowStart for an init container that has not ended.
var InitContainerRuns = Entry{
	Code: SlowStart, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
	Summary: "{who} not started since {since}: its init container {container} is still running.{lastText}",
	Remedies: []v1alpha1.Remedy{
		{Text: "See what it prints, and what it waits for.", Action: "kubectl -n {namespace} logs {pod} -c {container}"},
		{Text: "The pod's other containers start when it has ended with exit code 0."},
	},
}

// InitAwaited are the first remedies for workers that the launcher did not reach since one of their init containers had not ended. They use
// container, and hostPod, such a worker.
var InitAwaited = []v1alpha1.Remedy{
	{Text: "See what init container {container} prints, and what it waits for. Create that, such as a Service, or correct or remove the init container: without its end the worker does not start.", Action: "kubectl -n {namespace} logs {hostPod} -c {container}"},
}

// InitContainerCrashes is the definition of CrashLoop for an init container.
var InitContainerCrashes = Entry{
	Code: CrashLoop, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
	Summary:  "{who} cannot start: init container {container} ended with exit code {code}{errorText}{placeText}, started {times} times.",
	Remedies: initRemedies,
}

// InitProgramMissing is the definition of ProgramMissing for an init container.
var InitProgramMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
	Summary: "{who} cannot start: init container {container} calls {program|a program}, which is not in its image.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use an image that contains {program|the program} for this init container, or correct the name.", Action: "{field}.spec.initContainers[].image"},
		{Text: "Read the log of the init container.", Action: "kubectl -n {namespace} logs {pod} -c {container}"},
	},
}
