package jobs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// now is the time in all tests.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

// server is a stand-in for the API server. It stores objects, and refuses the requests that a test names.
type server struct {
	api client.WithWatch
	// refuse returns the error of a request for a kind, such as list Workload; nil for none.
	refuse func(verb, kind string) error
	// patches are the kinds and patches that were requested, deleted the kinds and names. Requests may be parallel.
	patches, deleted []string
	mu               sync.Mutex
}

func (s *server) record(requests *[]string, request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*requests = append(*requests, request)
}

func newServer(t *testing.T, objects ...client.Object) (*Client, *server) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{trainjob.GroupVersion.WithKind(trainjob.Kind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind), trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), kueue.WorkloadKind, kueue.LocalQueueKind, PodMetrics, {Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	s := &server{refuse: func(string, string) error { return nil }}
	kindOf := func(object runtime.Object) string {
		if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			return kind
		}
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		return kinds[0].Kind
	}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := s.refuse("get", kindOf(object)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := s.refuse("list", kindOf(list)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		// A watch ends with its context, as that of an API server.
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			watcher, err := c.Watch(ctx, list, options...)
			if err == nil {
				context.AfterFunc(ctx, watcher.Stop)
			}
			return watcher, err
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := s.refuse("create", kindOf(object)); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			data, err := patch.Data(object)
			if err != nil {
				return err
			}
			s.record(&s.patches, kindOf(object)+" "+string(data))
			return s.refuse("patch", kindOf(object))
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := s.refuse("delete", kindOf(object)); err != nil {
				return err
			}
			s.record(&s.deleted, kindOf(object)+" "+object.GetName())
			return c.Delete(ctx, object, options...)
		},
	}).Build()
	return NewClient(s.api, nil, func() time.Time { return now }), s
}

// forbidden is the error about a right that the user does not have.
func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no right"))
}

// missing is the error about a kind that is not installed.
func missing(kind string) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
}

// object reads a YAML text, in namespace ns with the UID that its name suggests.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := parsed(t, text)
	o.SetNamespace("ns")
	if o.GetUID() == "" {
		o.SetUID(types.UID(o.GetName() + "-uid"))
	}
	return o
}

// reportFor returns the report of a job in namespace ns.
func reportFor(kind, name, uid string, status v1alpha1.JobReportStatus) *v1alpha1.JobReport {
	job := mpi.Job{Kind: kind, Name: name, UID: types.UID(uid)}
	return &v1alpha1.JobReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job.ReportName(), Labels: job.ReportLabels()},
		Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{Kind: kind, Name: name, UID: types.UID(uid)}},
		Status:     status,
	}
}
