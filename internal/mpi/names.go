package mpi

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Labels of all objects of a job. The first four are those of mpi-operator (pkg/apis/kubeflow/v2beta1/constants.go),
// because Kueue, dashboards and scripts select by them.
const (
	// LabelOperator marks the objects of an MPIJob operator. Its value is OperatorName.
	LabelOperator = "training.kubeflow.org/operator-name"
	// LabelJob holds the job's name.
	LabelJob = "training.kubeflow.org/job-name"
	// LabelRole holds RoleLauncher or RoleWorker. Only pods have it.
	LabelRole = "training.kubeflow.org/job-role"
	// LabelIndex holds the index of a pod among the hosts with ranks, from 0. Only pods have it. If the launcher runs
	// ranks, it has index 0 and the workers start at 1: Kueue's topology-aware scheduling requires different indices.
	LabelIndex = "training.kubeflow.org/replica-index"
	// LabelApp also holds the job's name. mpi-operator sets it on all objects except pods.
	LabelApp = "app"

	// OperatorName is the value of LabelOperator.
	OperatorName = "mpi-operator"
)

// Group is the API group of this project's types, labels and annotations.
const Group = "mpi.opendatahub.io"

// LabelUsageOf on a ConfigMap of the operator's namespace with the sums of deleted reports holds the namespace of their jobs.
const LabelUsageOf = Group + "/usage-of"

// AnnotationTemplate on a launcher's batch Job is a digest of the immutable part of its pod template.
const AnnotationTemplate = Group + "/launcher-template"

// Annotations that record the attempts of an MPIJob's launcher. They are on the job's ConfigMap, which stays if the launcher's batch Job is
// replaced.
const (
	// AnnotationDisrupted lists the attempts that Kubernetes ended because it removed pods, such as "1,3". On a launcher's batch Job it lists
	// those for which the Job's backoffLimit was raised by one each.
	AnnotationDisrupted = Group + "/disrupted-attempts"
	// AnnotationEarlierAttempts is the number of attempts of the launcher's batch Jobs that were replaced. On a batch Job it is that of
	// the Jobs before it.
	AnnotationEarlierAttempts = Group + "/earlier-attempts"
	// AnnotationActiveSince is when the deadline of a job whose launcher's batch Job was replaced began to count.
	AnnotationActiveSince = Group + "/active-since"
	// AnnotationActiveBefore is for how many seconds such a job was active before it was suspended or lost its place.
	AnnotationActiveBefore = Group + "/active-before"
)

// Annotations that administrators set on a training runtime of Kubeflow Trainer. AnnotationImplementation makes a
// runtime an MPI runtime of this project; the others limit the TrainJobs that use it.
const (
	// AnnotationImplementation names the MPI library in the runtime's image, one of Implementations. It is set on the
	// runtime and in its template's metadata, which Trainer copies to JobSets.
	AnnotationImplementation = Group + "/mpi-implementation"
	// AnnotationMaxWorkers is the maximum number of nodes of a job.
	AnnotationMaxWorkers = Group + "/max-workers"
	// AnnotationMinWorkers is the minimum number of nodes of a job.
	AnnotationMinWorkers = Group + "/min-workers"
	// AnnotationMaxGPUs is the maximum number of GPUs that a job requests per node.
	AnnotationMaxGPUs = Group + "/max-gpus-per-worker"
	// AnnotationNodeLabels lists labels that the nodes of a job's pods must have, as key=value, separated by commas.
	AnnotationNodeLabels = Group + "/required-node-labels"
)

// Annotations of every job that hold user names, as authenticated by the API server. Users cannot set them (see
// AuthorAnnotationsFor).
const (
	// AnnotationCreator is the user who created the job.
	AnnotationCreator = Group + "/created-by"
	// AnnotationSuspendSetBy is the user who last suspended or resumed the job, as "GENERATION USER", with the
	// generation after the change.
	AnnotationSuspendSetBy = Group + "/suspend-set-by"
	// AnnotationChangedBy is the user who last changed any other field of the specification, in the same format.
	AnnotationChangedBy = Group + "/changed-by"
	// AnnotationQueueSuspendSetBy is the user who last changed AnnotationSuspendInQueue, as "VALUE USER", with whether the job is
	// suspended in its queue since: such a change does not change the generation.
	AnnotationQueueSuspendSetBy = Group + "/suspend-in-queue-set-by"
)

