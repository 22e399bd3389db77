package jobs

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// RuntimeSettings are what an administrator sets of an MPI runtime.
type RuntimeSettings struct {
	// Image replaces the image of the workers wherever the runtime has it; empty to keep it.
	Image string `json:"image,omitempty"`
	// Slots is the number of ranks per worker, unless the job sets it; zero to keep it.
	Slots int32 `json:"slots,omitempty"`
	// MaxWorkers, MinWorkers and MaxGPUs (per worker) limit the jobs of the runtime; nil for no limit.
	MaxWorkers *int32 `json:"maxWorkers,omitempty"`
	MinWorkers *int32 `json:"minWorkers,omitempty"`
	MaxGPUs    *int32 `json:"maxGPUs,omitempty"`
	// GangTimeoutSeconds is after how long an attempt to place all pods of a job together ends, unless the job sets it; nil for the
	// default.
	GangTimeoutSeconds *int32 `json:"gangTimeoutSeconds,omitempty"`
	// PriorityClass is that of all pods; empty for the cluster's default.
	PriorityClass string `json:"priorityClass,omitempty"`
	// RequiredNodeLabels are labels that the nodes of all pods have, as key=value, separated by commas; empty for any node. A job cannot
	// change them.
	RequiredNodeLabels string `json:"requiredNodeLabels,omitempty"`
	// AllowEgress are destinations that pods may connect to besides their own job, as isolation.ParseEgress reads them; empty for none.
	AllowEgress string `json:"allowEgress,omitempty"`
}

// NewRuntime describes a runtime that is made from another.
type NewRuntime struct {
	Name string
	// Namespace is that of a TrainingRuntime; empty for a runtime of the cluster.
	Namespace string
	Settings  RuntimeSettings
	// AgentImage replaces the image that brings the agent into the pods; empty to keep it.
	AgentImage string
	// RunAsUser is the user of the pods; nil to keep that of the other runtime.
	RunAsUser *int64
}

// CreateRuntime creates a runtime with the specification of another, which may be a shipped one, and returns it. With DryRunClient it
// only returns it. It fails with InvalidError, ExistsError or NoTrainerError.
func (c *Client) CreateRuntime(ctx context.Context, from Runtime, request NewRuntime, dryRun DryRun) (*unstructured.Unstructured, error) {
	object, err := from.copyAs(request)
	if err != nil || dryRun == DryRunClient {
		return object, err
	}
	err = c.api.Create(ctx, object, dryRun.createOptions()...)
	switch {
	case err == nil:
		return object, nil
	case apierrors.IsAlreadyExists(err):
		return nil, &ExistsError{Name: "runtime " + request.Name}
	case c.NotInstalled(err, object.GroupVersionKind()):
		return nil, &NoTrainerError{}
	}
	return nil, fmt.Errorf("create runtime %s: %w", request.Name, err)
}

// ChangeRuntime changes the settings of a runtime. It fails with InvalidError, or a conflict if the runtime has changed since it
// was read.
func (c *Client) ChangeRuntime(ctx context.Context, runtime Runtime, settings RuntimeSettings) error {
	if errs := settings.check(); len(errs) > 0 {
		return Invalid(errs...)
	}
	object, err := runtime.with(settings)
	if err != nil {
		return err
	}
	if err := c.api.Update(ctx, object); err != nil {
		return fmt.Errorf("change runtime %s: %w", runtime.Name, err)
	}
	return nil
}

// DeleteRuntime deletes a runtime. It reports whether finalizers of other programs keep it for now: Kubeflow Trainer before v2.2
// keeps runtimes that jobs use. The UID protects a new runtime of the same name.
func (c *Client) DeleteRuntime(ctx context.Context, runtime Runtime) (isKept bool, err error) {
	uid := runtime.Object.GetUID()
	if err := c.api.Delete(ctx, runtime.Object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete runtime %s: %w", runtime.Name, err)
	}
	return len(runtime.Object.GetFinalizers()) > 0, nil
}

