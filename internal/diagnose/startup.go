package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// group gathers the pods that share a trouble.
type group struct {
	pods   []jobPod
	status corev1.ContainerStatus
	lines  []string
}

// waiting gathers pods of which a container waits because of an obstacle; nil if there are none.
func (p *input) waiting(obstacle podstatus.Obstacle) *group {
	var g *group
	for _, pod := range p.pods {
		if pod.DeletionTimestamp != nil || !pod.latest {
			continue
		}
		for _, c := range containersOf(pod) {
			if podstatus.ObstacleOf(c) != obstacle {
				continue
			}
			if g == nil {
				g = &group{status: c}
			}
			g.pods = append(g.pods, pod)
			g.lines = append(g.lines, fmt.Sprintf("Pod %s, container %s: %s: %s", pod.Name, c.Name, c.State.Waiting.Reason, steady(c.State.Waiting.Message)))
			break
		}
	}
	return g
}

func containersOf(p jobPod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
}

// steady cuts what the kubelet adds while it waits to try again, so that a finding stays the same.
func steady(message string) string {
	if strings.HasPrefix(message, "back-off ") {
		return "restarted with increasing delay"
	}
	return podstatus.PullError(message)
}

// images reports why an image cannot be pulled.
func images(p *input) []Finding {
	var found []Finding
	if g := p.waiting(podstatus.InvalidImageName); g != nil {
		f := p.find(codes.InvalidImageName, g.pods, map[string]string{"imageNow": p.imageOf(g)})
		f.Evidence = g.lines
		found = append(found, f)
	}
	g := p.waiting(podstatus.ImageNotPulled)
	if g == nil {
		return found
	}
	figures := p.pullFigures(g.pods[0].role, strings.ReplaceAll(g.lines[0], strings.Trim(p.imageOf(g), `"`), ""))
	figures["imageNow"] = p.imageOf(g)
	secret, line := p.missingPullSecret(g.pods)
	if secret != "" {
		figures["why"] += fmt.Sprintf("; pull secret %q of the pod does not exist", secret)
		figures["second"], figures["secondAction"] = figures["first"], figures["firstAction"]
		figures["first"] = fmt.Sprintf("Create Secret %q with the login of the registry, or correct its name in imagePullSecrets.", secret)
		figures["firstAction"] = phrase.QuoteCommand([]string{"kubectl", "-n", p.job.Namespace, "get", "secrets"})
	}
	f := p.find(codes.ImagePullFailed, g.pods, figures)
	if f.Evidence = g.lines; line != "" {
		f.Evidence = append([]string{line}, f.Evidence...)
	}
	return append(found, f)
}

// noPullSecret is the kubelet's event about pull secrets that it cannot read (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go).
var noPullSecret = regexp.MustCompile(`^Unable to retrieve some image pull secrets \(([^,)]+)`)

// missingPullSecret returns the first pull secret of pods that does not exist, and the event that names it; "" if there is none.
func (p *input) missingPullSecret(pods []jobPod) (secret, line string) {
	for _, event := range p.events("Pod", func(e jobstate.Event) bool { return e.Reason == "FailedToRetrieveImagePullSecret" }) {
		found := noPullSecret.FindStringSubmatch(event.Message)
		if found != nil && slices.ContainsFunc(pods, func(pod jobPod) bool { return pod.Name == event.Name }) {
			return found[1], saying(event)
		}
	}
	return "", ""
}

func (p *input) imageOf(g *group) string {
	if g.status.Image != "" {
		return fmt.Sprintf("%q", g.status.Image)
	}
	return fmt.Sprintf("%q", image(p.template(g.pods[0].role)))
}

