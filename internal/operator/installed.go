package operator

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

// lookAgain is how often it is looked whether something has been installed.
const lookAgain = 30 * time.Second

// whenInstalled starts what works with others' kinds once the cluster has all of them, which may be later.
func whenInstalled(m manager.Manager, what string, kinds []schema.GroupVersionKind, start func(context.Context) error) manager.RunnableFunc {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(lookAgain)
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
		log.FromContext(ctx).Info(what + " is installed: what it says of jobs is read")
		return nil
	}
}

// installed tells whether the cluster knows kinds. An API server that does not answer is asked again.
func installed(ctx context.Context, mapper meta.RESTMapper, what string, kinds []schema.GroupVersionKind) bool {
	for _, kind := range kinds {
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			if !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "it is not known whether "+what+" is installed; this is asked again")
			}
			return false
		}
	}
	return true
}

// cacheBeside adds a cache of others' objects to a manager, whose own holds what MPIJobs have made.
func cacheBeside(m manager.Manager, config *rest.Config, caches cache.Options, options Options) (runtimecluster.Cluster, error) {
	suit(&caches, options)
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

// follow reads others' objects of a kind, by their owners, from a cache of its own, and tells of each one that changes. It
// returns when the cache is filled; nil if the context has ended before.
func follow(ctx context.Context, m manager.Manager, config *rest.Config, kind schema.GroupVersionKind, caches cache.Options, options Options, tell func(context.Context, any)) (client.Reader, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	theirs, err := cacheBeside(m, config, caches, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	if err := cluster.AddOwnerIndex(ctx, theirs.GetFieldIndexer(), object); err != nil {
		return nil, err
	}
	if err := m.Add(theirs); err != nil {
		return nil, fmt.Errorf("add cache of %s: %w", kind, err)
	}
	informer, err := theirs.GetCache().GetInformer(ctx, object)
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
	if !theirs.GetCache().WaitForCacheSync(ctx) {
		return nil, nil
	}
	return theirs.GetClient(), nil
}
