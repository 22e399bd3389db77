package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

var (
	insufficient = regexp.MustCompile(`(\d+) Insufficient ([\w./-]+\w)`)
	nodeCount    = regexp.MustCompile(`^(\d+)/(\d+) nodes are available`)
	missingClass = regexp.MustCompile(`storageclass(?:\.storage\.k8s\.io)? "([^"]+)" not found`)
	lostClaim    = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)
)

// unplaced returns findings for pods without a node, one for each reason.
func unplaced(p *input) []Finding {
	var pods []facts.Pod
	var message string
	for _, pod := range p.Pods {
		said := cmp.Or(facts.Unschedulable(pod), p.MissingClaim(pod))
		switch {
		case said == "" || pod.DeletionTimestamp != nil:
		case message == "":
			message, pods = said, append(pods, pod)
		case pod.Role == pods[0].Role:
			pods = append(pods, pod)
		}
	}
	if message == "" {
		return nil
	}
	return []Finding{p.together(p.placing(pods, message))}
}

// unattended returns findings for pods that no scheduler has looked at for a while: a gate holds them, or there is no scheduler of
// the name that they request (k8s.io/kubernetes/pkg/scheduler: without one, the condition PodScheduled is absent).
func unattended(p *input) []Finding {
	const patience = 30 * time.Second
	var gated, ignored, claiming, binding []facts.Pod
	for _, pod := range p.Pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || !pod.Latest ||
			pod.CreationTimestamp.IsZero() || p.Seen.Now.Sub(pod.CreationTimestamp.Time) < patience {
			continue
		}
		switch {
		case facts.IsGated(pod):
			gated = append(gated, pod)
		case p.IsIgnored(pod):
			ignored = append(ignored, pod)
		case p.WaitsForClaims(pod):
			claiming = append(claiming, pod)
		case p.WaitsForVolume(pod):
			binding = append(binding, pod)
		}
	}
	var found []Finding
	if len(gated) > 0 {
		var gates []string
		for _, gate := range p.Template(gated[0].Role).SchedulingGates {
			gates = append(gates, gate.Name)
		}
		f := p.find(codes.SchedulingGated, gated, map[string]string{"since": facts.TimeText(gated[0].CreationTimestamp.Time), "gates": strings.Join(gates, ", ")},
			fmt.Sprintf("Pod %s: its condition PodScheduled is False, for the reason SchedulingGated.", gated[0].Name))
		found = append(found, f)
	}
	if len(ignored) > 0 {
		figures := map[string]string{"since": facts.TimeText(ignored[0].CreationTimestamp.Time), "scheduler": strconv.Quote(p.Template(ignored[0].Role).SchedulerName)}
		f := p.find(codes.NoScheduler, ignored, figures, fmt.Sprintf("Pod %s has no condition PodScheduled: no scheduler has tried to place it.", ignored[0].Name))
		found = append(found, f)
	}
	if len(claiming) > 0 {
		var claims []string
		for _, claim := range p.Template(claiming[0].Role).ResourceClaims {
			switch {
			case claim.ResourceClaimName != nil:
				claims = append(claims, fmt.Sprintf("the ResourceClaim %q", *claim.ResourceClaimName))
			case claim.ResourceClaimTemplateName != nil:
				claims = append(claims, fmt.Sprintf("a ResourceClaim of the template %q", *claim.ResourceClaimTemplateName))
			}
		}
		f := p.findAs(codes.ClaimsMissing, claiming, map[string]string{"since": facts.TimeText(claiming[0].CreationTimestamp.Time), "claims": strings.Join(claims, " and ")},
			fmt.Sprintf("Pod %s has no condition PodScheduled: the scheduler has not tried to place it.", claiming[0].Name))
		found = append(found, f)
	}
	if len(binding) > 0 {
		figures := map[string]string{}
		lines := p.claimFigures("", figures)
		found = append(found, p.find(codes.VolumeClaimPending, binding, figures, slices.Insert(lines, 0, bindingLine(binding[0]))...))
	}
	return found
}