// AnnotationConnections on a job of any kind lists its data connections: Secrets of the job's namespace, separated
// by commas, whose keys every rank gets as environment variables. OpenShift AI uses the same annotation on
// workbenches, with the namespace in each name, and on inference services, without it; both forms are accepted.
const AnnotationConnections = "opendatahub.io/connections"

// AnnotationLaunch on a job selects what starts ranks on its workers: LaunchAgent or LaunchSSHD.
const AnnotationLaunch = Group + "/launch"

// AnnotationRequeues on a job sets how often it is requeued when not all of its pods can be placed in time. Then it
// fails. The default is RequeueLimit.
const AnnotationRequeues = Group + "/gang-requeues"

// AnnotationScheduleTimeout on a TrainJob, or for all of its jobs on a runtime, sets after how many seconds an attempt to place the pods
// together ends, as scheduleTimeoutSeconds of an MPIJob does. The default is defaultGangTimeout.
const AnnotationScheduleTimeout = Group + "/schedule-timeout-seconds"

// AnnotationPriorityClass on a TrainJob is the PriorityClass of its pods, for which a TrainJob has no field.
const AnnotationPriorityClass = Group + "/priority-class"

// AnnotationMaxRestarts on a TrainJob sets how often the whole job, launcher and workers, is started again after its program failed.
// Disruptions do not count. The default is that of the runtime: 0 for those of the operator.
const AnnotationMaxRestarts = Group + "/max-restarts"

// AnnotationTTL on a TrainJob sets how many seconds after its end it is deleted, as ttlSecondsAfterFinished does on an
// MPIJob. Without it, the job is kept.
const AnnotationTTL = Group + "/ttl-seconds-after-finished"

// AnnotationGate on the JobSet of a TrainJob is GateClosed while the operator holds back its pods because they do not all fit:
// the JobSet stays suspended, although the TrainJob is not. It is GateSuspended from when Trainer suspends the JobSet, because its
// TrainJob is suspended, until Trainer resumes it: only then does it have the nodes that Kueue has chosen meanwhile, which can no
// longer be added to a JobSet that runs. GateOpen lets the pods be created. A JobSet without it is not held back.
const (
	AnnotationGate = Group + "/gate"
	GateSuspended  = "suspended"
	GateClosed     = "closed"
	GateOpen       = "open"
)

// AnnotationAdmitted on the NetworkPolicy of a TrainJob states that its pods may be created, when that was decided before its JobSet
// exists: the time in milliseconds since 1970 and a signature of the operator.
const AnnotationAdmitted = Group + "/admitted"

// AnnotationWaitForQuota on a job, with the value "true", makes the job wait while the namespace's quota has no room for
// all of its pods. Without it, such a job is rejected on creation.
const AnnotationWaitForQuota = Group + "/wait-for-quota"

// AnnotationSuspendInQueue on a job in a Kueue queue, with the value "true", keeps the job out of the queue: the operator deactivates
// its Workload, and activates it again without the annotation. Kueue would resume a job that is suspended by its field suspend only.
const AnnotationSuspendInQueue = Group + "/suspend-in-queue"

// AnnotationProfile on a job, with the value "true", has the calls of MPI in each rank counted and timed.
const AnnotationProfile = Group + "/profile"

// AnnotationRDMA on a job selects what happens if no node offers the RDMA that its pods request: RDMARequired or RDMAOptional.
const AnnotationRDMA = Group + "/rdma"

// AnnotationRemovedRDMA on a job that is or was in a queue contains the requests for RDMA that the operator's webhook removed from its
// fields, because no node offered them: a JSON Patch that adds them again.
const AnnotationRemovedRDMA = Group + "/removed-rdma"

// LabelWithoutRDMA is "true" on the pods and the launcher's batch Job of an MPIJob, and on the JobSet of a TrainJob, whose
// requests for RDMA were removed. New pods of the job are made as these were.
const LabelWithoutRDMA = Group + "/without-rdma"

// AnnotationTraceParent on a job is the span that the job is a part of, as a traceparent of W3C Trace Context.
const AnnotationTraceParent = Group + "/traceparent"

// AnnotationSilence on a job sets how long its program may print nothing before the report warns, as a Go duration
// such as 1h30m.
const AnnotationSilence = Group + "/silent-after"

// AnnotationLinks on a job lists links to pages about it, such as that of TensorBoard, in the format of ParseLinks.
const AnnotationLinks = Group + "/links"

