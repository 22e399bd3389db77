package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// What the operator's manifests call its objects (config/).
const (
	operatorApp       = "mpijob-operator"
	operatorNamespace = "mpijob-system"
	operatorWebhook   = "mpijob-validating"
	ourWebhook        = "mpijob.mpi.opendatahub.io"
)

const install = "Whoever runs the cluster installs the operator with: kubectl apply --server-side -k config/default"

func (e *examination) apiServer(version string) checked {
	return checked{Check: "API server", Verdict: verdictOK, Found: "Kubernetes " + version + e.where()}
}

// serves tells whether the API server has a kind of object, and an error if that cannot be known.
func (e *examination) serves(group schema.GroupVersion, resource string) (bool, error) {
	list, err := e.clients.Discovery().ServerResourcesForGroupVersion(group.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

// servesAny tells whether the API server has a kind of object in any version.
func (e *examination) servesAny(group, resource string) bool {
	groups, err := e.clients.Discovery().ServerGroups()
	if err != nil {
		return false
	}
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, version := range g.Versions {
			if is, err := e.serves(schema.GroupVersion{Group: group, Version: version.Version}, resource); err == nil && is {
				return true
			}
		}
	}
	return false
}

// kinds checks the kinds of objects that are ours.
func (e *examination) kinds(context.Context) []checked {
	line := checked{Check: "Kinds of objects", Verdict: verdictOK, Found: "MPIJob, JobReport and RuntimeTest are there"}
	var missing []string
	for _, kind := range []struct {
		group    schema.GroupVersion
		resource string
	}{
		{kubeflow.SchemeGroupVersion, "mpijobs"}, {v1alpha1.GroupVersion, "jobreports"}, {v1alpha1.GroupVersion, "runtimetests"},
	} {
		is, err := e.serves(kind.group, kind.resource)
		if err != nil {
			return []checked{e.unknown(line.Check, err)}
		}
		if !is {
			missing = append(missing, kind.resource+"."+kind.group.String())
		}
	}
	if len(missing) > 0 {
		line.Verdict, line.Found, line.Remedy = verdictFail, "the cluster does not know "+strings.Join(missing, ", "), install
	}
	return []checked{line}
}

// operator checks the operator's deployment, and whether it brings the agent.
func (e *examination) operator(ctx context.Context) []checked {
	const check, agent = "Operator", "Agent"
	var list appsv1.DeploymentList
	err := e.client.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/name": operatorApp})
	if apierrors.IsForbidden(err) {
		err = e.client.List(ctx, &list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": operatorApp})
	}
	switch {
	case err != nil:
		return []checked{e.unknown(check, err)}
	case len(list.Items) == 0:
		return []checked{{check, verdictFail, "no deployment of it is there", install}}
	}
	deployment := list.Items[0]
	lines := []checked{judgeDeployment(check, deployment)}
	if image, known := agentImage(deployment); !known {
		lines = append(lines, checked{agent, verdictWarn, "the operator brings none: ranks are started by sshd, which images must have", "Name the agent's image in the operator's variable AGENT_IMAGE."})
	} else {
		lines = append(lines, checked{Check: agent, Verdict: verdictOK, Found: image})
	}
	return lines
}

func judgeDeployment(check string, d appsv1.Deployment) checked {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	image := ""
	if len(d.Spec.Template.Spec.Containers) > 0 {
		image = d.Spec.Template.Spec.Containers[0].Image
	}
	line := checked{check, verdictOK, fmt.Sprintf("%d of %d replicas of %s/%s are ready, %s", d.Status.ReadyReplicas, wanted, d.Namespace, d.Name, image), ""}
	look := fmt.Sprintf("kubectl -n %s describe deployment %s, and kubectl -n %s logs deployment/%s", d.Namespace, d.Name, d.Namespace, d.Name)
	switch {
	case d.Status.ReadyReplicas == 0:
		line.Verdict, line.Remedy = verdictFail, "See why: "+look
	case d.Status.ReadyReplicas < wanted:
		line.Verdict, line.Remedy = verdictWarn, "Jobs run, but nobody takes over if this one ends. See why: "+look
	}
	return line
}

// agentImage is the image that brings the agent into pods; false where there is none.
func agentImage(d appsv1.Deployment) (string, bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range append(slices.Clone(c.Command), c.Args...) {
			if image, is := strings.CutPrefix(strings.TrimPrefix(arg, "-"), "-agent-image="); is {
				return image, image != ""
			}
		}
		for _, env := range c.Env {
			if env.Name == "AGENT_IMAGE" {
				return env.Value, env.Value != ""
			}
		}
	}
	return "", false
}

// webhook checks that jobs that cannot run are refused, by asking about one, and how long its certificate is good.
func (e *examination) webhook(ctx context.Context) []checked {
	const check = "Admission"
	lines := []checked{e.admission(ctx, check)}
	configuration, err := e.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, operatorWebhook, metav1.GetOptions{})
	if err != nil || len(configuration.Webhooks) == 0 {
		// Users may not look at it, and do not need to.
		return lines
	}
	return append(lines, judgeCertificate("Certificate", configuration.Webhooks[0].ClientConfig.CABundle, e.Now()))
}

