package mpi

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/phrase"
)

// Launchers are the programs of MPI and Horovod that start ranks.
var Launchers = []string{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun"}

var (
	// shellVariable is a variable that only a shell expands. Kubernetes expands $(NAME), and $$ is a dollar sign.
	shellVariable = regexp.MustCompile(`(?:^|[^$])\$(?:\{(\w+)\}|([A-Za-z_]\w*))`)
	// startsMPI is where a script starts ranks.
	startsMPI = regexp.MustCompile(`(?:^|[\s;&|(])(?:\S*/)?(?:` + strings.Join(Launchers, "|") + `)\s`)
	// runsOnce is a program that starts no ranks by itself: Python, and launchers that must be started on each host.
	runsOnce = regexp.MustCompile(`^(?:python[\d.]*|torchrun|accelerate)$`)
	// hostFlag is a flag of MPI's launchers with the hosts of the ranks: Open MPI, and Hydra. Files of hosts have other flags.
	hostFlag = regexp.MustCompile(`^(?:--?hosts?|-H)$`)
)

// WarnLauncher returns warnings about the command, arguments and variables of the launcher's container at a path that most probably do
// not do what was meant.
func (j Job) WarnLauncher(command, args []string, env []corev1.EnvVar, at *field.Path) (warnings []string) {
	words := slices.Concat(command, args)
	if len(words) == 0 {
		return nil
	}
	variables, program := at.Child("env"), "command"
	if len(command) == 0 {
		program = "args"
	}
	at = at.Child(program)
	warnings = j.warnTransport(words, env, at, variables)
	if setting, system := BatchLauncher(words, env); system != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %q starts MPI's processes by %s, a part of a batch system that pods do not have: remove it, since the operator sets how MPI reaches the workers", at, setting, system))
	}
	script, isScript := ScriptOf(words)
	parsed := scriptOf(words)
	if word := copiedIn(words, parsed); word != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %q begins with a typographic character, as documents and web pages have it, which is no part of an option or of a shell's language: write - or straight quotation marks", at, phrase.Cut(word, maxShownName)))
	}
	if isScript {
		warnings = append(warnings, warnScript(words, script, parsed, at)...)
	} else {
		warnings = append(warnings, warnWords(words, at)...)
	}
	if runsOnce.MatchString(path.Base(words[0])) && j.Workers.Count > 0 && !j.Workers.HasOwnCommand() {
		warnings = append(warnings, fmt.Sprintf("%s: %s runs once, in the launcher, and nothing runs on the workers unless it calls MPI's launcher; start it by mpirun", at, path.Base(words[0])))
	}
	launches := launchesOf(words, parsed)
	warnings = append(warnings, warnValues(launches, at)...)
	if name := j.foreignHost(launches); name != "" {
		warnings = append(warnings, fmt.Sprintf("%s: host %q is none of this job, whose hosts are %s; remove the flag, since MPI reads the job's hostfile by itself",
			at, phrase.Cut(name, maxShownName), j.HostRange()))
	}
	return warnings
}

// warnValues returns warnings about numbers that MPI's launcher takes as the program, since the option before them takes fewer values, by the
// words after the launcher in each of its calls.
func warnValues(launches [][]string, at *field.Path) (warnings []string) {
	for _, words := range launches {
		taken := callWith(words).valueTaken()
		if taken == nil || !taken.Known || !IsNumber(taken.Program) {
			continue
		}
		remedy := "check the values of this option"
		if taken.Meant != "" {
			remedy = fmt.Sprintf("write %q", phrase.Cut(taken.Meant, maxShownName))
		}
		warnings = append(warnings, fmt.Sprintf("%s: MPI takes %q as the program, because %q ends before it: %s", at, phrase.Cut(taken.Program, maxShownName), phrase.Cut(taken.Option, maxShownName), remedy))
	}
	return warnings
}

// IsNumber reports whether a word is a number, which is no program.
func IsNumber(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil && strings.ContainsAny(word, "0123456789")
}

