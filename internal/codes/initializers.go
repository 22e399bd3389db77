package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// InitializerFailed is the definition of ApplicationFailed for an initializer of a TrainJob: no program of the job has started. Its field is
// where the TrainJob configures it.
var InitializerFailed = Entry{
	Code: ApplicationFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "The job's pods cannot start: its {container} failed{codeText}{errorText}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the address from which it reads, if nothing exists there.", Action: "{field}.storageUri"},
		InitializerLogin,
		{Text: "Read its log.", Action: "kubectl -n {namespace} logs {pod}"},
	},
}

// InitializerLogin is the remedy for an initializer that may not read from its address.
var InitializerLogin = v1alpha1.Remedy{Text: "If its address requires a login, name a Secret with that, such as ACCESS_TOKEN for Hugging Face. The account must have access.", Action: "{field}.secretRef"}

// MemoryVolume is a remedy for pods that ran out of memory and have a volume in it.
var MemoryVolume = v1alpha1.Remedy{Text: "Files on volume {volume}, at {folder}, count as memory, too: write fewer or delete them, or use an emptyDir without medium: Memory."}

// InitializerOutOfMemory is the remedy for an initializer that the kernel killed.
var InitializerOutOfMemory = v1alpha1.Remedy{Text: "Give it more memory: the kernel killed it for lack of memory.", Action: "the runtime's pod template of the {container}: spec.containers[0].resources.limits.memory"}
