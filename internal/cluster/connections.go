package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// Connections are the Secrets that a job lists as its data connections. They contain no values but endpoints.
type Connections struct {
	// Secrets are in the job's order, without those that cannot be read.
	Secrets []mpi.Connection
	// Others are names of data connections of the namespace, at most maxNames, if one of Secrets does not exist. Users who may create jobs
	// may use each of them, but often not list Secrets.
	Others []string
	// endpoints are those of all Secrets.
	endpoints []isolation.ConnectionEndpoint
}

// Connections reads the Secrets that a job lists as its connections. Values are dropped immediately, except for the hosts
// and ports of endpoints.
func (c *Cluster) Connections(ctx context.Context, home isolation.Home, names []string) Connections {
	var found Connections
	for _, name := range names {
		if connection, endpoints, err := c.connection(ctx, home, name); err == nil {
			found.Secrets = append(found.Secrets, connection)
			found.endpoints = append(found.endpoints, endpoints...)
		}
	}
	if slices.ContainsFunc(found.Secrets, func(c mpi.Connection) bool { return c.Missing }) {
		found.Others = c.connectionNames(ctx, home.Namespace)
	}
	return found
}

// maxNames is how many data connections of a namespace are read.
const maxNames = 50

// connectionNames returns names of the data connections of a namespace; none if they cannot be read.
func (c *Cluster) connectionNames(ctx context.Context, namespace string) []string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelConnection: "true"}, client.Limit(maxNames)); err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return names
}

func (c *Cluster) connection(ctx context.Context, home isolation.Home, name string) (mpi.Connection, []isolation.ConnectionEndpoint, error) {
	var secret corev1.Secret
	switch err := c.live.Get(ctx, client.ObjectKey{Namespace: home.Namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return mpi.Connection{Name: name, Missing: true}, nil, nil
	case err != nil:
		return mpi.Connection{}, nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return mpi.Connection{Name: name, Keys: slices.Sorted(maps.Keys(secret.Data))}, isolation.EndpointsOf(name, secret.Data, home), nil
}

// ObserveEndpoints sets the endpoints of a job's data connections. Those that the job's NetworkPolicy contains are known, so
// that each Secret is read once. The first one that does not exist ends the search, because the pods do not start without
// it: a job that waits costs one read.
func (c *Cluster) ObserveEndpoints(ctx context.Context, job mpi.Job, settings plan.Settings, seen *jobstate.Observed) {
	if len(job.Connections) == 0 {
		return
	}
	home := settings.Home(job.Namespace)
	known := isolation.Endpoints{}
	if seen.Isolation != nil {
		known = isolation.ParseEndpoints(seen.Isolation.Annotations[mpi.AnnotationEndpoints], home)
	}
	endpoints := isolation.Endpoints{}
	for _, name := range job.Connections {
		if entries, is := known[name]; is {
			endpoints[name] = entries
			continue
		}
		if seen.EndpointsMissing {
			continue
		}
		connection, found, err := c.connection(ctx, home, name)
		if err != nil || connection.Missing {
			seen.EndpointsMissing = true
			continue
		}
		entries, err := c.egressFor(ctx, job, found, home)
		if err != nil {
			seen.EndpointsMissing = true
			continue
		}
		endpoints[name] = entries
	}
	seen.Endpoints = endpoints.String()
}

// egressFor returns what the policy of a job must allow for the endpoints of a connection.
func (c *Cluster) egressFor(ctx context.Context, job mpi.Job, endpoints []isolation.ConnectionEndpoint, home isolation.Home) ([]isolation.Egress, error) {
	var all []isolation.Egress
	for _, endpoint := range endpoints {
		if endpoint.Err != nil {
			continue
		}
		service, _, err := c.service(ctx, job, endpoint.Destination)
		if err != nil {
			return nil, err
		}
		// Refused endpoints were reported at admission.
		entries, _ := endpoint.EgressFor(service, home)
		all = append(all, entries...)
	}
	return all, nil
}

// maxNamedPortPods is the number of pods of a Service that are searched for a named port.
const maxNamedPortPods = 10

// service reads the Service of a destination; nil if it names none or the Service does not exist. A Service of another namespace is
// only read if every service account of the job's pods may read it: users can see the job's policy, and write the endpoints. Otherwise
// lacking is the first account that may not, or may not list the pods behind a named port.
func (c *Cluster) service(ctx context.Context, job mpi.Job, to isolation.Destination) (found *isolation.Service, lacking string, err error) {
	if to.Namespace == "" {
		return nil, "", nil
	}
	if lacking, err = c.lacksRight(ctx, job, to.Namespace, "get", "services", to.Service); lacking != "" || err != nil {
		return nil, lacking, err
	}
	var service corev1.Service
	switch err := c.live.Get(ctx, client.ObjectKey{Namespace: to.Namespace, Name: to.Service}, &service); {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read Service %s of Namespace %s: %w", to.Service, to.Namespace, err)
	}
	found = &isolation.Service{ExternalName: service.Spec.ExternalName, Selects: len(service.Spec.Selector) > 0}
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		found.ExternalName = ""
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		// Clients connect to the pods themselves.
		return found, "", nil
	}
	for _, port := range service.Spec.Ports {
		if port.Port != to.Port || port.Protocol != corev1.ProtocolTCP {
			continue
		}
		found.TargetPort = port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String {
			if lacking, err = c.lacksRight(ctx, job, to.Namespace, "list", "pods", ""); lacking == "" && err == nil {
				found.TargetPort = c.namedPort(ctx, &service, port.TargetPort.StrVal)
			}
		}
	}
	return found, lacking, err
}

// lacksRight returns the first service account of a job's pods that may not do something in another namespace; "" if all may, or
// if it is the job's namespace.
func (c *Cluster) lacksRight(ctx context.Context, job mpi.Job, namespace, verb, resource, name string) (account string, err error) {
	if namespace == job.Namespace {
		return "", nil
	}
	for _, account := range serviceAccounts(job) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:%s", job.Namespace, account),
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + job.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Version: "v1", Resource: resource, Name: name},
		}}
		if err := c.client.Create(ctx, review, withoutReadYourWrites); err != nil {
			return "", fmt.Errorf("review the rights of ServiceAccount %s in Namespace %s: %w", account, namespace, err)
		}
		if !review.Status.Allowed {
			return account, nil
		}
	}
	return "", nil
}

