package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

var startupTexts = map[mpi.Code]text{
	mpi.CodeImageName: {
		summary:  "{who} cannot start: {imageNow} is no valid name of an image.",
		remedies: []Remedy{{Text: "Correct the name: registry/folder/name:tag, in lower case.", Action: "{field}.spec.containers[0].image"}},
	},
	mpi.CodeImagePull: {
		summary: "{who} cannot start: the image {imageNow} cannot be fetched{why}.",
		remedies: []Remedy{
			{Text: "{first}", Action: "{firstAction}"},
			{Text: "{second}", Action: "{secondAction}"},
		},
	},
	mpi.CodeMissingReference: {
		summary: "{who} cannot start: the pod refers to {missing|a Secret or ConfigMap} that is not in the namespace {namespace}.",
		remedies: []Remedy{
			{Text: "Create it, with that very name; the pods then start by themselves.", Action: "kubectl -n {namespace} get secrets,configmaps"},
			{Text: "Or correct the name in the job.", Action: "{reference}"},
		},
	},
	mpi.CodeContainerCreate: {
		summary: "{who} cannot start: the container cannot be created: {message}",
		remedies: []Remedy{
			{Text: "{first|Correct what the message names: the command, a mount or the user of the container.}", Action: "{field}.spec.containers[0]"},
			{Text: "See all that Kubernetes says of the pod.", Action: "kubectl -n {namespace} describe pod {pod}"},
		},
	},
	mpi.CodeMountFailed: {
		summary: "{who} cannot start: a volume cannot be attached: {message}",
		remedies: []Remedy{
			{Text: "{first|Look at the volume named in the message, and at its claim.}", Action: "kubectl -n {namespace} describe pod {pod}"},
			{Text: "Pods on several machines can share a volume only if it can be written from many (access mode ReadWriteMany).", Action: "kubectl -n {namespace} get pvc"},
		},
	},
	mpi.CodeClaimPending: {
		summary: "{who} cannot start: {claimText|the pod's storage is not there yet}.",
		remedies: []Remedy{
			{Text: "{first|Look why the claim gets no volume.}", Action: "{firstAction}"},
			{Text: "Or name another claim in the job.", Action: "{field}.spec.volumes"},
		},
	},
	mpi.CodeCrashLoop: {
		summary: "{who} does not stay up: its container {container} ended with code {code} and was started {times} times.",
		remedies: []Remedy{
			{Text: "Read what it said before it ended.", Action: "kubectl -n {namespace} logs {pod} --previous"},
			{Text: "A worker has to stay up and wait: give it no command of its own, and the agent does that.", Action: "{field}.spec.containers[0].command"},
		},
	},
	mpi.CodeSidecar: {
		summary: "The launcher's program has ended, but its pod goes on because of another container in it: {container}. The job ends only when that has ended too.",
		remedies: []Remedy{
			{Text: "Keep the container off the job's pods.", Action: "{sidecarAction|Take it out of the pod's template}"},
			{Text: "Or make it a sidecar that Kubernetes ends by itself: an init container that is always restarted.", Action: "initContainers[].restartPolicy: Always"},
		},
	},
	mpi.CodeServiceMesh: {
		summary: "A service mesh (Istio) stands between the job's pods, and does not pass MPI's own connections on.",
		remedies: []Remedy{
			{Text: "Keep the mesh off the job's pods.", Action: "{field}.metadata.labels: {sidecar.istio.io/inject: \"false\"}"},
		},
	},
	mpi.CodeClockSkew: {
		summary: "The machines' clocks differ: a certificate or token is taken for not valid yet, or for expired.",
		remedies: []Remedy{
			{Text: "Tell whoever runs the cluster: the clock of the node has to be set (NTP).", Action: "kubectl get nodes"},
			{Text: "If all clocks are right, a certificate that the program uses has really expired; renew it."},
		},
	},
}

// group gathers the pods that share a trouble.
type group struct {
	pods   []jobPod
	status corev1.ContainerStatus
	lines  []string
}

