package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/term"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
)

// Factory is what every command needs: where to read and write, which cluster and namespace, and what time it is.
type Factory struct {
	genericiooptions.IOStreams
	// Now is the time.
	Now func() time.Time

	// name is how users call the program, such as "oc odh mpijob".
	name  string
	flags *genericclioptions.ConfigFlags

	once   sync.Once
	client client.WithWatch
	rest   rest.Interface
	err    error
}

// NewFactory returns one that takes the cluster from the usual flags and the kubeconfig.
func NewFactory(streams genericiooptions.IOStreams, now func() time.Time) *Factory {
	return &Factory{IOStreams: streams, Now: now, flags: genericclioptions.NewConfigFlags(true)}
}

// Name is how users call the program, such as "oc odh mpijob": for texts that contain the next command.
func (f *Factory) Name() string { return f.name }

// Namespace is the one that the user names, else that of the kubeconfig.
func (f *Factory) Namespace() (string, error) {
	namespace, _, err := f.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// hint returns a command for an object, such as "describe", as the user can run it next. It names the namespace if the user did, or if it is
// not that of the kubeconfig; an object without one is of the cluster.
func (f *Factory) hint(command, namespace, name string) string {
	text := strings.Join([]string{f.name, command, name}, " ")
	own, isNamed, err := f.flags.ToRawKubeConfigLoader().Namespace()
	if namespace != "" && (isNamed || err != nil || own != namespace) {
		text += " -n " + namespace
	}
	return text
}

// RESTConfig is how the API server is reached. Warnings of the API server and its webhooks go to the user.
func (f *Factory) RESTConfig() (*rest.Config, error) {
	config, err := f.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-odh-mpijob"
	config.QPS, config.Burst = 50, 300
	config.WarningHandler = rest.NewWarningWriter(f.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: isColoured(f.ErrOut)})
	return config, nil
}

// Client reads and writes objects, straight from the API server. Its scheme has Kubernetes' own types, MPIJobs, JobReports and
// RuntimeTests; TrainJobs and other kinds go as unstructured objects.
func (f *Factory) Client() (client.WithWatch, error) {
	f.once.Do(func() {
		config, err := f.RESTConfig()
		if err != nil {
			f.err = err
			return
		}
		f.client, f.rest, f.err = newClient(config)
	})
	return f.client, f.err
}

// Clientset is for what Client has not: logs, exec and port-forward.
func (f *Factory) Clientset() (kubernetes.Interface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// newClient returns a client, and one for requests that it does not have, through the same connection.
func newClient(config *rest.Config) (client.WithWatch, rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, fmt.Errorf("make scheme: %w", err)
	}
	config = rest.CopyConfig(config)
	shareConnection(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	others, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	mapper := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{knownKinds(), others}}
	objects, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: scheme, Mapper: mapper, FieldOwner: "kubectl-odh-mpijob"})
	if err != nil {
		return nil, nil, err
	}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	return objects, requests, err
}

// knownKinds maps kinds to resources without discovery, which saves a request per call of the program. The API server
// responds with "not found" for a kind that is not installed.
func knownKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	namespaced := []schema.GroupVersionKind{
		kubeflow.SchemeGroupVersionKind,
		trainjob.GroupVersion.WithKind(trainjob.Kind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind),
		v1alpha1.GroupVersion.WithKind("JobReport"), v1alpha1.GroupVersion.WithKind("RuntimeTest"),
		kueue.LocalQueueKind, kueue.WorkloadKind,
	}
	for _, kind := range []string{"Pod", "Event", "Secret", "ConfigMap", "ResourceQuota", "LimitRange", "Service"} {
		namespaced = append(namespaced, corev1.SchemeGroupVersion.WithKind(kind))
	}
	namespaced = append(namespaced, appsv1.SchemeGroupVersion.WithKind("Deployment"), discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"))
	for _, gvk := range namespaced {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	metrics := jobs.PodMetrics.GroupVersion()
	mapper.AddSpecific(jobs.PodMetrics, metrics.WithResource("pods"), metrics.WithResource("pod"), meta.RESTScopeNamespace)
	mapper.Add(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), meta.RESTScopeRoot)
	for _, kind := range []string{"Namespace", "Node"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	return mapper
}

// DocsVariable names the documentation site that texts refer to, such as a copy that a disconnected cluster serves. Without it
// they refer to the pages in the repository.
const DocsVariable = "MPIJOB_DOCS_URL"

// docsPage returns the address of the documentation of a finding, or "".
func docsPage(finding v1alpha1.Finding) string { return jobs.PageURL(os.Getenv(DocsVariable), finding) }

// onTerminal reports whether a stream is a terminal.
func onTerminal(stream any) bool {
	file, is := stream.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// isColoured reports whether a stream may be coloured: a terminal, unless the user wants none (https://no-color.org).
func isColoured(stream any) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && onTerminal(stream)
}

// colour is how a text is to stand out.
type colour string

// The colours, as terminals know them (ECMA-48, SGR).
const (
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// paint colours a text for standard output, where that is a terminal.
func (f *Factory) paint(c colour, text string) string { return paintOn(f.Out, c, text) }

// paintOn colours a text for a stream, where that is a terminal.
func paintOn(stream any, c colour, text string) string {
	if text == "" || c == "" || !isColoured(stream) {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
