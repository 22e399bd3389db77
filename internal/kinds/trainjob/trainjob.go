// Package trainjob implements the kind TrainJob of trainer.kubeflow.org/v1alpha1, Kubeflow Trainer's API. Trainer alone runs
// these jobs; this package reads and validates them, and adds to their JobSets what Trainer leaves out. All but load.go and
// kind.go is pure.
//
// The types are views: the fields that are read, in the forms of Trainer v2.1.0 and v2.3.0 alike. Objects are never
// written from them.
package trainjob

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// GroupVersion is that of TrainJobs and of the runtimes they name.
var GroupVersion = schema.GroupVersion{Group: "trainer.kubeflow.org", Version: "v1alpha1"}

// JobSetKind is the kind that Trainer creates for a TrainJob, under the same name.
var JobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}

// Kinds of GroupVersion.
const (
	Kind               = mpi.KindTrainJob
	RuntimeKind        = "TrainingRuntime"
	ClusterRuntimeKind = "ClusterTrainingRuntime"
)

// Container is the one that Trainer wires, in every pod of a runtime.
const Container = nodeName

// What Trainer and JobSet call things (trainer/v2/pkg/constants, jobset/api/jobset/v1alpha2).
const (
	// nodeName names the JobSet's job of the workers, and in every job the container that Trainer wires.
	nodeName     = "node"
	launcherName = mpi.JobSetLauncher
	// labelAncestor, with the value ancestorTrainer, marks the job that gets the fields of a TrainJob's trainer.
	labelAncestor   = "trainer.kubeflow.org/trainjob-ancestor-step"
	ancestorTrainer = "trainer"
	// keyVolume brings a job's keys into pods of the launcher and of the workers.
	keyVolume = "mpi-ssh-auth"
	// manager is the value of managedBy with which Trainer runs a job itself.
	manager = "trainer.kubeflow.org/trainjob-controller"
)

// TrainJob is what is read of a TrainJob.
type TrainJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec is a TrainJob's.
type Spec struct {
	RuntimeRef            RuntimeRef `json:"runtimeRef"`
	Trainer               *Trainer   `json:"trainer,omitempty"`
	Suspend               *bool      `json:"suspend,omitempty"`
	ManagedBy             *string    `json:"managedBy,omitempty"`
	ActiveDeadlineSeconds *int64     `json:"activeDeadlineSeconds,omitempty"`
	// RuntimePatches are those of Trainer v2.2 and later, PodTemplateOverrides those of earlier versions.
	RuntimePatches       []RuntimePatch        `json:"runtimePatches,omitempty"`
	PodTemplateOverrides []PodTemplateOverride `json:"podTemplateOverrides,omitempty"`
}

// Status is a TrainJob's. Its conditions are Trainer's alone: SDKs take any for "does not run".
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RuntimeRef names a runtime.
type RuntimeRef struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// Trainer contains a TrainJob's fields about its pods.
type Trainer struct {
	Image            *string                      `json:"image,omitempty"`
	Command          []string                     `json:"command,omitempty"`
	Args             []string                     `json:"args,omitempty"`
	Env              []corev1.EnvVar              `json:"env,omitempty"`
	NumNodes         *int32                       `json:"numNodes,omitempty"`
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	// NumProcPerNode may be a word with other runtimes than MPI's.
	NumProcPerNode *intstr.IntOrString `json:"numProcPerNode,omitempty"`
}

