package diagnose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// images reports why an image cannot be pulled.
func images(p *input) []Finding {
	var found []Finding
	if g := p.Waiting(podstatus.InvalidImageName); g != nil {
		f := p.find(codes.InvalidImageName, g.Pods, map[string]string{"imageNow": p.imageOf(g)}, g.Lines...)
		found = append(found, f)
	}
	g := p.Waiting(podstatus.ImageNotPulled)
	if g == nil {
		return found
	}
	figures := p.pullFigures(g.Pods[0].Role, strings.ReplaceAll(g.Lines[0], strings.Trim(p.imageOf(g), `"`), ""))
	figures["imageNow"] = p.imageOf(g)
	if p.pullsAlways(g.Pods[0].Role) {
		figures["second"], figures["secondAction"] = "If the nodes have the image, let them use it: imagePullPolicy Always asks the registry each time.", p.field(g.Pods[0].Role)+".spec.containers[0].imagePullPolicy: IfNotPresent"
	}
	if other := p.siblingImage(g.Pods[0].Role, strings.Trim(p.imageOf(g), `"`)); other != "" && wrongTag.MatchString(figures["why"]) {
		figures["second"], figures["secondAction"] = figures["first"], figures["firstAction"]
		figures["first"] = "Use the tag that the job's other pods have: " + other + "."
		figures["firstAction"] = p.field(g.Pods[0].Role) + ".spec.containers[0].image: " + other
	}
	secret, line := p.missingPullSecret(g.Pods)
	if secret != "" {
		figures["why"] += fmt.Sprintf("; pull secret %q of the pod does not exist", secret)
		figures["second"], figures["secondAction"] = figures["first"], figures["firstAction"]
		figures["first"] = fmt.Sprintf("Create Secret %q with the login of the registry, or correct its name in imagePullSecrets.", secret)
		figures["firstAction"] = phrase.QuoteCommand([]string{"kubectl", "-n", p.Job.Namespace, "get", "secrets"})
	}
	entry := codes.Lookup(codes.ImagePullFailed)
	evidence := slices.Clone(g.Lines)
	if image := strings.Trim(p.imageOf(g), `"`); withoutTag(image) && tagMatters.MatchString(figures["why"]) {
		entry.Remedies = slices.Concat(codes.ImageWithoutTag, entry.Remedies)
		figures["image"] = image
		evidence = append([]string{"Image " + image + " has no tag: it stands for " + image + ":latest."}, evidence...)
	}
	f := p.findAs(entry, g.Pods, figures)
	if f.Evidence = evidence; line != "" {
		f.Evidence = append([]string{line}, f.Evidence...)
	}
	return append(found, f)
}

// tagMatters is why an image was not pulled that could be the wrong one.
var tagMatters = regexp.MustCompile(`^: (?:the registry is not reachable|no image with this name|authentication required)`)

// wrongTag is why an image was not pulled that does not exist.
var wrongTag = regexp.MustCompile(`^: (?:no image with this name|it is not on the node)`)

// siblingImage returns the image of the same repository that a container of the job has with another tag, and that was pulled; "" if there is none, or the image
// is not that of the role's main container.
func (p *input) siblingImage(role mpi.Role, image string) string {
	if main := p.Template(role).Containers; len(main) == 0 || main[0].Image != image {
		return ""
	}
	for _, pod := range p.Pods {
		template := p.Template(pod.Role)
		for _, c := range slices.Concat(template.InitContainers, template.Containers) {
			isPulled := func(status corev1.ContainerStatus) bool { return status.Name == c.Name && status.ImageID != "" }
			if c.Image != image && repositoryOf(c.Image) == repositoryOf(image) && slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), isPulled) {
				return c.Image
			}
		}
	}
	return ""
}

// repositoryOf returns the name of an image without its tag or digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at]
	}
	return image
}

// withoutTag reports whether the name of an image has neither a tag nor a digest. The last colon may be before the registry's port.
func withoutTag(image string) bool {
	return image != "" && !strings.Contains(image, "@") && !strings.Contains(path.Base(image), ":")
}