// admission asks whether a job would be taken whose workers' names would be too long.
func (e *examination) admission(ctx context.Context, check string) checked {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	one := int32(1)
	job := &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "doctor-" + strings.Repeat("x", 80)},
		Spec: kubeflow.MPIJobSpec{MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
			kubeflow.MPIReplicaTypeLauncher: {Replicas: &one, Template: pod}, kubeflow.MPIReplicaTypeWorker: {Replicas: &one, Template: pod},
		}},
	}
	err := e.client.Create(ctx, job, client.DryRunAll)
	switch {
	case err == nil:
		return checked{check, verdictWarn, "the operator's webhook does not answer: jobs are taken unchecked, and fail later", "See whether the operator runs, and whether the API server reaches port 9443 of its pods."}
	case strings.Contains(err.Error(), ourWebhook):
		return checked{Check: check, Verdict: verdictOK, Found: "jobs that cannot run are refused"}
	}
	return e.unknown(check, err)
}

// judgeCertificate tells how long the authority is good that the API server trusts for the webhook.
func judgeCertificate(check string, bundle []byte, now time.Time) checked {
	const soon = 30 * 24 * time.Hour
	block, _ := pem.Decode(bundle)
	if block == nil {
		return checked{check, verdictFail, "the API server has no authority for the operator's webhook", "The operator writes it within a minute, if it runs and may: kubectl -n " + operatorNamespace + " logs deployment/" + operatorApp}
	}
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return checked{check, verdictFail, "the authority for the operator's webhook cannot be read: " + err.Error(), "Delete the Secret mpijob-webhook-certificate in " + operatorNamespace + ": the operator makes another."}
	}
	line := checked{Check: check, Verdict: verdictOK, Found: "the webhook's is good until " + authority.NotAfter.UTC().Format(time.DateOnly)}
	if authority.NotAfter.Sub(now) < soon {
		line.Verdict, line.Remedy = verdictWarn, "The operator renews it 60 days before: see its log for why it has not."
	}
	if !authority.NotAfter.After(now) {
		line.Verdict, line.Found = verdictFail, "the webhook's has expired on "+authority.NotAfter.UTC().Format(time.DateOnly)
	}
	return line
}

// trainer checks Kubeflow Trainer, which runs TrainJobs, and JobSet, which Trainer needs.
func (e *examination) trainer(ctx context.Context) []checked {
	const check = "Kubeflow Trainer"
	is, err := e.serves(trainjob.GroupVersion, "trainjobs")
	switch {
	case err != nil:
		return []checked{e.unknown(check, err)}
	case !is:
		return []checked{{Check: check, Verdict: verdictNone, Found: "not installed: TrainJobs cannot be run, MPIJobs can"}}
	}
	line := e.addOn(ctx, check, "trainer", "kubeflow-trainer-controller-manager")
	jobSets, err := e.serves(schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}, "jobsets")
	if err == nil && !jobSets {
		return []checked{line, {"JobSet", verdictWarn, "not installed: Kubeflow Trainer runs no TrainJob without it; MPIJobs run", "Install JobSet; Trainer's manifests bring one."}}
	}
	return []checked{line, e.addOn(ctx, "JobSet", "jobset", "jobset-controller-manager")}
}