// Status codes of a registry. Other numbers contain their digits, such as ports and digests.
var (
	refusedStatus  = regexp.MustCompile(`\b401\b`)
	notFoundStatus = regexp.MustCompile(`\b404\b`)
)

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
	case anyIn(lowered, "unauthorized", "authentication required", "no basic auth", "denied", "403 forbidden"), refusedStatus.MatchString(lowered):
		figures["why"] = ": authentication required, or no such image"
		figures["first"], figures["firstAction"] = "Create a pull secret for the registry, and reference it in the pod templates.", fmt.Sprintf(login, phrase.QuoteWord(p.job.Namespace))
		figures["second"], figures["secondAction"] = "Check the image name: many registries respond like this for an image that does not exist.", "imagePullSecrets: [{name: NAME}]"
	case strings.Contains(lowered, "pull policy of never"):
		figures["why"] = ": it is not on the node, and its imagePullPolicy is Never"
		figures["first"], figures["firstAction"] = "Set imagePullPolicy to IfNotPresent, so that nodes pull the image.", p.field(role)+".spec.containers[0].imagePullPolicy: IfNotPresent"
		figures["second"], figures["secondAction"] = "Or check the image name and tag.", p.field(role)+".spec.containers[0].image"
	case anyIn(lowered, "not found", "manifest unknown", "not present with pull policy"), notFoundStatus.MatchString(lowered):
		figures["why"] = ": no image with this name and tag in the registry"
	case anyIn(lowered, "no such host", "i/o timeout", "connection refused", "dial tcp", "no route to host", "tls handshake", "registryunavailable"):
		figures["why"] = ": the registry is not reachable from the node"
		figures["first"] = "Check the registry's host name, and ask the cluster administrator whether nodes can reach it (proxy, mirror)."
	case anyIn(lowered, "toomanyrequests", "rate limit"):
		figures["why"] = ": the registry's rate limit is exceeded"
		figures["first"], figures["firstAction"] = "Wait, or authenticate: reference a pull secret in the pod templates.", "imagePullSecrets: [{name: NAME}]"
	case anyIn(lowered, "no match for platform", "exec format"):
		figures["why"] = ": no variant for the node's CPU architecture"
		figures["first"] = "Build the image for the nodes' CPU architecture, or select suitable nodes."
	}
	return figures
}

func anyIn(text string, words ...string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

var missingObject = regexp.MustCompile(`(?:(secret|configmap) "([^"]+)" not found|couldn't find key (\S+) in (Secret|ConfigMap) (\S+))`)

// missing returns the Secret or ConfigMap that does not exist according to a message, or "".
func missing(message string) string {
	m := missingObject.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case m[1] != "":
		kind := "Secret"
		if m[1] == "configmap" {
			kind = "ConfigMap"
		}
		return fmt.Sprintf("%s %q", kind, m[2])
	}
	_, name, _ := strings.Cut(m[5], "/")
	if name == "" {
		name = m[5]
	}
	return fmt.Sprintf("key %q of %s %q", m[3], m[4], name)
}

// creationRemedies are the first remedies for reasons for which a container runtime cannot create a container
// (k8s.io/cri-api/pkg/errors).
var creationRemedies = map[string]string{
	"ImageVolumeMountFailed": "Correct the image volume in the pod template. If it has none, the image of the operator's agent cannot be mounted: report it to the cluster administrator.",
	"RROUnsupported":         "Remove recursiveReadOnly from the volume mounts: the node does not support it.",
}

// containers reports why containers cannot be created.
func containers(p *input) []Finding {
	g := p.waiting(podstatus.NotCreated)
	if g == nil {
		return nil
	}
	message := cmp.Or(g.status.State.Waiting.Message, g.status.State.Waiting.Reason)
	code, figures := codes.ContainerCreateFailed, map[string]string{"message": sentence(message), "first": creationRemedies[g.status.State.Waiting.Reason]}
	switch absent := missing(message); {
	case absent != "":
		code, figures["missing"] = codes.MissingReference, absent
		if slices.ContainsFunc(p.job.Connections, func(name string) bool { return absent == fmt.Sprintf("Secret %q", name) }) {
			figures["missing"] = strings.Replace(absent, "Secret", "data connection", 1)
			figures["reference"] = mpi.ConnectionsPath.String()
		}
	case lacksProgram(message):
		code = codes.ProgramMissing
		if program := execOf.FindStringSubmatch(message); program != nil {
			figures["program"], figures["where"] = program[1], "the "+string(g.pods[0].role)
		}
	case strings.Contains(message, "runAsNonRoot"):
		figures["first"] = "The image runs as root, which the pod must not. Set another user in the pod template or in the image."
	}
	f := p.find(code, g.pods, figures)
	f.Severity, f.Evidence = v1alpha1.SeverityError, g.lines
	return []Finding{f}
}

