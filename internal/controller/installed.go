package controller

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"opendatahub.io/mpijob/internal/cluster"
)

// installedInterval is how often it is looked whether something has been installed.
const installedInterval = 30 * time.Second

// whenInstalled starts what works with others' kinds once the cluster has all of them, which may be later.
func whenInstalled(m manager.Manager, what string, kinds []schema.GroupVersionKind, start func(context.Context) error) manager.RunnableFunc {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(installedInterval)
		defer ticker.Stop()
		for !installed(ctx, m.GetRESTMapper(), what, kinds) {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
		if err := start(ctx); err != nil {
			return err
		}
		log.FromContext(ctx).Info(what + " is installed: its objects are read from now on")
		return nil
	}
}

// installed reports whether the cluster serves kinds. If the API server does not answer, it is checked again later.
func installed(ctx context.Context, mapper meta.RESTMapper, what string, kinds []schema.GroupVersionKind) bool {
	for _, kind := range kinds {
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			if !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "whether "+what+" is installed is unknown; this is checked again")
			}
			return false
		}
	}
	return true
}

// cacheBeside adds a cache of others' objects to a manager, whose own holds what MPIJobs have made.
func cacheBeside(m manager.Manager, config *rest.Config, caches cache.Options, namespaces []string) (runtimecluster.Cluster, error) {
	cluster.RestrictTo(&caches, namespaces)
	beside, err := runtimecluster.New(config, func(o *runtimecluster.Options) {
		o.Scheme = m.GetScheme()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return m.GetRESTMapper(), nil }
		o.Cache = caches
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	})
	if err != nil {
		return nil, fmt.Errorf("set up cache: %w", err)
	}
	return beside, nil
}

// startCache caches the objects of a kind, indexed by their owners, and calls tell for each change. It returns when the cache
// is filled; nil if the context has ended before.
func startCache(ctx context.Context, m manager.Manager, config *rest.Config, kind schema.GroupVersionKind, caches cache.Options, namespaces []string, tell func(context.Context, any)) (client.Reader, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	kindCache, err := cacheBeside(m, config, caches, namespaces)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	if err := cluster.AddOwnerIndex(ctx, kindCache.GetFieldIndexer(), object); err != nil {
		return nil, err
	}
	if err := m.Add(kindCache); err != nil {
		return nil, fmt.Errorf("add cache of %s: %w", kind, err)
	}
	informer, err := kindCache.GetCache().GetInformer(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(ctx, object) },
		UpdateFunc: func(_, object any) { tell(ctx, object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			tell(ctx, object)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind, err)
	}
	if !kindCache.GetCache().WaitForCacheSync(ctx) {
		return nil, nil
	}
	return kindCache.GetClient(), nil
}
