package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/knftables"

	"opendatahub.io/mpijob/hack/cluster/layout"
)

// agent keeps the packet filter in accordance with the cluster.
type agent struct {
	pods, namespaces, policies cache.SharedInformer
	changed                    chan struct{}
	// problem is why the packet filter is not as it should be, or nothing.
	problem atomic.Value
}

// Run enforces the policies until ctx is done. When it ends, the last rules stay.
func Run(ctx context.Context, kubeconfig string) error {
	a := &agent{changed: make(chan struct{}, 1)}
	if err := a.run(ctx, kubeconfig); err != nil && ctx.Err() == nil {
		return fmt.Errorf("policy agent: %w", err)
	}
	return nil
}

func (a *agent) run(ctx context.Context, kubeconfig string) error {
	a.problem.Store("starting")
	filter, err := knftables.New(knftables.IPv4Family, layout.PolicyTable)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	var failed [3]error
	a.pods, failed[0] = a.inform(config, corev1.SchemeGroupVersion, "/api", "pods", &corev1.Pod{})
	a.namespaces, failed[1] = a.inform(config, corev1.SchemeGroupVersion, "/api", "namespaces", &corev1.Namespace{})
	a.policies, failed[2] = a.inform(config, networkingv1.SchemeGroupVersion, "/apis", "networkpolicies", &networkingv1.NetworkPolicy{})
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- a.serveHealth(ctx) }()
	for _, informer := range []cache.SharedInformer{a.pods, a.namespaces, a.policies} {
		go informer.RunWithContext(ctx)
	}
	cache.WaitForCacheSync(ctx.Done(), a.pods.HasSynced, a.namespaces.HasSynced, a.policies.HasSynced)
	var enforced *RuleSet
	for {
		var again <-chan time.Time
		if rules := Compile(a.state()); enforced == nil || !reflect.DeepEqual(*enforced, rules) {
			tx := filter.NewTransaction()
			rules.write(tx)
			if err := filter.Run(ctx, tx); err != nil {
				a.problem.Store(err.Error())
				again = time.After(time.Second)
			} else {
				a.problem.Store("")
				enforced = &rules
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-a.changed:
		case <-again:
		}
	}
}

func (a *agent) serveHealth(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(layout.PolicyHealthPort)))
	if err != nil {
		return err
	}
	server := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if problem, _ := a.problem.Load().(string); problem != "" {
			http.Error(w, problem, http.StatusServiceUnavailable)
		}
	})}
	return server.Serve(listener)
}

func (a *agent) notify() {
	select {
	case a.changed <- struct{}{}:
	default: // one notification is enough for all changes before it is read
	}
}

// inform caches all objects of a resource, without the client for all of Kubernetes, which would double the program's size.
func (a *agent) inform(config *rest.Config, version schema.GroupVersion, path, resource string, object runtime.Object) (cache.SharedInformer, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), networkingv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.ContentType = &version, path, runtime.ContentTypeProtobuf
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(client, resource, "", fields.Everything()), object, 0)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.notify() }, UpdateFunc: func(any, any) { a.notify() }, DeleteFunc: func(any) { a.notify() },
	})
	return informer, err
}

// state reads the caches. Pods that have ended do not count: others get their addresses.
func (a *agent) state() State {
	state := State{Namespaces: map[string]labels.Set{}}
	for _, object := range a.namespaces.GetStore().List() {
		namespace := object.(*corev1.Namespace)
		state.Namespaces[namespace.Name] = namespace.Labels
	}
	for _, object := range a.policies.GetStore().List() {
		state.Policies = append(state.Policies, object.(*networkingv1.NetworkPolicy))
	}
	for _, object := range a.pods.GetStore().List() {
		pod := object.(*corev1.Pod)
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		found := Pod{Namespace: pod.Namespace, Labels: pod.Labels, Address: address}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			found.Ports = append(found.Ports, container.Ports...)
		}
		state.Pods = append(state.Pods, found)
	}
	return state
}
