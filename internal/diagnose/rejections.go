package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// rejectionRemedies are the remedies for what kubelets reject pods for (k8s.io/kubernetes/pkg/kubelet/lifecycle, sysctl,
// nodeshutdown, cm/topologymanager, volumemanager). Pods that are rejected for another reason have the remedies of the code.
var rejectionRemedies = []struct {
	reason       *regexp.Regexp
	text, action string
}{
	{regexp.MustCompile(`^SysctlForbidden$`), "Remove the sysctl, or ask the cluster administrator to allow it on the nodes (allowedUnsafeSysctls).", "{field}.spec.securityContext.sysctls"},
	{regexp.MustCompile(`^AppArmor$`), "Remove the AppArmor profile, or ask the cluster administrator to load it on the nodes.", "{field}.spec.securityContext.appArmorProfile"},
	{regexp.MustCompile(`^OutOf`), "Start the job again: the node had no room when the pod arrived. If the pods set nodeName, remove it, so that the scheduler selects a node with room.", "{field}.spec.nodeName"},
	{regexp.MustCompile(`^(?:NodeAffinity|NodeName|NodeUnschedulable|TaintToleration|Predicate.*)$`), "Remove nodeName, so that the scheduler selects a node, or correct nodeSelector and affinity: the node does not match them.", "{field}.spec.nodeName"},
	{regexp.MustCompile(`^NodePorts$`), "Remove the host ports, or nodeName, so that the scheduler selects a node on which they are free.", "{field}.spec.containers[0].ports"},
	{regexp.MustCompile(`^(?:TopologyAffinityError|SMTAlignmentError)$`), "Request as many whole CPUs and devices as fit on one NUMA node, or ask the cluster administrator about the topology manager's policy on the nodes.", "{field}.spec.containers[0].resources"},
	{regexp.MustCompile(`^UnexpectedAdmissionError$`), "Start the job again. If it is rejected again, ask the cluster administrator about the device plugin of the node.", "kubectl describe node {node}"},
	{regexp.MustCompile(`^(?:NodeShutdown|Terminated)$`), "Start the job again. It runs on other nodes.", ""},
	{regexp.MustCompile(`^PodOS`), "Set nodes of the pod's operating system in nodeSelector, or correct spec.os.", "{field}.spec.nodeSelector"},
	{regexp.MustCompile(`^VolumeAttachmentLimitExceeded$`), "Start the job again: the node can attach no more volumes.", "{field}.spec.volumes"},
}

// rejected returns findings for pods that a kubelet did not admit to its node, one for each reason. Such a pod has failed and no
// container of it was ever started, whatever the reason is called.
func rejected(p *input) []Finding {
	var order []string
	pods := map[string][]facts.Pod{}
	for _, pod := range p.Pods {
		if !p.isRejected(pod) {
			continue
		}
		if pods[pod.Status.Reason] == nil {
			order = append(order, pod.Status.Reason)
		}
		pods[pod.Status.Reason] = append(pods[pod.Status.Reason], pod)
	}
	var found []Finding
	for _, reason := range order {
		first := pods[reason][0]
		figures := map[string]string{"message": facts.Sentence(cmp.Or(strings.TrimPrefix(first.Status.Message, "Pod was rejected: "), reason)), "onNode": nodesText([]facts.Pod{first})}
		filled := p.figures(pods[reason])
		for _, remedy := range rejectionRemedies {
			if remedy.reason.MatchString(reason) {
				figures["advice"], figures["action"] = remedy.text, codes.FillAction(remedy.action, filled)
			}
		}
		f := p.find(codes.PodRejected, pods[reason], figures)
		for _, pod := range pods[reason] {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s: %s: %s", pod.Name, cmp.Or(pod.Status.Reason, "rejected"), facts.Sentence(pod.Status.Message)))
		}
		found = append(found, f)
	}
	return found
}

func (p *input) isRejected(pod facts.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason == "" && pod.Status.Message == "" || facts.IsPastDeadline(pod) {
		return false
	}
	started := slices.ContainsFunc(facts.ContainersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
	// The Job replaces a launcher that was rejected.
	return pod.Latest && !started && p.RemovalOf(pod) == nil
}