// copyAs returns a runtime with the specification of another, and other settings.
func (r Runtime) copyAs(request NewRuntime) (*unstructured.Unstructured, error) {
	errs := request.Settings.check()
	name := request.Name
	switch {
	case name == "":
		errs = append(errs, FieldError{Field: "name", Reason: "is required"})
	case len(validation.IsDNS1123Label(name)) > 0:
		errs = append(errs, FieldError{Field: "name", Value: name, Reason: "is not allowed; use at most 63 lower-case letters, digits and -, such as mpi-a100"})
	}
	if r.lacksImage() && request.Settings.Image == "" {
		errs = append(errs, FieldError{Field: "image", Reason: "is required: nobody publishes an image with Intel MPI; build one (images/README.md)"})
	}
	if hasSpace(request.AgentImage) {
		errs = append(errs, FieldError{Field: "agentImage", Value: request.AgentImage, Reason: "is not allowed; use a reference without spaces"})
	}
	if user := request.RunAsUser; user != nil && *user < 1 {
		errs = append(errs, FieldError{Field: "runAsUser", Value: strconv.FormatInt(*user, 10), Reason: "is not allowed; use 1 or more: runtimes do not run as root"})
	}
	if len(errs) > 0 {
		return nil, Invalid(errs...)
	}
	changed, err := r.with(request.Settings)
	if err != nil {
		return nil, err
	}
	if request.AgentImage != "" {
		replaceAgent(changed.Object["spec"], request.AgentImage)
	}
	if request.RunAsUser != nil {
		if err := setUser(changed, *request.RunAsUser); err != nil {
			return nil, fmt.Errorf("set the user of %s: %w", name, err)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": changed.Object["spec"]}}
	object.SetGroupVersionKind(RuntimeKinds()[0])
	if request.Namespace != "" {
		object.SetGroupVersionKind(RuntimeKinds()[1])
		object.SetNamespace(request.Namespace)
	}
	object.SetName(name)
	object.SetLabels(changed.GetLabels())
	notes := changed.GetAnnotations()
	delete(notes, corev1.LastAppliedConfigAnnotation)
	if len(notes) > 0 {
		object.SetAnnotations(notes)
	}
	return object, nil
}

// with returns the object of the runtime with other settings, which were checked.
func (r Runtime) with(settings RuntimeSettings) (*unstructured.Unstructured, error) {
	if !r.MPI {
		return nil, Invalid(FieldError{Reason: fmt.Sprintf("%s is not an MPI runtime; copy and change it with kubectl", r.Name)})
	}
	object := r.Object.DeepCopy()
	object.SetAnnotations(settings.annotations(object.GetAnnotations()))
	if settings.RequiredNodeLabels != r.NodeLabels {
		if err := changePods(object, requireLabels(nodeLabels(r.NodeLabels), nodeLabels(settings.RequiredNodeLabels))); err != nil {
			return nil, fmt.Errorf("set the node labels of %s: %w", r.Name, err)
		}
	}
	if settings.Slots > 0 {
		if err := unstructured.SetNestedField(object.Object, int64(settings.Slots), "spec", "mlPolicy", "mpi", "numProcPerNode"); err != nil {
			return nil, fmt.Errorf("set the slots of %s: %w", r.Name, err)
		}
	}
	if settings.PriorityClass != r.PriorityClass {
		setPriority := func(pod map[string]any) error {
			if delete(pod, "priorityClassName"); settings.PriorityClass != "" {
				pod["priorityClassName"] = settings.PriorityClass
			}
			return nil
		}
		if err := changePods(object, setPriority); err != nil {
			return nil, fmt.Errorf("set the priority class of %s: %w", r.Name, err)
		}
	}
	if settings.Image != "" {
		replaceImage(object.Object["spec"], r.Image, settings.Image)
	}
	return object, nil
}

// annotations returns the annotations of a runtime with these settings instead of those that it had.
func (s RuntimeSettings) annotations(notes map[string]string) map[string]string {
	if notes == nil {
		notes = map[string]string{}
	}
	for name, number := range map[string]*int32{
		mpi.AnnotationMaxWorkers: s.MaxWorkers, mpi.AnnotationMinWorkers: s.MinWorkers, mpi.AnnotationMaxGPUs: s.MaxGPUs, mpi.AnnotationScheduleTimeout: s.GangTimeoutSeconds,
	} {
		delete(notes, name)
		if number != nil {
			notes[name] = strconv.Itoa(int(*number))
		}
	}
	for name, text := range map[string]string{mpi.AnnotationNodeLabels: s.RequiredNodeLabels, mpi.AnnotationAllowEgress: s.AllowEgress} {
		delete(notes, name)
		if text != "" {
			notes[name] = text
		}
	}
	return notes
}

// check returns what is wrong with settings.
func (s RuntimeSettings) check() (errs []FieldError) {
	if hasSpace(s.Image) {
		errs = append(errs, FieldError{Field: "image", Value: s.Image, Reason: "is not allowed; use a reference without spaces, such as quay.io/my-team/train:1.2"})
	}
	if s.Slots < 0 {
		errs = append(errs, FieldError{Field: "slots", Value: strconv.Itoa(int(s.Slots)), Reason: "is not allowed; use 1 or more"})
	}
	if s.MaxWorkers != nil && *s.MaxWorkers < 1 {
		errs = append(errs, FieldError{Field: "maxWorkers", Value: strconv.Itoa(int(*s.MaxWorkers)), Reason: "is not allowed; use 1 or more, or nothing for no limit"})
	}
	if s.MinWorkers != nil && *s.MinWorkers < 1 {
		errs = append(errs, FieldError{Field: "minWorkers", Value: strconv.Itoa(int(*s.MinWorkers)), Reason: "is not allowed; use 1 or more, or nothing for no minimum"})
	}
	if s.MinWorkers != nil && s.MaxWorkers != nil && *s.MinWorkers > *s.MaxWorkers && *s.MaxWorkers > 0 {
		errs = append(errs, FieldError{Field: "minWorkers", Value: strconv.Itoa(int(*s.MinWorkers)), Reason: fmt.Sprintf("is not allowed; use at most %d, the maximum", *s.MaxWorkers)})
	}
	if s.MaxGPUs != nil && *s.MaxGPUs < 0 {
		errs = append(errs, FieldError{Field: "maxGPUs", Value: strconv.Itoa(int(*s.MaxGPUs)), Reason: "is not allowed; use 0 or more, or nothing for no limit"})
	}
	if s.GangTimeoutSeconds != nil && *s.GangTimeoutSeconds < 1 {
		errs = append(errs, FieldError{Field: "gangTimeoutSeconds", Value: strconv.Itoa(int(*s.GangTimeoutSeconds)), Reason: "is not allowed; use 1 or more, or nothing for the default"})
	}
	if s.PriorityClass != "" && len(validation.IsDNS1123Subdomain(s.PriorityClass)) > 0 {
		errs = append(errs, FieldError{Field: "priorityClass", Value: s.PriorityClass, Reason: "is not the name of a PriorityClass; use lower-case letters, digits, - and ."})
	}
	for _, err := range trainjob.CheckLimitAnnotations(map[string]string{mpi.AnnotationNodeLabels: s.RequiredNodeLabels}) {
		errs = append(errs, FieldError{Field: "requiredNodeLabels", Value: s.RequiredNodeLabels, Reason: "is not allowed: " + err.Detail})
	}
	for _, err := range isolation.CheckEgress(map[string]string{mpi.AnnotationAllowEgress: s.AllowEgress}) {
		errs = append(errs, FieldError{Field: "allowEgress", Value: s.AllowEgress, Reason: "is not allowed: " + err.Detail})
	}
	return errs
}

// nodeLabels reads labels that were checked, or those of a runtime, of which it leaves out what is no label.
func nodeLabels(text string) map[string]string {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if key, value, found := strings.Cut(strings.TrimSpace(part), "="); found {
			labels[key] = value
		}
	}
	return labels
}

// requireLabels returns a change of pods: they run on nodes with some labels, and no longer need others.
func requireLabels(before, labels map[string]string) func(pod map[string]any) error {
	return func(pod map[string]any) error {
		selector, _, err := unstructured.NestedStringMap(pod, "nodeSelector")
		if err != nil {
			return err
		}
		maps.DeleteFunc(selector, func(key, value string) bool {
			old, was := before[key]
			return was && old == value
		})
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, labels)
		if len(selector) == 0 {
			delete(pod, "nodeSelector")
			return nil
		}
		return unstructured.SetNestedStringMap(pod, selector, "nodeSelector")
	}
}