// waiting gathers pods whose container waits for one of some reasons (k8s.io/kubernetes/pkg/kubelet/images/types.go,
// kuberuntime/kuberuntime_container.go); nil where there are none.
func (p *patient) waiting(reasons ...string) *group {
	var g *group
	for _, pod := range p.pods {
		if pod.DeletionTimestamp != nil || !pod.latest {
			continue
		}
		for _, c := range containersOf(pod) {
			if c.State.Waiting == nil || !slices.Contains(reasons, c.State.Waiting.Reason) {
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
		return "it is started again, ever less often"
	}
	if strings.HasPrefix(message, "Back-off pulling image") {
		if _, rest, found := strings.Cut(message, `": `); found {
			message = strings.TrimPrefix(rest, "ErrImagePull: ")
		}
	}
	return message
}

// images tells why an image is not there.
func images(p *patient) []Finding {
	var found []Finding
	if g := p.waiting("InvalidImageName"); g != nil {
		f := p.find(mpi.CodeImageName, Error, g.pods, map[string]string{"imageNow": p.imageOf(g)})
		f.Evidence = g.lines
		found = append(found, f)
	}
	g := p.waiting("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable")
	if g == nil {
		return found
	}
	figures := p.pullFigures(g.pods[0].role, g.lines[0])
	figures["imageNow"] = p.imageOf(g)
	f := p.find(mpi.CodeImagePull, Error, g.pods, figures)
	f.Evidence = g.lines
	return append(found, f)
}

func (p *patient) imageOf(g *group) string {
	if g.status.Image != "" {
		return fmt.Sprintf("%q", g.status.Image)
	}
	return fmt.Sprintf("%q", image(p.template(g.pods[0].role)))
}

// pullFigures tell from a registry's answer what is to be done.
func (p *patient) pullFigures(role mpi.Role, message string) map[string]string {
	const login = "kubectl -n %s create secret docker-registry NAME --docker-server=REGISTRY --docker-username=USER --docker-password=TOKEN"
	figures := map[string]string{
		"first": "Check the image's name and tag letter by letter.", "firstAction": p.field(role) + ".spec.containers[0].image",
		"second": "If the registry wants a login, give the namespace a pull secret and name it in the pod's template.", "secondAction": "imagePullSecrets: [{name: NAME}]",
	}
	lowered := strings.ToLower(message)
	switch {
	case anyIn(lowered, "unauthorized", "authentication required", "401", "no basic auth", "denied", "403 forbidden"):
		figures["why"] = ": the registry wants a login, or there is no such image"
		figures["first"], figures["firstAction"] = "Give the namespace a pull secret for the registry, and name it in the pods' templates.", fmt.Sprintf(login, p.job.Namespace)
		figures["second"], figures["secondAction"] = "Check the image's name: many registries answer like this for an image that they do not have.", "imagePullSecrets: [{name: NAME}]"
	case anyIn(lowered, "not found", "manifest unknown", "404", "not present with pull policy"):
		figures["why"] = ": the registry has no image of that name and tag"
	case anyIn(lowered, "no such host", "i/o timeout", "connection refused", "dial tcp", "no route to host", "tls handshake", "registryunavailable"):
		figures["why"] = ": the registry cannot be reached from the machine"
		figures["first"] = "Check the registry's part of the name; then ask whoever runs the cluster whether machines may reach it (proxy, mirror)."
	case anyIn(lowered, "toomanyrequests", "rate limit"):
		figures["why"] = ": the registry has had too many requests for now"
		figures["first"], figures["firstAction"] = "Wait, or pull with a login of your own: name a pull secret in the pods' templates.", "imagePullSecrets: [{name: NAME}]"
	case anyIn(lowered, "no match for platform", "exec format"):
		figures["why"] = ": there is none for this machine's processor"
		figures["first"] = "Build the image for the processor of the cluster's machines, or choose machines that it is for."
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

// missing names the Secret or ConfigMap that a message says is not there; empty if it says no such thing.
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
		return fmt.Sprintf("a %s %q", kind, m[2])
	}
	_, name, _ := strings.Cut(m[5], "/")
	if name == "" {
		name = m[5]
	}
	return fmt.Sprintf("a key %q of %s %q", m[3], m[4], name)
}

// containers tells why containers cannot be created.
func containers(p *patient) []Finding {
	g := p.waiting("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PostStartHookError")
	if g == nil {
		return nil
	}
	message := g.status.State.Waiting.Message
	code, figures := mpi.CodeContainerCreate, map[string]string{"message": sentence(message)}
	switch absent := missing(message); {
	case absent != "":
		code, figures["missing"] = mpi.CodeMissingReference, absent
		if slices.ContainsFunc(p.job.Connections, func(name string) bool { return absent == fmt.Sprintf("a Secret %q", name) }) {
			figures["missing"] = strings.Replace(absent, "a Secret", "the data connection", 1)
			figures["reference"] = mpi.ConnectionsPath.String()
		}
	case strings.Contains(message, "executable file not found"), strings.Contains(message, "no such file or directory"):
		code = mpi.CodeProgramMissing
		if program := execOf.FindStringSubmatch(message); program != nil {
			figures["program"], figures["where"] = program[1], "the "+string(g.pods[0].role)
		}
	case strings.Contains(message, "runAsNonRoot"):
		figures["first"] = "The image runs as root and the pod may not: name another user in the pod's template, or build the image with one."
	}
	f := p.find(code, Error, g.pods, figures)
	f.Evidence = g.lines
	return []Finding{f}
}

// volumes tells why volumes are not there, from events: the pod itself only says that its container is being created.
func volumes(p *patient) []Finding {
	var found []Finding
	for _, event := range p.events("Pod", func(e mpi.Event) bool {
		return e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume" || e.Reason == "FailedMapVolume"
	}) {
		pod := p.startingPod(event.Name)
		if pod == nil || pod.Spec.NodeName == "" || hasVolumes(*pod) || anyIn(event.Message, passing...) {
			continue
		}
		code, figures := mpi.CodeMountFailed, map[string]string{"message": sentence(event.Message)}
		switch absent := missing(event.Message); {
		case absent != "":
			code, figures["missing"] = mpi.CodeMissingReference, absent
		case strings.Contains(event.Message, "Multi-Attach"):
			figures["message"] = "the volume can be used on one machine at a time, and another one uses it."
			figures["first"] = "Use a claim with access mode ReadWriteMany, or keep all pods on one machine."
		}
		f := p.find(code, p.severity(), []jobPod{*pod}, figures)
		f.Evidence = append([]string{saying(event)}, p.claims(nil)...)
		found = append(found, f)
	}
	return found
}

// unstartable tells of containers whose command the container runtime could not start.
func unstartable(p *patient) []Finding {
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

// passing are what the kubelet says of volumes of a pod that it has just seen for the first time; it tries again.
var passing = []string{"failed to sync secret cache", "failed to sync configmap cache", "no relationship found between node"}

// hasVolumes tells whether a pod that starts has got its volumes: a container of it has got beyond them.
func hasVolumes(pod jobPod) bool {
	return slices.ContainsFunc(containersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil ||
			c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "ContainerCreating" && c.State.Waiting.Reason != "PodInitializing"
	})
}

// claims say how the job's volume claims are; which picks some.
func (p *patient) claims(which func(mpi.Claim) bool) []string {
	var lines []string
	for _, claim := range p.evidence.Claims {
		switch {
		case which != nil && !which(claim):
		case claim.Missing:
			lines = append(lines, fmt.Sprintf("There is no claim %s in namespace %s.", claim.Name, p.job.Namespace))
		default:
			class := claim.Class
			if class == "" {
				class = "none"
			}
			lines = append(lines, fmt.Sprintf("Claim %s is %s; storage class %s, access modes %v.", claim.Name, claim.Phase, class, claim.AccessModes))
		}
	}
	return lines
}

// crashes tells which workers are started again and again. A launcher's program is the user's own: how it ended says
// more.
func crashes(p *patient) []Finding {
	g := p.waiting("CrashLoopBackOff")
	if g == nil || g.pods[0].role == mpi.RoleLauncher {
		return nil
	}
	figures := map[string]string{"container": g.status.Name, "times": fmt.Sprint(g.status.RestartCount + 1), "code": "an unknown number"}
	var code *int32
	if last := g.status.LastTerminationState.Terminated; last != nil {
		figures["code"], code = fmt.Sprint(last.ExitCode), &last.ExitCode
	}
	f := p.find(mpi.CodeCrashLoop, Error, g.pods, figures)
	f.ExitCode = code
	f.Evidence = append(g.lines, lastLines(g.pods[0])...)
	return []Finding{f}
}

// sidecars tells of containers that keep a launcher's pod up after its program has ended.
func sidecars(p *patient) []Finding {
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
	const patience = time.Minute
	if main == nil || len(running) == 0 || p.seen.Now.Sub(main.FinishedAt.Time) < patience {
		return nil
	}
	figures := map[string]string{"container": strings.Join(running, ", ")}
	if slices.Contains(running, "istio-proxy") {
		figures["sidecarAction"] = p.field(mpi.RoleLauncher) + `.metadata.labels: {sidecar.istio.io/inject: "false"}`
	}
	f := p.find(mpi.CodeSidecar, Warning, []jobPod{*launcher}, figures)
	f.Evidence = []string{fmt.Sprintf("Container %s ended with code %d at %s; %s still runs.", spec.Containers[0].Name, main.ExitCode, clock(main.FinishedAt.Time), figures["container"])}
	f.ExitCode = &main.ExitCode
	return []Finding{f}
}

// clocks tells of a node whose clock is ahead: what happened there is later than now.
func clocks(p *patient) []Finding {
	const tolerated = 2 * time.Minute
	for _, pod := range p.pods {
		for _, c := range containersOf(pod) {
			started := time.Time{}
			if c.State.Running != nil {
				started = c.State.Running.StartedAt.Time
			}
			if ahead := started.Sub(p.seen.Now); !started.IsZero() && ahead > tolerated {
				f := p.find(mpi.CodeClockSkew, Warning, []jobPod{pod}, nil)
				f.Evidence = []string{fmt.Sprintf("Container %s of %s on node %s says that it started at %s, which is yet to come.", c.Name, pod.Name, pod.Spec.NodeName, clock(started))}
				return []Finding{f}
			}
		}
	}
	return nil
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05 on 2 January 2006") + " UTC" }

// banner begins what an MPI launcher says by itself when a rank has ended: Open MPI, then MPICH and Intel MPI.
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
