package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestPriorityInQueue: a new job of either kind in a queue is warned if its priority class there does not exist, also if the queue does not
// exist.
func TestPriorityInQueue(t *testing.T) {
	const missing = "metadata.labels[kueue.x-k8s.io/priority-class]: WorkloadPriorityClass nosuch does not exist (those that exist: high). Kueue does not queue the job until it does"
	for name, test := range map[string]struct {
		queue, priority string
		err             error
		want            []string
	}{
		"missing":                {queue: "team", priority: "nosuch", want: []string{missing}},
		"it exists":              {queue: "team", priority: "high"},
		"none":                   {queue: "team"},
		"in no queue":            {priority: "nosuch"},
		"classes are unreadable": {queue: "team", priority: "nosuch", err: errors.New("forbidden")},
	} {
		t.Run(name, func(t *testing.T) {
			api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					classes := list.(*metav1.PartialObjectMetadataList)
					if want := (schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadPriorityClassList"}); classes.GroupVersionKind() != want {
						t.Errorf("%s are listed", classes.GroupVersionKind())
					}
					classes.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "high"}}}
					return test.err
				},
			}).Build()
			labels := map[string]string{}
			for label, value := range map[string]string{mpi.LabelQueue: test.queue, mpi.LabelQueuePriority: test.priority} {
				if value != "" {
					labels[label] = value
				}
			}
			object := mpitest.MPIJob("ns", 2)
			object.Labels = labels
			converted, _ := mpijob.Kind{}.Convert(object)
			for kind, job := range map[string]mpi.Job{
				"MPIJob": converted, "TrainJob": trainjob.Convert(trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", Labels: labels}}, trainjob.Runtime{}),
			} {
				errs, got := checkQueue(t.Context(), cluster.New(api, api, nil, clock.RealClock{}), api, job, job.PodSets())
				if len(errs) > 0 || !slices.Equal(got, test.want) {
					t.Errorf("%s: %v and %q, want %q", kind, errs, got, test.want)
				}
			}
		})
	}
}