func (e *examination) kueue(ctx context.Context) []checked {
	const check = "Kueue"
	if !e.servesAny("kueue.x-k8s.io", "localqueues") {
		return []checked{{Check: check, Verdict: verdictNone, Found: "not installed: jobs do not wait in queues"}}
	}
	line := e.addOn(ctx, check, "kueue", "kueue-controller-manager")
	if queues := e.names(ctx, localQueues); len(queues) > 0 {
		line.Found += fmt.Sprintf("; queues of %s: %s", e.namespace, strings.Join(queues, ", "))
	} else {
		line.Found += "; " + e.namespace + " has no queue"
	}
	return []checked{line}
}

// addOn checks the deployment of something that others have made, where the user may look at it.
func (e *examination) addOn(ctx context.Context, check, name, deployment string) checked {
	var list appsv1.DeploymentList
	if err := e.client.List(ctx, &list); err != nil {
		return checked{Check: check, Verdict: verdictOK, Found: "installed"}
	}
	for _, d := range list.Items {
		if d.Name == deployment || d.Labels["app.kubernetes.io/name"] == name && strings.HasSuffix(d.Name, "controller-manager") {
			return judgeDeployment(check, d)
		}
	}
	return checked{check, verdictWarn, "its kinds of objects are there, and no deployment of it was found", "See whether " + deployment + " runs."}
}

// gangs says what can place all pods of a job or none.
func (e *examination) gangs(context.Context) []checked {
	var found []string
	for _, backend := range []struct{ group, name string }{
		{"scheduling.k8s.io", "Kubernetes' PodGroups"}, {"scheduling.x-k8s.io", "coscheduling"}, {"scheduling.volcano.sh", "Volcano"},
	} {
		if e.servesAny(backend.group, "podgroups") {
			found = append(found, backend.name)
		}
	}
	text := "the operator itself places all pods of a job or none, where the job asks for that"
	if len(found) > 0 {
		text = "all pods of a job or none can be placed by " + strings.Join(found, ", ") + ", or by the operator itself"
	}
	return []checked{{Check: "Gangs", Verdict: verdictOK, Found: text}}
}

// dns checks that something answers for names, without which no rank finds another.
func (e *examination) dns(ctx context.Context) []checked {
	const check = "DNS"
	for _, service := range []client.ObjectKey{{Namespace: "kube-system", Name: "kube-dns"}, {Namespace: "openshift-dns", Name: "dns-default"}} {
		var slices discoveryv1.EndpointSliceList
		err := e.client.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		if err != nil {
			return []checked{e.unknown(check, err)}
		}
		if len(slices.Items) == 0 {
			continue
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					ready += len(endpoint.Addresses)
				}
			}
		}
		if ready == 0 {
			return []checked{{check, verdictFail, fmt.Sprintf("nothing answers for the service %s: workers cannot be found by name", service), "See why its pods are not ready: kubectl -n " + service.Namespace + " get pods"}}
		}
		return []checked{{Check: check, Verdict: verdictOK, Found: fmt.Sprintf("%d addresses answer for the service %s", ready, service)}}
	}
	return []checked{{Check: check, Verdict: verdictNone, Found: "not known: no service kube-system/kube-dns or openshift-dns/dns-default was found"}}
}