// bindingLine returns what the scheduler reports of a pod whose volumes it binds (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding,
// PreBind): nothing until its time is over.
func bindingLine(pod facts.Pod) string {
	if condition := podstatus.NotScheduled(pod.Pod); condition != nil {
		return "Scheduler: " + condition.Message
	}
	return fmt.Sprintf("Pod %s has no condition PodScheduled: the scheduler has selected a node, and waits until the pod's volumes are bound.", pod.Name)
}

// placing reads the scheduler's words (k8s.io/kubernetes/pkg/scheduler/framework/types.go).
func (p *input) placing(pods []facts.Pod, message string) Finding {
	var code codes.Code
	figures := map[string]string{"message": facts.Sentence(message)}
	var more []string
	never := false
	switch short := insufficient.FindAllStringSubmatch(message, -1); {
	case strings.Contains(message, "unbound immediate PersistentVolumeClaims"), lostClaim.MatchString(message):
		code = codes.VolumeClaimPending
		more = p.claimFigures(message, figures)
	case len(short) > 0:
		if f, is := p.rdmaNotOffered(pods, short); is {
			f.Evidence = append([]string{"Scheduler: " + message}, f.Evidence...)
			return f
		}
		code = codes.InsufficientResources
		more, never = p.roomFigures(pods[0], short, figures)
	default:
		code = p.restrictionFigures(pods[0].Role, message, figures)
	}
	if count := nodeCount.FindStringSubmatch(message); count != nil {
		figures["nodes"] = count[2] + " nodes"
	}
	f := p.find(code, pods, figures)
	if never {
		f.Severity = v1alpha1.SeverityError
	}
	f.Evidence = append([]string{"Scheduler: " + message}, more...)
	return f
}

// claimFigures returns the figures of a claim without a volume.
func (p *input) claimFigures(message string, figures map[string]string) []string {
	figures["firstAction"] = phrase.QuoteCommand([]string{"kubectl", "-n", p.Job.Namespace, "get", "pvc"})
	lines := p.Claims(func(c jobstate.Claim) bool { return c.Missing || c.Phase != corev1.ClaimBound })
	if lost := lostClaim.FindStringSubmatch(message); lost != nil {
		figures["claimText"] = fmt.Sprintf("PersistentVolumeClaim %q does not exist in namespace %s", lost[1], p.Job.Namespace)
		figures["first"] = "Create the claim, or correct its name in the job."
		return lines
	}
	if unbound := p.UnboundClaims(); len(unbound) > 0 {
		claim := unbound[0]
		figures["claimText"] = fmt.Sprintf("PersistentVolumeClaim %q is not bound", claim.Name)
		figures["first"] = fmt.Sprintf("Find out why the claim is not bound. Its storage class is %s.", cmp.Or(claim.Class, "not set, and the cluster has no default"))
		figures["firstAction"] = phrase.QuoteCommand([]string{"kubectl", "-n", p.Job.Namespace, "describe", "pvc", claim.Name})
		switch {
		case claim.Volume != "":
			figures["claimText"] = fmt.Sprintf("PersistentVolumeClaim %q is not bound: it asks for PersistentVolume %q, which does not exist, is taken, or does not fit", claim.Name, claim.Volume)
			figures["first"] = "Create this volume with the storage class and access modes of the claim and at least its size, or create the claim again without volumeName."
			figures["firstAction"] = phrase.QuoteCommand([]string{"kubectl", "get", "pv", claim.Volume})
		case claim.Static:
			figures["claimText"] = fmt.Sprintf(`PersistentVolumeClaim %q is not bound: its storage class is "", for which no volume is created, and no volume that exists fits`, claim.Name)
			figures["first"] = "Create a PersistentVolume without a storage class that fits, or create the claim again with a storage class."
			figures["firstAction"] = "kubectl get storageclasses,pv"
		}
		if claim.Problem != "" && claim.Volume == "" && !claim.Static {
			figures["claimText"] += ": " + quotedText(claim.Problem)
			figures["first"] = fmt.Sprintf("Correct what the events of the claim report, or ask the cluster administrator about its storage class, %s.", cmp.Or(claim.Class, "which is not set, and the cluster has no default"))
		}
		if absent := missingClass.FindStringSubmatch(claim.Problem); absent != nil {
			figures["claimText"] = fmt.Sprintf("PersistentVolumeClaim %q is not bound: its storage class %q does not exist", claim.Name, absent[1])
			figures["first"] = "Create the claim again with a storage class that exists."
			figures["firstAction"] = "kubectl get storageclasses"
		}
		if claim.Problem != "" {
			lines = append(lines, fmt.Sprintf("Event of PersistentVolumeClaim %s: %s", claim.Name, claim.Problem))
		}
	}
	return lines
}