func hasSpace(image string) bool { return strings.ContainsAny(image, " \t\n") }

// Settings returns the settings that a runtime has; what is no number is left out.
func (r Runtime) Settings() RuntimeSettings {
	settings := RuntimeSettings{Slots: r.Slots, PriorityClass: r.PriorityClass, RequiredNodeLabels: r.NodeLabels, AllowEgress: r.AllowEgress}
	for text, number := range map[*string]**int32{&r.MaxWorkers: &settings.MaxWorkers, &r.MinWorkers: &settings.MinWorkers, &r.MaxGPUs: &settings.MaxGPUs, &r.GangTimeout: &settings.GangTimeoutSeconds} {
		if n, err := strconv.ParseInt(*text, 10, 32); err == nil {
			*number = new(int32(n))
		}
	}
	return settings
}

// replaceAgent replaces the image that brings the agent into pods: of the init container that copies it, or of the volume.
func replaceAgent(in any, to string) {
	switch in := in.(type) {
	case []any:
		for _, each := range in {
			replaceAgent(each, to)
		}
	case map[string]any:
		if init, is := in["initContainers"].([]any); is {
			setNamed(init, agentapi.Container, to, "image")
		}
		if volumes, is := in["volumes"].([]any); is {
			setNamed(volumes, agentapi.Volume, to, "image", "reference")
		}
		for _, each := range in {
			replaceAgent(each, to)
		}
	}
}