// warnWords returns warnings about the words of a command of MPI's launcher that no shell runs.
func warnWords(words []string, at *field.Path) (warnings []string) {
	if joined, meant := JoinedOptions(words); joined != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %q is one word, which MPI takes as one option: write each option, value and program as a word of its own, as in %q", at, phrase.Cut(joined, maxShownName), meant))
	}
	if !startsRanks(words) || slices.ContainsFunc(words, isShell) {
		return warnings
	}
	for _, word := range words {
		if found := shellVariable.FindStringSubmatch(word); found != nil {
			name := found[1] + found[2]
			return append(warnings, fmt.Sprintf(`%s: %q is not expanded, because no shell runs this command: write $(%s), or use ["sh", "-c", "..."]`, at, phrase.Cut(word, maxShownName), name))
		}
	}
	return warnings
}

// warnScript returns warnings about the script of a command, which is nil as far as it cannot be read.
func warnScript(words []string, script Script, parsed *shellScript, at *field.Path) (warnings []string) {
	if parsed != nil {
		if builtin := parsed.foldedBuiltin(); builtin != "" {
			warnings = append(warnings, fmt.Sprintf("%s: MPI is never started, because its launcher is an argument of %s: if the script is a block in YAML, write it with | in place of >, which joins its lines", at, builtin))
		}
	}
	if whole, cut := CutScript(words); cut {
		warnings = append(warnings, fmt.Sprintf("%s: the shell runs only %q, because a script is one word after -c: write %q as one word, or remove %q and -c", at, script.Text, phrase.Cut(strings.Join(whole, " "), 80), words[0]))
	}
	if parsed != nil {
		warnings = append(warnings, warnLaunches(parsed, at)...)
	}
	return warnings
}

// warnLaunches returns warnings about how a script starts ranks.
func warnLaunches(script *shellScript, at *field.Path) (warnings []string) {
	if script.endsInBackground() {
		warnings = append(warnings, fmt.Sprintf("%s: the last command of the script runs in the background, so that the script and with it the job end at once: remove the &, or end the script with wait", at))
	} else if !script.isAwaited() {
		warnings = append(warnings, fmt.Sprintf("%s: MPI runs in the background, and nothing in the script waits for it, so that the job ends as soon as the other commands: remove the &, or end the script with wait", at))
	}
	if program := script.breakingReader(); program != "" {
		return append(warnings, fmt.Sprintf("%s: %s closes the pipe when it has read enough, which ends MPI and all ranks, and the job counts as succeeded: remove %[2]s, and see the first lines by kubectl logs", at, program))
	}
	if script.losesExitCode() {
		warnings = append(warnings, fmt.Sprintf("%s: the exit code of MPI is lost in the pipe, so that a job that fails counts as succeeded: run the script with bash, and begin it with set -o pipefail", at))
	}
	return warnings
}

// CutScript returns the words that a shell was meant to run by a command that calls it with -c and a script in many words, such as
// [bash, -c, mpirun, train]: it runs the first one. cut is false if the command is another.
func CutScript(words []string) (meant []string, cut bool) {
	script, is := ScriptOf(words)
	if !is || !slices.Contains(Launchers, path.Base(script.Text)) {
		return nil, false
	}
	return append([]string{script.Text}, script.Args...), len(script.Args) > 0
}

// JoinedOptions returns the first word of a command of MPI's launcher that joins an option with its value or more words, such as "-n 2 train",
// and the command with each as a word of its own; "" if there is none. What follows a program that is named as a word is its own matter.
func JoinedOptions(words []string) (joined string, meant []string) {
	if len(words) == 0 || !slices.Contains(Launchers, path.Base(words[0])) {
		return "", nil
	}
	meant = words[:1:1]
	wasJoined := true // the launcher's own name is no value of an option either
	for i, word := range words[1:] {
		isOption, parts := strings.HasPrefix(word, "-"), strings.Fields(word)
		if !isOption && (wasJoined || !strings.HasPrefix(words[i], "-")) {
			// It is the program.
			return joined, append(meant, words[i+1:]...)
		}
		if wasJoined = isOption && len(parts) > 1 && !strings.ContainsAny(word, "'\"$\\`*?&|;<>"); !wasJoined {
			meant = append(meant, word)
			continue
		}
		joined = cmp.Or(joined, word)
		meant = append(meant, parts...)
	}
	return joined, meant
}

