package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// ownSetting returns the definition of a problem that a variable of the job's own can cause, with the remedy to remove it, and a line of
// evidence; the definition itself and no line if no pod template sets such a variable. It adds figures for the variable.
func (p *input) ownSetting(entry codes.Entry, figures map[string]string) (codes.Entry, []string) {
	settings := p.settingsOf(entry)
	for _, name := range settings {
		roles, value := p.setters(name)
		if len(roles) == 0 {
			continue
		}
		value, setBy, sets := quotedText(value), "the pod template of the "+string(roles[0]), "sets"
		if len(roles) > 1 {
			setBy, sets = "the pod templates", "set"
		}
		if i := slices.IndexFunc(entry.Remedies, func(r v1alpha1.Remedy) bool { return passesOn(r, name) }); i >= 0 && p.isLaunchersOnly(roles, figures) {
			figures["variable"], figures["replacedText"] = name, fmt.Sprintf(": %s is %s in the launcher only, and Open MPI does not pass it on by itself", name, value)
			entry.Remedies = slices.Insert(slices.Clone(entry.Remedies), i+1, codes.SetOnWorkers)
			return entry, []string{fmt.Sprintf("%s %s %s=%s, and that of the workers does not.", phrase.Capital(setBy), sets, name, value)}
		}
		figures["ownVariable"], figures["setBy"], figures["variableField"] = name+"="+value, setBy, p.field(roles[0])
		figures["replacedText"] = fmt.Sprintf(": %s %s %s to %s, which replaces what the image may set", setBy, sets, name, value)
		// To pass on its value does not help.
		entry.Remedies = slices.DeleteFunc(slices.Clone(entry.Remedies), func(r v1alpha1.Remedy) bool { return passesOn(r, name) })
		// A remedy that sets this variable to a value that works comes first, because it can be applied as it is.
		at := 0
		if len(entry.Remedies) > 0 && strings.Contains(entry.Remedies[0].Action, name+"=") {
			at = 1
		}
		figures["replaces"] = "It replaces"
		remove := []string{name}
		evidence := []string{fmt.Sprintf("%s %s %s.", phrase.Capital(setBy), sets, figures["ownVariable"])}
		if entry.Code == codes.NoTransport {
			if more := p.setBySame(settings, name, roles); len(more) > 0 {
				for _, setting := range more {
					other, _, _ := strings.Cut(setting, "=")
					remove = append(remove, other)
				}
				figures["ownVariable"], figures["replaces"] = strings.Join(append([]string{figures["ownVariable"]}, more...), " and "), "They replace"
				evidence[0] = fmt.Sprintf("%s %s %s.", phrase.Capital(setBy), sets, figures["ownVariable"])
			}
		}
		entry.Remedies = slices.Insert(entry.Remedies, at, codes.RemoveSettings(remove...))
		return entry, evidence
	}
	return p.settingInCommand(entry, figures, settings)
}

// settingInCommand is ownSetting for a variable that the launcher's command gives to the ranks.
func (p *input) settingInCommand(entry codes.Entry, figures map[string]string, settings []string) (codes.Entry, []string) {
	command := p.LauncherCommand()
	for _, name := range settings {
		found := settingPattern(name).FindStringSubmatch(command)
		if found == nil {
			continue
		}
		value := quotedText(found[1])
		figures["ownVariable"], figures["setBy"], figures["replaces"] = name+"="+value, "the launcher's command", "It replaces"
		entry.Remedies = slices.Insert(slices.Clone(entry.Remedies), 0, codes.SettingInCommand)
		return entry, []string{fmt.Sprintf("The launcher's command sets %s.", figures["ownVariable"])}
	}
	return entry, nil
}

// settingPattern matches what gives a variable to the ranks in a launcher's command, with its value: an option of MPI's launcher, or a shell.
func settingPattern(name string) *regexp.Regexp {
	forms := []string{`(?:export\s+)?` + name + `=`}
	for _, option := range agentapi.VariableOptions() {
		between := `=`
		if of, _ := agentapi.OptionOf(option); of.Values > 1 {
			between = `(?:=|\s+)`
		}
		forms = append(forms, `--?`+option+`[\s=]\s*['"]?`+name+between)
	}
	return regexp.MustCompile(`(?:^|[\s;&])(?:` + strings.Join(forms, `|`) + `)['"]?([^\s'";&]+)`)
}

// settingsOf returns the variables of the job's own that can cause a problem, those first that can do so with their values: a selection of Open
// MPI's transports with one that connects pods is not what lacks.
func (p *input) settingsOf(entry codes.Entry) []string {
	const transports = "OMPI_MCA_btl"
	if _, value := p.setters(transports); value == "" || mpi.StaysInPod(value) || !slices.Contains(entry.Settings, transports) {
		return entry.Settings
	}
	return append(slices.DeleteFunc(slices.Clone(entry.Settings), func(name string) bool { return name == transports }), transports)
}

// setBySame returns those of the settings after one that the same roles set, with their values.
func (p *input) setBySame(settings []string, one string, roles []mpi.Role) (more []string) {
	for _, name := range settings[slices.Index(settings, one)+1:] {
		if by, value := p.setters(name); slices.Equal(by, roles) {
			more = append(more, name+"="+quotedText(value))
		}
	}
	return more
}

// passesOn reports whether a remedy has Open MPI pass a variable on.
func passesOn(r v1alpha1.Remedy, name string) bool { return strings.Contains(r.Action, "-x "+name+" ") }

