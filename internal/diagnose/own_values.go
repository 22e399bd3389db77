package diagnose

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// addNamed adds to the figures what the groups of an error's pattern match, under their names without digits at the end.
func addNamed(pattern *regexp.Regexp, text string, figures map[string]string) {
	found := pattern.FindStringSubmatch(text)
	for i, name := range pattern.SubexpNames() {
		if found != nil && name != "" && found[i] != "" {
			figures[strings.TrimRight(name, "0123456789")] = quotedText(found[i])
		}
	}
}

// writtenFile is an absolute path in a line of a program.
var writtenFile = regexp.MustCompile(`["'](/[\w.+@%~{}:/-]*[\w}])/?["']`)

// fullVolume returns the remedies for a file for which there is no space, by the error or the line that writes it, and adds figures for them; nil if
// neither names a volume.
func (p *input) fullVolume(figures map[string]string) []v1alpha1.Remedy {
	if found := writtenFile.FindStringSubmatch(figures["ownSource"]); found != nil && !path.IsAbs(figures["file"]) {
		figures["file"] = found[1]
	}
	spec := p.Template(p.programRole(figures))
	if mount := facts.MountOf(spec, figures["file"]); mount != nil && path.IsAbs(figures["file"]) {
		at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at >= 0 && spec.Volumes[at].EmptyDir == nil {
			figures["volume"], figures["mounted"] = mount.Name, asAside(facts.SourceOf(spec, mount.Name))
			return codes.ClaimFull
		}
		if at >= 0 && spec.Volumes[at].EmptyDir.SizeLimit != nil {
			empty := spec.Volumes[at].EmptyDir
			figures["volume"], figures["size"] = mount.Name, empty.SizeLimit.String()
			if empty.Medium == corev1.StorageMediumMemory {
				figures["medium"], figures["memory"] = " in memory", " Its files count as memory of the pod: raise its memory limit as well."
			}
			return codes.VolumeFull
		}
	}
	if figures["volume"], figures["size"] = p.smallVolume(figures["file"]); figures["volume"] != "" {
		return codes.FullVolume
	}
	return nil
}

var (
	// literalHost is a host name in a line of a program that resolves it or connects to it. variableHost is the environment variable that has it:
	// another argument of such a call can be a password.
	literalHost  = regexp.MustCompile(`\b(?:gethostbyname(?:_ex)?|getaddrinfo|create_connection|connect(?:_ex)?|getfqdn|bind|open_connection|Client|Redis|TCPStore|HTTPS?Connection)\(\(?["']([A-Za-z][\w.-]*)["']`)
	variableHost = regexp.MustCompile(`(?:\b(?:gethostbyname(?:_ex)?|getaddrinfo|getfqdn|open_connection|TCPStore|HTTPS?Connection)\(|\b(?:create_connection|connect(?:_ex)?|bind)\(\(|\b(?:host|hostname)\s*=)\s*(?:os\.)?(?:environ(?:\.get\(|\[)|getenv\()["'](\w+)["']`)
)

// argumentHost is a variable of the program in such a call.
var argumentHost = regexp.MustCompile(`\b(?:gethostbyname(?:_ex)?|getaddrinfo|getfqdn|create_connection|connect(?:_ex)?|open_connection|Client|Redis|TCPStore|HTTPS?Connection)\(\(?\s*([A-Za-z_]\w*)\s*[,)]`)

// calledHost returns the host name that could not be resolved, if an error or the program's own line shows it, a variable of the job that has it, or the
// program in the command; "" otherwise, or if its value is a secret.
func (p *input) calledHost(figures map[string]string) string {
	source := figures["ownSource"]
	if found := unknownHost.FindStringSubmatch(cmp.Or(figures["wholeError"], causeText(figures))); found != nil {
		return found[1]
	}
	if found := literalHost.FindStringSubmatch(source); found != nil {
		return found[1]
	}
	name, host := "", ""
	if found := variableHost.FindStringSubmatch(source); found != nil {
		name = found[1]
	} else if found := argumentHost.FindStringSubmatch(source); found != nil {
		name, host = p.assigned(found[1])
	}
	if name != "" {
		_, host = p.setters(name)
	}
	if setting := name + "=" + host; p.mask(setting) != setting {
		return ""
	}
	return host
}

