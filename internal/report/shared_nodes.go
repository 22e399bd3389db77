package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// When the communication of a job is worth a notice.
const (
	// worthPercent is the share of the ranks' time in MPI, and worthMilliseconds the time of each.
	worthPercent      = 20
	worthMilliseconds = 30_000
	// unevenPercent is the imbalance from which on ranks rather wait for each other than communicate.
	unevenPercent = 30
	// worthNetwork is how many KiB per second each pod transfers, and worthSeconds for how long at least.
	worthNetwork = 50 << 10
	worthSeconds = 120
)

// ranksPerHost matches commands that may start another number of ranks, or elsewhere, if workers have more slots.
var ranksPerHost = regexp.MustCompile(`(?i)ppr:|pernode|\s-ppn|perhost|\s-H\s|host`)

// sharedNodes returns the notice that ranks in several pods on a node communicate over TCP; false if there are none, or the job is unknown
// to communicate much. Ranks of one pod share memory. Those of different pods cannot: each pod has a network, IPC and processes of its own.
func (m maker) sharedNodes(status v1alpha1.JobReportStatus) (v1alpha1.Finding, bool) {
	isRunning := status.Phase == v1alpha1.PhaseRunning
	if !isRunning && status.Phase != v1alpha1.PhaseSucceeded || m.canShareMemory() {
		return v1alpha1.Finding{}, false
	}
	nodes := m.hostsByNode(status.Pods)
	shared := slices.DeleteFunc(slices.Sorted(maps.Keys(nodes)), func(node string) bool { return len(nodes[node]) < 2 })
	if len(shared) == 0 {
		return v1alpha1.Finding{}, false
	}
	is := func(f v1alpha1.Finding) bool { return f.Code == codes.WorkersShareNodes }
	if i := slices.IndexFunc(m.before.Findings, is); i >= 0 && isRunning {
		// Figures change all the time.
		return m.before.Findings[i], true
	}
	how, evidence := communication(status)
	if how == "" {
		return v1alpha1.Finding{}, false
	}
	entry := codes.Lookup(codes.WorkersShareNodes)
	values := map[string]string{"nodeText": "node " + shared[0], "of": phrase.Count(len(nodes[shared[0]]), "worker"), "how": how}
	if len(shared) > 1 {
		count := 0
		for _, node := range shared {
			count += len(nodes[node])
		}
		values["nodeText"], values["of"] = phrase.Count(len(shared), "node"), phrase.Count(count, "worker")
	}
	finding := v1alpha1.Finding{Code: entry.Code, Severity: entry.Severity, Summary: codes.Fill(entry.Summary, values), Evidence: []string{evidence}}
	const mostNodes, mostPods = 3, 8
	for _, node := range shared[:min(len(shared), mostNodes)] {
		pods := nodes[node]
		text := strings.Join(pods[:min(len(pods), mostPods)], ", ")
		if len(pods) > mostPods {
			text += fmt.Sprintf(" and %d more", len(pods)-mostPods)
		}
		finding.Evidence = append(finding.Evidence, fmt.Sprintf("Pods on node %s: %s.", node, text))
	}
	finding.Remedies = append(finding.Remedies, m.largerWorkers(nodes, codes.FillRemedy(entry.Remedies[0], nil)))
	for _, remedy := range entry.Remedies[1:] {
		if asksForProfile := strings.Contains(remedy.Action, mpi.AnnotationProfile); !asksForProfile || status.Profile == nil && m.job.UsesAgent() {
			finding.Remedies = append(finding.Remedies, codes.FillRemedy(remedy, nil))
		}
	}
	return finding, true
}

// canShareMemory reports whether ranks in several pods may use something faster than TCP, or it is unknown what they use: pods that share the
// node's IPC, pods with RDMA, and programs without a launcher of MPI.
func (m maker) canShareMemory() bool {
	spec := m.job.Workers.Template.Spec
	for name := range podspec.Requests(spec) {
		if podspec.IsRDMA(name) {
			return true
		}
	}
	return m.job.Launcher.None || spec.HostIPC || spec.HostNetwork
}

// hostsByNode returns the names of the pods with ranks by their nodes.
func (m maker) hostsByNode(pods []v1alpha1.PodStatus) map[string][]string {
	nodes := map[string][]string{}
	var launcher v1alpha1.PodStatus
	for _, pod := range pods {
		switch {
		case pod.Node == "":
		case pod.Role == string(mpi.RoleWorker):
			nodes[pod.Node] = append(nodes[pod.Node], pod.Name)
		case m.job.Launcher.RunsRanks && (launcher.Name == "" || pod.Index > launcher.Index):
			launcher = pod // the latest attempt
		}
	}
	if launcher.Name != "" {
		nodes[launcher.Node] = append(nodes[launcher.Node], launcher.Name)
	}
	return nodes
}

