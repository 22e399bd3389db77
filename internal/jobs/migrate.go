package jobs

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/migrate"
)

// Migrate converts a job as migrate.Convert does, and checks a new TrainJob against the limits of its runtime in the cluster, if
// that exists. The job gets the namespace if it has none.
func (c *Client) Migrate(ctx context.Context, namespace string, object map[string]any, to migrate.Target, options migrate.Options) (migrate.Conversion, error) {
	first, err := migrate.Convert(object, to, options)
	if err != nil || len(first.Errors) > 0 || first.Target != migrate.TrainJob {
		return first, err
	}
	var job trainjob.TrainJob
	job.Namespace = namespace
	if own := (&unstructured.Unstructured{Object: first.Object()}).GetNamespace(); own != "" {
		job.Namespace = own
	}
	job.Spec.RuntimeRef.Name, _, _ = unstructured.NestedString(first.Object(), "spec", "runtimeRef", "name")
	job.Spec.RuntimeRef.Kind, _, _ = unstructured.NestedString(first.Object(), "spec", "runtimeRef", "kind")
	if options.Used, err = trainjob.LoadRuntime(ctx, c.api, job); err != nil || options.Used == nil {
		return first, err
	}
	return migrate.Convert(object, to, options)
}