// roomFigures compares the requests of a pod with the nodes, and returns whether no node is large enough even when it
// is empty.
func (p *input) roomFigures(pod facts.Pod, short [][]string, figures map[string]string) (lines []string, never bool) {
	var want, have []string
	figures["secondAction"] = fieldText(p.Job.Fields.WorkerCount, "number of workers")
	for _, s := range short {
		name := corev1.ResourceName(s[2])
		ask := podspec.Requests(p.Template(pod.Role))[name]
		want = append(want, amount(name, ask)+" "+thing(name))
		if len(p.Evidence.Nodes) == 0 {
			have = append(have, fmt.Sprintf("insufficient %s on %s nodes", strings.TrimPrefix(strings.TrimSuffix(thing(name), "s"), "of "), s[1]))
			continue
		}
		room := p.RoomFor(name, ask)
		if room.With == 0 {
			have = append(have, fmt.Sprintf("no usable node has any %s", strings.TrimPrefix(thing(name), "of ")))
			never = true
			figures["first"] = fmt.Sprintf("Remove the request, or use another cluster: no node here has any %s, so waiting does not help.", strings.TrimPrefix(thing(name), "of "))
			figures["second"] = "If such nodes should exist, ask the cluster administrator: they may be down, or the device plugin is not running."
			figures["secondAction"] = "kubectl get nodes"
			continue
		}
		have = append(have, fmt.Sprintf("at most %s %s free on one node (%s)", amount(name, room.Free), thing(name), room.Freest))
		lines = append(lines, fmt.Sprintf("%s: %d of %d nodes have %s free; the largest node has %s (%s).", name, room.Enough, room.With, amount(name, ask), amount(name, room.Total), room.Largest))
		if room.Total.Cmp(ask) < 0 {
			never = true
			figures["first"] = fmt.Sprintf("Request at most %s %s per pod: no node is larger, so waiting does not help.", amount(name, room.Total), thing(name))
			figures["second"] = "Or use more workers with fewer slots and fewer resources each."
			figures["secondAction"] = fieldText(p.Job.Fields.Slots, "slots of a worker")
		}
	}
	figures["want"], figures["have"] = strings.Join(want, ", "), strings.Join(have, "; ")
	return lines, never
}

// restriction is why the scheduler keeps a pod from a node that has room.
type restriction struct {
	// said are the scheduler's words for it, of all versions since Kubernetes 1.29.
	said []string
	// why is a part of a sentence; if it is empty, the labels that the pod requires follow from its template.
	why string
	// first is the first remedy, and at the field of the pod's specification that it is about.
	first, at string
	// passes is set if it can pass without a change of the job.
	passes bool
	// byPods is set if it follows from the pods that run on the nodes, and not from the labels and taints of these.
	byPods bool
}

// otherPods is the scheduler's reason for nodes with pods whose anti-affinity excludes the pod.
const otherPods = "existing pods anti-affinity rules"

// excludingRole returns the role of the job whose pods have a required anti-affinity; "" if there is none.
func (p *input) excludingRole() mpi.Role {
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		if affinity := p.Template(role).Affinity; affinity != nil && affinity.PodAntiAffinity != nil && len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return role
		}
	}
	return ""
}

