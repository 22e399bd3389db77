package mpi

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/launch"
)

// Labels on everything that belongs to a job. The first four are mpi-operator's own
// (pkg/apis/kubeflow/v2beta1/constants.go), because Kueue, dashboards and scripts select by them.
const (
	// LabelOperator marks an object as made by an MPIJob operator; its value is OperatorName.
	LabelOperator = "training.kubeflow.org/operator-name"
	// LabelJob holds the job's name.
	LabelJob = "training.kubeflow.org/job-name"
	// LabelRole holds RoleLauncher or RoleWorker, on pods only.
	LabelRole = "training.kubeflow.org/job-role"
	// LabelIndex holds a pod's place among the hosts with ranks, from 0, on pods only. With a launcher
	// that runs ranks the launcher is 0 and the workers start at 1: topology-aware scheduling in Kueue
	// needs the indices of all such pods to differ.
	LabelIndex = "training.kubeflow.org/replica-index"
	// LabelApp holds the job's name too; mpi-operator sets it on everything but pods.
	LabelApp = "app"

	// OperatorName is the value of LabelOperator.
	OperatorName = "mpi-operator"
)

// Group is the API group of our own objects, labels and annotations.
const Group = "mpi.opendatahub.io"

// AnnotationTemplate stands on a launcher's Job: a digest of what cannot be changed in its pod template.
const AnnotationTemplate = Group + "/launcher-template"

// Annotations that administrators put on a training runtime of Kubeflow Trainer; the first is what makes it one of
// ours. All of them are about the TrainJobs that name the runtime.
const (
	// AnnotationImplementation names the MPI in the runtime's image, one of Implementations. It stands on the runtime
	// and in its template's metadata, from where Trainer copies it to JobSets.
	AnnotationImplementation = Group + "/mpi-implementation"
	// AnnotationMaxWorkers is how many nodes a job may have at most.
	AnnotationMaxWorkers = Group + "/max-workers"
	// AnnotationMaxGPUs is how many GPUs a node of a job may ask for at most.
	AnnotationMaxGPUs = Group + "/max-gpus-per-worker"
	// AnnotationNodeLabels are labels that the nodes of a job's pods must have, as key=value, separated by commas.
	AnnotationNodeLabels = Group + "/required-node-labels"
)

// Annotations on every job that name users, as the API server knew them. Nobody can set them; see Authored.
const (
	// AnnotationCreator is the user who created the job.
	AnnotationCreator = Group + "/created-by"
	// AnnotationSuspendSetBy is who suspended or resumed it last, as "GENERATION USER": the job's generation since.
	AnnotationSuspendSetBy = Group + "/suspend-set-by"
	// AnnotationChangedBy is who changed anything else of its specification last, in the same form.
	AnnotationChangedBy = Group + "/changed-by"
)

// AnnotationConnections stands on a job of either kind and names its data connections: Secrets of the job's namespace,
// separated by commas, whose keys every rank finds as variables. It is OpenShift AI's, as on workbenches (whose names
// come with their namespace) and on inference services (whose names come without); either form is taken.
const AnnotationConnections = "opendatahub.io/connections"

// LabelTemplate stands on ConfigMaps that keep a job as a template, for the command line; its value is "job".
const LabelTemplate = Group + "/template"

// IstioInject is a label and an annotation of pods: with the value "false" it keeps a service mesh's proxy out of
// it: ranks talk to each other directly, and a job would not end while the proxy runs.
const IstioInject = "sidecar.istio.io/inject"

// FieldManager is the name under which the operator writes fields.
const FieldManager = "mpijob-operator"

// EventSource is the component that the events come from which mpi-operator tells, too. It is its own, since tools
// compare it.
const EventSource = "mpi-job-controller"

// StepSource is the component that the events of a job's further steps come from. Clients tell 25 events of a source
// about an object, and then one in five minutes: steps of a job that comes and goes must not cost it its last event.
const StepSource = "mpijob-operator"

