package diagnose

import (
	"regexp"
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// sandboxes reports pods whose sandbox or devices cannot be prepared, from events: the pod's status only shows that its container is being
// created. The kubelet retries, and one failure while a node starts is usual.
func sandboxes(p *input) []Finding {
	const often, recently = 3, 2 * time.Minute
	var pods []facts.Pod
	var evidence []string
	message, entry := "", codes.Entry{}
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool {
		return sandboxEvents[e.Reason].IsFinding() && !noNetwork.MatchString(e.Message)
	}) {
		pod := p.StartingPod(event.Name)
		if pod == nil || facts.HasVolumes(*pod) || pod.DeletionTimestamp != nil || !podstatus.NetworkedAt(pod.Pod).IsZero() || p.Seen.Now.Sub(event.Last) > recently ||
			event.Count < often && p.Seen.Now.Sub(pod.CreationTimestamp.Time) < time.Minute || slices.ContainsFunc(pods, func(known facts.Pod) bool { return known.Name == pod.Name }) {
			continue
		}
		if message == "" {
			entry = sandboxEvents[event.Reason]
			message = sandboxID.ReplaceAllString(prepared.ReplaceAllString(event.Message, ""), "…")
		}
		pods, evidence = append(pods, *pod), append(evidence, sandboxID.ReplaceAllString(facts.EventLine(event), "…"))
	}
	if len(pods) == 0 {
		return nil
	}
	figures := map[string]string{"message": facts.Sentence(message)}
	if users := p.Template(pods[0].Role).HostUsers; users != nil && !*users {
		figures["first"] = "Remove hostUsers: false, unless the message has another reason: the node's kernel, file system or container runtime may not support user namespaces."
	}
	f := p.findAs(entry, pods, figures, evidence...)
	f.Severity = v1alpha1.SeverityError
	return []Finding{f}
}

// prepared begins the kubelet's messages about sandboxes and devices.
var prepared = regexp.MustCompile(`^(?:Failed to create pod sandbox|Failed to prepare dynamic resources|network is not ready): `)

// sandboxID is the ID of a sandbox, which differs each time.
var sandboxID = regexp.MustCompile(`\b[0-9a-f]{32,}\b`)

// sandboxEvents are the reasons of the kubelet's events about what it prepares before containers
// (k8s.io/kubernetes/pkg/kubelet/events): the sandbox with its network, its cgroup, and devices of ResourceClaims.
var sandboxEvents = map[string]codes.Entry{
	"FailedCreatePodSandBox": codes.SandboxFailed, "FailedCreatePodContainer": codes.SandboxFailed,
	"NetworkNotReady": codes.NodeNetworkDown, "FailedPrepareDynamicResources": codes.DevicesNotPrepared,
}