// setNamed replaces a text in the entries of a name, if they have it.
func setNamed(list []any, name, to string, path ...string) {
	for _, entry := range list {
		if fields, is := entry.(map[string]any); is && fields["name"] == name {
			if _, found, err := unstructured.NestedString(fields, path...); found && err == nil {
				_ = unstructured.SetNestedField(fields, to, path...) // the field exists
			}
		}
	}
}

// setUser sets the user and group of the pods of a runtime.
func setUser(runtime *unstructured.Unstructured, user int64) error {
	return changePods(runtime, func(pod map[string]any) error {
		for _, field := range []string{"runAsUser", "runAsGroup"} {
			if err := unstructured.SetNestedField(pod, user, "securityContext", field); err != nil {
				return err
			}
		}
		return nil
	})
}

// changePods changes the specification of the pods of each job of a runtime.
func changePods(runtime *unstructured.Unstructured, change func(pod map[string]any) error) error {
	jobsPath, podPath := []string{"spec", "template", "spec", "replicatedJobs"}, []string{"template", "spec", "template", "spec"}
	list, _, err := unstructured.NestedSlice(runtime.Object, jobsPath...)
	if err != nil {
		return err
	}
	for _, entry := range list {
		job, is := entry.(map[string]any)
		if !is {
			continue
		}
		pod, _, err := unstructured.NestedMap(job, podPath...)
		if err != nil {
			return err
		}
		if pod == nil {
			pod = map[string]any{}
		}
		if err := change(pod); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(job, pod, podPath...); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(runtime.Object, list, jobsPath...)
}

// replaceImage replaces the image of the containers of a specification that have it, but not of init containers.
func replaceImage(in any, from, to string) {
	switch in := in.(type) {
	case []any:
		for _, each := range in {
			replaceImage(each, from, to)
		}
	case map[string]any:
		containers, _ := in["containers"].([]any)
		for _, each := range containers {
			if container, is := each.(map[string]any); is && container["image"] == from {
				container["image"] = to
			}
		}
		for _, each := range in {
			replaceImage(each, from, to)
		}
	}
}
