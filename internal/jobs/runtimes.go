package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// RuntimeKinds are the kinds of runtimes: those of the cluster, and those of a namespace.
func RuntimeKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind)}
}

// Runtime is a runtime of Kubeflow Trainer, from which TrainJobs are made.
type Runtime struct {
	Kind, Name string
	// Namespace is empty for a runtime of the cluster.
	Namespace string
	// MPI reports whether it starts MPI jobs. Without it, the fields down to KeyPath are empty.
	MPI bool
	// Implementation is an mpi.Implementation; DefaultImplementation is set if the runtime does not name it.
	Implementation        string
	DefaultImplementation bool
	// Slots is the number of ranks per node, unless the job sets it.
	Slots int32
	// LauncherRunsRanks reports whether the launcher is the first of the job's nodes. Otherwise it is added to them.
	LauncherRunsRanks bool
	// KeyPath is the folder in which containers find the SSH keys; empty for Trainer's default.
	KeyPath string
	// MaxWorkers, MinWorkers, MaxGPUs (per node), NodeLabels and AllowEgress are the limits for jobs as the runtime's annotations
	// have them; empty for none.
	MaxWorkers, MinWorkers, MaxGPUs, NodeLabels, AllowEgress string
	// GangTimeout is mpi.AnnotationScheduleTimeout as the runtime has it.
	GangTimeout string
	// PriorityClass is that of the pods; empty for the cluster's default.
	PriorityClass string
	// Image is the workers' image; empty if it is unknown.
	Image string
	// AgentImage is the image that brings the agent into the pods; empty for none.
	AgentImage string
	Containers []RuntimeContainer
	// Errors are why jobs of the runtime fail. Of an Unreadable runtime, they say why, and only its limits are known.
	Errors     []string
	Unreadable bool
	// Shipped is set of a runtime that the project ships, which need not be in the cluster.
	Shipped bool
	// Object is the runtime in the cluster, or as it is shipped.
	Object *unstructured.Unstructured
}

// RuntimeContainer is a container of a runtime's pods.
type RuntimeContainer struct {
	// Job is the name of the replicated job, such as launcher or node.
	Job, Image string
	// Requests are what the whole pod requests.
	Requests corev1.ResourceList
}

// RuntimeList is the result of Runtimes.
type RuntimeList struct {
	// Runtimes are sorted by name, then by kind and namespace.
	Runtimes []Runtime
	// Omitted are the kinds that the user may not list.
	Omitted []Omission
}

// Runtimes returns the runtimes of the cluster and of a namespace (empty: of all). It fails with NoTrainerError if the cluster
// has no Kubeflow Trainer.
func (c *Client) Runtimes(ctx context.Context, namespace string) (RuntimeList, error) {
	var found RuntimeList
	for _, kind := range RuntimeKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := EachPage(ctx, c.api, list, runtimeScope(kind, namespace), nil, func() {
			for i := range list.Items {
				list.Items[i].SetGroupVersionKind(kind)
				found.Runtimes = append(found.Runtimes, describeRuntime(list.Items[i].DeepCopy()))
			}
		})
		switch {
		case err == nil:
		case c.NotInstalled(err, kind):
			return RuntimeList{}, &NoTrainerError{}
		case apierrors.IsForbidden(err):
			found.Omitted = append(found.Omitted, Omission{Kind: kind.Kind, Err: fmt.Errorf("list %ss: %w", kind.Kind, err)})
		default:
			return RuntimeList{}, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
	}
	slices.SortStableFunc(found.Runtimes, func(a, b Runtime) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace))
	})
	return found, nil
}

// runtimeScope returns the namespace in which to list a kind of runtime.
func runtimeScope(kind schema.GroupVersionKind, namespace string) string {
	if kind.Kind == trainjob.RuntimeKind {
		return namespace
	}
	return ""
}

// FindRuntime returns the runtime that NAME, clustertrainingruntime/NAME or trainingruntime/NAME refers to, or shipped/NAME to one that
// the project ships. It fails with NotFoundError, AmbiguousError or NoTrainerError.
func (c *Client) FindRuntime(ctx context.Context, namespace, reference string) (Runtime, error) {
	if name, is := strings.CutPrefix(reference, ShippedPrefix); is {
		return findShipped(name)
	}
	kind, name, qualified := strings.Cut(reference, "/")
	if !qualified {
		kind, name = "", reference
	}
	list, err := c.Runtimes(ctx, namespace)
	if err != nil {
		return Runtime{}, err
	}
	missing := &NotFoundError{What: "runtime", Name: reference}
	var found []Runtime
	for _, one := range list.Runtimes {
		missing.Names = append(missing.Names, one.Name)
		if one.Name == name && (kind == "" || strings.EqualFold(kind, one.Kind) || strings.EqualFold(kind, one.Kind+"s")) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		err := &AmbiguousError{What: "runtimes", Name: name}
		for _, one := range found {
			err.References = append(err.References, strings.ToLower(one.Kind)+"/"+name)
		}
		return Runtime{}, err
	case len(list.Omitted) > 0:
		return Runtime{}, list.Omitted[0].Err
	}
	missing.Similar = phrase.Similar(name, missing.Names)
	return Runtime{}, missing
}

