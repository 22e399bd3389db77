package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Built is a job that is made from a specification.
type Built struct {
	Job *unstructured.Unstructured
	// Command is the launcher's command if mpirun was added to it; nil otherwise.
	Command []string
}

// Build makes the job of a specification, without creating it. It reads the runtime, or the pod security level of the
// namespace. It fails with InvalidError, NotFoundError (the runtime) or RejectedError.
func (c *Client) Build(ctx context.Context, s Spec) (Built, error) {
	if errs := s.Validate(); len(errs) > 0 {
		return Built{}, Invalid(errs...)
	}
	if s.Output != nil && s.Output.SubPath == "" {
		output := *s.Output
		output.SubPath = s.Name
		s.Output = &output
	}
	if s.Runtime == "" {
		return s.mpiJob(c.isRestricted(ctx, s.Namespace))
	}
	kind, found, err := c.runtime(ctx, s.Namespace, s.Runtime)
	if err != nil {
		return Built{}, err
	}
	built, err := s.trainJob(kind, *found)
	if patch := s.podPatch(); err == nil && patch.all != nil {
		err = c.patchRuntime(ctx, built.Job, *found, patch)
	}
	return built, err
}

// isRestricted reports whether a namespace only admits pods of Pod Security's level restricted; false if unknown.
func (c *Client) isRestricted(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var namespace corev1.Namespace
	err := c.api.Get(ctx, types.NamespacedName{Name: name}, &namespace)
	return err == nil && namespace.Labels["pod-security.kubernetes.io/enforce"] == "restricted"
}

// runtime finds a runtime of the namespace, else of the cluster.
func (c *Client) runtime(ctx context.Context, namespace, name string) (kind string, found *trainjob.Runtime, err error) {
	for _, kind := range []string{trainjob.RuntimeKind, trainjob.ClusterRuntimeKind} {
		job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: trainjob.Spec{RuntimeRef: trainjob.RuntimeRef{Name: name, Kind: kind}}}
		found, err = trainjob.LoadRuntime(ctx, c.api, job)
		if found != nil {
			return kind, found, nil
		}
		if err != nil && kind == trainjob.ClusterRuntimeKind {
			return "", nil, err
		}
	}
	return "", nil, c.noRuntime(ctx, namespace, name)
}

// launchCommand returns the command with mpirun, or nil if the command starts ranks itself. Each line of output is tagged with
// its rank, which logs removes again. A TrainJob has no field for the working folder, which is a flag then.
func (s Spec) launchCommand(name mpi.Implementation, ranks int64) []string {
	if StartsRanks(s.Command) {
		return nil
	}
	flavor := implementation.For(name)
	launch := append([]string{"mpirun"}, flavor.TagFlags()...)
	if s.Runtime != "" && s.WorkDir != "" {
		launch = append(launch, flavor.WorkDirFlag(), s.WorkDir)
	}
	return slices.Concat(launch, s.MPIFlags, []string{"-n", strconv.FormatInt(ranks, 10)}, s.Command)
}

func (s Spec) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.labels(), Annotations: s.annotations()}
}

func (s Spec) mpiJob(restricted bool) (Built, error) {
	slots := s.slotsPerWorker()
	name, _ := s.implementation()
	added := s.launchCommand(name, int64(slots)*int64(s.Workers))
	container := func(name string) corev1.Container {
		_, mounts := s.volumes()
		return corev1.Container{Name: name, Image: s.Image, Env: s.env(), WorkingDir: s.WorkDir, VolumeMounts: mounts, SecurityContext: s.securityContext(restricted)}
	}
	launcher, worker := container("launcher"), container("worker")
	launcher.Command = s.Command
	if added != nil {
		launcher.Command = added
	}
	launcher.Resources = s.launcherResources()
	worker.Resources = s.resources()
	role := func(c corev1.Container, replicas *int32) *kubeflow.ReplicaSpec {
		spec := s.podSpec()
		spec.PriorityClassName, spec.Containers = s.Priority, []corev1.Container{c}
		return &kubeflow.ReplicaSpec{Replicas: replicas, Template: corev1.PodTemplateSpec{Spec: spec}}
	}
	retries := int32(0)
	if s.Retries != nil {
		retries = *s.Retries
	}
	job := kubeflow.MPIJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: kubeflow.Kind},
		ObjectMeta: s.meta(),
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker:    &slots,
			MPIImplementation: kubeflow.MPIImplementation(name),
			RunPolicy:         kubeflow.RunPolicy{CleanPodPolicy: new(kubeflow.CleanPodPolicyRunning), BackoffLimit: &retries, ActiveDeadlineSeconds: s.deadlineSeconds()},
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: role(launcher, nil),
				kubeflow.MPIReplicaTypeWorker:   role(worker, &s.Workers),
			},
		},
	}
	// A container that is restarted in its pod overwrites its log.
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
	if retries > 0 {
		// Without it, a retry would lack the workers that failed.
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].RestartPolicy = kubeflow.RestartPolicyOnFailure
	}
	if s.Suspend {
		job.Spec.RunPolicy.Suspend = new(true)
	}
	if s.TTL != nil {
		job.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(*s.TTL / time.Second))
	}
	if s.GangTimeout > 0 {
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(s.GangTimeout / time.Second))}
	}
	object, err := withoutEmptyFields(job)
	return Built{Job: object, Command: added}, err
}