// foreignHost returns a host that a launcher of MPI gets for its ranks and that is none of the job's, by the words after the launcher in each of
// its calls; "" if there is none. Names that a shell puts together are unknown.
func (j Job) foreignHost(launches [][]string) string {
	for _, words := range launches {
		for len(words) > 0 {
			call := callWith(words)
			if name := j.foreignHostIn(call.options); name != "" {
				return name
			}
			// Another program begins after a colon, with options of its own.
			next := slices.Index(call.program, ":")
			if next < 0 {
				break
			}
			words = call.program[next+1:]
		}
	}
	return ""
}

// foreignHostIn is foreignHost for the options of a launcher.
func (j Job) foreignHostIn(options []string) string {
	for i, option := range options {
		flag, hosts, joined := strings.Cut(option, "=")
		if !hostFlag.MatchString(flag) {
			continue
		}
		if !joined {
			hosts = after(options, i)
		}
		for host := range strings.SplitSeq(hosts, ",") {
			name, slots, has := strings.Cut(host, ":")
			if _, err := strconv.Atoi(slots); name == "" || strings.ContainsAny(name, "$`*+{}()\"'") || has && err != nil || name == "localhost" {
				continue
			}
			if !j.IsHost(name) {
				return name
			}
		}
	}
	return ""
}

// IsHost reports whether a name, with or without the end of its domain, is that of a pod that runs ranks.
func (j Job) IsHost(name string) bool {
	pod, _, _ := strings.Cut(name, ".")
	matches := func(pod string) bool {
		of := j.HostName(pod, "")
		return of == name || strings.HasPrefix(of, name+".") || strings.HasPrefix(name, of+".")
	}
	if pod == j.LauncherHost() {
		return j.Launcher.RunsRanks && matches(pod)
	}
	index, err := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	return err == nil && index >= 0 && index < int(j.Workers.Count) && j.WorkerName(index) == pod && matches(pod)
}

// HostRange names the first and the last host of the job, which are numbered from 0.
func (j Job) HostRange() string {
	first, last := j.HostName(j.WorkerName(0), ""), j.HostName(j.WorkerName(int(max(j.Workers.Count, 1))-1), "")
	if j.Launcher.RunsRanks {
		first = j.HostName(j.LauncherHost(), "")
	}
	if first == last {
		return first
	}
	return first + " to " + last
}

// warnDNS returns a warning about a DNS policy with which the pods of a job do not find each other. Pods in the host network have
// another one.
func warnDNS(pod corev1.PodSpec, at *field.Path) []string {
	if pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault && pod.DNSPolicy != corev1.DNSNone {
		return nil
	}
	if AsksClusterDNS(pod) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %q: with the name servers of the node instead of those of the cluster, the pods of the job do not find each other; remove it, or set the cluster's in dnsConfig", at.Child("dnsPolicy"), pod.DNSPolicy)}
}

// AsksClusterDNS reports whether a pod with dnsPolicy: None has a name server in dnsConfig that may be the cluster's.
func AsksClusterDNS(pod corev1.PodSpec) bool {
	return pod.DNSPolicy == corev1.DNSNone && pod.DNSConfig != nil && slices.ContainsFunc(pod.DNSConfig.Nameservers, mayBeOfCluster)
}

// mayBeOfCluster reports whether the address of a name server may be that of the cluster's DNS, which is in a private network, unlike public
// name servers.
func mayBeOfCluster(server string) bool {
	address, err := netip.ParseAddr(server)
	return err == nil && (address.IsPrivate() || address.IsLinkLocalUnicast() || sharedNetwork.Contains(address))
}

// sharedNetwork is the shared address space of RFC 6598, in which some clusters have their services.
var sharedNetwork = netip.MustParsePrefix("100.64.0.0/10")

// warnLauncher returns the warnings about the command of the launcher.
func warnLauncher(j Job) []string {
	containers := j.Launcher.Template.Spec.Containers
	if len(containers) == 0 || j.Fields.LauncherTemplate == nil {
		return nil
	}
	return j.WarnLauncher(containers[0].Command, containers[0].Args, containers[0].Env, j.Fields.LauncherTemplate.Child("spec", "containers").Index(0))
}