// RuntimePatch changes the runtime for one TrainJob.
type RuntimePatch struct {
	TrainingRuntimeSpec struct {
		Template struct {
			Spec struct {
				ReplicatedJobs []struct {
					Name     string `json:"name,omitempty"`
					Template struct {
						Spec struct {
							Template PodPatch `json:"template"`
						} `json:"spec"`
					} `json:"template"`
				} `json:"replicatedJobs,omitempty"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"trainingRuntimeSpec"`
}

// PodTemplateOverride changes the pods of some of the runtime's jobs for one TrainJob.
type PodTemplateOverride struct {
	TargetJobs []TargetJob `json:"targetJobs,omitempty"`
	PodPatch   `json:",inline"`
}

// TargetJob names one of the runtime's jobs.
type TargetJob struct {
	Name string `json:"name,omitempty"`
}

// PodPatch is what a patch or override changes in pods.
type PodPatch struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
		Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
		Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
		Volumes      []corev1.Volume     `json:"volumes,omitempty"`

		ServiceAccountName *string                    `json:"serviceAccountName,omitempty"`
		SecurityContext    *corev1.PodSecurityContext `json:"securityContext,omitempty"`
		InitContainers     []ContainerPatch           `json:"initContainers,omitempty"`
		Containers         []ContainerPatch           `json:"containers,omitempty"`
	} `json:"spec"`
}

// ContainerPatch is what a patch or override changes in a container of the pods, which it names.
type ContainerPatch struct {
	Name            string                  `json:"name"`
	Env             []corev1.EnvVar         `json:"env,omitempty"`
	VolumeMounts    []corev1.VolumeMount    `json:"volumeMounts,omitempty"`
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// Runtime is what is read of a TrainingRuntime or ClusterTrainingRuntime.
type Runtime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RuntimeSpec `json:"spec"`
	// Version is VersionOf the runtime in the cluster when the job was read first, or "" if it is unknown.
	Version string `json:"-"`
}

// VersionOf identifies a runtime and its specification.
func VersionOf(runtime metav1.Object) string {
	return string(runtime.GetUID()) + "/" + strconv.FormatInt(runtime.GetGeneration(), 10)
}

// RuntimeSpec is a runtime's.
type RuntimeSpec struct {
	MLPolicy *MLPolicy `json:"mlPolicy,omitempty"`
	// PodGroupPolicy is set where the pods of a job are scheduled as a gang.
	PodGroupPolicy *struct{} `json:"podGroupPolicy,omitempty"`
	Template       Template  `json:"template"`
}

// MLPolicy says how a runtime's jobs are spread.
type MLPolicy struct {
	NumNodes *int32     `json:"numNodes,omitempty"`
	MPI      *MPIPolicy `json:"mpi,omitempty"`
}

// MPIPolicy makes a runtime one of MPI jobs.
type MPIPolicy struct {
	NumProcPerNode    *int32 `json:"numProcPerNode,omitempty"`
	SSHAuthMountPath  string `json:"sshAuthMountPath,omitempty"`
	RunLauncherAsNode bool   `json:"runLauncherAsNode,omitempty"`
}

// Template is a runtime's JobSet.
type Template struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty"`
		FailurePolicy  FailurePolicy   `json:"failurePolicy"`
	} `json:"spec"`
}

// FailurePolicy is what a JobSet does if one of its jobs fails. The first rule with the reason of the failed batch Job applies; without
// one, all jobs are started again, at most MaxRestarts times.
type FailurePolicy struct {
	MaxRestarts int32         `json:"maxRestarts,omitempty"`
	Rules       []FailureRule `json:"rules,omitempty"`
}

// FailureRule is what a JobSet does if a job fails with one of some reasons; none are all.
type FailureRule struct {
	Action              string   `json:"action"`
	OnJobFailureReasons []string `json:"onJobFailureReasons,omitempty"`
}

// ReplicatedJob is one of the jobs of a JobSet.
type ReplicatedJob struct {
	Name      string                  `json:"name"`
	Replicas  *int32                  `json:"replicas,omitempty"`
	DependsOn []Dependency            `json:"dependsOn,omitempty"`
	Template  batchv1.JobTemplateSpec `json:"template"`
}

// count returns how many pods the job has.
func (j ReplicatedJob) count() int64 {
	return int64(ptr.Deref(j.Replicas, 1)) * int64(ptr.Deref(j.Template.Spec.Parallelism, 1))
}

// Dependency is another job that a job waits for.
type Dependency struct {
	Name string `json:"name"`
}