// namespaceItself checks that it is there, and what its pods may be.
func (e *examination) namespaceItself(ctx context.Context) []checked {
	const check = "Namespace"
	var namespace corev1.Namespace
	err := e.client.Get(ctx, client.ObjectKey{Name: e.namespace}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
		return []checked{{check, verdictFail, "there is no namespace " + e.namespace, "Name one with -n, or make it: kubectl create namespace " + e.namespace}}
	case err != nil:
		return []checked{e.unknown(check, err)}
	case namespace.DeletionTimestamp != nil:
		return []checked{{check, verdictFail, e.namespace + " is being deleted: it takes nothing new", "Name another one with -n."}}
	}
	level := cmp.Or(namespace.Labels["pod-security.kubernetes.io/enforce"], "privileged")
	note := "pods of every kind are admitted"
	switch level {
	case "restricted":
		note = "pods run as a user, without rights of their own; the agent needs none, sshd in images mostly does"
	case "baseline":
		note = "pods have no access to their machine; no host network, no host paths"
	}
	return []checked{{Check: check, Verdict: verdictOK, Found: fmt.Sprintf("%s, Pod Security %s: %s", e.namespace, level, note)}}
}

// quotas tells what of the namespace's quotas is free.
func (e *examination) quotas(ctx context.Context) []checked {
	const check = "Quota"
	var list corev1.ResourceQuotaList
	if err := e.client.List(ctx, &list, client.InNamespace(e.namespace)); err != nil {
		return []checked{e.unknown(check, err)}
	}
	if len(list.Items) == 0 {
		return []checked{{Check: check, Verdict: verdictOK, Found: e.namespace + " has none"}}
	}
	var lines []checked
	for _, quota := range list.Items {
		lines = append(lines, judgeQuota(check, quota))
	}
	return lines
}

func judgeQuota(check string, quota corev1.ResourceQuota) checked {
	var parts, full []string
	for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		parts = append(parts, fmt.Sprintf("%s of %s %s", used.String(), hard.String(), name))
		if used.Cmp(hard) >= 0 {
			full = append(full, string(name))
		}
	}
	line := checked{Check: check, Verdict: verdictOK, Found: quota.Name + ": used are " + strings.Join(parts, ", ")}
	if len(full) > 0 {
		line.Verdict = verdictWarn
		line.Remedy = "Nothing is left of " + strings.Join(full, ", ") + ": new jobs that ask for it wait until others have ended. Ask whoever runs the cluster for more, or see what holds it: kubectl -n " + quota.Namespace + " get pods"
	}
	return line
}

// right is something that a user must be allowed to do for a purpose.
type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	name := r.resource
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	if r.group != "" {
		name += "." + r.group
	}
	return r.verb + " " + name
}

// rights checks what the user may do in the namespace.
func (e *examination) rights(ctx context.Context) []checked {
	group := kubeflow.SchemeGroupVersion.Group
	return []checked{
		e.may(ctx, "See jobs", verdictFail, right{"list", group, "mpijobs", ""}, right{"list", mpi.Group, "jobreports", ""}, right{"watch", mpi.Group, "jobreports", ""}),
		e.may(ctx, "Run jobs", verdictFail, right{"create", group, "mpijobs", ""}, right{"patch", group, "mpijobs", ""}, right{"delete", group, "mpijobs", ""}),
		e.may(ctx, "Read logs", verdictFail, right{"list", "", "pods", ""}, right{"watch", "", "pods", ""}, right{"get", "", "pods", "log"}),
		e.may(ctx, "Read events", verdictWarn, right{"list", "", "events", ""}),
		e.may(ctx, "Enter pods", verdictWarn, right{"create", "", "pods", "exec"}, right{"create", "", "pods", "portforward"}),
	}
}

func (e *examination) may(ctx context.Context, check string, otherwise verdict, needed ...right) checked {
	var missing []string
	var errs []error
	for _, r := range needed {
		review, err := e.clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: e.namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
			}},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			errs = append(errs, err)
		case !review.Status.Allowed:
			missing = append(missing, r.String())
		}
	}
	switch {
	case len(errs) > 0:
		return e.unknown(check, errors.Join(errs...))
	case len(missing) > 0:
		return checked{check, otherwise, "you may not " + strings.Join(missing, ", ") + " in " + e.namespace, "Ask whoever runs the cluster for " + roleFor(needed[0].verb, needed[0].group) + " in this namespace."}
	}
	return checked{Check: check, Verdict: verdictOK, Found: "you may"}
}