// Role tells a job's pods apart.
type Role string

// The roles, as LabelRole and the variable EnvRole spell them.
const (
	RoleLauncher Role = "launcher"
	RoleWorker   Role = "worker"
)

// EnvRole is the variable that tells a container which Role it has.
const EnvRole = "K_MPI_JOB_ROLE"

// Where a pod finds what the job needs, and the names of the volumes that bring it there.
const (
	ConfigMountPath   = "/etc/mpi"
	HostfileKey       = "hostfile"
	HostfilePath      = launch.Hostfile
	DiscoverHostsKey  = "discover_hosts.sh"
	ConfigVolume      = "mpi-job-config"
	SSHVolume         = "ssh-auth"
	SSHPublicKey      = "ssh-publickey"
	DefaultSSHPath    = "/root/.ssh"
	SSHPrivateKeyFile = "id_rsa"
)

// ServiceName names the headless Service that gives every pod of the job its host name.
func (j Job) ServiceName() string { return j.Name }

// Names end the names of a job's objects, which begin with the job's own.
type Names struct {
	// Config is the ConfigMap with the hostfile, Secret the Secret with the SSH keys, Launcher the launcher's batch Job.
	Config, Secret, Launcher string
	// Worker comes before a worker's number.
	Worker string
	// Policy is the NetworkPolicy. A dot keeps it apart from those of other kinds of jobs: jobs' names have none.
	Policy string
	// PodLabel is the label of the job's pods that holds the job's name; empty: LabelJob, beside LabelOperator.
	PodLabel string
}

// mpiJobNames are those that mpi-operator gives (pkg/controller/mpi_job_controller.go).
var mpiJobNames = Names{Config: "-config", Secret: "-ssh", Launcher: "-launcher", Worker: "-worker-"}

// ConfigName names the ConfigMap with the hostfile and discover_hosts.sh.
func (j Job) ConfigName() string { return j.Name + j.Names.Config }

// SecretName names the Secret with the job's SSH keys.
func (j Job) SecretName() string { return j.Name + j.Names.Secret }

// PolicyName names the NetworkPolicy that isolates the job.
func (j Job) PolicyName() string { return j.Name + j.Names.Policy }

// LauncherName names the batch Job of the launcher. Of an MPIJob it is the host name of the launcher's pod.
func (j Job) LauncherName() string { return j.Name + j.Names.Launcher }

// WorkerName names the pod of a worker, counted from 0; it is its host name too. JobSet adds something to the names of
// pods: of a TrainJob it is the host name alone.
func (j Job) WorkerName(index int) string { return j.Name + j.Names.Worker + strconv.Itoa(index) }

// WorkerIndex is the value of LabelIndex for a worker, counted from 0.
func (j Job) WorkerIndex(index int) string {
	if j.Launcher.RunsRanks {
		index++
	}
	return strconv.Itoa(index)
}

// Labels are on every object of the job.
func (j Job) Labels() map[string]string {
	if j.Names.PodLabel != "" {
		// LabelJob is for MPIJobs: another kind's job may have the name of one.
		labels := j.ReportLabels()
		labels[LabelOperator] = OperatorName
		return labels
	}
	return map[string]string{LabelApp: j.Name, LabelOperator: OperatorName, LabelJob: j.Name}
}

// Selector picks the job's pods, launcher and workers.
func (j Job) Selector() map[string]string {
	if j.Names.PodLabel != "" {
		return map[string]string{j.Names.PodLabel: j.Name}
	}
	return map[string]string{LabelOperator: OperatorName, LabelJob: j.Name}
}

// PodLabels are on the job's pods of one role; LabelIndex comes on top where a pod runs ranks.
func (j Job) PodLabels(role Role) map[string]string {
	labels := j.Selector()
	labels[LabelRole] = string(role)
	return labels
}

// Key is the job's namespace and name.
func (j Job) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
}