// assigned returns what a program in the launcher's command last assigns to a variable: the name of an environment variable, or a text; "" if that is
// something else, or the program is not in the command.
func (p *input) assigned(name string) (variable, text string) {
	assignment := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(name) + `\s*=\s*(?:(?:os\.)?(?:environ(?:\.get\(|\[)|getenv\()["'](\w+)["']|["']([^"'\n]*)["']\s*(?:#.*)?$|(.*)$)`)
	if all := assignment.FindAllStringSubmatch(p.inlineProgram(), -1); len(all) > 0 {
		last := all[len(all)-1]
		return last[1], last[2]
	}
	return "", ""
}

// nameHost adds the host name that could not be resolved to the figures, if it is known. It returns the remedies for one that looks like a host of the job;
// nil otherwise.
func (p *input) nameHost(figures map[string]string) []v1alpha1.Remedy {
	host := p.calledHost(figures)
	host = strings.TrimSuffix(host, ".")
	if host == "" || strings.ContainsAny(host, " $/:") {
		return nil
	}
	if figures["address"] == "" {
		figures["address"] = " " + quotedText(host)
	}
	hosts := p.hostNames()
	pod, rest, _ := strings.Cut(host, ".")
	service, _, _ := strings.Cut(rest, ".")
	isOwn := slices.ContainsFunc(hosts, func(own string) bool { return strings.HasPrefix(own, pod+".") })
	if isOwn || !strings.HasPrefix(pod, p.Job.Name+"-") || service != "" && service != p.Job.ServiceName() || len(hosts) == 0 {
		return nil
	}
	figures["host"], figures["first"] = quotedText(host), hosts[0]
	const most = 3
	figures["hosts"] = strings.Join(hosts[:min(most, len(hosts))], ", ")
	if len(hosts) > most {
		figures["hosts"] += ", ..."
	}
	return codes.HostOfJob
}

// hostNames returns the short names of the hosts in which ranks run, in the order in which mpirun fills them.
func (p *input) hostNames() (names []string) {
	const most = 4
	if p.Job.Launcher.RunsRanks || p.Job.Workers.Count == 0 {
		names = append(names, p.Job.LauncherHost()+"."+p.Job.ServiceName())
	}
	for i := range min(int(p.Job.Workers.Count), most) {
		names = append(names, p.Job.WorkerName(i)+"."+p.Job.ServiceName())
	}
	return names
}

var (
	// optionAlone is an option that an error reports to have no value: of argparse, click, getopt, absl and Go.
	optionAlone = regexp.MustCompile(`(?:argument (?:-\w/)?|[Oo]ption ['"]?|flag needs an argument: |option requires an argument -- ['"]?)(-{0,2}[A-Za-z][\w-]*)(?:/-{1,2}[\w-]+)*['"]?(?:: expected (?:one|at least one|\d+) arguments?|: invalid \S+ value: ''| requires (?:an|\d+) arguments?|$)`)
	// emptyValue is such an error.
	emptyValue = regexp.MustCompile(`expected (?:one|at least one|\d+) arguments?|invalid \S+ value: ''|requires? (?:an|\d+) arguments?|needs an argument`)
)

// emptiedOption returns the remedies for an option without a value because the variable after it was empty where a shell replaced it, and adds figures for
// them; nil if the launcher's command has no such option.
func (p *input) emptiedOption(figures map[string]string) []v1alpha1.Remedy {
	text := causeText(figures)
	found := optionAlone.FindStringSubmatch(text)
	if found == nil || !emptyValue.MatchString(text) {
		return nil
	}
	name := strings.TrimLeft(found[1], "-")
	pair := regexp.MustCompile(`(?:^|[\s"'])(-{1,2}` + regexp.QuoteMeta(name) + `)([ =]+)["'\\]*(\$\{?([A-Za-z_]\w*)\}?)["'\\]*`)
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		words := slices.Concat(main.Command, main.Args)
		for _, script := range words {
			if sources.MatchString(script) {
				return nil
			}
			option := pair.FindStringSubmatch(script)
			if option == nil || isAssigned(option[4], script) || facts.SetsVariable(p.Template(mpi.RoleWorker), option[4]) || facts.SetsVariable(p.Template(mpi.RoleLauncher), option[4]) {
				continue
			}
			figures["variable"], figures["option"], figures["file"] = option[4], option[1]+option[2]+option[3], strings.TrimRight(option[1]+option[2], " ")
			return p.emptyRemedies(option[4], words, figures)
		}
	}
	return nil
}
