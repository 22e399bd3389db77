package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// GetAs returns an object of a kind whose Go types are not used, as a type that has what is read of it.
func GetAs[T any](ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, name types.NamespacedName) (*T, error) {
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(kind)
	if err := reader.Get(ctx, name, read); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name.Name, err)
	}
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, object); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name.Name, err)
	}
	return object, nil
}

// ListAs returns all objects of such a kind that can be read.
func ListAs[T any](ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) ([]*T, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	all := make([]*T, 0, len(list.Items))
	for i := range list.Items {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, object); err != nil {
			log.FromContext(ctx).V(1).Info("an object cannot be read", "kind", kind.Kind, "name", list.Items[i].GetName(), "error", err.Error())
			continue
		}
		all = append(all, object)
	}
	return all, nil
}
