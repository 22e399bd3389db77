package dashboard

import "opendatahub.io/mpijob/internal/jobs"

// SpecRequest is a new job by its specification, or as YAML.
type SpecRequest struct {
	Spec jobs.Spec `json:"spec"`
	// CommandLine is the command as it is written in a shell. It replaces spec.command.
	CommandLine string `json:"commandLine,omitempty"`
	// FlagLine are more flags of mpirun as they are written in a shell. They replace spec.mpiFlags.
	FlagLine string `json:"flagLine,omitempty"`
	// Description is shown on the job's page.
	Description string `json:"description,omitempty"`
	// DeadlineSeconds ends the job after a time; 0 for never. It replaces spec.deadline.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
	// GangTimeoutSeconds ends an attempt whose pods are not all scheduled by then; 0 for the cluster's default. It replaces
	// spec.gangTimeout.
	GangTimeoutSeconds int64 `json:"gangTimeoutSeconds,omitempty"`
	// TTLSeconds is the time from the end of the job until it is deleted. It replaces spec.ttl.
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`
	// GracePeriodSeconds is the time that programs have to end. It replaces spec.gracePeriod.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// Shm is the size of shared memory, which is added to spec.volumes.
	Shm string `json:"shm,omitempty"`
	// Tolerations are taints, as KEY[=VALUE][:EFFECT]. They are added to spec.tolerations.
	Tolerations []string `json:"tolerations,omitempty"`
	// Original is the job of the namespace, as KIND/NAME, that the job is a clone of: its fields that a specification cannot
	// contain are kept. Of YAML, they are its secrets that the YAML has masked. OriginalUID selects a deleted job by its report.
	Original    string `json:"original,omitempty"`
	OriginalUID string `json:"originalUID,omitempty"`
	// YAML is a job as YAML or JSON, instead of a specification.
	YAML string `json:"yaml,omitempty"`
	// Template is the name of a template, with the values of its parameters, instead of a specification. Only name and
	// namespace of the specification then count.
	Template string            `json:"template,omitempty"`
	Values   map[string]string `json:"values,omitempty"`
	// DryRun only checks: the API server and its webhooks check the job, too, quotas included.
	DryRun bool `json:"dryRun,omitempty"`
}

// descriptionNote is the annotation with a job's description, as the Open Data Hub dashboard writes it.
const descriptionNote = "openshift.io/description"