// TestRequestsInQueue: a new job of either kind with pods that request nothing is refused in a queue where Kueue selects the nodes, with the field
// that sets the requests. It is not if that is not certain; in a queue with a quota of pods, it is warned about.
func TestRequestsInQueue(t *testing.T) {
	const (
		why      = " request nothing, and Kueue, which selects the nodes in queue team (topology-aware scheduling), never admits such pods without a quota of pods. "
		counted  = " request nothing, and Kueue 0.19, which selects the nodes in queue team (topology-aware scheduling), never admits such pods: the job waits forever, and other jobs behind it. "
		launcher = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].resources.requests: Required value: the pods (launcher)" + why + "Request CPU or memory, such as cpu: 100m (--launcher-cpu of the command line)"
		workers  = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.requests: Required value: the pods (workers)" + why + "Request CPU or memory, such as cpu: 100m (--cpu of the command line)"
		node     = "spec.trainer.resourcesPerNode: Required value: the pods (node)" + why + "Request CPU or memory, such as cpu: 100m (--cpu of the command line)"
		initials = `spec.runtimeRef.name: Invalid value: "torch": the pods (model-initializer)` + why + "Use a runtime whose pods request CPU or memory, or ask its administrator to add requests to the runtime"
	)
	ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "defaults"}}
	ranges.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("10m")}}}
	requests := func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	counting := func(texts ...string) []string {
		for i := range texts {
			texts[i] = strings.Replace(texts[i], why, counted, 1)
		}
		return texts
	}
	for name, test := range map[string]struct {
		change     func(*mpi.Job)
		objects    []client.Object
		topology   string
		covered    []any
		unreadable string
		mpiJob     []string
		trainJob   []string
		warns      bool
	}{
		"Kueue selects the nodes": {topology: "racks", mpiJob: []string{launcher, workers}, trainJob: []string{initials, node}},
		"the launcher requests something": {
			topology: "racks", change: func(j *mpi.Job) { requests(&j.Launcher.Template) }, mpiJob: []string{workers}, trainJob: []string{initials, node},
		},
		"the queue counts pods": {
			topology: "racks", covered: []any{"cpu", "pods"}, warns: true,
			mpiJob: counting(launcher, workers), trainJob: counting(initials, node),
		},
		"the queue counts other resources":     {topology: "racks", covered: []any{"cpu", "memory"}, mpiJob: []string{launcher, workers}, trainJob: []string{initials, node}},
		"the queue counts pods on any nodes":   {covered: []any{"pods"}},
		"no workers":                           {topology: "racks", change: func(j *mpi.Job) { j.Workers.Count = 0 }, mpiJob: []string{launcher}, trainJob: []string{initials, node}},
		"the queue has no topology":            {},
		"a LimitRange has a default":           {topology: "racks", objects: []client.Object{ranges}},
		"Kueue leaves the job alone":           {topology: "racks", change: func(j *mpi.Job) { j.Lifecycle.Suspended = false }},
		"it runs on another cluster":           {topology: "racks", change: func(j *mpi.Job) { j.ManagedBy = "kueue.x-k8s.io/multikueue" }},
		"in no queue":                          {topology: "racks", change: func(j *mpi.Job) { j.Queue = "" }},
		"in a queue that does not exist":       {topology: "racks", change: func(j *mpi.Job) { j.Queue = "nosuch" }},
		"its user suspends it":                 {topology: "racks", change: func(j *mpi.Job) { j.SuspendedInQueue = true }, mpiJob: []string{launcher, workers}, trainJob: []string{initials, node}, warns: true},
		"the queue cannot be read":             {topology: "racks", unreadable: "LocalQueue"},
		"the ClusterQueue cannot be read":      {topology: "racks", unreadable: "ClusterQueue"},
		"the flavors cannot be read":           {topology: "racks", unreadable: "ResourceFlavorList"},
		"the LimitRanges cannot be read":       {topology: "racks", unreadable: "LimitRangeList"},
		"it has no containers, and is invalid": {topology: "racks", change: func(j *mpi.Job) { j.Launcher.Template.Spec.Containers = nil }, mpiJob: []string{workers}, trainJob: []string{initials, node}},
	} {
		t.Run(name, func(t *testing.T) {
			fails := func(object client.ObjectList, kind string) error {
				if kind == "" {
					kind = object.GetObjectKind().GroupVersionKind().Kind
				}
				if kind == test.unreadable {
					return errors.New("forbidden")
				}
				return nil
			}
			objects := []client.Object{
				kueueObject("LocalQueue", "ns", "team", map[string]any{"clusterQueue": "all"}),
				kueueObject("ClusterQueue", "", "all", map[string]any{"resourceGroups": []any{map[string]any{"coveredResources": test.covered, "flavors": []any{map[string]any{"name": "default"}}}}}),
				kueueObject("ResourceFlavor", "", "default", map[string]any{"topologyName": test.topology}),
			}
			api := mpitest.FakeAPI().WithObjects(append(objects, test.objects...)...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if err := fails(nil, object.GetObjectKind().GroupVersionKind().Kind); err != nil {
						return err
					}
					return api.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					kind := ""
					if _, is := list.(*corev1.LimitRangeList); is {
						kind = "LimitRangeList"
					}
					if err := fails(list, kind); err != nil {
						return err
					}
					return api.List(ctx, list, options...)
				},
			}).Build()
			object := mpitest.MPIJob("ns", 2)
			object.Labels = map[string]string{mpi.LabelQueue: "team"}
			object.Spec.RunPolicy.Suspend = new(true)
			mpiJob, _ := mpijob.Kind{}.Convert(object)
			from, used := trainJobOf(t)
			trainJob := trainjob.Convert(from, used)
			for kind, of := range map[string]struct {
				job  mpi.Job
				pods func(mpi.Job) []mpi.PodSet
				want []string
			}{
				"MPIJob":   {mpiJob, mpi.Job.PodSets, test.mpiJob},
				"TrainJob": {trainJob, func(mpi.Job) []mpi.PodSet { return trainjob.PodSets(from, used) }, test.trainJob},
			} {
				if test.change != nil {
					if of.job.Launcher.None {
						of.job.Launcher.Template = mpitest.Template()
					}
					test.change(&of.job)
				}
				errs, got := checkQueue(t.Context(), cluster.New(api, api, nil, clock.RealClock{}), api, of.job, of.pods(of.job))
				if test.warns == (len(errs) > 0) && len(of.want) > 0 {
					t.Errorf("%s: the errors are %v", kind, errs)
				}
				for _, err := range errs {
					got = append(got, err.Error())
				}
				if diff := cmp.Diff(strings.Join(of.want, "\n"), strings.Join(got, "\n")); diff != "" {
					t.Errorf("%s (-want +got)\n%s", kind, diff)
				}
			}
		})
	}
}

// trainJobOf returns a suspended TrainJob in a queue, with a runtime whose pods request nothing.
func trainJobOf(t *testing.T) (trainjob.TrainJob, trainjob.Runtime) {
	t.Helper()
	from, err := trainjob.Decode([]byte(`{"metadata":{"namespace":"ns","name":"pi","labels":{"kueue.x-k8s.io/queue-name":"team"}},"spec":{"suspend":true,"runtimeRef":{"name":"torch"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var used trainjob.Runtime
	const runtime = `{metadata: {name: torch}, spec: {template: {spec: {replicatedJobs: [
{name: model-initializer, template: {spec: {template: {spec: {containers: [{name: model-initializer}]}}}}},
{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node}]}}}}}]}}}}`
	if err := yaml.Unmarshal([]byte(runtime), &used); err != nil {
		t.Fatal(err)
	}
	return from, used
}

func kueueObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