// securityContext drops all rights: with the agent, ranks need none.
func (s Spec) securityContext(restricted bool) *corev1.SecurityContext {
	security := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		RunAsUser:                s.RunAsUser,
	}
	if restricted || s.RunAsUser != nil {
		security.RunAsNonRoot = new(true)
	}
	return security
}

func (s Spec) deadlineSeconds() *int64 {
	if s.Deadline == 0 {
		return nil
	}
	return new(int64(s.Deadline / time.Second))
}

func (s Spec) trainJob(runtimeKind string, used trainjob.Runtime) (Built, error) {
	job := trainjob.TrainJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind},
		ObjectMeta: s.meta(),
	}
	if s.Priority != "" && s.Queue != "" {
		job.Labels[mpi.LabelQueuePriority] = s.Priority
	}
	trainer := &trainjob.Trainer{NumNodes: &s.Workers, Env: s.env(), Command: s.Command}
	if s.Image != "" {
		trainer.Image = &s.Image
	}
	if s.Slots != nil {
		trainer.NumProcPerNode = new(intstr.FromInt32(*s.Slots))
	}
	if resources := s.resources(); len(resources.Requests) > 0 {
		trainer.ResourcesPerNode = &resources
	}
	job.Spec = trainjob.Spec{RuntimeRef: trainjob.RuntimeRef{Name: s.Runtime, Kind: runtimeKind}, Trainer: trainer, ActiveDeadlineSeconds: s.deadlineSeconds()}
	if s.Suspend {
		job.Spec.Suspend = new(true)
	}
	if errs := s.validateWith(used); len(errs) > 0 {
		return Built{}, Invalid(errs...)
	}
	var added []string
	if used.IsMPI() {
		converted := trainjob.Convert(job, used)
		if added = s.launchCommand(converted.Implementation, converted.Ranks()); added != nil {
			trainer.Command = added
		}
	}
	if errs, _ := trainjob.Check(job, used); len(errs) > 0 {
		rejected := &RejectedError{Name: "trainjob/" + s.Name}
		for _, err := range errs {
			rejected.Reasons = append(rejected.Reasons, err.Error())
		}
		return Built{}, rejected
	}
	object, err := withoutEmptyFields(job)
	return Built{Job: object, Command: added}, err
}

// validateWith returns an error for each setting that has no effect with a runtime, by the table of settings.
func (s Spec) validateWith(used trainjob.Runtime) []FieldError {
	var errs []FieldError
	for _, setting := range []struct {
		name    string
		isSet   bool
		instead string
	}{
		{"mpiFlags", len(s.MPIFlags) > 0, ""},
		{"workdir", s.WorkDir != "", "; write the folder in the command: sh -c 'cd FOLDER && exec python train.py'"},
		{"connection", len(s.Connections) > 0, "; set variables from the Secret's keys in YAML (spec.trainer.env)"},
		{"topology", s.Topology != "", ""},
		{"rdma", s.RDMA != "", ""},
		{"profile", s.Profile, ""},
		{"waitForQuota", s.WaitForQuota, ""},
		{"gangTimeout", s.GangTimeout > 0, ""},
		{"priority", s.prioritizesTrainJob(), "; set a queue, or use a runtime whose pods have a priority class"},
		{"retries", s.Retries != nil, "; the runtime defines how often its jobs are restarted"},
	} {
		isOurs := strings.Contains(SettingOf(setting.name).TrainJob.Only, withOurs)
		switch {
		case !setting.isSet, used.IsOurs(), used.IsMPI() && !isOurs:
		case isOurs:
			errs = append(errs, FieldError{Field: setting.name, Reason: fmt.Sprintf("cannot be set with runtime %s: it %s, with the annotation %s%s", s.Runtime, withOurs, mpi.AnnotationImplementation, setting.instead)})
		default:
			errs = append(errs, FieldError{Field: setting.name, Reason: fmt.Sprintf("cannot be set with runtime %s, which does not use MPI%s", s.Runtime, setting.instead)})
		}
	}
	return errs
}

// withoutIneffective returns the specification without the settings that have no effect with a runtime.
func (s Spec) withoutIneffective(used trainjob.Runtime) Spec {
	if !used.IsOurs() {
		if s.prioritizesTrainJob() {
			s.Priority = ""
		}
		s.Connections, s.Topology, s.TopologyPreferred, s.RDMA, s.Profile, s.WaitForQuota, s.GangTimeout, s.Retries = nil, "", false, "", false, false, 0, nil
	}
	return s
}