// commands reports containers that did not start because of a NUL character in their command. Webhooks refuse these in MPIJobs.
func commands(p *input) []Finding {
	for _, pod := range p.pods {
		main := p.template(pod.role).Containers
		if len(main) == 0 || pod.end() == nil && !hasWaiting(pod) {
			continue
		}
		at := slices.IndexFunc(slices.Concat(main[0].Command, main[0].Args), func(word string) bool { return strings.Contains(word, "\x00") })
		if at < 0 {
			continue
		}
		f := p.findAs(codes.CommandWithNUL, []jobPod{pod}, nil)
		// A command may contain secrets.
		f.Severity, f.ExitCode, f.Evidence = v1alpha1.SeverityError, pod.exitCode(), []string{fmt.Sprintf("Word %d of the command of container %s contains it.", at+1, main[0].Name)}
		return []Finding{f}
	}
	return nil
}

// hasWaiting reports whether a container of a pod waits because of an error.
func hasWaiting(pod jobPod) bool {
	return slices.ContainsFunc(containersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && strings.Contains(c.State.Waiting.Reason, "Error")
	})
}

// volumes reports why volumes cannot be mounted, from events: the pod's status only shows that its container is being
// created.
func volumes(p *input) []Finding {
	var found []Finding
	told := p.events("Pod", func(e jobstate.Event) bool {
		return (e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume" || e.Reason == "FailedMapVolume") && !anyIn(e.Message, passing...)
	})
	explained := map[string]bool{}
	for _, event := range told {
		explained[event.Name] = explained[event.Name] || !isFollowUp(event.Message)
	}
	for _, event := range told {
		pod := p.startingPod(event.Name)
		if pod == nil || pod.Spec.NodeName == "" || hasVolumes(*pod) || isFollowUp(event.Message) && explained[event.Name] {
			continue
		}
		entry, figures := codes.Lookup(codes.MountFailed), map[string]string{"message": sentence(event.Message)}
		remote, isRemote := remoteMountIn(event.Message)
		absent := missing(event.Message)
		if key := p.missingKey(pod.role, event.Message); key != "" {
			absent = key
		}
		switch {
		case isRemote:
			entry, figures["source"], figures["message"], figures["first"] = codes.RemoteMountFailed, remote.source, remote.why, remote.remedy
		case absent != "":
			entry, figures["missing"] = codes.Lookup(codes.MissingReference), absent
		case strings.Contains(event.Message, "Multi-Attach"):
			figures["message"] = "it can be used on one node at a time, and another node uses it."
			figures["first"] = "Use a claim with access mode ReadWriteMany, or keep all pods on one node."
		case strings.Contains(event.Message, hostPathCheck):
			_, path, _ := strings.Cut(event.Message, hostPathCheck)
			figures["message"] = strings.TrimSuffix(strings.TrimSpace(path), ".")
			entry = codes.HostPathMissing
		}
		f := p.findAs(entry, []jobPod{*pod}, figures)
		f.Evidence = append([]string{saying(event)}, p.claims(nil)...)
		found = append(found, f)
	}
	return found
}

// absentKey is what the kubelet reports of a volume that projects a key which its object does not have
// (k8s.io/kubernetes/pkg/volume/configmap and secret).
var absentKey = regexp.MustCompile(`for volume "([^"]+)".*references non-existent (?:config|secret) key: (\S+?)\.?$`)

// missingKey returns the key that a volume of a role's pods projects and that does not exist, with its object; empty if the message is
// about something else.
func (p *input) missingKey(role mpi.Role, message string) string {
	key := absentKey.FindStringSubmatch(message)
	if key == nil {
		return ""
	}
	for _, volume := range p.template(role).Volumes {
		switch {
		case volume.Name != key[1]:
		case volume.ConfigMap != nil:
			return fmt.Sprintf("key %q of ConfigMap %q", key[2], volume.ConfigMap.Name)
		case volume.Secret != nil:
			return fmt.Sprintf("key %q of Secret %q", key[2], volume.Secret.SecretName)
		}
	}
	return fmt.Sprintf("key %q of volume %q", key[2], key[1])
}

// prepared begins the kubelet's messages about sandboxes and devices.
var prepared = regexp.MustCompile(`^(?:Failed to create pod sandbox|Failed to prepare dynamic resources|network is not ready): `)

// sandboxes reports pods whose sandbox or devices cannot be prepared, from events: the pod's status only shows that its container is being
// created. The kubelet retries, and one failure while a node starts is usual.
func sandboxes(p *input) []Finding {
	const often, recently = 3, 2 * time.Minute
	var pods []jobPod
	var evidence []string
	message, entry := "", codes.Entry{}
	for _, event := range p.events("Pod", func(e jobstate.Event) bool {
		return sandboxEvents[e.Reason].IsFinding() && !noNetwork.MatchString(e.Message)
	}) {
		pod := p.startingPod(event.Name)
		if pod == nil || hasVolumes(*pod) || pod.DeletionTimestamp != nil || !podstatus.NetworkedAt(pod.Pod).IsZero() || p.seen.Now.Sub(event.Last) > recently ||
			event.Count < often && p.seen.Now.Sub(pod.CreationTimestamp.Time) < time.Minute || slices.ContainsFunc(pods, func(known jobPod) bool { return known.Name == pod.Name }) {
			continue
		}
		if message == "" {
			entry = sandboxEvents[event.Reason]
			message = sandboxID.ReplaceAllString(prepared.ReplaceAllString(event.Message, ""), "…")
		}
		pods, evidence = append(pods, *pod), append(evidence, sandboxID.ReplaceAllString(saying(event), "…"))
	}
	if len(pods) == 0 {
		return nil
	}
	figures := map[string]string{"message": sentence(message)}
	if users := p.template(pods[0].role).HostUsers; users != nil && !*users {
		figures["first"] = "Remove hostUsers: false, unless the message has another reason: the node's kernel, file system or container runtime may not support user namespaces."
	}
	f := p.findAs(entry, pods, figures)
	f.Severity, f.Evidence = v1alpha1.SeverityError, evidence
	return []Finding{f}
}

// sandboxID is the ID of a sandbox, which differs each time.
var sandboxID = regexp.MustCompile(`\b[0-9a-f]{32,}\b`)

// sandboxEvents are the reasons of the kubelet's events about what it prepares before containers
// (k8s.io/kubernetes/pkg/kubelet/events): the sandbox with its network, its cgroup, and devices of ResourceClaims.
var sandboxEvents = map[string]codes.Entry{
	"FailedCreatePodSandBox": codes.SandboxFailed, "FailedCreatePodContainer": codes.SandboxFailed,
	"NetworkNotReady": codes.NodeNetworkDown, "FailedPrepareDynamicResources": codes.DevicesNotPrepared,
}

// hostPathCheck begins the kubelet's message about a hostPath that does not exist or is of another type.
const hostPathCheck = "hostPath type check failed:"

// unstartable reports containers whose command the container runtime could not start.
func unstartable(p *input) []Finding {
	var pods []jobPod
	for _, pod := range p.pods {
		if end := pod.end(); end != nil && (end.Reason == startError || end.Reason == "ContainerCannotRun") {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.containerEnd(pods[0])
	f.Affected = names(pods)
	return []Finding{f}
}

// startError is the kubelet's reason for a container that did not start.
const startError = "StartError"

// passing are messages of the kubelet about volumes of new pods; it retries.
var passing = []string{"failed to sync secret cache", "failed to sync configmap cache", "no relationship found between node"}

// hasVolumes reports whether a pod that starts has got its volumes: a container of it has got beyond them.
func hasVolumes(pod jobPod) bool {
	return slices.ContainsFunc(containersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil ||
			podstatus.ObstacleOf(c) != podstatus.NoObstacle
	})
}

// claims say how the job's volume claims are; which picks some.
func (p *input) claims(which func(jobstate.Claim) bool) []string {
	var lines []string
	for _, claim := range p.evidence.Claims {
		switch {
		case which != nil && !which(claim):
		case claim.Missing:
			lines = append(lines, fmt.Sprintf("PersistentVolumeClaim %s does not exist in namespace %s.", claim.Name, p.job.Namespace))
		default:
			class := claim.Class
			if class == "" {
				class = "none"
			}
			lines = append(lines, fmt.Sprintf("PersistentVolumeClaim %s is %s; storage class %s, access modes %v.", claim.Name, claim.Phase, class, claim.AccessModes))
		}
	}
	return lines
}

// crashes reports workers in a crash loop. For a launcher, how its program ended is a better cause.
func crashes(p *input) []Finding {
	g := p.waiting(podstatus.CrashLoop)
	if g == nil || g.pods[0].role == mpi.RoleLauncher || g.pods[0].isSidecar(g.status.Name) {
		return nil
	}
	figures := map[string]string{"container": g.status.Name, "times": fmt.Sprint(g.status.RestartCount + 1), "code": "unknown"}
	var code *int32
	if last := g.status.LastTerminationState.Terminated; last != nil {
		figures["code"], code = fmt.Sprint(last.ExitCode), &last.ExitCode
	}
	entry := codes.Lookup(codes.CrashLoop)
	if isInit(g.pods[0], g.status.Name) {
		entry = codes.InitContainerCrashes
	}
	f := p.findAs(entry, g.pods, figures)
	f.ExitCode = code
	f.Evidence = append(g.lines, lastLines(g.pods[0])...)
	return []Finding{f}
}

// isInit reports whether a container of a pod is an init container.
func isInit(pod jobPod, container string) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container })
}

