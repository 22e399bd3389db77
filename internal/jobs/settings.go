package jobs

import (
	"fmt"
	"slices"
)

// Setting is a row of the table of settings: what users can set of a new job, in each interface and in each API. The flags of
// create take their texts from it, Validate its reasons, and docs/settings.md is written from it. Tests hold flags, the SDK's
// arguments, the wizard's form and what Build writes against it.
type Setting struct {
	// Name is the setting in errors and in a specification.
	Name string
	// Flag is the flag of create, in capital letters if it is an argument; Python the argument of the SDK's MPIJob, and Form the
	// field of the dashboard's form. An interface without the setting has an empty name, and a reason in Absent.
	Flag, Python, Form string
	// Text is a noun phrase or an imperative.
	Text string
	// Format is how the flag is written, if its value is not the setting as it is.
	Format string
	// IsList is whether a job can have several.
	IsList bool
	// Default is what applies if it is not set; empty for nothing.
	Default string
	// Limits are the values that are allowed; empty for any.
	Limits string
	// MPIJob and TrainJob are how the APIs express the setting.
	MPIJob, TrainJob Expression
	// Absent is why an interface does not have the setting, and Differs how one differs from the others.
	Absent, Differs string
}

// Expression is how an API expresses a setting: by a field, or not at all for a reason.
type Expression struct {
	// In are the pods whose template has the field; empty for a field of the job.
	In PodRole
	// Field is the path of the field.
	Field string
	// Only restricts when the setting can be used; empty for always.
	Only string
	// Reason is why there is no field, and what to do instead.
	Reason string
}

// PodRole names pods of a job.
type PodRole string

// The pods of a job. In a TrainJob, their fields are those of its patch of the runtime.
const (
	inJob      PodRole = ""
	inPods     PodRole = "all pods"
	inWorkers  PodRole = "workers"
	inLauncher PodRole = "launcher"
)

func jobField(path string) Expression { return Expression{Field: path} }

func podField(in PodRole, path string) Expression { return Expression{In: in, Field: path} }

func (e Expression) only(when string) Expression {
	e.Only = when
	return e
}

func notIn(reason string) Expression { return Expression{Reason: reason} }

const (
	sincePatches = "requires Kubeflow Trainer v2.2"
	withMPI      = "requires an MPI runtime"
	// withOurs is about settings that the operator writes into the JobSets of its own runtimes.
	withOurs = "requires an MPI runtime of the operator"
)

// Settings returns the table of settings, in groups.
func Settings() []SettingGroup { return settings }

// SettingGroup are settings of one subject.
type SettingGroup struct {
	Title    string
	Settings []Setting
}

// SettingOf returns a setting by its name.
func SettingOf(name string) Setting {
	for _, group := range settings {
		if i := slices.IndexFunc(group.Settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
			return group.Settings[i]
		}
	}
	panic("no setting " + name)
}

// Usage returns the description of the setting's flag.
func (s Setting) Usage() string {
	text := s.Text
	if s.Format != "" {
		text += ", as " + s.Format
	}
	if s.IsList {
		text += "; repeatable"
	}
	if s.Default != "" {
		text += fmt.Sprintf(" (default: %s)", s.Default)
	}
	return text
}

const (
	wholeSeconds = "whole seconds"
	someQuantity = "a quantity above 0, such as 500m or 16Gi"
)