// IsMPI reports whether Trainer runs a runtime's jobs as MPI jobs.
func (r Runtime) IsMPI() bool { return r.Spec.MLPolicy != nil && r.Spec.MLPolicy.MPI != nil }

// mpiPolicy is the runtime's, empty where it is not one of MPI.
func (r Runtime) mpiPolicy() MPIPolicy {
	if !r.IsMPI() {
		return MPIPolicy{}
	}
	return *r.Spec.MLPolicy.MPI
}

// job is one of the runtime's jobs by its name; nil where there is none.
func (r Runtime) job(name string) *ReplicatedJob {
	for i := range r.Spec.Template.Spec.ReplicatedJobs {
		if job := &r.Spec.Template.Spec.ReplicatedJobs[i]; job.Name == name {
			return job
		}
	}
	return nil
}

// trainer is the job that a TrainJob's trainer goes to; nil where there is none.
func (r Runtime) trainer() *ReplicatedJob {
	for i := range r.Spec.Template.Spec.ReplicatedJobs {
		if job := &r.Spec.Template.Spec.ReplicatedJobs[i]; job.isTrainer() {
			return job
		}
	}
	return nil
}

func (j *ReplicatedJob) isTrainer() bool { return j.Template.Labels[labelAncestor] == ancestorTrainer }

// pod is the pod template of a job, empty where there is no such job.
func (j *ReplicatedJob) pod() corev1.PodTemplateSpec {
	if j == nil {
		return corev1.PodTemplateSpec{}
	}
	return j.Template.Spec.Template
}

// container is the one that Trainer wires; nil where there is none.
func container(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == nodeName {
			return &pod.Containers[i]
		}
	}
	return nil
}

// Image returns the image of the workers, or of another pod if the runtime has no workers; empty if no container is Trainer's.
func (r Runtime) Image() string {
	if workers := r.job(nodeName); workers != nil {
		if c := container(&workers.Template.Spec.Template.Spec); c != nil {
			return c.Image
		}
	}
	for i := range r.Spec.Template.Spec.ReplicatedJobs {
		if c := container(&r.Spec.Template.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec); c != nil {
			return c.Image
		}
	}
	return ""
}

// AgentImage returns the image that brings the agent into the pods of a runtime; empty for none.
func (r Runtime) AgentImage() string {
	for i := range r.Spec.Template.Spec.ReplicatedJobs {
		pod := r.Spec.Template.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		for _, c := range pod.InitContainers {
			if c.Name == agentapi.Container {
				return c.Image
			}
		}
		for _, v := range pod.Volumes {
			if v.Name == agentapi.Volume && v.Image != nil {
				return v.Image.Reference
			}
		}
	}
	return ""
}

// hasAgent reports whether pods bring the agent along: an init container copies it, or they mount its image.
func hasAgent(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == agentapi.Container }) ||
		slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == agentapi.Volume && v.Image != nil })
}

// trainer returns the TrainJob's, empty if it has none.
func (j TrainJob) trainer() Trainer { return ptr.Deref(j.Spec.Trainer, Trainer{}) }

// patches are what the TrainJob changes in the pods of one of the runtime's jobs.
func (j TrainJob) patches(of *ReplicatedJob) []PodPatch {
	var all []PodPatch
	j.eachPatch(of, func(_ *field.Path, patch PodPatch) { all = append(all, patch) })
	return all
}

// eachPatch calls a function with what the TrainJob changes in the pods of one of the runtime's jobs, and its path.
func (j TrainJob) eachPatch(of *ReplicatedJob, visit func(at *field.Path, patch PodPatch)) {
	if of == nil {
		return
	}
	for i, patch := range j.Spec.RuntimePatches {
		for k, job := range patch.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs {
			if job.Name == of.Name {
				visit(replicatedJobAt(i, k).Child("template", "spec", "template"), job.Template.Spec.Template)
			}
		}
	}
	for i, override := range j.Spec.PodTemplateOverrides {
		for _, job := range override.TargetJobs {
			if job.Name == of.Name {
				visit(spec.Child("podTemplateOverrides").Index(i), override.PodPatch)
			}
		}
	}
}