// restrictions are the reasons of the scheduler's filters (k8s.io/kubernetes/pkg/scheduler/framework/plugins).
var restrictions = []restriction{
	{said: []string{"node affinity/selector"}},
	{
		said: []string{"untolerated taint", "that the pod didn't tolerate"}, why: "nodes have taints that the pod does not tolerate",
		first: "If the job may use these nodes, add a toleration for the taint in the scheduler's message.", at: "tolerations",
	},
	{
		said: []string{"volume node affinity", "PersistentVolume's node affinity", "no available volume zone"}, why: "the pod's volume is in another zone or on another node",
		first: "Use a claim whose volume all nodes of the job can reach, or nodes in the zone of the volume.", at: "volumes",
	},
	{said: []string{"were unschedulable"}, why: "nodes are cordoned"},
	{
		said: []string{"match pod affinity rules"}, why: "no node satisfies the pod's affinity to other pods",
		first: "Remove the pod affinity, or run the pods that it requires.", at: "affinity.podAffinity", byPods: true,
	},
	{
		said: []string{"match pod anti-affinity rules"}, why: "the pod's anti-affinity excludes the nodes of other pods",
		first: "Use no more pods than nodes that the anti-affinity allows, or prefer it instead of requiring it.", at: "affinity.podAntiAffinity", byPods: true,
	},
	{
		said: []string{"topology spread"}, why: "the pod's topology spread constraints cannot be satisfied",
		first: "Use no more pods than the constraint allows, or set whenUnsatisfiable: ScheduleAnyway.", at: "topologySpreadConstraints", byPods: true,
	},
	{
		said: []string{"the requested node name"}, why: "nodeName names another node",
		first: "Remove nodeName, so that the scheduler selects a node.", at: "nodeName",
	},
	{
		said: []string{"affinity terms conflict"}, why: "nodeSelector and the terms of the pod's affinity exclude each other",
		first: "Remove one of the terms that exclude each other.", at: "affinity",
	},
	{
		said: []string{"scheduler-enforced node affinity"}, why: "the scheduler's configuration restricts pods to other nodes",
		first: "Use another scheduler, or ask the cluster administrator about addedAffinity of the scheduler.", at: "schedulerName",
	},
	{
		said: []string{"Pod's required features"}, why: "nodes lack features of Kubernetes that the pod uses",
		first: "Remove what only newer nodes support, or select newer nodes.", at: "nodeSelector",
	},
	{
		said: []string{"bound to non-existent pv(s)"}, why: "a claim of the pod is bound to a volume that does not exist any more",
		first: "Create the claim again, or use another one.", at: "volumes",
	},
	{said: []string{otherPods}, first: "Wait until the pods whose anti-affinity excludes others have ended, or select other nodes.", at: "nodeSelector", passes: true},
	{said: []string{"free ports"}, first: "Remove hostPort and hostNetwork, or use no more of these pods than nodes.", at: "containers[0].ports", passes: true},
	{said: []string{"Too many pods"}, first: "Wait until other pods have ended, or let the pods use more nodes: a node runs no more pods than its kubelet allows.", at: "nodeSelector", passes: true},
	{said: []string{"max volume count"}, first: "Use fewer volumes, or fewer pods per node: a node can attach no more.", at: "volumes", passes: true},
	{said: []string{"ReadWriteOncePod"}, first: "Use a claim with access mode ReadWriteMany: only one pod can use this one at a time.", at: "volumes", passes: true},
	{said: []string{"no available disk"}, first: "Use a volume that several pods can mount, or wait until the other pod has ended.", at: "volumes", passes: true},
	{
		said:  []string{"available persistent volumes to bind", "enough free storage"},
		first: "Request less storage, or use a storage class that has enough of it in the zones of the nodes.", at: "volumes", passes: true,
	},
}

