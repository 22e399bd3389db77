package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// types are the Go types of objects; kinds without one stay unstructured.
var types = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(kubeflow.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}()

// wanted are the kinds that a diagnosis reads, by their group and name.
var wanted = func() map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{
		{Group: kubeflow.GroupName, Kind: kubeflow.Kind}:                        true,
		trainjob.GroupVersion.WithKind(trainjob.Kind).GroupKind():               true,
		trainjob.JobSetKind.GroupKind():                                         true,
		trainjob.GroupVersion.WithKind(trainjob.RuntimeKind).GroupKind():        true,
		trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind).GroupKind(): true,
		kueue.WorkloadKind.GroupKind():                                          true,
		v1alpha1.GroupVersion.WithKind("JobReport").GroupKind():                 true,
		{Group: "batch", Kind: "Job"}:                                           true,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                     true,
	}
	for _, kind := range []string{"Pod", "Event", "Node", "ResourceQuota", "LimitRange", "PersistentVolumeClaim", "Service", "ConfigMap", "Secret", "Namespace"} {
		all[schema.GroupKind{Kind: kind}] = true
	}
	return all
}()

// objects are the saved objects by kind, each once. They are a reader like the API server.
type objects struct {
	byKind map[schema.GroupKind][]*unstructured.Unstructured
	// places are where objects are in byKind.
	places map[place]int
	// cached is set if objects are read as the operator's caches keep them.
	cached *logs.Masker
	// allPods is set if the pods of all namespaces are known.
	allPods bool
}

// place identifies an object.
type place struct {
	kind            schema.GroupKind
	namespace, name string
}

var _ client.Reader = objects{}

func newObjects() objects {
	return objects{byKind: map[schema.GroupKind][]*unstructured.Unstructured{}, places: map[place]int{}}
}

// add adds an object. Of two objects of one name, that with the later version stays. A job without a namespace, as users write
// it, is in the one that clients use by default.
func (o objects) add(object *unstructured.Unstructured) {
	kind := object.GroupVersionKind().GroupKind()
	if object.GetNamespace() == "" && (kind.Kind == mpi.KindMPIJob || kind.Kind == mpi.KindTrainJob) {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	at := place{kind, object.GetNamespace(), object.GetName()}
	switch i, known := o.places[at]; {
	case !known:
		o.places[at] = len(o.byKind[kind])
		o.byKind[kind] = append(o.byKind[kind], object)
	case isLater(object, o.byKind[kind][i]):
		o.byKind[kind][i] = object
	}
}

// isLater reports whether an object has a later resource version than another one.
func isLater(a, b *unstructured.Unstructured) bool {
	left, right := a.GetResourceVersion(), b.GetResourceVersion()
	if len(left) != len(right) {
		return len(left) > len(right)
	}
	return left > right
}

// Get reads an object.
func (o objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, types)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	for _, found := range o.byKind[kind.GroupKind()] {
		if found.GetName() == key.Name && found.GetNamespace() == key.Namespace {
			return o.convert(found, into)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}, key.Name)
}

// List reads the objects of a namespace, or of all, that selectors match.
func (o objects) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, types)
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	var by client.ListOptions
	by.ApplyOptions(options)
	if kind.GroupKind() == (schema.GroupKind{Kind: "Pod"}) && by.Namespace == "" && !o.allPods {
		// What a node has left follows from all of its pods.
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("the files do not contain the pods of all namespaces"))
	}
	var items []runtime.Object
	for _, found := range o.byKind[kind.GroupKind()] {
		if by.Namespace != "" && found.GetNamespace() != by.Namespace || !matches(found, by) {
			continue
		}
		item, err := o.newItem(into, kind)
		if err != nil {
			return err
		}
		if err := o.convert(found, item); err != nil {
			return err
		}
		items = append(items, item)
	}
	if err := meta.SetList(into, items); err != nil {
		return fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return nil
}

func (objects) newItem(list client.ObjectList, kind schema.GroupVersionKind) (client.Object, error) {
	if _, is := list.(*unstructured.UnstructuredList); is {
		return &unstructured.Unstructured{}, nil
	}
	item, err := types.New(kind)
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	object, is := item.(client.Object)
	if !is {
		return nil, fmt.Errorf("list %ss: %T is no object", kind.Kind, item)
	}
	return object, nil
}

func matches(object *unstructured.Unstructured, by client.ListOptions) bool {
	if by.LabelSelector != nil && !by.LabelSelector.Matches(labelSet(object.GetLabels())) {
		return false
	}
	if by.FieldSelector == nil {
		return true
	}
	return !slices.ContainsFunc(by.FieldSelector.Requirements(), func(r fields.Requirement) bool { return indexed(object, r.Field) != r.Value })
}

