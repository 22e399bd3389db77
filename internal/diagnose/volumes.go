package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// volumes reports why volumes cannot be mounted, from events: the pod's status only shows that its container is being
// created.
func volumes(p *input) []Finding {
	var found []Finding
	told := p.Events("Pod", func(e jobstate.Event) bool {
		return (e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume" || e.Reason == "FailedMapVolume") && !anyIn(e.Message, passing...)
	})
	explained := map[string]bool{}
	for _, event := range told {
		explained[event.Name] = explained[event.Name] || !isFollowUp(event.Message)
	}
	for _, event := range told {
		pod := p.StartingPod(event.Name)
		if pod == nil || pod.Spec.NodeName == "" || facts.HasVolumes(*pod) || isFollowUp(event.Message) && explained[event.Name] {
			continue
		}
		entry, figures := codes.Lookup(codes.MountFailed), map[string]string{"message": facts.Sentence(event.Message)}
		remote, isRemote := remoteMountIn(event.Message)
		absent := missing(event.Message)
		if key := p.missingKey(pod.Role, event.Message); key != "" {
			absent = key
		}
		switch {
		case isRemote:
			entry, figures["source"], figures["message"], figures["first"] = codes.RemoteMountFailed, remote.source, remote.why, remote.remedy
		case absent != "":
			entry, figures["missing"] = codes.Lookup(codes.MissingReference), absent
			if key := missingKey.FindStringSubmatch(absent); key != nil {
				// The object exists.
				entry, figures["object"], figures["name"], figures["reference"] = codes.ReferenceWithoutKey, strings.ToLower(key[2]), key[3], p.field(pod.Role)+".spec.volumes"
			}
		case strings.Contains(event.Message, "Multi-Attach"):
			figures["message"] = "it can be used on one node at a time, and another node uses it."
			figures["first"] = "Use a claim with access mode ReadWriteMany, or keep all pods on one node."
		case hostPathCheck.MatchString(event.Message):
			figures["message"] = hostPathCheck.FindStringSubmatch(event.Message)[1]
			entry = codes.HostPathMissing
		}
		f := p.findAs(entry, []facts.Pod{*pod}, figures, append([]string{facts.EventLine(event)}, p.Claims(nil)...)...)
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
	for _, volume := range p.Template(role).Volumes {
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

// hostPathCheck is the kubelet's message about a hostPath that does not exist or is of another type (k8s.io/kubernetes/pkg/volume/hostpath).
// Since version 1.37 it has a comma if the path does not exist.
var hostPathCheck = regexp.MustCompile(`hostPath type check failed[:,] (.+?)(?:, unable to determine its type: .*)?\.?$`)

// passing are messages of the kubelet about volumes of new pods; it retries.
var passing = []string{"failed to sync secret cache", "failed to sync configmap cache", "no relationship found between node"}

// isFollowUp reports whether an event only repeats that the pod waits for volumes, which the kubelet says every two minutes.
func isFollowUp(message string) bool {
	return strings.HasPrefix(message, "Unable to attach or mount volumes:") && anyIn(message, "timed out waiting for the condition", "context deadline exceeded")
}