var settings = []SettingGroup{
	{"The job", []Setting{
		{
			Name: "name", Flag: "NAME", Python: "name", Form: "name", Text: "Name of the job, with which the names of its pods begin",
			Limits: "lower-case letters, digits and -, with a letter first", MPIJob: jobField("metadata.name"), TrainJob: jobField("metadata.name"),
		},
		{
			Name: "namespace", Flag: "namespace", Python: "namespace", Form: "namespace", Text: "Namespace of the job", Default: "that of the kubeconfig",
			MPIJob: jobField("metadata.namespace"), TrainJob: jobField("metadata.namespace"),
		},
		{
			Name: "runtime", Flag: "runtime", Python: "runtime", Form: "runtime", Text: "Runtime of Kubeflow Trainer; creates a TrainJob instead of an MPIJob",
			MPIJob: notIn("makes the job a TrainJob"), TrainJob: jobField("spec.runtimeRef.name"),
		},
		{
			Name: "label", Flag: "label", Python: "labels", Form: "labels", Text: "Label of the job", Format: "NAME=VALUE", IsList: true,
			MPIJob: jobField("metadata.labels[example.com/team]"), TrainJob: jobField("metadata.labels[example.com/team]"),
		},
		{
			Name: "suspend", Flag: "suspend", Python: "suspend", Form: "suspend", Text: "Create the job suspended",
			MPIJob: jobField("spec.runPolicy.suspend"), TrainJob: jobField("spec.suspend"),
		},
		{
			Name: "description", Form: "description", Text: "Text about the job, as Markdown, which the dashboard shows",
			Absent: "Only the dashboard shows it; in Python, it is one of the annotations",
			MPIJob: jobField("metadata.annotations[openshift.io/description]"), TrainJob: jobField("metadata.annotations[openshift.io/description]"),
		},
		{
			Name: "annotations", Python: "annotations", Text: "Annotations of the job",
			Absent: "What users set often has a setting of its own; others can be written in YAML",
			MPIJob: jobField("metadata.annotations"), TrainJob: jobField("metadata.annotations"),
		},
	}},
	{"The program", []Setting{
		{
			Name: "image", Flag: "image", Python: "image", Form: "image", Text: "Image of launcher and workers; with a runtime, replaces the runtime's image", Limits: "it is required without a runtime",
			MPIJob: podField(inPods, "containers[0].image"), TrainJob: jobField("spec.trainer.image"),
		},
		{
			Name: "command", Flag: "command", Python: "command", Form: "command", Text: "Command of each rank, such as \"python train.py\"; or write it after --", Limits: "it is required; mpirun is added unless it starts ranks itself",
			MPIJob: podField(inLauncher, "containers[0].command"), TrainJob: jobField("spec.trainer.command"),
		},
		{
			Name: "mpiFlags", Flag: "mpi-flags", Python: "mpi_flags", Form: "flags", Text: "More flags of the mpirun that is added to the command, such as \"--bind-to core\"", Limits: "not the number of ranks, and not with a command that starts ranks itself",
			MPIJob: podField(inLauncher, "containers[0].command"), TrainJob: jobField("spec.trainer.command").only(withMPI),
		},
		{
			Name: "implementation", Flag: "implementation", Python: "mpi_implementation", Form: "implementation", Text: "MPI implementation in the image: OpenMPI (default), Intel or MPICH", Limits: "OpenMPI, Intel or MPICH",
			MPIJob: jobField("spec.mpiImplementation"), TrainJob: notIn("cannot be set with a runtime, which determines the MPI; use a runtime of that MPI"),
		},
		{
			Name: "workdir", Flag: "workdir", Python: "workdir", Form: "workdir", Text: "Working folder of the programs", Default: "the image's", Limits: "an absolute path",
			MPIJob: podField(inPods, "containers[0].workingDir"), TrainJob: jobField("spec.trainer.command").only("as a flag of the mpirun that is added to the command; " + withMPI),
		},
		{
			Name: "env", Flag: "env", Python: "env", Form: "env", Text: "Variable of every rank", Format: "NAME=VALUE", IsList: true,
			MPIJob: podField(inPods, "containers[0].env"), TrainJob: jobField("spec.trainer.env"),
		},
		{
			Name: "connection", Flag: "connection", Python: "connections", Form: "connections", Text: "Data connection (Secret) whose keys become variables of every rank", IsList: true,
			MPIJob: jobField("metadata.annotations[opendatahub.io/connections]"), TrainJob: jobField("metadata.annotations[opendatahub.io/connections]").only(withOurs),
		},
		{
			Name: "mlflow_tracking_uri", Python: "mlflow_tracking_uri", Text: "URL of MLflow, to which ranks log: the variable MLFLOW_TRACKING_URI", Limits: "a URL",
			Absent: "It is one variable, which env sets everywhere",
			MPIJob: podField(inPods, "containers[0].env"), TrainJob: jobField("spec.trainer.env"),
		},
		{
			Name: "runAsUser", Flag: "run-as-user", Python: "run_as_user", Form: "user", Text: "User ID of the pods", Default: "the image's user, or with a runtime the runtime's", Limits: "1 or more",
			MPIJob: podField(inPods, "containers[0].securityContext.runAsUser"), TrainJob: podField(inPods, "containers[0].securityContext.runAsUser").only(sincePatches),
		},
	}},
	{"Workers and resources", []Setting{
		{
			Name: "workers", Flag: "workers", Python: "workers", Form: "workers", Text: "Number of workers, the pods that run ranks", Limits: "1 or more; a runtime can have a minimum and a maximum",
			MPIJob: jobField("spec.mpiReplicaSpecs.Worker.replicas"), TrainJob: jobField("spec.trainer.numNodes"),
		},
		{
			Name: "slots", Flag: "slots", Python: "slots_per_worker", Form: "slots", Text: "Ranks per worker", Default: "one per GPU, or 1", Limits: "1 or more",
			MPIJob: jobField("spec.slotsPerWorker"), TrainJob: jobField("spec.trainer.numProcPerNode"),
		},
		{
			Name: "gpu", Flag: "gpu", Python: "resources", Form: "gpu", Text: "GPUs per worker", Limits: "0 or more",
			MPIJob: podField(inWorkers, "containers[0].resources.limits[nvidia.com/gpu]"), TrainJob: jobField("spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]"),
		},
		{
			Name: "gpuResource", Flag: "gpu-resource", Python: "resources", Form: "gpuResource", Text: "Name of the GPU resource in the cluster",
			MPIJob: podField(inWorkers, "containers[0].resources.limits[amd.com/gpu]"), TrainJob: jobField("spec.trainer.resourcesPerNode.limits[amd.com/gpu]"),
		},
		{
			Name: "cpu", Flag: "cpu", Python: "resources", Form: "cpu", Text: "CPU request per worker, such as 4 or 500m", Limits: someQuantity,
			MPIJob: podField(inWorkers, "containers[0].resources.requests.cpu"), TrainJob: jobField("spec.trainer.resourcesPerNode.requests.cpu"),
		},
		{
			Name: "memory", Flag: "memory", Python: "resources", Form: "memory", Text: "Memory request and limit per worker, such as 16Gi", Limits: someQuantity,
			MPIJob: podField(inWorkers, "containers[0].resources.limits.memory"), TrainJob: jobField("spec.trainer.resourcesPerNode.limits.memory"),
		},
		{
			Name: "shm", Flag: "shm", Python: "shm", Form: "shm", Text: "Size of shared memory (/dev/shm) of each pod, such as 8Gi", Default: "the node's, often 64Mi", Limits: someQuantity,
			MPIJob: podField(inPods, "volumes"), TrainJob: podField(inPods, "volumes"),
		},
		{
			Name: "launcherCpu", Flag: "launcher-cpu", Python: "launcher_resources", Form: "launcherCpu", Text: "CPU request of the launcher", Default: "100m", Limits: someQuantity,
			MPIJob: podField(inLauncher, "containers[0].resources.requests.cpu"), TrainJob: notIn(launcherSize),
		},
		{
			Name: "launcherMemory", Flag: "launcher-memory", Python: "launcher_resources", Form: "launcherMemory", Text: "Memory request and limit of the launcher", Default: "request 128Mi, limit 1Gi", Limits: someQuantity,
			MPIJob: podField(inLauncher, "containers[0].resources.limits.memory"), TrainJob: notIn(launcherSize),
		},
	}},
	{"Data", []Setting{
		{
			Name: "volume", Flag: "volume", Python: "volume_mounts", Form: "volumes", Text: "Volume of all pods",
			Format: "[SOURCE/]NAME:PATH[:ro] with source claim (default), configmap, secret, scratch or memory (NAME is then a size)", IsList: true, Limits: "an absolute path, once in a job",
			Differs: "In Python, volumes and volume_mounts are as Kubernetes writes them",
			MPIJob:  podField(inPods, "containers[0].volumeMounts"), TrainJob: podField(inPods, "containers[0].volumeMounts"),
		},
		{
			Name: "outputDir", Flag: "output-dir", Python: "output_dir", Form: "outputDir", Text: "Claim in which each job has a folder for results, at PATH and in the variable OUTPUT_DIR", Format: "NAME:PATH", Limits: "a claim that can be written to",
			MPIJob: podField(inPods, "containers[0].volumeMounts"), TrainJob: podField(inPods, "containers[0].volumeMounts"),
		},
	}},
	{"Queues and nodes", []Setting{
		{
			Name: "queue", Flag: "queue", Python: "queue", Form: "queue", Text: "Queue of the job, a LocalQueue of Kueue",
			MPIJob: jobField("metadata.labels[kueue.x-k8s.io/queue-name]"), TrainJob: jobField("metadata.labels[kueue.x-k8s.io/queue-name]"),
		},
		{
			Name: "priority", Flag: "priority", Python: "priority", Form: "priority", Text: "PriorityClass of the pods; with a runtime and a queue, WorkloadPriorityClass of Kueue",
			MPIJob:   podField(inPods, "priorityClassName"),
			TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/priority-class]").only(withOurs + "; in a queue, it is metadata.labels[kueue.x-k8s.io/priority-class] with any runtime"),
		},
		{
			Name: "nodeSelector", Flag: "node-selector", Python: "node_selector", Form: "nodeSelector", Text: "Label that the nodes of all pods must have", Format: "NAME=VALUE", IsList: true,
			MPIJob: podField(inPods, "nodeSelector"), TrainJob: podField(inPods, "nodeSelector"),
		},
		{
			Name: "toleration", Flag: "toleration", Python: "tolerations", Form: "tolerations", Text: "Taint that all pods tolerate", Format: "KEY[=VALUE][:EFFECT]", IsList: true, Limits: "effect NoSchedule, PreferNoSchedule or NoExecute",
			MPIJob: podField(inPods, "tolerations"), TrainJob: podField(inPods, "tolerations"),
		},
		{
			Name: "topology", Flag: "topology", Python: "topology", Form: "topology", Text: "Node label by which all pods run in one domain, such as topology.kubernetes.io/zone; with the prefix prefer:, if possible", Limits: "the key of a label",
			MPIJob: jobField("metadata.annotations[mpi.opendatahub.io/required-topology]"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/required-topology]").only(withOurs),
		},
		{
			Name: "rdma", Flag: "rdma", Python: "rdma", Form: "rdma", Text: "What to do if no node offers the RDMA that the pods request: optional (use TCP, the default) or required (wait for it)", Limits: "optional or required",
			MPIJob: jobField("metadata.annotations[mpi.opendatahub.io/rdma]"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/rdma]").only(withOurs),
		},
		{
			Name: "profile", Flag: "profile", Python: "profile", Form: "profile", Text: "Count and time the calls of MPI in each rank",
			MPIJob: jobField("metadata.annotations[mpi.opendatahub.io/profile]"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/profile]").only(withOurs),
		},
		{
			Name: "waitForQuota", Flag: "wait-for-quota", Python: "wait_for_quota", Form: "waitForQuota", Text: "Wait if the quotas of the namespace have no room for the job now, instead of refusing it",
			MPIJob: jobField("metadata.annotations[mpi.opendatahub.io/wait-for-quota]"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/wait-for-quota]").only(withOurs),
		},
		{
			Name: "gangTimeout", Flag: "gang-timeout", Python: "gang_timeout", Form: "gangMinutes", Text: "Schedule all pods together, and give up an attempt after this time, such as 10m", Limits: wholeSeconds,
			Differs:  "With a runtime and without a queue, a job of which no pod has a node waits without a limit; set a deadline to end it",
			MPIJob:   jobField("spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"),
			TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/schedule-timeout-seconds]").only(withOurs),
		},
		{
			Name: "imagePullSecret", Flag: "image-pull-secret", Python: "image_pull_secrets", Form: "pullSecrets", Text: "Secret with the credentials of the image's registry", IsList: true,
			MPIJob: podField(inPods, "imagePullSecrets"), TrainJob: podField(inPods, "imagePullSecrets"),
		},
		{
			Name: "serviceAccount", Flag: "service-account", Python: "service_account", Form: "serviceAccount", Text: "ServiceAccount of the pods",
			MPIJob: podField(inPods, "serviceAccountName"), TrainJob: podField(inPods, "serviceAccountName"),
		},
	}},
	{"Failures and time", []Setting{
		{
			Name: "retries", Flag: "retries", Python: "retries", Form: "retries", Text: "Number of times to try a failed job again, with new pods for workers that failed (with a runtime: new pods for all)", Limits: "0 or more; with a runtime at most 100",
			Differs: "An attempt that Kubernetes ended, to preempt a pod or drain a node, does not count. If it is not set, a failed job is not tried again; an MPIJob in YAML without it is tried again 6 times",
			MPIJob:  jobField("spec.runPolicy.backoffLimit"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/max-restarts]").only(withOurs),
		},
		{
			Name: "deadline", Flag: "deadline", Python: "deadline", Form: "hours", Text: "Maximum run time of the job, such as 4h (0 for no limit)", Limits: wholeSeconds,
			MPIJob: jobField("spec.runPolicy.activeDeadlineSeconds"), TrainJob: jobField("spec.activeDeadlineSeconds"),
		},
		{
			Name: "gracePeriod", Flag: "grace-period", Python: "grace_period", Form: "graceSeconds", Text: "Time that programs have to end after SIGTERM, such as 2m", Default: "30s", Limits: wholeSeconds,
			MPIJob: podField(inPods, "terminationGracePeriodSeconds"), TrainJob: podField(inPods, "terminationGracePeriodSeconds").only(sincePatches),
		},
		{
			Name: "ttl", Flag: "ttl", Python: "ttl", Form: "ttlHours", Text: "Time from the end of the job until it is deleted, such as 24h", Default: "it is kept", Limits: wholeSeconds,
			MPIJob: jobField("spec.runPolicy.ttlSecondsAfterFinished"), TrainJob: jobField("metadata.annotations[mpi.opendatahub.io/ttl-seconds-after-finished]"),
		},
	}},
}

const launcherSize = "cannot be set with a runtime: a TrainJob has no field for the size of its launcher, which is that of a worker if the runtime runs ranks there; set it with kubectl in a copy of the runtime"
