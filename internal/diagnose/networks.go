package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/jobstate"
)

var noNetwork = regexp.MustCompile(`cannot find a network-attachment-definition \(([^)]+)\) in namespace \(([^)]+)\)`)

// networkMissing reports that a pod names a network of Multus that does not exist.
func networkMissing(p *input) []Finding {
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return noNetwork.MatchString(e.Message) }) {
		pod := p.StartingPod(event.Name)
		if pod == nil {
			continue
		}
		names := noNetwork.FindStringSubmatch(event.Message)
		return []Finding{p.find(codes.NetworkMissing, []facts.Pod{*pod}, map[string]string{"network": names[1], "in": names[2]}, facts.EventLine(event))}
	}
	return nil
}

// selects is where the launcher's agent names a setting by which ranks have no network interface (agentapi.InterfaceSetting).
var selects = regexp.MustCompile(`; (\w+) selects (\S+), pods have ([^;]+)`)

// interfaceNotSelected reports a setting by which ranks use none of their pods' network interfaces, if ranks wait for each other, or
// failed without an error of the program's own: a program may not use the network that it sets.
func interfaceNotSelected(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil {
		return nil
	}
	var setting *agentapi.InterfaceSetting
	line := ""
	switch s := p.LauncherSummary(); {
	case p.Failed() && s != nil && s.NoInterface != nil && !p.failedByItself():
		setting = s.NoInterface
		line = "Launcher's agent: " + setting.String() + "."
	case p.Failed():
		return nil
	default:
		text := p.stall()
		found := selects.FindStringSubmatch(text)
		if found == nil {
			return nil
		}
		setting = &agentapi.InterfaceSetting{Name: found[1], Value: found[2], Has: strings.Split(found[3], ", ")}
		line = facts.LogLine(*launcher, agentapi.StallPrefix+text)
	}
	where := "env: " + setting.Name
	if setting.Name == strings.ToLower(setting.Name) {
		where = fmt.Sprintf("mpirun --mca %s, or env: OMPI_MCA_%[1]s", setting.Name)
	}
	entry := codes.InterfaceNotSelected
	if names := slices.DeleteFunc([]string{setting.Name, "OMPI_MCA_" + setting.Name, "PRTE_MCA_" + setting.Name}, p.isUnset); len(names) > 0 && p.commandWith(interfaceOptions, "") == "" {
		// An option of the command replaces a variable.
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[0].Changes = codes.RemoveSettings(names...).Changes
	}
	return []Finding{p.findAs(entry, []facts.Pod{*launcher}, map[string]string{
		"setting": setting.Name, "settingText": where, "value": setting.Value, "interfaces": strings.Join(setting.Has, ", "),
	}, line)}
}

// isUnset reports whether no pod template sets a variable.
func (p *input) isUnset(name string) bool {
	roles, _ := p.setters(name)
	return len(roles) == 0
}

// failedByItself reports whether the program failed because of something else than a connection: its first error is about another
// subject, or a rank ended with an exit code of its own.
func (p *input) failedByItself() bool {
	if first, _ := p.FirstRank(); first != nil && first.Signal == 0 && first.ExitCode > 1 && !first.LostPeer() {
		return true
	}
	for _, pod := range p.Pods {
		if found := loglines.FirstError(pod.Log.Lines); found != nil {
			return !aboutPeers.MatchString(found.Message)
		}
	}
	return false
}