// Annotations on a job that place its pods in one rack, zone or other topology domain. The value is the key of a node
// label, such as topology.kubernetes.io/zone: all pods run on nodes with the same value of this label.
// AnnotationRequiredTopology is a requirement, AnnotationPreferredTopology a preference.
const (
	AnnotationRequiredTopology  = Group + "/required-topology"
	AnnotationPreferredTopology = Group + "/preferred-topology"
)

// AnnotationAllowEgress lists the destinations that the pods of jobs may connect to besides their own job, in the format
// of isolation.ParseEgress. Administrators set it on a namespace, for all jobs in it, or on a training runtime, for its
// TrainJobs.
const AnnotationAllowEgress = Group + "/allow-egress"

// AnnotationRequireEncryption on a namespace, with the value "true", lets jobs of more than one pod run only if the cluster's network
// encrypts the traffic between pods.
const AnnotationRequireEncryption = Group + "/require-encryption"

// AnnotationEndpoints on a job's NetworkPolicy lists the destinations that it allows for data connections, by the names of
// their Secrets, in the format of isolation.Endpoints. The operator reads the Secrets once.
const AnnotationEndpoints = Group + "/connection-endpoints"

// AnnotationGangTimeouts on a Kueue Workload counts how often not all pods of its job could be placed in time after
// admission. While the Workload is deactivated for that reason, the time of the next attempt follows the count.
const AnnotationGangTimeouts = Group + "/gang-timeouts"

// Labels of a job's report, which select it after the job is deleted.
const (
	LabelReportJob  = Group + "/job-name"
	LabelReportKind = Group + "/job-kind"
)

// LabelQueue on a job is the name of its Kueue LocalQueue in the job's namespace.
const LabelQueue = "kueue.x-k8s.io/queue-name"

// LabelQueuePriority on a job in a queue is the name of its WorkloadPriorityClass of Kueue.
const LabelQueuePriority = "kueue.x-k8s.io/priority-class"

// LabelTemplate marks a ConfigMap that holds a job as a template for the command line. Its value is "job".
const LabelTemplate = Group + "/template"

// IstioInject is a label and an annotation of pods. "false" disables the sidecar of a service mesh: ranks connect to
// each other directly, and a job would not finish while the sidecar runs.
const IstioInject = "sidecar.istio.io/inject"

// MultusNetworks of a pod lists its secondary networks, and MultusDefaultNetwork replaces its first network. Multus reads them.
const (
	MultusNetworks       = "k8s.v1.cni.cncf.io/networks"
	MultusDefaultNetwork = "v1.multus-cni.io/default-network"
)

// FieldManager is the field manager of the operator's writes.
const FieldManager = "mpijob-operator"

// EventSource is the component of the events that mpi-operator also records, because tools compare it.
const EventSource = "mpi-job-controller"

// StepSource is the component of the operator's other events. Clients limit events for each source and object to a
// burst of 25 and then one every five minutes: the events of a job that restarts often must not use up the limit of
// EventSource, whose last event reports how the job ended.
const StepSource = "mpijob-operator"

// Role distinguishes the pods of a job.
type Role string

// The roles, as in LabelRole and EnvRole.
const (
	RoleLauncher Role = "launcher"
	RoleWorker   Role = "worker"
)

// EnvRole is the environment variable that holds a container's Role.
const EnvRole = "K_MPI_JOB_ROLE"

// Paths, volumes and keys of the files that pods need.
const (
	ConfigMountPath   = "/etc/mpi"
	HostfileKey       = "hostfile"
	HostfilePath      = agentapi.Hostfile
	DiscoverHostsKey  = "discover_hosts.sh"
	ConfigVolume      = "mpi-job-config"
	SSHVolume         = "ssh-auth"
	SSHPublicKey      = "ssh-publickey"
	DefaultSSHPath    = "/root/.ssh"
	SSHPrivateKeyFile = "id_rsa"
)

// ServiceName returns the name of the headless Service that gives every pod of the job a host name.
func (j Job) ServiceName() string { return j.Name }

// Names are the suffixes of the names of a job's objects. The prefix is the name of the job.
type Names struct {
	// Config is the suffix of the ConfigMap with the hostfile, Secret that of the Secret with the SSH keys, and
	// Launcher that of the launcher's batch Job.
	Config, Secret, Launcher string
	// LauncherHost is the suffix of the host name of the launcher's pod: Launcher, except for a job that another controller runs.
	LauncherHost string
	// Keys is the suffix of the Secret with SSH keys of the operator, for an External job whose pods must not use those of the
	// controller that runs it (plan.Settings.ReplacesKeys). It contains a dot, as Policy does.
	Keys string
	// Worker precedes the index of a worker.
	Worker string
	// Policy is the suffix of the NetworkPolicy. It contains a dot, which job names cannot, to prevent conflicts with
	// the policies of other kinds of jobs.
	Policy string
	// PodLabel is the label of the job's pods that holds the job's name, if the job is External. Pods of other jobs have LabelJob and LabelOperator.
	PodLabel string
}