// JobPatch is what a TrainJob changes in the pod template of one of its runtime's jobs.
type JobPatch struct {
	// Job is the name of the job, and Template the changed fields.
	Job      string
	Template map[string]any
}

// RuntimePatches returns the value of spec.runtimePatches with changes by one author.
func RuntimePatches(manager string, patches []JobPatch) []any {
	jobs := make([]any, len(patches))
	for i, patch := range patches {
		jobs[i] = tree{"name": patch.Job, "template": tree{"spec": tree{"template": patch.Template}}}
	}
	return []any{tree{"manager": manager, "trainingRuntimeSpec": tree{"template": tree{"spec": tree{"replicatedJobs": jobs}}}}}
}

// replicatedJobAt is the path of a job in a patch of the runtime.
func replicatedJobAt(patch, job int) *field.Path {
	return spec.Child("runtimePatches").Index(patch).Child("trainingRuntimeSpec", "template", "spec", "replicatedJobs").Index(job)
}

// nodeSelector is that of the pods of one of the runtime's jobs, with what the TrainJob changes in it.
func (j TrainJob) nodeSelector(of *ReplicatedJob) map[string]string {
	selector := map[string]string{}
	maps.Copy(selector, of.pod().Spec.NodeSelector)
	for _, patch := range j.patches(of) {
		maps.Copy(selector, patch.Spec.NodeSelector)
	}
	return selector
}

// patch adds to the pods of one of the runtime's jobs what the TrainJob says about their nodes, volumes, variables, accounts and users.
// Those of the same name or path are replaced.
func (j TrainJob) patch(of *ReplicatedJob, pod *corev1.PodSpec) {
	if selector := j.nodeSelector(of); len(selector) > 0 {
		pod.NodeSelector = selector
	}
	for _, patch := range j.patches(of) {
		pod.Tolerations = append(pod.Tolerations, patch.Spec.Tolerations...)
		if patch.Spec.Affinity != nil {
			pod.Affinity = patch.Spec.Affinity
		}
		if patch.Spec.ServiceAccountName != nil {
			pod.ServiceAccountName = *patch.Spec.ServiceAccountName
		}
		pod.SecurityContext = merged(pod.SecurityContext, patch.Spec.SecurityContext)
		pod.Volumes = replaced(pod.Volumes, patch.Spec.Volumes, func(v corev1.Volume) string { return v.Name })
		patchContainers(pod.InitContainers, patch.Spec.InitContainers)
		patchContainers(pod.Containers, patch.Spec.Containers)
	}
}

func patchContainers(containers []corev1.Container, changes []ContainerPatch) {
	for _, change := range changes {
		for i := range containers {
			if c := &containers[i]; c.Name == change.Name {
				c.Env = replaced(c.Env, change.Env, func(e corev1.EnvVar) string { return e.Name })
				c.VolumeMounts = replaced(c.VolumeMounts, change.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath })
				c.SecurityContext = merged(c.SecurityContext, change.SecurityContext)
			}
		}
	}
}

// merged returns an object with the fields that another one sets.
func merged[T any](have, set *T) *T {
	if set == nil {
		return have
	}
	both := new(T)
	for _, one := range []*T{have, set} {
		// What was decoded from JSON can be encoded.
		if data, err := json.Marshal(one); err == nil && one != nil {
			_ = json.Unmarshal(data, both)
		}
	}
	return both
}

// replaced returns a list with others added, in place of those with the same key.
func replaced[T any](have, others []T, key func(T) string) []T {
	for _, other := range others {
		have = slices.DeleteFunc(slices.Clone(have), func(one T) bool { return key(one) == key(other) })
		have = append(have, other)
	}
	return have
}

// implementation is the MPI in a runtime's image. Upstream's CRD only allows Open MPI, so an annotation contains it.
func (r Runtime) implementation() mpi.Implementation {
	if name := r.Annotations[mpi.AnnotationImplementation]; name != "" {
		return mpi.Implementation(name)
	}
	return mpi.OpenMPI
}
