package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/phrase"
)

// Names returns the names of the cluster's objects of a kind, which is that of a list, sorted.
func Names(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the names of %s: %w", kind.Kind, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return names, nil
}

// existingPriorityClasses returns a clause about the PriorityClasses that a job may have: users often may not list them. Those of Kubernetes
// itself are not for jobs.
func (c *Cluster) existingPriorityClasses(ctx context.Context) string {
	const ofKubernetes = "system-"
	names, err := Names(ctx, c.live, schedulingv1.SchemeGroupVersion.WithKind("PriorityClassList"))
	if err != nil {
		return "ask the cluster administrator which ones exist"
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ofKubernetes) })
	if len(names) == 0 {
		return "the cluster has none for jobs, so leave it out"
	}
	return phrase.Existing(names)
}