// mpiJobNames are the names that mpi-operator uses (pkg/controller/mpi_job_controller.go).
var mpiJobNames = Names{Config: "-config", Secret: "-ssh", Launcher: "-launcher", Worker: "-worker-"}

// ConfigName returns the name of the ConfigMap with the hostfile and discover_hosts.sh.
func (j Job) ConfigName() string { return j.Name + j.Names.Config }

// SecretName returns the name of the Secret with the job's SSH keys.
func (j Job) SecretName() string { return j.Name + j.Names.Secret }

// KeysName returns the name of the Secret that the operator creates with the job's SSH keys: SecretName, except for a job that
// another controller runs.
func (j Job) KeysName() string { return j.Name + cmp.Or(j.Names.Keys, j.Names.Secret) }

// PolicyName returns the name of the NetworkPolicy that isolates the job.
func (j Job) PolicyName() string { return j.Name + j.Names.Policy }

// LauncherName returns the name of the launcher's batch Job.
func (j Job) LauncherName() string { return j.Name + j.Names.Launcher }

// LauncherHost returns the host name of the launcher's pod: LauncherName, except for a job that another controller runs.
func (j Job) LauncherHost() string { return j.Name + cmp.Or(j.Names.LauncherHost, j.Names.Launcher) }

// WorkerName returns the name of a worker's pod, by its index from 0. It is also its host name. JobSet adds a suffix
// to the names of pods: for a TrainJob it is only the host name.
func (j Job) WorkerName(index int) string { return j.Name + j.Names.Worker + strconv.Itoa(index) }

// WorkerIndex returns the value of LabelIndex for a worker, by its index from 0.
func (j Job) WorkerIndex(index int) string {
	if j.Launcher.RunsRanks {
		index++
	}
	return strconv.Itoa(index)
}

// Labels returns the labels of all objects of the job.
func (j Job) Labels() map[string]string {
	if j.External {
		// LabelJob is only for MPIJobs: a job of another kind may have the same name.
		labels := j.ReportLabels()
		labels[LabelOperator] = OperatorName
		return labels
	}
	return map[string]string{LabelApp: j.Name, LabelOperator: OperatorName, LabelJob: j.Name}
}

// Selector returns the labels that select the job's pods, launcher and workers.
func (j Job) Selector() map[string]string {
	if j.External {
		return map[string]string{j.Names.PodLabel: j.Name}
	}
	return map[string]string{LabelOperator: OperatorName, LabelJob: j.Name}
}

// PodLabels returns the labels of the job's pods of a role. Pods that run ranks also have LabelIndex.
func (j Job) PodLabels(role Role) map[string]string {
	labels := j.Selector()
	labels[LabelRole] = string(role)
	if len(j.RDMA.Removed) > 0 {
		labels[LabelWithoutRDMA] = "true"
	}
	return labels
}

// LabelJobSet is the label of pods and Jobs that holds the name of their JobSet, which is that of the TrainJob. LabelJobSetJob
// holds the name of the job within the JobSet, such as JobSetLauncher (jobset/api/jobset/v1alpha2, trainer/v2/pkg/constants).
const (
	LabelJobSet    = "jobset.sigs.k8s.io/jobset-name"
	LabelJobSetJob = "jobset.sigs.k8s.io/replicatedjob-name"
	JobSetLauncher = "launcher"
)

// The kinds of jobs: those of kubeflow.org/v2beta1 and of trainer.kubeflow.org/v1alpha1.
const (
	KindMPIJob   = "MPIJob"
	KindTrainJob = "TrainJob"
)

// ID identifies a job among those of all kinds.
type ID struct{ Kind, Namespace, Name string }

// String returns the kind, namespace and name, separated by slashes.
func (i ID) String() string { return i.Kind + "/" + i.Namespace + "/" + i.Name }

// ID returns the job's kind, namespace and name.
func (j Job) ID() ID { return ID{Kind: j.Kind, Namespace: j.Namespace, Name: j.Name} }

// Key returns the job's namespace and name.
func (j Job) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
}