// isLaunchersOnly reports whether a variable that these roles set does not reach the ranks, which ran on other pods than the launcher's: Open
// MPI passes on those of its own only, Hydra all.
func (p *input) isLaunchersOnly(roles []mpi.Role, figures map[string]string) bool {
	if p.Job.Implementation != mpi.OpenMPI || slices.Contains(roles, mpi.RoleWorker) || p.Job.Launcher.RunsRanks || p.Job.Workers.Count == 0 {
		return false
	}
	s := p.LauncherSummary()
	return figures["rank"] != "" || s == nil || s.HostsReached > 0
}

// setters returns the roles whose pod templates set a variable to a value that is not the operator's own, and that value.
func (p *input) setters(name string) (roles []mpi.Role, value string) {
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, main := range first(p.Template(role).Containers) {
			for _, variable := range main.Env {
				if variable.Name == name && variable.Value != "" && !ofOperator.MatchString(variable.Value) {
					roles, value = append(roles, role), variable.Value
				}
			}
		}
	}
	return slices.Compact(roles), value
}

// ofOperator matches the values that runtimes give to variables of MPI, so that it finds the agent and the list of hosts.
var ofOperator = regexp.MustCompile(`/mpi-agent/|^/etc/mpi/`)

// first returns the first container of a pod, in which ranks run; none if it has none.
func first(containers []corev1.Container) []corev1.Container {
	return containers[:min(1, len(containers))]
}

// passedOn matches how remedies have Open MPI pass a variable on, with or without a value.
var passedOn = regexp.MustCompile(`-x ([\w]+)=(\S+)|-x ([\w]+)`)

// interfaceVariables are the variables by which Open MPI selects a network interface, as remedies write them.
const interfaceVariables = "OMPI_MCA_btl_tcp_if_include, OMPI_MCA_oob_tcp_if_include"

// inOptionsOf writes the options of mpirun, and the variables, in an action as the job's MPI has them. Remedies are written for Open MPI.
func inOptionsOf(implementation mpi.Implementation, action string) string {
	switch implementation {
	case mpi.MPICH:
		action = strings.ReplaceAll(action, interfaceVariables, "HYDRA_IFACE, FI_TCP_IFACE")
	case mpi.IntelMPI:
		action = strings.ReplaceAll(action, interfaceVariables, "I_MPI_HYDRA_IFACE, FI_TCP_IFACE")
	default:
		return action
	}
	if !strings.Contains(action, "mpirun ") {
		return action
	}
	if strings.Contains(action, "_if_include eth0") {
		return "mpiexec -iface eth0 <program>"
	}
	return passedOn.ReplaceAllStringFunc(action, func(option string) string {
		name, value, hasValue := strings.Cut(strings.TrimPrefix(option, "-x "), "=")
		if hasValue {
			return "-genv " + name + " " + value
		}
		return "-genvlist " + name
	})
}

var (
	// referenced is a variable in a script of a shell whose value is nothing if it is not set.
	referenced = regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))`)
	// setElsewhere are variables that a shell, an image, a Service, MPI or the operator may set.
	setElsewhere = regexp.MustCompile(`^(?:HOME|PATH|PWD|OLDPWD|USER|LOGNAME|HOSTNAME|SHELL|SHLVL|UID|EUID|PPID|RANDOM|SECONDS|LINENO|IFS|OPTARG|OPTIND|REPLY|TMPDIR|LANG|TERM|_|(?:LD_)?LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|\w*_(?:SERVICE|PORT)(?:_\w+)?|` +
		`(?:BASH|LC|OMPI|OPAL|PRTE|PMIX|PMI|MPI|I_MPI|HYDRA|MPIR|UCX|KUBERNETES|CUDA|NVIDIA|CONDA)_\w+)$`)
	// sources is a script that reads another one, which may set variables.
	sources = regexp.MustCompile(`(?m)(?:^|[;&|(]|\b(?:then|do|else)\b)\s*(?:\.|source|eval)\s`)
)

// undefinedInScript returns a variable to which the script of the launcher's command refers on a line that calls MPI's launcher, and which
// neither the pod template nor the script sets: the first that is a word of its own, or else the first. It returns "" if there is none, or if
// something else may set it.
func (p *input) undefinedInScript() string {
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		script, is := mpi.ScriptOf(slices.Concat(main.Command, main.Args))
		if !is || len(main.EnvFrom) > 0 || len(p.Job.Connections) > 0 || sources.MatchString(script.Text) {
			return ""
		}
		for line := range strings.Lines(script.Text) {
			if !startsRanks.MatchString(line) {
				continue
			}
			if name := undefinedIn(line, script.Text, main.Env); name != "" {
				return name
			}
		}
	}
	return ""
}

// undefinedIn returns a variable to which a line of a script refers, and which neither the script nor the environment sets; "" if there is none.
func undefinedIn(line, script string, env []corev1.EnvVar) (undefined string) {
	for _, found := range referenced.FindAllStringSubmatch(line, -1) {
		name := found[1] + found[2]
		isSet := slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
		if isSet || setElsewhere.MatchString(name) || isAssigned(name, script) {
			continue
		}
		if regexp.MustCompile(`\s"?\$(?:` + name + `|\{` + name + `\})"?(?:\s|$)`).MatchString(line) {
			// It is missing in the command as a word. The others are parts of values.
			return name
		}
		undefined = cmp.Or(undefined, name)
	}
	return undefined
}