// restrictionFigures fills figures from the restrictions in a message of the scheduler, and returns the code of the finding:
// NoMatchingNode if waiting helps on no node, and otherwise Unschedulable, which quotes the message.
func (p *input) restrictionFigures(role mpi.Role, message string, figures map[string]string) codes.Code {
	var why []string
	passes, byPods := false, true
	for _, known := range restrictions {
		if !anyIn(message, known.said...) {
			continue
		}
		byPods = byPods && known.byPods
		if passes = passes || known.passes; !known.passes {
			why = append(why, cmp.Or(known.why, p.labelsText(role)))
		}
		if known.first != "" {
			figures["first"], figures["at"] = known.first, known.at
			figures["firstAction"] = p.field(role) + ".spec." + known.at
		}
		if keys := spreadKeys(p.Template(role)); known.at == "topologySpreadConstraints" && strings.Contains(message, "missing required label") && keys != "" {
			byPods = false
			why[len(why)-1] = "nodes lack the label of the pod's topology spread constraints (topologyKey " + keys + ")"
			figures["first"] = "Use a label that the nodes have, such as kubernetes.io/hostname, or set whenUnsatisfiable: ScheduleAnyway."
		}
		if of := p.excludingRole(); slices.Contains(known.said, otherPods) && of != "" {
			figures["first"] = "The anti-affinity of the job's own " + string(of) + " pods may exclude this pod: let it select only these, or use no more pods than nodes."
			figures["firstAction"] = p.field(of) + ".spec.affinity.podAntiAffinity"
		}
	}
	if passes || len(why) == 0 {
		return codes.Unschedulable
	}
	figures["why"] = strings.Join(why, "; ")
	if byPods {
		figures["second"] = "See which pods run on which nodes, and the labels of the pods."
		figures["secondAction"] = phrase.QuoteCommand([]string{"kubectl", "-n", p.Job.Namespace, "get", "pods", "-o", "wide", "--show-labels"})
	}
	return codes.NoMatchingNode
}

// spreadKeys are the labels by which a pod must be spread.
func spreadKeys(template corev1.PodSpec) string {
	var keys []string
	for _, constraint := range template.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != corev1.ScheduleAnyway {
			keys = append(keys, constraint.TopologyKey)
		}
	}
	return strings.Join(keys, ", ")
}

// labelsText states which labels no node has that a pod requires: those of its nodeSelector that no node has at all, if the nodes are
// known, or else all of them.
func (p *input) labelsText(role mpi.Role) string {
	template, of := p.Template(role), "nodeSelector"
	var all, absent []string
	for _, label := range requiredLabels(template) {
		all = append(all, label.String())
		if !slices.ContainsFunc(p.Evidence.Nodes, label.isOn) {
			absent = append(absent, label.String())
		}
		if label.isAffinity {
			of = "node affinity"
		}
	}
	if len(template.NodeSelector) > 0 && of == "node affinity" {
		of = "nodeSelector or node affinity"
	}
	switch {
	case len(all) == 0:
		return "no node has the labels that the pod requires (nodeSelector or affinity)"
	case len(p.Evidence.Nodes) > 0 && p.Evidence.NodesLeft == 0 && len(absent) > 0:
		return fmt.Sprintf("no node has the label %s of the pod's %s", strings.Join(absent[:min(len(absent), maxLabels)], ", "), of)
	}
	return fmt.Sprintf("no node has the labels that the pod requires (%s %s)", of, strings.Join(all[:min(len(all), maxLabels)], ", "))
}

// maxLabels is how many labels a finding names.
const maxLabels = 4

// requiredLabel is a label that a pod requires of its node.
type requiredLabel struct {
	key    string
	values []string
	// isAffinity is set if the pod's node affinity requires it, and not its nodeSelector.
	isAffinity bool
}

func (l requiredLabel) String() string { return l.key + "=" + strings.Join(l.values, " or ") }

func (l requiredLabel) isOn(node jobstate.Node) bool {
	value, has := node.Labels[l.key]
	return has && slices.Contains(l.values, value)
}

func requiredLabels(pod corev1.PodSpec) (labels []requiredLabel) {
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		labels = append(labels, requiredLabel{key: key, values: []string{pod.NodeSelector[key]}})
	}
	for _, requirement := range onlyTerm(pod.Affinity) {
		if requirement.Operator == corev1.NodeSelectorOpIn {
			labels = append(labels, requiredLabel{key: requirement.Key, values: requirement.Values, isAffinity: true})
		}
	}
	return labels
}

// onlyTerm returns what the only term of a required node affinity requires of labels; of several terms, one is enough.
func onlyTerm(affinity *corev1.Affinity) []corev1.NodeSelectorRequirement {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 {
		return nil
	}
	return terms[0].MatchExpressions
}
