package trainjob

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// New returns an empty TrainJob of the kind that clients read and watch.
func New() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(GroupVersion.WithKind(Kind))
	return object
}

// HasPodTemplateOverrides reports whether a cluster's TrainJobs change pods by podTemplateOverrides (Trainer v2.1), and not by
// runtimePatches.
func HasPodTemplateOverrides(ctx context.Context, asked discovery.OpenAPIV3SchemaInterface) (bool, error) {
	paths, err := asked.OpenAPIV3().Paths()
	if err != nil {
		return false, fmt.Errorf("read the paths of the API server's schemas: %w", err)
	}
	api, served := paths["apis/"+GroupVersion.String()]
	if !served || ctx.Err() != nil {
		return false, ctx.Err()
	}
	text, err := api.Schema("application/json")
	if err != nil {
		return false, fmt.Errorf("read the schema of %s: %w", GroupVersion, err)
	}
	return !strings.Contains(string(text), `"runtimePatches"`), nil
}

// RuntimeOf reads the runtime that a TrainJob runs with; nil where there is none. It is Trainer's snapshot where it has
// made one (v2.2 and later): a runtime that was changed since is not the job's. Users can write ConfigMaps: what grants
// rights, and whether this is a runtime of MPI, comes from the runtime itself while it exists.
func RuntimeOf(ctx context.Context, from client.Reader, job TrainJob) (*Runtime, error) {
	used, _, err := LoadRuntimes(ctx, from, job)
	return used, err
}

// LoadRuntimes is RuntimeOf that also returns the runtime that the TrainJob names, as it is now; nil where there is none.
func LoadRuntimes(ctx context.Context, from client.Reader, job TrainJob) (used, live *Runtime, err error) {
	used, err = snapshot(ctx, from, job)
	if err != nil {
		return nil, nil, err
	}
	live, err = LoadRuntime(ctx, from, job)
	switch {
	case err != nil:
		return nil, nil, err
	case used == nil:
		return live, live, nil
	}
	delete(used.Annotations, mpi.AnnotationAllowEgress)
	switch {
	case live == nil:
		return used, nil, nil
	case live.IsMPI() && !used.IsMPI(), live.ours() && !used.ours():
		return live, live, nil
	}
	if allowed := live.Annotations[mpi.AnnotationAllowEgress]; allowed != "" {
		metav1.SetMetaDataAnnotation(&used.ObjectMeta, mpi.AnnotationAllowEgress, allowed)
	}
	return used, live, nil
}

// LoadJob reads a TrainJob; nil where there is none.
func LoadJob(ctx context.Context, from client.Reader, key types.NamespacedName) (*TrainJob, error) {
	_, job, err := loadJob(ctx, from, key)
	return job, err
}

// loadJob reads a TrainJob, as the API server has it and as it is used here; nil if it does not exist.
func loadJob(ctx context.Context, from client.Reader, key types.NamespacedName) (*unstructured.Unstructured, *TrainJob, error) {
	object := New()
	if err := from.Get(ctx, key, object); err != nil {
		return nil, nil, absent(err, Kind, key)
	}
	var job TrainJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return nil, nil, fmt.Errorf("read TrainJob %s: %w", key, err)
	}
	return object, &job, nil
}

// LoadRuntime reads the runtime that a TrainJob names, as it is now; nil where there is none, or nothing can have the name.
func LoadRuntime(ctx context.Context, from client.Reader, job TrainJob) (*Runtime, error) {
	object := &unstructured.Unstructured{}
	key := types.NamespacedName{Name: job.Spec.RuntimeRef.Name}
	if len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return nil, nil
	}
	kind := ClusterRuntimeKind
	if job.Spec.RuntimeRef.Kind == RuntimeKind {
		kind, key.Namespace = RuntimeKind, job.Namespace
	}
	object.SetGroupVersionKind(GroupVersion.WithKind(kind))
	if err := from.Get(ctx, key, object); err != nil {
		return nil, absent(err, kind, key)
	}
	var found Runtime
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return &found, nil
}

// snapshot returns the copy of the runtime that Trainer keeps for this job (trainer/v2/pkg/runtime/core/snapshot.go); nil
// if there is none.
func snapshot(ctx context.Context, from client.Reader, job TrainJob) (*Runtime, error) {
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name + "-runtime-snapshot"}
	var kept corev1.ConfigMap
	if err := from.Get(ctx, key, &kept); err != nil {
		return nil, absent(err, "ConfigMap", key)
	}
	if owner := metav1.GetControllerOf(&kept); owner == nil || owner.UID != job.UID {
		return nil, nil
	}
	var found Runtime
	if err := yaml.Unmarshal([]byte(kept.Data["runtime"]), &found); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	return &found, nil
}

// absent turns "not found" into nothing.
func absent(err error, kind string, key types.NamespacedName) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read %s %s: %w", kind, key, err)
}

// Decode reads a TrainJob as the API server sends it.
func Decode(data []byte) (TrainJob, error) {
	var job TrainJob
	if err := json.Unmarshal(data, &job); err != nil {
		return job, fmt.Errorf("read TrainJob: %w", err)
	}
	return job, nil
}

// DecodeRuntime reads a runtime of either kind as the API server sends it.
func DecodeRuntime(data []byte) (Runtime, error) {
	var found Runtime
	if err := json.Unmarshal(data, &found); err != nil {
		return found, fmt.Errorf("read runtime: %w", err)
	}
	return found, nil
}
