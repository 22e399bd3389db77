package trainjob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/phrase"
)

// WarnMissingRuntime returns a warning about the runtime that a TrainJob names and that does not exist, if one of the other kind has its name or
// one of its kind has a similar name; nil if there is none, or the runtimes cannot be read.
func WarnMissingRuntime(ctx context.Context, from client.Reader, job TrainJob) []string {
	kind, other := ClusterRuntimeKind, RuntimeKind
	if job.Spec.RuntimeRef.Kind == RuntimeKind {
		kind, other = other, kind
	}
	at, name := spec.Child("runtimeRef"), job.Spec.RuntimeRef.Name
	names, err := runtimeNames(ctx, from, other, job.Namespace)
	if err != nil {
		return nil
	}
	for _, one := range names {
		if one != name {
			continue
		}
		remedy := "write kind: " + RuntimeKind
		if other == ClusterRuntimeKind {
			remedy = "remove kind, or write " + ClusterRuntimeKind
		}
		return []string{fmt.Sprintf("%s: there is no %s %s, but a %s of this name: %s", at.Child("kind"), kind, name, other, remedy)}
	}
	if names, err = runtimeNames(ctx, from, kind, job.Namespace); err != nil {
		return nil
	}
	if similar := phrase.DidYouMean(phrase.Similar(name, names)); similar != "" {
		return []string{fmt.Sprintf("%s: there is no %s %s%s", at.Child("name"), kind, name, similar)}
	}
	return nil
}

// runtimeNames returns the names of the runtimes of a kind that the jobs of a namespace may use.
func runtimeNames(ctx context.Context, from client.Reader, kind, namespace string) (names []string, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersion.WithKind(kind + "List"))
	var options []client.ListOption
	if kind == RuntimeKind {
		options = append(options, client.InNamespace(namespace))
	}
	if err := from.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	for _, one := range list.Items {
		names = append(names, one.GetName())
	}
	return names, nil
}