// indexed returns what the caches' indexes and the API server's field selectors call a field of an object.
func indexed(object *unstructured.Unstructured, field string) string {
	switch field {
	case cluster.PodsByJob:
		return object.GetLabels()[mpi.LabelJob]
	case trainjob.LabelJobSet:
		return object.GetLabels()[field]
	case cluster.ByOwner:
		if owner := metav1.GetControllerOf(object); owner != nil {
			return string(owner.UID)
		}
		return ""
	}
	value, _, _ := unstructured.NestedString(object.Object, strings.Split(field, ".")...)
	return value
}

type labelSet map[string]string

func (s labelSet) Has(label string) bool              { _, has := s[label]; return has }
func (s labelSet) Get(label string) string            { return s[label] }
func (s labelSet) Lookup(label string) (string, bool) { value, has := s[label]; return value, has }

// convert writes a saved object into one of a Go type.
func (o objects) convert(from *unstructured.Unstructured, into client.Object) error {
	if target, is := into.(*unstructured.Unstructured); is {
		from.DeepCopyInto(target)
		return nil
	}
	if err := decode(from, into); err != nil {
		return err
	}
	if o.cached != nil {
		cluster.AsCached(*o.cached, into)
	}
	return nil
}

// decode reads an object as its Go type. The error names the field.
func decode(from *unstructured.Unstructured, into any) error {
	data, err := json.Marshal(from.Object)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("%s %s: %s: is a %s, which is not allowed there", from.GetKind(), from.GetName(), wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}

// check returns what is wrong with an object of a known kind.
func check(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if object.GetName() == "" {
		return fmt.Errorf("%s: metadata.name: is missing", kind.Kind)
	}
	// No API server has validated the files, and names are printed.
	for _, named := range []struct{ field, name string }{{"name", object.GetName()}, {"namespace", object.GetNamespace()}} {
		if wrong := validation.IsDNS1123Subdomain(named.name); named.name != "" && len(wrong) > 0 {
			return fmt.Errorf("%s: metadata.%s: %q is not a name of an object of Kubernetes", kind.Kind, named.field, named.name)
		}
	}
	typed, err := types.New(kind)
	switch {
	case kind.Kind == trainjob.Kind:
		return decode(object, &trainjob.TrainJob{})
	case kind.Kind == kueue.WorkloadKind.Kind:
		return decode(object, &kueue.Workload{})
	case runtime.IsNotRegisteredError(err) && types.IsGroupRegistered(kind.Group):
		return fmt.Errorf("%s %s: apiVersion: %s is not supported", kind.Kind, object.GetName(), object.GetAPIVersion())
	case err != nil:
		return nil
	}
	return decode(object, typed)
}

// seesAllPods reports whether the pods of all namespaces are among the objects: every node has a pod of another namespace than
// those of jobs, such as one of the network. A list of one namespace has none.
func (o objects) seesAllPods(jobs []*unstructured.Unstructured) bool {
	nodes := map[string]bool{}
	for _, node := range o.byKind[schema.GroupKind{Kind: "Node"}] {
		nodes[node.GetName()] = false
	}
	for _, pod := range o.byKind[schema.GroupKind{Kind: "Pod"}] {
		isOfJobs := slices.ContainsFunc(jobs, func(job *unstructured.Unstructured) bool { return job.GetNamespace() == pod.GetNamespace() })
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); !isOfJobs && node != "" {
			nodes[node] = true
		}
	}
	for _, has := range nodes {
		if !has {
			return false
		}
	}
	return len(nodes) > 0
}

// eventsIn returns the number of saved events of a namespace.
func (o objects) eventsIn(namespace string) (n int) {
	for _, event := range o.byKind[schema.GroupKind{Kind: "Event"}] {
		if event.GetNamespace() == namespace {
			n++
		}
	}
	return n
}

// asCoreEvent converts an event of events.k8s.io to one of the core API, which has the same content.
func asCoreEvent(object *unstructured.Unstructured) {
	if object.GroupVersionKind().Group != "events.k8s.io" {
		return
	}
	fields := object.Object
	for from, to := range map[string]string{
		"regarding": "involvedObject", "note": "message", "deprecatedSource": "source", "deprecatedCount": "count",
		"deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp",
	} {
		if value, set := fields[from]; set {
			fields[to] = value
			delete(fields, from)
		}
	}
	if controller, set := fields["reportingController"]; set {
		fields["reportingComponent"] = controller
		delete(fields, "reportingController")
	}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
}