// pullsAlways reports whether the pod template of a role demands that an image is pulled although the node has it.
func (p *input) pullsAlways(role mpi.Role) bool {
	main := p.Template(role).Containers
	return len(main) > 0 && main[0].ImagePullPolicy == corev1.PullAlways
}

// noPullSecret is the kubelet's event about pull secrets that it cannot read (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go).
var noPullSecret = regexp.MustCompile(`^Unable to retrieve some image pull secrets \(([^,)]+)`)

// missingPullSecret returns the first pull secret of pods that does not exist, and the event that names it; "" if there is none.
func (p *input) missingPullSecret(pods []facts.Pod) (secret, line string) {
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "FailedToRetrieveImagePullSecret" }) {
		found := noPullSecret.FindStringSubmatch(event.Message)
		if found != nil && slices.ContainsFunc(pods, func(pod facts.Pod) bool { return pod.Name == event.Name }) {
			return found[1], facts.EventLine(event)
		}
	}
	return "", ""
}

func (p *input) imageOf(g *facts.Group) string {
	if g.Status.Image != "" {
		return fmt.Sprintf("%q", g.Status.Image)
	}
	return fmt.Sprintf("%q", facts.Image(p.Template(g.Pods[0].Role)))
}

// Status codes of a registry. Other numbers contain their digits, such as ports and digests.
var (
	refusedStatus  = regexp.MustCompile(`\b401\b`)
	notFoundStatus = regexp.MustCompile(`\b404\b`)
)

// unreachable and rateLimited are parts of errors, in lower case, of registries that do not respond, or no more.
var (
	unreachable = []string{"no such host", "i/o timeout", "connection refused", "dial tcp", "no route to host", "tls handshake", "registryunavailable"}
	rateLimited = []string{"toomanyrequests", "rate limit"}
)

// FailingRegistry returns the registry from which a pod cannot pull an image because the registry does not respond, or no more: other jobs may
// not be able to either. It returns "" if there is none.
func FailingRegistry(seen jobstate.Observed) string {
	for _, pod := range seen.AllPods() {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, c := range list {
				if podstatus.ObstacleOf(c) != podstatus.ImageNotPulled || c.Image == "" {
					continue
				}
				// The name of an image can contain anything.
				message := strings.ToLower(strings.ReplaceAll(c.State.Waiting.Reason+": "+c.State.Waiting.Message, c.Image, ""))
				if anyIn(message, unreachable...) || anyIn(message, rateLimited...) {
					return registryOf(c.Image)
				}
			}
		}
	}
	return ""
}

// registryOf returns the host of an image's registry.
func registryOf(image string) string {
	host, _, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return strings.ToLower(host)
	}
	return "docker.io"
}

