package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/phrase"
)

// coresShared warns while a job runs that ranks of several of its pods on a node are bound to the same cores, as the agents see now. Those of
// other jobs are not compared.
func coresShared(p *input) []Finding {
	used := p.Evidence.Usage
	if p.Outcome.Phase != v1alpha1.PhaseRunning || used == nil || used.Launch == nil || used.Launch.ConnectedAt < p.runStart().UnixMilli() {
		return nil
	}
	return p.clash(used.Launch.Binding)
}

// coresWereShared reports the same of a job that has ended.
func coresWereShared(p *input) []Finding {
	if s := p.LauncherSummary(); s != nil {
		return p.clash(s.Binding)
	}
	return nil
}

// clash reports ranks that are bound to the same cores. Programs of the job can write what agents report.
func (p *input) clash(b *agentapi.Binding) []Finding {
	const most = 1 << 14
	if b == nil || b.Clash == nil {
		return nil
	}
	c := *b.Clash
	cpus, ok := agentapi.ParseCPUs(c.CPUs)
	var pods []facts.Pod
	for _, host := range c.Hosts[:min(len(c.Hosts), agentapi.MaxClashHosts)] {
		if pod := p.OfHost(host); pod != nil && !slices.ContainsFunc(pods, func(other facts.Pod) bool { return other.Name == pod.Name }) {
			pods = append(pods, *pod)
		}
	}
	if !ok || len(pods) == 0 || int(c.Ranks) <= len(cpus) || int(c.Usable) <= len(cpus) || c.Ranks > most || c.Usable > most {
		return nil
	}
	values := map[string]string{
		"boundRanks": phrase.Count(c.Ranks, "rank"), "boundPods": phrase.Count(p.clashPods(c, len(pods)), "pod"), "cores": coresText(len(cpus)), "usable": phrase.Count(c.Usable, "core"),
	}
	values["nodeText"] = "one node"
	if node := pods[0].Spec.NodeName; node != "" {
		values["nodeText"] = "node " + node
	}
	if b.Policy == agentapi.BindUser {
		values["by"] = phrase.Limit(phrase.OneLine(b.By), agentapi.MaxBoundBy)
	}
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	return []Finding{p.find(codes.RanksShareCores, pods, values, fmt.Sprintf("Agents: %s of pods %s may only run on CPUs %s (Cpus_allowed_list).",
		phrase.Count(c.Ranks, "rank"), strings.Join(names, ", "), agentapi.FormatCPUs(cpus)))}
}

// clashPods returns how many pods a clash has, of which some are known: at most all with ranks. The launcher's own ranks have no host.
func (p *input) clashPods(c agentapi.BoundRanks, known int) int {
	most := int(p.Job.Workers.Count)
	if p.Job.Launcher.RunsRanks {
		most++
		// Agents of older versions do not count pods.
		known = max(known, 2)
	}
	return max(known, min(int(c.Pods), most))
}

// coresText returns a number of cores after "the same".
func coresText(n int) string {
	if n == 1 {
		return "core"
	}
	return fmt.Sprintf("%d cores", n)
}

// coresPerRank matches how options of mpirun, or the mapping of a variable, ask for several cores for each rank.
var coresPerRank = regexp.MustCompile(`(?i)--?map-by[ =](?:[^\s'"]*[:,])?pe=(\d+)[^\s'"]*|--?cpus-per-(?:proc|rank)[ =](\d+)|^(?:[^\s'"]*[:,])?pe=(\d+)`)

// nameCores returns the definition of DaemonEnded with the remedy for a mapping that asks for several cores for each rank, if the command or a
// variable has one. Whether the nodes have them is unknown here: a worker may use other cores than its request and limit state.
func (p *input) nameCores(entry codes.Entry, figures map[string]string) codes.Entry {
	setting, perRank := p.askedCores()
	if perRank < 2 {
		return entry
	}
	figures["setting"], figures["perRank"] = setting, phrase.Count(int32(min(perRank, 1<<20)), "core")
	entry.Remedies = slices.Concat(codes.CoresPerRank, entry.Remedies[1:])
	return entry
}

// askedCores returns what asks for several cores for each rank, and how many; "" if nothing does.
func (p *input) askedCores() (setting string, cores int) {
	if found := coresPerRank.FindStringSubmatch(p.LauncherCommand()); found != nil && found[3] == "" {
		cores, _ = strconv.Atoi(found[1] + found[2])
		return quotedText(found[0]), cores
	}
	for _, name := range []string{"OMPI_MCA_rmaps_base_mapping_policy", "PRTE_MCA_rmaps_default_mapping_policy"} {
		if _, value := p.setters(name); value != "" {
			if found := coresPerRank.FindStringSubmatch(value); found != nil {
				cores, _ = strconv.Atoi(found[3])
				return name + "=" + quotedText(value), cores
			}
		}
	}
	return "", 0
}