// communication describes by its measurements how much a job communicates, with the evidence; "" if that is little or unknown.
func communication(status v1alpha1.JobReportStatus) (how, evidence string) {
	if p := status.Profile; p != nil {
		if p.CommunicationPercent < worthPercent || p.CommunicationMilliseconds < worthMilliseconds*int64(max(1, p.Ranks)) || p.LateRank != nil || p.ImbalancePercent >= unevenPercent {
			return "", ""
		}
		evidence = fmt.Sprintf("Profile: %s spent %d %% of their time in MPI", phrase.Count(p.Ranks, "rank"), p.CommunicationPercent)
		if len(p.Calls) > 0 {
			evidence += ", most of it in " + p.Calls[0].Call
		}
		return fmt.Sprintf("The ranks spend about %d %% of their time in MPI.", p.CommunicationPercent/10*10), evidence + "."
	}
	u := status.Usage
	if u == nil || u.Pods < 2 || u.Until.Sub(u.Since.Time).Seconds() < worthSeconds {
		return "", ""
	}
	network := v1alpha1.FindMetric(u.Metrics, v1alpha1.MetricNetwork)
	if network == nil || network.Mean < worthNetwork*int64(u.Pods) {
		return "", ""
	}
	perPod := network.Mean / int64(u.Pods) >> 10 / 10 * 10
	return "If much of what they transfer is communication between ranks, they are slower.",
		fmt.Sprintf("Agents: each pod sent and received at least %d MiB/s on average.", perPod)
}

// largerWorkers returns the remedy of fewer and larger workers, with the changes of the job if all nodes have the same number of workers: one
// worker takes as much of a node as these. Otherwise, it is the general one.
func (m maker) largerWorkers(nodes map[string][]string, general v1alpha1.Remedy) v1alpha1.Remedy {
	hosts, each := int(m.job.Workers.Count), 0
	if m.job.Launcher.RunsRanks {
		hosts++
	}
	found := 0
	for _, pods := range nodes {
		if each != 0 && len(pods) != each {
			each = 1
		} else if each != 1 {
			each = len(pods)
		}
		found += len(pods)
	}
	launcherDiffers := m.job.Launcher.RunsRanks && m.job.Kind == mpi.KindMPIJob
	if each < 2 || found != hosts || launcherDiffers || m.job.SlotsPerWorker < 1 || m.job.Fields.Slots == nil {
		return general
	}
	changes := []v1alpha1.FieldChange{
		{Field: m.job.Fields.WorkerCount.String(), Value: strconv.Itoa(hosts / each)},
		{Field: m.job.Fields.Slots.String(), Value: strconv.Itoa(int(m.job.SlotsPerWorker) * each)},
	}
	resources := m.job.Fields.WorkerTemplate.String() + ".spec.containers[0].resources"
	if m.job.Kind == mpi.KindTrainJob {
		resources = "spec.trainer.resourcesPerNode"
	}
	main, launcher := mainOf(m.job.Workers.Template).Resources, mainOf(m.job.Launcher.Template)
	for _, part := range []struct {
		name string
		list corev1.ResourceList
	}{{"requests", main.Requests}, {"limits", main.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			quantity := part.list[name].DeepCopy()
			quantity.Mul(int64(each))
			field := resources + "." + part.name + "." + string(name)
			if strings.ContainsAny(string(name), "./") {
				field = resources + "." + part.name + "[" + string(name) + "]"
			}
			changes = append(changes, v1alpha1.FieldChange{Field: field, Value: quantity.String()})
		}
	}
	return v1alpha1.Remedy{
		Rerun: !ranksPerHost.MatchString(strings.Join(slices.Concat(launcher.Command, launcher.Args), " ")),
		Text: fmt.Sprintf("Use %s with %d times the slots, CPUs, memory and devices: the ranks of a pod share memory. One such worker takes as much of a node as the %d do now.",
			phrase.Count(hosts/each, "worker"), each, each),
		Action: fmt.Sprintf("%s: %s, %s: %s", changes[0].Field, changes[0].Value, changes[1].Field, changes[1].Value), Changes: changes,
	}
}
