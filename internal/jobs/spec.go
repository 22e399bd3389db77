package jobs

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Spec describes a new job. With a runtime it becomes a TrainJob, otherwise an MPIJob.
type Spec struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// Runtime is a runtime of Kubeflow Trainer.
	Runtime string `json:"runtime,omitempty"`
	// Image is required without a runtime, whose image it replaces otherwise.
	Image string `json:"image,omitempty"`
	// Command is what each rank runs. mpirun is added unless the command starts ranks itself.
	Command []string `json:"command"`
	// MPIFlags are more flags of the mpirun that is added to the command, such as --bind-to core.
	MPIFlags []string `json:"mpiFlags,omitempty"`
	// Workers is the number of pods that run ranks, 1 or more.
	Workers int32 `json:"workers"`
	// Slots is the number of ranks of each worker; nil for one per GPU, or 1.
	Slots *int32 `json:"slots,omitempty"`
	// GPU is the number of GPUs of each worker, and GPUResource the name of that resource (default nvidia.com/gpu).
	GPU         int32  `json:"gpu,omitempty"`
	GPUResource string `json:"gpuResource,omitempty"`
	// CPU and Memory are quantities for each worker.
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	// Implementation is the MPI in the image: OpenMPI (default), Intel or MPICH, in any case.
	Implementation string `json:"implementation,omitempty"`
	// Queue is a LocalQueue of Kueue.
	Queue string `json:"queue,omitempty"`
	// Priority is a PriorityClass, or with a runtime and a queue the queue's WorkloadPriorityClass.
	Priority string `json:"priority,omitempty"`
	// Connections are data connections (Secrets) whose keys become variables of every rank.
	Connections []string `json:"connections,omitempty"`
	// Env are variables of every rank.
	Env    []corev1.EnvVar   `json:"env,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// RunAsUser is a user ID for the pods; nil for the image's user.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// Retries is how often a failed job is tried again: the launcher's command, with new pods for workers that failed; with a
	// runtime, all pods. nil is 0, or with a runtime the runtime's value.
	Retries *int32 `json:"retries,omitempty"`
	// Deadline ends the job after a time, in whole seconds; 0 for never.
	Deadline time.Duration `json:"deadline,omitempty"`
	Suspend  bool          `json:"suspend,omitempty"`
	// TTL is the time from the job's end until it is deleted, in whole seconds; nil keeps the job.
	TTL *time.Duration `json:"ttl,omitempty"`
	// RDMA is what happens if no node offers the RDMA that the pods request: mpi.RDMARequired or mpi.RDMAOptional; empty is
	// mpi.RDMAOptional.
	RDMA string `json:"rdma,omitempty"`
	// Profile has the calls of MPI in each rank counted and timed.
	Profile bool `json:"profile,omitempty"`
	// WaitForQuota has the job wait if the namespace's quotas have no room for it now, instead of being refused.
	WaitForQuota bool `json:"waitForQuota,omitempty"`
	// Volumes are mounted by all pods.
	Volumes []Volume `json:"volumes,omitempty"`
	// Output is a volume for results; every rank has its path in the variable OUTPUT_DIR. Each job has a folder of its own
	// in it, with the job's name, unless SubPath is set.
	Output *Volume `json:"outputDir,omitempty"`
	// NodeSelector, Tolerations and ImagePullSecrets (names) apply to all pods.
	NodeSelector     map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations      []corev1.Toleration `json:"tolerations,omitempty"`
	ImagePullSecrets []string            `json:"imagePullSecrets,omitempty"`
	// ServiceAccount is the ServiceAccount of the pods.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// WorkDir is the working folder of the programs; empty for the image's.
	WorkDir string `json:"workdir,omitempty"`
	// LauncherCPU and LauncherMemory are quantities of the launcher; empty for 100m and 128Mi, with a limit of 1Gi.
	LauncherCPU    string `json:"launcherCpu,omitempty"`
	LauncherMemory string `json:"launcherMemory,omitempty"`
	// Topology is the key of a node label, such as topology.kubernetes.io/zone: all pods run on nodes with the same value;
	// if possible, with TopologyPreferred.
	Topology          string `json:"topology,omitempty"`
	TopologyPreferred bool   `json:"topologyPreferred,omitempty"`
	// GangTimeout schedules all pods together, and ends the attempt if not all are scheduled after this time, in whole
	// seconds; 0 for the cluster's default.
	GangTimeout time.Duration `json:"gangTimeout,omitempty"`
	// GracePeriod is the time that programs have to end after SIGTERM, in whole seconds; nil for 30 s.
	GracePeriod *time.Duration `json:"gracePeriod,omitempty"`
}

// outputVariable has the path for results.
const outputVariable = "OUTPUT_DIR"

// Validate returns all errors of a specification, nil if there are none.
func (s Spec) Validate() []FieldError {
	var errs []FieldError
	add := func(field, value, reason string) { errs = append(errs, FieldError{field, value, reason}) }
	number := func(field string, value, least int64) {
		if value < least {
			add(field, fmt.Sprint(value), fmt.Sprintf("is not allowed; use %d or more", least))
		}
	}
	if s.Name == "" {
		add("name", "", "is required")
	}
	if s.Image == "" && s.Runtime == "" {
		add("image", "", "is required without a runtime")
	}
	if len(s.Command) == 0 {
		add("command", "", "is required")
	}
	errs = append(errs, s.validateMPIFlags()...)
	number("workers", int64(s.Workers), 1)
	number("gpu", int64(s.GPU), 0)
	if s.Slots != nil {
		number("slots", int64(*s.Slots), 1)
	}
	if s.Retries != nil {
		number("retries", int64(*s.Retries), 0)
	}
	if s.RunAsUser != nil {
		number("runAsUser", *s.RunAsUser, 1)
	}
	errs = append(errs, s.validatePods()...)
	errs = append(errs, s.validateVolumes()...)
	for _, quantity := range []struct{ field, value string }{{"cpu", s.CPU}, {"memory", s.Memory}, {"launcherCpu", s.LauncherCPU}, {"launcherMemory", s.LauncherMemory}} {
		if parsed, err := resource.ParseQuantity(quantity.value); quantity.value != "" && (err != nil || parsed.Sign() <= 0) {
			add(quantity.field, quantity.value, "is not a quantity; use a value such as 4, 500m or 16Gi")
		}
	}
	if _, known := s.implementation(); !known {
		add("implementation", s.Implementation, "is not supported; use OpenMPI, Intel or MPICH")
	}
	if s.Runtime != "" {
		errs = append(errs, s.validateWithRuntime()...)
	}
	return errs
}

// rankFlags are the flags of mpirun that set the number of ranks.
var rankFlags = []string{"-n", "--n", "-np", "--np", "-c", "--c"}

// validateMPIFlags returns the errors of the flags of mpirun.
func (s Spec) validateMPIFlags() []FieldError {
	if len(s.MPIFlags) == 0 {
		return nil
	}
	text := phrase.QuoteCommand(s.MPIFlags)
	if StartsRanks(s.Command) {
		return []FieldError{{"mpiFlags", text, "cannot be combined with a command that starts ranks itself; write the flags in the command"}}
	}
	if !strings.HasPrefix(s.MPIFlags[0], "-") {
		return []FieldError{{"mpiFlags", text, "is not allowed; use flags of mpirun, such as --bind-to core"}}
	}
	for _, word := range s.MPIFlags {
		if name, _, _ := strings.Cut(word, "="); slices.Contains(rankFlags, name) {
			return []FieldError{{"mpiFlags", text, "is not allowed: " + name + " sets the number of ranks; use workers and slots"}}
		}
	}
	return nil
}

// validatePods returns the errors of times, folders and places.
func (s Spec) validatePods() []FieldError {
	var errs []FieldError
	add := func(field, value, reason string) { errs = append(errs, FieldError{field, value, reason}) }
	for _, limit := range []struct {
		field string
		value time.Duration
		meant string
	}{
		{"deadline", s.Deadline, ", or 0 for no deadline"},
		{"gangTimeout", s.GangTimeout, ", or 0 for the default"},
		{"gracePeriod", ptr.Deref(s.GracePeriod, 0), ", 0 or more"},
		{"ttl", ptr.Deref(s.TTL, 0), ", 0 or more"},
	} {
		if limit.value < 0 || limit.value%time.Second != 0 {
			add(limit.field, limit.value.String(), "is not allowed; use whole seconds"+limit.meant)
		}
	}
	if ptr.Deref(s.TTL, 0) > math.MaxInt32*time.Second {
		add("ttl", s.TTL.String(), fmt.Sprintf("is too long; use at most %d seconds", math.MaxInt32))
	}
	if s.RDMA != "" && s.RDMA != mpi.RDMARequired && s.RDMA != mpi.RDMAOptional {
		add("rdma", s.RDMA, "is not allowed; use "+mpi.RDMARequired+" or "+mpi.RDMAOptional)
	}
	if s.WorkDir != "" && !path.IsAbs(s.WorkDir) {
		add("workdir", s.WorkDir, "is not allowed; use an absolute path")
	}
	if problems := validation.IsQualifiedName(s.Topology); s.Topology != "" && len(problems) > 0 {
		add("topology", s.Topology, "is not the key of a node label, such as topology.kubernetes.io/zone")
	}
	return errs
}

// validateVolumes returns the errors of volumes, and an error for each path that is used twice.
func (s Spec) validateVolumes() []FieldError {
	var errs []FieldError
	used := map[string]bool{}
	check := func(field string, v Volume) {
		if problem := v.problem(); problem != "" {
			errs = append(errs, FieldError{field, "", problem})
			return
		}
		if at := path.Clean(v.Path); used[at] {
			errs = append(errs, FieldError{field, at, "is the path of two volumes"})
		}
		used[path.Clean(v.Path)] = true
	}
	for _, v := range s.Volumes {
		check("volume", v)
	}
	if s.Output != nil {
		check("outputDir", *s.Output)
		if s.Output.Source != VolumeClaim || s.Output.ReadOnly {
			errs = append(errs, FieldError{Field: "outputDir", Reason: "must be a claim that can be written to"})
		}
	}
	return errs
}

// validateWithRuntime returns an error for each setting that a TrainJob cannot express.
func (s Spec) validateWithRuntime() []FieldError {
	var errs []FieldError
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"implementation", s.Implementation != ""},
		{"launcherCpu", s.LauncherCPU != ""},
		{"launcherMemory", s.LauncherMemory != ""},
	} {
		if setting.set {
			errs = append(errs, FieldError{Field: setting.name, Reason: SettingOf(setting.name).TrainJob.Reason})
		}
	}
	if s.WorkDir != "" && StartsRanks(s.Command) {
		errs = append(errs, FieldError{"workdir", s.WorkDir, "cannot be combined with a runtime and a command that starts ranks itself; write mpirun --wdir " + phrase.QuoteCommand([]string{s.WorkDir}) + " in the command"})
	}
	return errs
}

// implementation returns the implementation in its canonical case; empty for the default.
func (s Spec) implementation() (mpi.Implementation, bool) {
	if s.Implementation == "" {
		return "", true
	}
	i := slices.IndexFunc(mpi.Implementations, func(known mpi.Implementation) bool { return strings.EqualFold(string(known), s.Implementation) })
	if i < 0 {
		return "", false
	}
	return mpi.Implementations[i], true
}

// labels returns the job's labels with its queue; nil if there are none.
func (s Spec) labels() map[string]string {
	labels := maps.Clone(s.Labels)
	if s.Queue != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[mpi.LabelQueue] = s.Queue
	}
	return labels
}

// env returns the variables of every rank.
func (s Spec) env() []corev1.EnvVar {
	env := slices.Clone(s.Env)
	if s.Output != nil && !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == outputVariable }) {
		env = append(env, corev1.EnvVar{Name: outputVariable, Value: s.Output.Path})
	}
	return env
}

// prioritizesTrainJob reports whether the pods of a TrainJob get a PriorityClass. In a queue, Kueue's priority classes apply.
func (s Spec) prioritizesTrainJob() bool { return s.Runtime != "" && s.Queue == "" && s.Priority != "" }

// annotations returns the job's annotations; nil if there are none.
func (s Spec) annotations() map[string]string {
	annotations := map[string]string{}
	if len(s.Connections) > 0 {
		annotations[mpi.AnnotationConnections] = strings.Join(s.Connections, ",")
	}
	switch {
	case s.Topology == "":
	case s.TopologyPreferred:
		annotations[mpi.AnnotationPreferredTopology] = s.Topology
	default:
		annotations[mpi.AnnotationRequiredTopology] = s.Topology
	}
	if s.Profile {
		annotations[mpi.AnnotationProfile] = "true"
	}
	if s.Suspend {
		// The field suspend is not enough in a queue: Kueue resets it. It also adds the label of a namespace's default queue.
		annotations[mpi.AnnotationSuspendInQueue] = "true"
	}
	if s.WaitForQuota {
		annotations[mpi.AnnotationWaitForQuota] = "true"
	}
	if s.RDMA != "" {
		annotations[mpi.AnnotationRDMA] = s.RDMA
	}
	if s.Runtime != "" && s.Retries != nil {
		annotations[mpi.AnnotationMaxRestarts] = fmt.Sprint(*s.Retries)
	}
	if s.prioritizesTrainJob() {
		annotations[mpi.AnnotationPriorityClass] = s.Priority
	}
	if s.Runtime != "" && s.GangTimeout > 0 {
		annotations[mpi.AnnotationScheduleTimeout] = fmt.Sprint(int64(s.GangTimeout / time.Second))
	}
	if s.Runtime != "" && s.TTL != nil {
		annotations[mpi.AnnotationTTL] = fmt.Sprint(int64(*s.TTL / time.Second))
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// podSpec returns what all pods have in common besides their containers.
func (s Spec) podSpec() corev1.PodSpec {
	volumes, _ := s.volumes()
	spec := corev1.PodSpec{Volumes: volumes, NodeSelector: s.NodeSelector, Tolerations: s.Tolerations, ServiceAccountName: s.ServiceAccount}
	for _, name := range s.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if s.GracePeriod != nil {
		spec.TerminationGracePeriodSeconds = new(int64(*s.GracePeriod / time.Second))
	}
	return spec
}
