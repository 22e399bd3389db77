package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
)

var schedulingTexts = map[mpi.Code]text{
	mpi.CodeInsufficient: {
		summary: "{who} cannot be placed, since no machine has enough free: each asks for {want}, and {have|no machine has that free now}.",
		remedies: []Remedy{
			{Text: "{first|Wait until other work has ended, or ask for less in each pod.}", Action: "{field}.spec.containers[0].resources"},
			{Text: "{second|Or use fewer workers.}", Action: "{secondAction}"},
			{Text: "See what the machines have, and what is free.", Action: "kubectl describe nodes | grep -A 10 -E 'Allocatable|Allocated resources'"},
		},
	},
	mpi.CodeNoMatchingNode: {
		summary: "{who} may run on none of the cluster's {nodes|machines}: {why}.",
		remedies: []Remedy{
			{Text: "{first|Check the pod's nodeSelector, affinity and tolerations against the nodes' labels and taints.}", Action: "{field}.spec.nodeSelector"},
			{Text: "See the labels and taints that there are.", Action: "kubectl get nodes --show-labels"},
		},
	},
	mpi.CodeUnschedulable: {
		summary: "{who} cannot be placed on any machine: {message}",
		remedies: []Remedy{
			{Text: "Compare what the pod asks for with what the machines have.", Action: "kubectl describe nodes"},
			{Text: "See all that Kubernetes says of the pod.", Action: "kubectl -n {namespace} describe pod {pod}"},
		},
	},
}

var (
	insufficient = regexp.MustCompile(`(\d+) Insufficient ([\w./-]+\w)`)
	nodeCount    = regexp.MustCompile(`^(\d+)/(\d+) nodes are available`)
	lostClaim    = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)
)

// unplaced tells why pods have no node. Pods that say the same are one finding.
func unplaced(p *patient) []Finding {
	var pods []jobPod
	var message string
	for _, pod := range p.pods {
		said := unschedulable(pod)
		switch {
		case said == "" || pod.DeletionTimestamp != nil:
		case message == "":
			message, pods = said, append(pods, pod)
		case pod.role == pods[0].role:
			pods = append(pods, pod)
		}
	}
	if message == "" {
		return nil
	}
	return []Finding{p.together(p.placing(pods, message))}
}

func unschedulable(p jobPod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && !mpi.IsOfGang(c.Message) {
			return c.Message
		}
	}
	return ""
}

// placing reads the scheduler's words (k8s.io/kubernetes/pkg/scheduler/framework/types.go).
func (p *patient) placing(pods []jobPod, message string) Finding {
	code, figures := mpi.CodeUnschedulable, map[string]string{"message": sentence(message)}
	severity := Warning
	if p.failed() {
		severity = Error
	}
	var more []string
	switch short := insufficient.FindAllStringSubmatch(message, -1); {
	case strings.Contains(message, "unbound immediate PersistentVolumeClaims"), lostClaim.MatchString(message):
		code, severity = mpi.CodeClaimPending, Error
		more = p.claimFigures(message, figures)
	case len(short) > 0:
		if f, is := p.rdmaNotOffered(pods, short); is {
			f.Evidence = append([]string{"The scheduler says: " + message}, f.Evidence...)
			return f
		}
		code = mpi.CodeInsufficient
		var never bool
		more, never = p.roomFigures(pods[0], short, figures)
		if never {
			severity = Error
		}
	case anyIn(message, "didn't match", "untolerated taint", "volume node affinity", "node(s) were unschedulable", "No preemption victims"):
		code, severity = mpi.CodeNoMatchingNode, Error
		matchFigures(message, figures)
	}
	if count := nodeCount.FindStringSubmatch(message); count != nil {
		figures["nodes"] = count[2] + " machines"
	}
	f := p.find(code, severity, pods, figures)
	f.Evidence = append([]string{"The scheduler says: " + message}, more...)
	return f
}

// claimFigures tell which claim has no volume.
func (p *patient) claimFigures(message string, figures map[string]string) []string {
	figures["firstAction"] = "kubectl -n " + p.job.Namespace + " get pvc"
	lines := p.claims(func(c mpi.Claim) bool { return c.Missing || c.Phase != corev1.ClaimBound })
	if lost := lostClaim.FindStringSubmatch(message); lost != nil {
		figures["claimText"] = fmt.Sprintf("the job names the volume claim %q, and there is none in the namespace %s", lost[1], p.job.Namespace)
		figures["first"] = "Create the claim, or correct its name in the job."
		return lines
	}
	for _, claim := range p.evidence.Claims {
		if claim.Missing || claim.Phase == corev1.ClaimBound {
			continue
		}
		figures["claimText"] = fmt.Sprintf("the volume claim %q is not bound to any storage yet", claim.Name)
		figures["first"] = fmt.Sprintf("Look why the claim gets no volume; its storage class is %s.", cmp.Or(claim.Class, "not set, and the cluster has no default"))
		figures["firstAction"] = fmt.Sprintf("kubectl -n %s describe pvc %s", p.job.Namespace, claim.Name)
		break
	}
	return lines
}