// withoutEmptyFields returns a typed object as users write it: without a status, nulls and empty objects.
func withoutEmptyFields(job any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	delete(object.Object, "status")
	removeEmpty(object.Object)
	return &object, nil
}

func removeEmpty(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			if removeEmpty(value); len(value) == 0 {
				delete(fields, name)
			}
		case []any:
			for _, item := range value {
				if item, is := item.(map[string]any); is {
					removeEmpty(item)
				}
			}
		}
	}
}

// runtimePatcher names the command line and the dashboard as the authors of a runtime patch.
const runtimePatcher = mpi.Group + "/jobs"

// podPatch are the changes of the pods of a runtime: all of the pods that run the program, and place of the runtime's other
// pods, such as those of initializers, whose containers stay as they are. nil is no change.
type podPatch struct{ all, place map[string]any }

// podPatch returns what a job changes in the pods of its runtime.
func (s Spec) podPatch() podPatch {
	spec := s.podSpec()
	place := spec
	place.Volumes = nil // only the containers of the program mount them
	container := corev1.Container{Name: trainjob.Container}
	if _, container.VolumeMounts = s.volumes(); s.RunAsUser != nil {
		container.SecurityContext = &corev1.SecurityContext{RunAsUser: s.RunAsUser, RunAsNonRoot: new(true)}
	}
	if len(container.VolumeMounts) > 0 || container.SecurityContext != nil {
		spec.Containers = []corev1.Container{container}
	}
	return podPatch{all: patchOf(spec), place: patchOf(place)}
}

// patchOf returns the fields of a pod template that a patch sets; nil for none.
func patchOf(spec corev1.PodSpec) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		panic(err) // a pod always converts
	}
	removeEmpty(fields)
	if len(fields) == 0 {
		return nil
	}
	return map[string]any{"spec": fields}
}

// runsProgram reports whether the pods of a runtime's job have the container that a TrainJob changes.
func runsProgram(job trainjob.ReplicatedJob) bool {
	return slices.ContainsFunc(job.Template.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == trainjob.Container })
}

// patchRuntime writes changes of the runtime's pods into a TrainJob, as the cluster's version of Trainer has them: those of
// v2.1 are podTemplateOverrides.
func (c *Client) patchRuntime(ctx context.Context, job *unstructured.Unstructured, used trainjob.Runtime, patch podPatch) error {
	hasOverrides, err := c.HasPodTemplateOverrides(ctx)
	if err != nil {
		return fmt.Errorf("read which fields TrainJobs have: %w", err)
	}
	if hasOverrides {
		if errs := sinceRuntimePatches(patch.all); len(errs) > 0 {
			return Invalid(errs...)
		}
	}
	var patches []trainjob.JobPatch
	var program, others []any
	for _, replicated := range used.Spec.Template.Spec.ReplicatedJobs {
		fields, targets := patch.place, &others
		if runsProgram(replicated) {
			fields, targets = patch.all, &program
		}
		if fields == nil {
			continue
		}
		*targets = append(*targets, map[string]any{"name": replicated.Name})
		patches = append(patches, trainjob.JobPatch{Job: replicated.Name, Template: runtime.DeepCopyJSON(fields)})
	}
	switch {
	case len(patches) == 0:
		return nil
	case !hasOverrides:
		return unstructured.SetNestedSlice(job.Object, trainjob.RuntimePatches(runtimePatcher, patches), "spec", "runtimePatches")
	}
	var overrides []any
	for _, each := range []struct {
		fields  map[string]any
		targets []any
	}{{patch.all, program}, {patch.place, others}} {
		if len(each.targets) > 0 {
			override := runtime.DeepCopyJSON(each.fields)
			override["targetJobs"] = each.targets
			overrides = append(overrides, override)
		}
	}
	return unstructured.SetNestedSlice(job.Object, overrides, "spec", "podTemplateOverrides")
}

// sinceRuntimePatches returns an error for each setting of a patch that podTemplateOverrides do not have.
func sinceRuntimePatches(patch map[string]any) []FieldError {
	fields, _ := patch["spec"].(map[string]any)
	containers, _ := fields["containers"].([]any)
	_, grace := fields["terminationGracePeriodSeconds"]
	user := slices.ContainsFunc(containers, func(each any) bool {
		container, _ := each.(map[string]any)
		return container["securityContext"] != nil
	})
	var errs []FieldError
	for _, setting := range []struct {
		name string
		set  bool
	}{{"gracePeriod", grace}, {"runAsUser", user}} {
		if setting.set {
			errs = append(errs, FieldError{Field: setting.name, Reason: "cannot be set with a runtime in this cluster; it " + sincePatches})
		}
	}
	return errs
}

// HasPodTemplateOverrides is that of trainjob for the cluster. Without discovery it assumes a later version of Trainer than v2.1.
func (c *Client) HasPodTemplateOverrides(ctx context.Context) (bool, error) {
	asked, can := c.discovery.(discovery.OpenAPIV3SchemaInterface)
	if !can {
		return false, nil
	}
	return trainjob.HasPodTemplateOverrides(ctx, asked)
}