// serviceAccounts returns the service accounts of a job's pods, at least one.
func serviceAccounts(job mpi.Job) []string {
	var specs []corev1.PodSpec
	if !job.Launcher.None {
		specs = append(specs, job.Launcher.Template.Spec)
	}
	if job.Workers.Count > 0 {
		specs = append(specs, job.Workers.Template.Spec)
	}
	var names []string
	for _, spec := range specs {
		if name := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"default"}
	}
	return names
}

// namedPort returns a port of the pods of a Service by its name, or 0 if none of them has it.
func (c *Cluster) namedPort(ctx context.Context, service *corev1.Service, name string) int32 {
	var pods corev1.PodList
	if len(service.Spec.Selector) == 0 || c.live.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector), client.Limit(maxNamedPortPods)) != nil {
		return 0
	}
	for _, pod := range pods.Items {
		for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			for _, port := range container.Ports {
				if port.Name == name {
					return port.ContainerPort
				}
			}
		}
	}
	return 0
}

// maxDenied is the number of warnings about denied connections of a job.
const maxDenied = 5

// DeniedConnections returns warnings about what the NetworkPolicy of a new job will certainly deny: endpoints of its data
// connections, and destinations that its commands and variables mention; and about endpoints whose port behind a Service is unknown.
// They do not depend on objects of other namespaces that the job's service accounts may not read.
func (c *Cluster) DeniedConnections(ctx context.Context, job mpi.Job, settings plan.Settings, connections Connections) []string {
	if !plan.Isolates(job, settings) || job.ManagedBy != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout/2)
	defer cancel()
	home := settings.Home(job.Namespace)
	inNamespace, err := c.AllowEgress(ctx, job.Namespace)
	if err != nil {
		return nil
	}
	var allowed []isolation.Egress
	for _, text := range []string{settings.AllowEgress, job.AllowEgress, inNamespace} {
		entries, _ := isolation.ParseEgress(text)
		allowed = append(allowed, entries...)
	}
	var warnings, ports []string
	for _, endpoint := range connections.endpoints {
		service, lacking, err := c.service(ctx, job, endpoint.Destination)
		if warning := endpoint.RefusalWarning(service, home, allowed); warning != "" {
			warnings = append(warnings, warning)
		}
		if endpoint.Err != nil {
			continue
		}
		if lacking != "" && err == nil && len(ports) < maxDenied {
			if warning := endpoint.PortWarning(lacking, home, allowed); warning != "" {
				ports = append(ports, warning)
			}
		}
		entries, _ := endpoint.EgressFor(service, home)
		allowed = append(allowed, entries...)
	}
	for _, mention := range isolation.Mentions(job, home) {
		if entry, denied := mention.CertainlyDenied(home, allowed); denied {
			warnings = append(warnings, mention.Warning(home, entry))
		}
	}
	if more := len(warnings) - maxDenied; more > 0 {
		warnings = append(warnings[:maxDenied], fmt.Sprintf("the job's NetworkPolicy denies connections to %d more of its destinations", more))
	}
	return append(ports, warnings...)
}