// roomFigures set what a pod asks for beside what the machines have. They tell whether no machine is large enough even
// when it is empty.
func (p *patient) roomFigures(pod jobPod, short [][]string, figures map[string]string) (lines []string, never bool) {
	var want, have []string
	figures["secondAction"] = fieldText(p.job.Fields.WorkerCount, "number of workers")
	for _, s := range short {
		name := corev1.ResourceName(s[2])
		ask := mpi.Requests(p.template(pod.role))[name]
		want = append(want, amount(name, ask)+" "+thing(name))
		if len(p.evidence.Nodes) == 0 {
			have = append(have, fmt.Sprintf("not enough %s is free on %s of the machines", strings.TrimPrefix(strings.TrimSuffix(thing(name), "s"), "of "), s[1]))
			continue
		}
		room := p.room(name, ask)
		if room.with == 0 {
			have = append(have, fmt.Sprintf("no machine that can be used has any %s", strings.TrimPrefix(thing(name), "of ")))
			never = true
			figures["first"] = fmt.Sprintf("Do not ask for it, or run the job on a cluster that has it: no machine here has any %s, so waiting does not help.", strings.TrimPrefix(thing(name), "of "))
			figures["second"] = "If there should be such machines, ask whoever runs the cluster: they may be off, or the driver's device plugin, which counts what they have, does not run."
			figures["secondAction"] = "kubectl get nodes"
			continue
		}
		have = append(have, fmt.Sprintf("the most that is free on one machine is %s (%s)", amount(name, room.free), room.freest))
		lines = append(lines, fmt.Sprintf("%s: %d of %d machines have %s free; the largest machine has %s in all (%s).", name, room.enough, room.with, amount(name, ask), amount(name, room.total), room.largest))
		if room.total.Cmp(ask) < 0 {
			never = true
			figures["first"] = fmt.Sprintf("Ask for at most %s %s in each pod: no machine is larger, so waiting does not help.", amount(name, room.total), thing(name))
			figures["second"] = "Or spread the same ranks (processes of the program) over more workers, each with fewer slots and a smaller share."
			figures["secondAction"] = fieldText(p.job.Fields.Slots, "slots of a worker")
		}
	}
	figures["want"], figures["have"] = strings.Join(want, ", "), strings.Join(have, "; ")
	return lines, never
}

// room is what the machines that can be used have of a resource.
type room struct {
	// with is how many have any; enough is how many have free what is asked for.
	with, enough int
	// free is the most that is free on one, on freest; total is the most that one has in all, largest.
	free, total     resource.Quantity
	freest, largest string
}

func (p *patient) room(name corev1.ResourceName, ask resource.Quantity) room {
	var r room
	for _, node := range p.evidence.Nodes {
		free, total := node.Free[name], node.Allocatable[name]
		if !node.Ready || node.Unschedulable || total.IsZero() {
			continue
		}
		r.with++
		if free.Cmp(ask) >= 0 {
			r.enough++
		}
		if r.freest == "" || free.Cmp(r.free) > 0 {
			r.free, r.freest = free, node.Name
		}
		if r.largest == "" || total.Cmp(r.total) > 0 {
			r.total, r.largest = total, node.Name
		}
	}
	return r
}

func matchFigures(message string, figures map[string]string) {
	var why []string
	if strings.Contains(message, "node affinity/selector") {
		why = append(why, "none has the labels that the pod asks for (nodeSelector or affinity)")
	}
	if strings.Contains(message, "untolerated taint") {
		why = append(why, "machines are kept for other work (taints that the pod does not tolerate)")
		figures["first"] = "If the job may use such machines, add a toleration for the taint named in the scheduler's message."
	}
	if strings.Contains(message, "volume node affinity") {
		why = append(why, "the pod's volume is in another zone or on another machine")
	}
	if strings.Contains(message, "were unschedulable") {
		why = append(why, "machines are closed for new pods (cordoned)")
	}
	if anyIn(message, "anti-affinity", "pod affinity", "topology spread") {
		why = append(why, "the pod's rules about its neighbours cannot be met (affinity or topology spread)")
	}
	figures["why"] = strings.Join(why, "; ")
	if len(why) == 0 {
		figures["why"] = "none fits"
	}
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
