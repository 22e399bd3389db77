package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the operator's objects (config/).
const (
	operatorApp       = "mpijob-operator"
	operatorNamespace = "mpijob-system"
	labelApp          = "app.kubernetes.io/name"
	// labelVersion is on the operator's Deployment, webhooks and policies (hack/install/manifests).
	labelVersion = "app.kubernetes.io/version"
)

// installRemedy returns how the operator is installed on the cluster, from a release or from a clone.
func (c Cluster) installRemedy() string {
	file, folder := "install.yaml", "config/default"
	if is, err := c.servesPolicies(); err == nil && !is {
		file, folder = "install-without-policies.yaml", "config/without-policies"
	}
	return fmt.Sprintf("Ask a cluster administrator to install the operator (docs/install.md): with Helm, with kubectl apply --server-side -f %s of a release, or with -k %s in a clone", file, folder)
}

// Operator is the installed operator.
type Operator struct {
	// Namespace and Name are those of its Deployment.
	Namespace, Name string
	// Version is empty if it is unknown.
	Version, Image string
	// AgentImage is the image of the agent; empty if ranks are started by sshd. AgentVersion is empty if it is unknown.
	AgentImage, AgentVersion string

	deployment appsv1.Deployment
}

// NotInstalledError is a cluster without the operator's Deployment.
type NotInstalledError struct{}

func (e *NotInstalledError) Error() string {
	return "no Deployment has the label " + labelApp + "=" + operatorApp + "; the operator is not installed"
}

// FindOperator returns the operator of a cluster. Users who cannot list the Deployments of all namespaces find one in the default
// namespace. It fails with NotInstalledError if there is none.
func FindOperator(ctx context.Context, api client.Reader) (Operator, error) {
	var list appsv1.DeploymentList
	label := client.MatchingLabels{labelApp: operatorApp}
	err := api.List(ctx, &list, label)
	if apierrors.IsForbidden(err) {
		err = api.List(ctx, &list, client.InNamespace(operatorNamespace), label)
	}
	switch {
	case err != nil:
		return Operator{}, fmt.Errorf("list the operator's Deployment: %w", err)
	case len(list.Items) == 0:
		return Operator{}, &NotInstalledError{}
	}
	return operatorOf(list.Items[0]), nil
}

// operatorOf returns the operator of a Deployment.
func operatorOf(d appsv1.Deployment) Operator {
	found := Operator{Namespace: d.Namespace, Name: d.Name, AgentImage: agentImage(d), deployment: d}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		found.Image = containers[0].Image
	}
	found.Version = cmp.Or(d.Labels[labelVersion], imageTag(found.Image))
	found.AgentVersion = imageTag(found.AgentImage)
	return found
}

// byOLM reports whether the Operator Lifecycle Manager installed the operator.
func (o Operator) byOLM() bool { return o.deployment.Labels["olm.owner"] != "" }

// admissionCommand returns the command that installs webhooks and policies again, by how the operator was installed.
func (o Operator) admissionCommand(withPolicies bool) string {
	file := "install"
	if o.byOLM() {
		file = "olm-admission"
	}
	if !withPolicies {
		file += "-without-policies"
	}
	command := "kubectl apply --server-side -f " + file + ".yaml of the installed release"
	if release := o.deployment.Annotations["meta.helm.sh/release-name"]; release != "" {
		command = "helm upgrade " + release + " CHART --namespace " + o.Namespace + " --reset-then-reuse-values"
	}
	return command + " (docs/install.md)"
}

// agentImage returns the image that brings the agent into pods; empty for none.
func agentImage(d appsv1.Deployment) string {
	if image, set := flagOf(d, "agent-image"); set {
		return image
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, env := range c.Env {
			if env.Name == "AGENT_IMAGE" {
				return env.Value
			}
		}
	}
	return ""
}

// flagOf returns the value of a flag of a Deployment's program, which may be the next argument; false if it is not set. The value of a
// flag without one is true.
func flagOf(d appsv1.Deployment, name string) (string, bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		arguments := append(slices.Clone(c.Command), c.Args...)
		for i, arg := range arguments {
			flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			switch {
			case !strings.HasPrefix(arg, "-") || flag != name:
				continue
			case hasValue:
				return value, true
			case i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "-"):
				return arguments[i+1], true
			}
			return "true", true
		}
	}
	return "", false
}

// imageTag returns the tag of an image, or "" if it has none. The registry may have a port, and a digest may follow the tag.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// operator checks the operator's Deployment, and whether it brings the agent.
func (c Cluster) operator(ctx context.Context) []Result {
	const check, agent = "Operator", "Agent"
	found, err := FindOperator(ctx, c.API)
	if _, none := errors.AsType[*NotInstalledError](err); none {
		return []Result{{Check: check, Verdict: Fail, Found: "no Deployment found", Remedy: c.installRemedy()}}
	}
	if err != nil {
		return unknown(check, err)
	}
	results := []Result{judgeDeployment(check, found.deployment)}
	if found.AgentImage == "" {
		return append(results, Result{
			Check: agent, Verdict: Warn, Found: "no agent image is configured: ranks are started by sshd, which images must contain",
			Remedy: "Set the operator's variable AGENT_IMAGE to the agent's image.",
		})
	}
	return append(results, Result{Check: agent, Verdict: OK, Found: found.AgentImage})
}

// judgeDeployment judges by its ready replicas.
func judgeDeployment(check string, d appsv1.Deployment) Result {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	image := ""
	if len(d.Spec.Template.Spec.Containers) > 0 {
		image = d.Spec.Template.Spec.Containers[0].Image
	}
	result := Result{Check: check, Verdict: OK, Found: fmt.Sprintf("%d of %d replicas of %s/%s are ready, %s", d.Status.ReadyReplicas, wanted, d.Namespace, d.Name, image)}
	commands := fmt.Sprintf("kubectl -n %s describe deployment %s, and kubectl -n %s logs deployment/%s", d.Namespace, d.Name, d.Namespace, d.Name)
	switch {
	case d.Status.ReadyReplicas == 0:
		result.Verdict, result.Remedy = Fail, "Find the cause: "+commands
	case d.Status.ReadyReplicas < wanted:
		result.Verdict, result.Remedy = Warn, "Jobs run, but there is no standby. Find the cause: "+commands
	}
	return result
}