// endedWorkers reports workers that ended well before the launcher did. At the end of a job, workers may end a little before it.
func endedWorkers(p *input) []Finding {
	const patience = 5 * time.Second
	over := p.seen.Now
	if launcher := p.launcher(); launcher != nil && podstatus.HasEnded(launcher.Pod) {
		over = podstatus.EndedAt(launcher.Pod)
	} else if launcher == nil && p.failed() {
		over = p.outcome.Finish.At
	}
	var pods []jobPod
	var evidence []string
	for _, pod := range p.pods {
		at := podstatus.EndedAt(pod.Pod)
		if pod.role != mpi.RoleWorker || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodSucceeded || at.IsZero() || over.Sub(at) < patience {
			continue
		}
		pods, evidence = append(pods, pod), append(evidence, fmt.Sprintf("Pod %s ended with exit code 0 at %s.", pod.Name, clock(at)))
		evidence = append(evidence, lastLines(pod)...)
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.find(codes.WorkerEnded, pods, nil)
	f.Evidence, f.ExitCode = evidence, new(int32(0))
	return []Finding{f}
}

// sidecars reports containers that keep a launcher's pod running after its program has ended.
func sidecars(p *input) []Finding {
	launcher := p.launcher()
	spec := p.template(mpi.RoleLauncher)
	if launcher == nil || p.failed() || launcher.Status.Phase != corev1.PodRunning || len(spec.Containers) == 0 {
		return nil
	}
	var main *corev1.ContainerStateTerminated
	var running []string
	for _, c := range launcher.Status.ContainerStatuses {
		switch {
		case c.Name == spec.Containers[0].Name:
			main = c.State.Terminated
		case c.State.Running != nil:
			running = append(running, c.Name)
		}
	}
	const patience = 15 * time.Second
	if main == nil || len(running) == 0 || p.seen.Now.Sub(main.FinishedAt.Time) < patience {
		return nil
	}
	figures := map[string]string{"container": strings.Join(running, ", ")}
	if slices.Contains(running, "istio-proxy") {
		figures["sidecarAction"] = p.field(mpi.RoleLauncher) + `.metadata.labels: {sidecar.istio.io/inject: "false"}`
	}
	f := p.find(codes.SidecarRunning, []jobPod{*launcher}, figures)
	f.Evidence = []string{fmt.Sprintf("Container %s ended with exit code %d at %s; %s is still running.", spec.Containers[0].Name, main.ExitCode, clock(main.FinishedAt.Time), figures["container"])}
	f.ExitCode = &main.ExitCode
	return []Finding{f}
}

// failedSidecars reports sidecars that failed while the container of MPI ran, or so that the pod failed although
// this had ended well.
func failedSidecars(p *input) []Finding {
	var found []Finding
	for _, pod := range p.pods {
		main := pod.mainStatus()
		if main == nil || pod.DeletionTimestamp != nil || !pod.latest {
			continue
		}
		endedWell := main.State.Terminated != nil && main.State.Terminated.ExitCode == 0
		if main.State.Running == nil && (!endedWell || pod.Status.Phase != corev1.PodFailed) {
			continue
		}
		for _, c := range containersOf(pod) {
			ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
			if !pod.isSidecar(c.Name) || ended == nil || ended.ExitCode == 0 || endedWell && ended.ExitCode == toldToEnd {
				continue
			}
			f := p.find(codes.SidecarFailed, []jobPod{pod}, map[string]string{"container": c.Name, "code": fmt.Sprint(ended.ExitCode), "whoLower": lower(pod.title())})
			f.ExitCode = &ended.ExitCode
			f.Evidence = []string{fmt.Sprintf("Pod %s: container %s ended with exit code %d (%s), restarted %d times.", pod.Name, c.Name, ended.ExitCode, endReason(ended), c.RestartCount)}
			found = append(found, f)
		}
	}
	return found
}

// workersNotReady reports workers that run and are not ready, if the launcher is not started before they are.
func workersNotReady(p *input) []Finding {
	const patience = 30 * time.Second
	if !p.job.Launcher.AfterWorkers || p.launcher() != nil || p.outcome.Finish != nil {
		return nil
	}
	var pods []jobPod
	var evidence []string
	figures := map[string]string{}
	for _, pod := range p.pods {
		started := podstatus.StartedAt(pod.Pod)
		if !podstatus.IsRunning(pod.Pod) || podstatus.IsReady(pod.Pod) || pod.DeletionTimestamp != nil || started.IsZero() || p.seen.Now.Sub(started) < patience {
			continue
		}
		if pods = append(pods, pod); figures["since"] == "" {
			figures["since"] = clock(started)
		}
		for _, event := range p.events("Pod", func(e jobstate.Event) bool {
			return e.Name == pod.Name && e.Reason == "Unhealthy" && strings.HasPrefix(e.Message, "Readiness probe")
		}) {
			if figures["message"] == "" {
				figures["message"] = ": " + strings.TrimSuffix(lower(event.Message), ".")
			}
			evidence = append(evidence, saying(event))
		}
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.find(codes.WorkersNotReady, pods, figures)
	f.Evidence = evidence
	return []Finding{f}
}

// clocks reports a node whose clock is ahead: what happened there is in the future.
func clocks(p *input) []Finding {
	const tolerated = 2 * time.Minute
	for _, pod := range p.pods {
		for _, c := range containersOf(pod) {
			started := time.Time{}
			if c.State.Running != nil {
				started = c.State.Running.StartedAt.Time
			}
			if ahead := started.Sub(p.seen.Now); !started.IsZero() && ahead > tolerated {
				f := p.find(codes.ClockSkew, []jobPod{pod}, nil)
				f.Severity = v1alpha1.SeverityWarning
				f.Evidence = []string{fmt.Sprintf("Container %s of %s on node %s reports a start time in the future: %s.", c.Name, pod.Name, pod.Spec.NodeName, clock(started))}
				return []Finding{f}
			}
		}
	}
	return nil
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05 on 2 January 2006") + " UTC" }

// banner matches the first line of what MPI launchers print when a rank has ended: Open MPI, then MPICH and Intel MPI.
var banner = regexp.MustCompile(`^\s*(-{20,}|={20,}|Primary job +terminated|(mpirun|prterun) detected|=\s+BAD TERMINATION)`)

// lastLines are the last few lines of a pod's log that say something: those of the program, where MPI's own follow them.
func lastLines(p jobPod) []string {
	const most = 3
	theirs := p.log.Lines
	if i := slices.IndexFunc(theirs, banner.MatchString); i > 0 {
		theirs = theirs[:i]
	}
	var lines []string
	for _, line := range slices.Backward(theirs) {
		if strings.ContainsFunc(line, unicode.IsLetter) && len(lines) < most {
			lines = append(lines, quoted(p, line))
		}
	}
	slices.Reverse(lines)
	return lines
}
