package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// takenAway returns findings for pods that Kubernetes removed.
func takenAway(p *input) []Finding {
	var order []codes.Code
	pods, evidence, causes := map[codes.Code][]facts.Pod{}, map[codes.Code][]string{}, map[codes.Code]shortage{}
	for _, pod := range p.Pods {
		removed := p.RemovalOf(pod)
		if removed == nil {
			continue
		}
		code := removed.Code
		if pods[code] == nil {
			order = append(order, code)
			causes[code] = shortageOf(*removed)
		}
		pods[code], evidence[code] = append(pods[code], pod), append(evidence[code], fmt.Sprintf("Pod %s: %s", pod.Name, facts.Sentence(removed.Message)))
	}
	var found []Finding
	for _, code := range order {
		of := causes[code]
		figures := map[string]string{"cause": of.cause, "advice": of.advice, "action": codes.FillAction(of.action, p.figures(pods[code])), "whoLower": lower(subject(pods[code])), "onNode": nodesText(pods[code])}
		f := p.find(code, pods[code], figures, evidence[code]...)
		f.ExitCode = pods[code][0].ExitCode()
		found = append(found, f)
	}
	return found
}

// shortage is what a pod or its node had too little of, and what to do about it. The cause may have groups of a pattern.
type shortage struct{ cause, advice, action string }

const (
	runsElsewhere = "Start the job again. It runs on other nodes."
	lessDisk      = "Increase the limit, or write less to local disk. Keep data and checkpoints on a volume."
	diskLimit     = "{field}.spec.containers[0].resources.limits.ephemeral-storage"
)

// shortages are the kubelet's words for why it evicts a pod (k8s.io/kubernetes/pkg/kubelet/eviction/helpers.go): first limits of the
// pod itself, for which it does so although the node has room.
var shortages = []struct {
	message *regexp.Regexp
	shortage
}{
	{
		regexp.MustCompile(`Usage of EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"`),
		shortage{"its emptyDir volume ${1} held more than its sizeLimit of ${2}", "Increase the volume's sizeLimit, or write less to it.", "{field}.spec.volumes[].emptyDir.sizeLimit"},
	},
	{
		regexp.MustCompile(`Container (\S+) exceeded its local ephemeral storage limit "([^"]+)"`),
		shortage{"container ${1} wrote more to local disk than its ephemeral-storage limit of ${2}", lessDisk, diskLimit},
	},
	{
		regexp.MustCompile(`Pod ephemeral local storage usage exceeds the total limit of containers (\S+?)\.?(?:\s|$)`),
		shortage{"its containers wrote more to local disk than their ephemeral-storage limit of ${1}", lessDisk, diskLimit},
	},
	{regexp.MustCompile(`node shutdown`), shortage{"the node was shut down", runsElsewhere, ""}},
	{
		regexp.MustCompile(`ephemeral-storage|ephemeral local storage|DiskPressure|emptyDir`),
		shortage{"the node's local disk was full", "Write less to local disk, or request ephemeral storage. Keep data and checkpoints on a volume.", "resources.requests.ephemeral-storage"},
	},
	{regexp.MustCompile(`memory|MemoryPressure`), shortage{"the node was out of memory", "Request as much memory as the pods use: pods above their request are evicted first.", "resources.requests.memory = resources.limits.memory"}},
	{regexp.MustCompile(`pids`), shortage{"the node had too many processes", runsElsewhere, ""}},
	{regexp.MustCompile(``), shortage{"the node was short of a resource", runsElsewhere, ""}},
}

// evictions are the reasons of conditions (podstatus.Removal) for evictions that are not a kubelet's.
var evictions = map[string]shortage{
	"EvictionByEvictionAPI":        {cause: "requested through the eviction API, for example by a node drain", advice: runsElsewhere},
	"DeletionByDeviceTaintManager": {cause: "a device that it used was tainted, for example because it is not healthy", advice: "Start the job again. It gets other devices."},
	"UnschedulableOnAssignedNode":  {cause: "terminated by Kueue, since it may not stay on the node that Kueue had assigned, for example because of a drain", advice: runsElsewhere},
}

// shortageOf returns why a pod was evicted, by the reason or else by the kubelet's message; nothing if it was removed otherwise.
func shortageOf(r facts.Removal) shortage {
	switch known, is := evictions[r.Reason]; {
	case r.Code != codes.Evicted:
		return shortage{}
	case is:
		return known
	case r.Reason != "" && r.Reason != corev1.PodReasonTerminationByKubelet:
		return shortage{cause: fmt.Sprintf("its condition DisruptionTarget has the reason %s", r.Reason), advice: runsElsewhere}
	}
	for _, known := range shortages {
		if at := known.message.FindStringSubmatchIndex(r.Message); at != nil {
			found := known.shortage
			found.cause = string(known.message.ExpandString(nil, found.cause, r.Message, at))
			return found
		}
	}
	return shortage{}
}

// nodesCordoned reports that nodes of a running job accept no new pods, as before they are drained.
func nodesCordoned(p *input) []Finding {
	const mostNodes = 8
	if p.Outcome.Phase != v1alpha1.PhaseRunning {
		return nil
	}
	var pods []facts.Pod
	var nodes []string
	for _, pod := range p.Pods {
		if name := pod.Spec.NodeName; slices.Contains(p.Evidence.Cordoned, name) && !podstatus.HasEnded(pod.Pod) {
			if pods = append(pods, pod); !slices.Contains(nodes, name) {
				nodes = append(nodes, name)
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.Sort(nodes)
	of := "Node " + nodes[0] + " is"
	if len(nodes) > 1 {
		of = phrase.Count(len(nodes), "node") + " are"
	}
	return []Finding{p.find(codes.NodeCordoned, pods, map[string]string{"nodesAre": of, "whoLower": lower(subject(pods)), "node": nodes[0]},
		"Nodes that accept no new pods: "+strings.Join(nodes[:min(mostNodes, len(nodes))], ", ")+".")}
}

// restartedTooOften reports that the launcher's agent did not run its command, because the job was started again more often than it may be.
func (p *input) restartedTooOften() *Finding {
	s, launcher := p.LauncherSummary(), p.FailedLauncher()
	if s == nil || s.Code != agentapi.RestartedTooOften || launcher == nil {
		return nil
	}
	figures := map[string]string{}
	if number := restartsIn.FindStringSubmatch(s.Message); number != nil {
		figures["tries"] = number[1]
	}
	f := p.find(codes.RestartedTooOften, []facts.Pod{*launcher}, figures, facts.LogLine(*launcher, agentapi.Logger+": "+s.Message))
	f.ExitCode = s.ExitCode
	return &f
}

// restartsIn matches the line of the launcher's agent about how often the job was started again.
var restartsIn = regexp.MustCompile(`started again (\d+) times`)