// RuntimeOf returns the runtime that a TrainJob refers to. It fails with NotFoundError if it does not exist.
func (c *Client) RuntimeOf(ctx context.Context, job trainjob.TrainJob) (*trainjob.Runtime, error) {
	found, err := trainjob.LoadRuntime(ctx, c.api, job)
	if found != nil || err != nil {
		return found, err
	}
	missing, name := c.noRuntime(ctx, job.Namespace, job.Spec.RuntimeRef.Name), job.Spec.RuntimeRef.Name
	if slices.Contains(missing.Names, name) {
		kind, other := trainjob.ClusterRuntimeKind, trainjob.RuntimeKind
		if job.Spec.RuntimeRef.Kind == trainjob.RuntimeKind {
			kind, other = other, kind
		}
		missing.What, missing.Similar = kind, []string{other + " " + name}
	}
	return nil, missing
}

// noRuntime returns the error about a runtime that does not exist.
func (c *Client) noRuntime(ctx context.Context, namespace, name string) *NotFoundError {
	names := c.runtimeNames(ctx, namespace)
	return &NotFoundError{What: "runtime", Name: name, Names: names, Similar: phrase.Similar(name, names)}
}

// describeRuntime returns what a runtime offers and requires, from its object.
func describeRuntime(object *unstructured.Unstructured) Runtime {
	notes := object.GetAnnotations()
	found := Runtime{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Object: object,
		MaxWorkers: notes[mpi.AnnotationMaxWorkers], MinWorkers: notes[mpi.AnnotationMinWorkers], MaxGPUs: notes[mpi.AnnotationMaxGPUs], NodeLabels: notes[mpi.AnnotationNodeLabels],
		AllowEgress: notes[mpi.AnnotationAllowEgress], GangTimeout: notes[mpi.AnnotationScheduleTimeout],
	}
	var typed trainjob.Runtime
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		found.Errors, found.Unreadable = []string{"cannot be read: " + err.Error()}, true
		return found
	}
	if found.MPI = typed.IsMPI(); found.MPI {
		found.Implementation = cmp.Or(notes[mpi.AnnotationImplementation], string(mpi.OpenMPI))
		found.DefaultImplementation = notes[mpi.AnnotationImplementation] == ""
		found.Slots = ptr.Deref(typed.Spec.MLPolicy.MPI.NumProcPerNode, 1)
		found.LauncherRunsRanks = typed.Spec.MLPolicy.MPI.RunLauncherAsNode
		found.KeyPath = typed.Spec.MLPolicy.MPI.SSHAuthMountPath
	}
	found.Image, found.AgentImage = typed.Image(), typed.AgentImage()
	for _, job := range typed.Spec.Template.Spec.ReplicatedJobs {
		pod := job.Template.Spec.Template.Spec
		found.PriorityClass = cmp.Or(found.PriorityClass, pod.PriorityClassName)
		for _, container := range pod.Containers {
			found.Containers = append(found.Containers, RuntimeContainer{Job: job.Name, Image: container.Image, Requests: podspec.Requests(pod)})
		}
	}
	for _, err := range trainjob.CheckRuntime(typed) {
		found.Errors = append(found.Errors, err.Error())
	}
	return found
}

// runtimeNames returns the names of the runtimes of the cluster and of a namespace, as far as the user may list them.
func (c *Client) runtimeNames(ctx context.Context, namespace string) (names []string) {
	for _, kind := range RuntimeKinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		// The names are only a suggestion.
		_ = EachPage(ctx, c.api, list, runtimeScope(kind, namespace), nil, func() {
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
		})
	}
	return names
}

// WorkersText returns the limits of the number of nodes of a job, such as "4 to 16"; empty for none.
func (r Runtime) WorkersText() string {
	switch {
	case r.MinWorkers != "" && r.MaxWorkers != "":
		return r.MinWorkers + " to " + r.MaxWorkers
	case r.MinWorkers != "":
		return "at least " + r.MinWorkers
	case r.MaxWorkers != "":
		return "at most " + r.MaxWorkers
	}
	return ""
}
