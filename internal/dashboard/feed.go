package dashboard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// feed keeps rows up to date with the objects of one kind. It keeps the rows and not the objects, which are ten times as big.
// It implements cache.TransformingStore.
type feed struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	// store writes an object into the rows, drop removes one.
	store func(*unstructured.Unstructured) types.UID
	drop  func(types.UID)

	mu     sync.Mutex
	known  map[types.UID]bool
	synced bool
	// err is the error of the last attempt; nil if it was successful.
	err error
}

// Add implements cache.ReflectorStore.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(object any) error {
	if u, is := object.(*unstructured.Unstructured); is {
		uid := f.store(u)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.known[uid] = true
		f.err = nil
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(object any) error {
	if u, is := object.(*unstructured.Unstructured); is {
		uid := idOf(u)
		f.drop(uid)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.known, uid)
		f.err = nil
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(objects []any, _ string) error {
	current := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		if u, is := object.(*unstructured.Unstructured); is {
			current[f.store(u)] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid := range f.known {
		if !current[uid] {
			f.drop(uid)
		}
	}
	f.known, f.synced, f.err = current, true, nil
	return nil
}

// Transformer implements cache.TransformingStore: objects that are listed wait until all are there, without what no row needs,
// such as the last lines of logs, which are most of a JobReport.
func (f *feed) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if u, is := object.(*unstructured.Unstructured); is {
			f.trim(u)
		}
		return object, nil
	}
}

// trim removes what no row needs from an object.
func (f *feed) trim(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	if f.kind.Group != v1alpha1.GroupVersion.Group {
		return
	}
	for _, field := range []string{"failure", "logs", "pods", "timeline"} {
		unstructured.RemoveNestedField(u.Object, "status", field)
	}
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }

// state returns whether the objects were listed once, and the error of the last attempt.
func (f *feed) state() (synced bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced, f.err
}

// The delays between attempts are short: the API server is usually back within seconds.
const shortest, longest = 500 * time.Millisecond, 4 * time.Second

// record stores the error of a request, nil if it was successful. The reflector retries some requests without returning.
func (f *feed) record(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !apierrors.IsNotFound(err) && !apierrors.IsResourceExpired(err) {
		f.err = err
	}
}

// run lists and watches until the context ends.
func (f *feed) run(ctx context.Context, api dynamic.Interface) {
	resource := api.Resource(f.resource)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found, err := resource.List(ctx, options)
			f.record(err)
			if err == nil {
				for i := range found.Items {
					f.trim(&found.Items[i])
				}
			}
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watcher, err := resource.Watch(ctx, options)
			f.record(err)
			return watcher, err
		},
	}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(f.kind)
	reflector := cache.NewReflectorWithOptions(source, expected, f, cache.ReflectorOptions{
		Name: f.kind.Kind, Backoff: &wait.Backoff{Duration: shortest, Factor: 2, Jitter: 0.2, Steps: 4, Cap: longest},
	})
	for delay := shortest; ctx.Err() == nil; {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		missing := apierrors.IsNotFound(err)
		f.record(err)
		if missing {
			// A kind that is not installed has no objects.
			_ = f.Replace(nil, "")
		}
		switch {
		case err == nil || time.Since(began) > time.Minute:
			delay = shortest
		case missing:
			delay = 30 * time.Second
		default:
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "watch failed", "kind", f.kind.Kind, "error", err)
			}
			delay = min(2*delay, longest)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// idOf returns the UID of the job that an object is, or that it reports on.
func idOf(object *unstructured.Unstructured) types.UID {
	if object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
		uid, _, _ := unstructured.NestedString(object.Object, "spec", "jobRef", "uid")
		return types.UID(uid)
	}
	return object.GetUID()
}

// feeds returns a feed for each kind of job, for their reports and for runtimes.
func feeds(r *rows) []*feed {
	var all []*feed
	for _, kind := range jobs.Kinds() {
		all = append(all, &feed{
			kind: kind, resource: resourceOf(kind), known: map[types.UID]bool{},
			store: func(u *unstructured.Unstructured) types.UID {
				r.setJob(u.GetUID(), jobRow(u))
				return u.GetUID()
			},
			drop: func(uid types.UID) { r.setJob(uid, nil) },
		})
	}
	reports := v1alpha1.GroupVersion.WithKind("JobReport")
	all = append(all, &feed{
		kind: reports, resource: resourceOf(reports), known: map[types.UID]bool{},
		store: func(u *unstructured.Unstructured) types.UID {
			var report v1alpha1.JobReport
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &report); err != nil {
				slog.Warn("JobReport cannot be read", "namespace", u.GetNamespace(), "name", u.GetName(), "error", err)
				return idOf(u)
			}
			r.setReport(report.Spec.JobRef.UID, reportRow(&report))
			return report.Spec.JobRef.UID
		},
		drop: func(uid types.UID) { r.setReport(uid, nil) },
	})
	for _, kind := range jobs.RuntimeKinds() {
		// The reflector of a feed calls store and drop one after the other.
		names, owners := map[types.UID]types.NamespacedName{}, map[types.NamespacedName]types.UID{}
		all = append(all, &feed{
			kind: kind, resource: resourceOf(kind), known: map[types.UID]bool{},
			store: func(u *unstructured.Unstructured) types.UID {
				name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
				names[u.GetUID()], owners[name] = name, u.GetUID()
				r.setRuntime(name.Namespace, name.Name, frameworkOf(u))
				return u.GetUID()
			},
			drop: func(uid types.UID) {
				name, known := names[uid]
				delete(names, uid)
				// A new runtime may have taken the name.
				if known && owners[name] == uid {
					delete(owners, name)
					r.dropRuntime(name.Namespace, name.Name)
				}
			},
		})
	}
	return all
}