// pullFigures tell from a registry's answer, without the name of the image, what is to be done.
func (p *input) pullFigures(role mpi.Role, message string) map[string]string {
	const login = "kubectl -n %s create secret docker-registry NAME --docker-server=REGISTRY --docker-username=USER --docker-password=TOKEN"
	figures := map[string]string{
		"first": "Check the image name and tag.", "firstAction": p.field(role) + ".spec.containers[0].image",
		"second": "If the registry requires authentication, create a pull secret and reference it in the pod template.", "secondAction": "imagePullSecrets: [{name: NAME}]",
	}
	lowered := strings.ToLower(message)
	switch {
	case anyIn(lowered, strings.ToLower(podstatus.SignatureInvalid), "signature required", "invalid signature"):
		figures["why"] = ": the node's policy does not accept its signature"
		figures["first"] = "Use an image that is signed as the cluster demands."
		figures["second"], figures["secondAction"] = "Ask the cluster administrator which registries and keys the policy accepts.", "On OpenShift: oc get imagepolicies,clusterimagepolicies -A"
	case anyIn(lowered, "no match for platform", "no image found in manifest list for", "no image found in image index for", "exec format"):
		figures["why"] = ": no variant for the node's CPU architecture"
		figures["first"], figures["firstAction"] = "Select nodes with a CPU architecture that the image has.", p.field(role)+".spec.nodeSelector: {kubernetes.io/arch: ARCHITECTURE}"
		figures["second"], figures["secondAction"] = "Or build the image for the CPU architecture of the nodes, too.", "kubectl get nodes -L kubernetes.io/arch"
	case anyIn(lowered, "x509: ", "tls: failed to verify certificate", "server gave http response to https client"):
		figures["why"] = ": nodes do not trust the certificate of the registry"
		if strings.Contains(lowered, "server gave http response") {
			figures["why"] = ": the registry has no TLS, which nodes demand"
		}
		figures["first"] = "Use a registry that the nodes trust, such as that of other images in the cluster."
		figures["second"], figures["secondAction"] = "Or ask the cluster administrator to let the nodes trust this registry.", "On OpenShift: image.config.openshift.io/cluster, additionalTrustedCA or registrySources.insecureRegistries"
	case strings.Contains(lowered, "short-name") || strings.Contains(lowered, "short name"):
		figures["why"] = ": its name has no registry, and nodes accept only full names"
		figures["first"] = "Write the registry into the image's name."
		figures["firstAction"] = p.field(role) + ".spec.containers[0].image: quay.io/..., docker.io/library/..."
	case strings.Contains(lowered, "no space left on device"):
		figures["why"] = ": the disk of the node is full"
		figures["first"], figures["firstAction"] = "Use a smaller image, or select other nodes: the node cannot unpack this one.", p.field(role)+".spec.nodeSelector"
		figures["second"], figures["secondAction"] = "Or ask the cluster administrator to free disk space for images on the node.", "kubectl describe nodes | grep -E '^Name:|DiskPressure'"
	case anyIn(lowered, "unauthorized", "authentication required", "no basic auth", "denied", "403 forbidden"), refusedStatus.MatchString(lowered):
		figures["why"] = ": authentication required, or no such image"
		figures["first"], figures["firstAction"] = "Create a pull secret for the registry, and reference it in the pod templates.", fmt.Sprintf(login, phrase.QuoteWord(p.Job.Namespace))
		figures["second"], figures["secondAction"] = "Check the image name: many registries respond like this for an image that does not exist.", "imagePullSecrets: [{name: NAME}]"
	case strings.Contains(lowered, "pull policy of never"):
		figures["why"] = ": it is not on the node, and its imagePullPolicy is Never"
		figures["first"], figures["firstAction"] = "Set imagePullPolicy to IfNotPresent, so that nodes pull the image.", p.field(role)+".spec.containers[0].imagePullPolicy: IfNotPresent"
		figures["second"], figures["secondAction"] = "Or check the image name and tag.", p.field(role)+".spec.containers[0].image"
	case anyIn(lowered, "not found", "manifest unknown", "not present with pull policy"), notFoundStatus.MatchString(lowered):
		figures["why"] = ": no image with this name and tag in the registry"
	case anyIn(lowered, unreachable...):
		figures["why"] = ": the registry is not reachable from the node"
		figures["first"] = "Check the registry's host name, and ask the cluster administrator whether nodes can reach it (proxy, mirror)."
		if p.Evidence.RegistryFails {
			figures["why"] += ", and other jobs cannot pull from it either"
			figures["first"], figures["firstAction"] = "Ask the cluster administrator whether nodes can reach the registry (proxy, mirror). When it responds, the pods start by themselves.", ""
		}
	case anyIn(lowered, rateLimited...):
		figures["why"] = ": the registry's rate limit is exceeded"
		figures["first"], figures["firstAction"] = "Wait, or authenticate: reference a pull secret in the pod templates.", "imagePullSecrets: [{name: NAME}]"
		if p.Evidence.RegistryFails {
			figures["why"] += ", also for other jobs"
			figures["second"], figures["secondAction"] = "Ask the cluster administrator for a mirror of the registry, or a login for all nodes.", ""
		}
	}
	return figures
}
