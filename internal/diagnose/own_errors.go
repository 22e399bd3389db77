package diagnose

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

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

var (
	// quotedFile is a file in quotation marks, as Python and most programs name it. plainFile is one before the error, as
	// perror(3) names it, such as "cat: /data/x: No such file or directory".
	quotedFile = regexp.MustCompile(`["'` + "`" + `\x{2018}]((?:\.{0,2}//?)?[\w.+@%~-]+(?:/[\w.+@%~-]+)*)["'\x{2019}]`)
	plainFile  = regexp.MustCompile(`(?:^|[\s:])((?:\.{0,2}/)[\w.+@%~/-]+)(?:: |$)`)
	// calledFile is such a file that the message itself calls one, or in which it found something.
	calledFile = regexp.MustCompile(`\b(?i:file(?:name)?|in|open|read) ` + quotedFile.String())
	// notFile is what Python quotes that is no file: an encoding, and the module that it looks for in a folder.
	notFile = regexp.MustCompile(`['"][\w-]+['"] codec|'__main__' module`)
	// openedFile is a file that a line of a program opens, reads or loads.
	openedFile = regexp.MustCompile(`(?:[oO]pen|Path|File|read\w*|load\w*|from\w*)\([^"'\n]{0,40}["']((?:\.{0,2}/)?[\w.+@%~-]+(?:/[\w.+@%~-]+)*)["']`)
	// refusedConnection is an error of a connection whose host answered.
	refusedConnection = regexp.MustCompile(`(?i)refused`)
	// missingModule is the module that Python lacks.
	missingModule = regexp.MustCompile(`No module named ['"]?([\w.]+)`)
)

// ownError returns the definition of a program's error with the remedies for what it reported, and adds figures for them. If MPI
// has started no rank as far as is known, it is not said that it ended others.
func (p *input) ownError(entry codes.Entry, figures map[string]string) codes.Entry {
	role := mpi.RoleLauncher
	if p.startedRanks(figures) {
		figures["othersEnded"] = " MPI then ended all other ranks."
		role = p.roleOfRank(figures["rank"])
	}
	figures["programTemplate"], figures["programRole"] = p.field(role), string(role)
	kind := p.kindOf(figures)
	if kind == nil {
		return p.unknownError(entry, figures)
	}
	text := causeText(figures)
	addNamed(kind.Matches, cmp.Or(figures["wholeError"], text), figures)
	if found := missingModule.FindStringSubmatch(text); found != nil {
		figures["module"] = found[1]
		if name := packageOf[strings.Split(found[1], ".")[0]]; name != "" {
			figures["packageText"] = " (package " + name + ")"
		}
	}
	if name, _ := codes.FindUnsetVariable(cmp.Or(figures["wholeError"], text)); name != "" {
		figures["variable"] = name
	}
	if found := openedFile.FindStringSubmatch(figures["ownSource"]); found != nil && (kind.QuotesContent || strings.Contains(text, "MPI_ERR_")) {
		figures["file"] = found[1]
	}
	quoted := quotedFile
	if kind.QuotesContent {
		quoted = calledFile
	}
	for _, form := range []*regexp.Regexp{quoted, plainFile} {
		if found := form.FindStringSubmatch(notFile.ReplaceAllString(text, "")); found != nil && figures["file"] == "" {
			// Python joins the working folder / and a name to //NAME.
			figures["file"] = strings.ReplaceAll(found[1], "//", "/")
		}
	}
	remedies := kind.Remedies
	if volume := p.launchersVolume(figures["file"]); volume != "" && kind.OnlyInLauncher != nil {
		remedies, figures["volume"] = kind.OnlyInLauncher, volume
	}
	if known := p.ownCause(kind.Name, figures); known != nil {
		remedies = known
	}
	entry.Remedies = slices.Clone(remedies)
	return entry
}

// kindOf returns the kind of an error; nil if it is of none, or only a condition that a library tests, or that a program of MPI tests which ran as one process.
func (p *input) kindOf(figures map[string]string) *codes.OwnError {
	if figures["said"] != "" {
		return codes.LauncherErrorOf(figures["errorText"])
	}
	// The text is cut for a summary.
	kind := codes.OwnErrorIn(cmp.Or(figures["wholeError"], figures["errorText"]), figures["ownSource"])
	if kind != nil && kind.Name == "check" && (p.failedWithoutMPI() || isOfLibrary(figures["raisedIn"])) {
		return nil
	}
	return kind
}

// isOfLibrary reports whether a file that raised an assertion is that of a library. In those for tests, the condition is that of the program.
func isOfLibrary(file string) bool {
	return agentapi.IsLibraryFile(file) && !strings.Contains(file, "/testing/") && !strings.Contains(file, "/unittest/")
}

// causeText returns the error from which remedies follow, as a part of a sentence: the program's, or the exception for which it was raised.
func causeText(figures map[string]string) string {
	return cmp.Or(figures["causeText"], figures["errorText"])
}

// unknownError is ownError for an error of none of the known kinds.
func (p *input) unknownError(entry codes.Entry, figures map[string]string) codes.Entry {
	if figures["errorText"] == "" || entry.Summary != codes.Lookup(entry.Code).Summary {
		return entry
	}
	switch remedies := p.quotedWord(figures); {
	case figures["said"] != "":
		entry.Remedies = codes.MessageOfMPI
	case remedies != nil:
		entry.Remedies = remedies
	case p.failedWithoutMPI():
		entry.Remedies = codes.OneProcess
	default:
		entry.Remedies = codes.KnownError
	}
	return entry
}

// ownCause returns the remedies for a program's error whose cause the job itself shows, and adds figures for them; nil if it does not.
func (p *input) ownCause(kind string, figures map[string]string) []v1alpha1.Remedy {
	if found := unexpandedReference.FindStringSubmatch(causeText(figures)); found != nil {
		figures["variable"] = found[1]
		if user := p.referredTooEarly(found[1]); user != "" {
			figures["meant"] = user
			return codes.ReferredTooEarly
		}
		return codes.UnexpandedReference
	}
	if known := p.quotedWord(figures); known != nil {
		return known
	}
	if known := p.callCause(kind, figures); known != nil {
		return known
	}
	switch kind {
	case "check", "assertion", "missing values", "overflow", "domain", "singular":
		return p.numbersCause(kind, figures)
	case "module":
		return p.missingModule(figures)
	case "file":
		return p.missingFile(figures)
	case "arguments", "argument of argparse", "value", "argument value", "choice", "unknown arguments":
		if known := p.emptiedOption(figures); known != nil {
			return known
		}
		if known := p.argumentsInOneWord(figures); known != nil {
			return known
		}
		return p.misspelledOption(figures)
	case "folder":
		if figures["mounted"], figures["key"] = p.mountedKey(figures["file"]); figures["key"] != "" {
			return codes.WrongSubPath
		}
	case "space":
		return p.fullVolume(figures)
	case "variable":
		return p.unsetVariable(figures)
	case "variables of Open MPI", "variables of MPICH":
		return p.misspelledVariable(figures)
	case "read-only":
		return p.onReadOnlyVolume(p.Template(p.programRole(figures)), figures)
	case "permission":
		return p.notPermitted(figures)
	case "python":
		return p.pythonElsewhere(figures)
	case "host name":
		if address := addressIn(causeText(figures), figures["ownSource"]); address != "" {
			figures["address"] = " in " + address
		}
		if p.usesProxy(figures) {
			return codes.NameOfProxy
		}
		return p.nameHost(figures)
	case "network":
		figures["address"] = addressIn(causeText(figures), figures["ownSource"])
		// A NetworkPolicy drops packets. What refuses a connection was reached.
		if refusedConnection.MatchString(causeText(figures)) {
			figures["host"] = p.firstHost()
			return codes.RefusedConnection
		}
		if p.Seen.Isolation != nil {
			figures["policy"], figures["address"] = p.Seen.Isolation.Name, cmp.Or(figures["address"], p.lastAddress())
			p.nameURL(figures)
			return codes.IsolatedNetwork
		}
	}
	return p.nodeCause(kind, figures)
}

// referredTooEarly returns the variable of a pod template that refers to another one which the list env defines after it; "" if there is none.
func (p *input) referredTooEarly(name string) string {
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		for _, main := range first(p.Template(role).Containers) {
			at := slices.IndexFunc(main.Env, func(v corev1.EnvVar) bool { return v.Name == name })
			for i, variable := range main.Env {
				if i < at && strings.Contains(variable.Value, "$("+name+")") {
					return variable.Name
				}
			}
		}
	}
	return ""
}

// callOfReduce is a call that gives its result to one rank only: the one of C, or that of a communicator of mpi4py.
var callOfReduce = regexp.MustCompile(`\bMPI_Reduce\(|\b(?i:\w*comm|COMM_\w+)\.[Rr]educe\(`)

// divisionByZero is the error of a division by a number that may be missing in this rank.
var divisionByZero = regexp.MustCompile(`ZeroDivisionError|division by zero`)

// proxyVariables are the variables by which programs find a proxy for HTTP (urllib of Python, curl and Go).
var proxyVariables = []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}

var (
	// requestOverHTTP is an error of a request that a proxy may have got.
	requestOverHTTP = regexp.MustCompile(`urlopen error|HTTPS?Connection|ProxyError|\bcurl: |\bwget: |https?://|proxy`)
	// unknownHost is the host that such an error names: of curl, wget and urllib3, of Go, Java and aiohttp, or in an address.
	unknownHost = regexp.MustCompile("(?i:resolve (?:host(?:name)?(?: address)?|proxy)?:? ?|bad address |host=|\\blookup |UnknownHostException: |connect to host |https?://)['\"`\u2018]?([\\w.-]+)")
)

// usesProxy reports whether a request has failed in a job with a variable that names a proxy by a host name, and whether the error names no other host,
// and adds figures for it.
func (p *input) usesProxy(figures map[string]string) bool {
	// The text is cut for a summary, before the name that was not found.
	text := cmp.Or(figures["wholeError"], causeText(figures))
	if !requestOverHTTP.MatchString(text + figures["ownSource"]) {
		return false
	}
	hosts := unknownHost.FindAllStringSubmatch(text, -1)
	for _, name := range proxyVariables {
		roles, value := p.setters(name)
		host := hostOfProxy(value)
		isNamed := slices.ContainsFunc(hosts, func(found []string) bool { return strings.TrimSuffix(found[1], ".") == host })
		if host == "" || len(hosts) > 0 && !isNamed || !isNamed && p.goesAround(figures["address"]) {
			continue
		}
		figures["variable"], figures["proxy"], figures["variableField"] = name, quotedText(host), p.field(roles[0])
		_, figures["service"], _ = strings.Cut(p.firstHost(), ".")
		figures["service"] = "." + figures["service"]
		return true
	}
	return false
}

// hostOfProxy returns the host name in the address of a proxy; "" if it has an IP address, which needs no resolution.
func hostOfProxy(value string) string {
	_, rest, hasScheme := strings.Cut(value, "://")
	if !hasScheme {
		rest = value
	}
	host, _, _ := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
	host, _, _ = strings.Cut(host, ":")
	if _, err := netip.ParseAddr(host); err == nil || strings.HasPrefix(host, "[") {
		return ""
	}
	return host
}

// goesAround reports whether the job leaves out the proxy for an address of which its variables contain the end.
func (p *input) goesAround(address string) bool {
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		_, value := p.setters(name)
		for suffix := range strings.SplitSeq(value, ",") {
			if suffix = strings.TrimLeft(strings.TrimSpace(suffix), "*."); suffix == "" && strings.Contains(value, "*") || suffix != "" && strings.Contains(address, suffix) {
				return true
			}
		}
	}
	return false
}

// quotedWord returns the remedies for an error that quotes a word of the launcher's command which is not what was meant, and adds figures for it;
// nil if it quotes none.
func (p *input) quotedWord(figures map[string]string) []v1alpha1.Remedy {
	if word, variable := p.unexpandedWord(causeText(figures)); word != "" {
		figures["option"], figures["variable"] = strconv.Quote(quotedText(word)), variable
		return codes.ReferenceInArguments
	}
	if word := p.copiedWord(); word != "" && strings.Contains(figures["errorText"], word) {
		figures["program"] = word
		return codes.CopiedCharacter.Remedies
	}
	return nil
}

// unexpandedWord returns a word of the launcher's command that an error quotes and in which a reference to a variable remains, since no shell
// runs the command (mpi.UnexpandedWords), and the variable; "" if there is none.
func (p *input) unexpandedWord(text string) (word, variable string) {
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		for word, variable := range mpi.UnexpandedWords(main) {
			if strings.Contains(text, word) {
				return word, variable
			}
		}
	}
	return "", ""
}

// copiedWord returns the word of the launcher's command that begins with a typographic character (mpi.CopiedWord); "" if there is none.
func (p *input) copiedWord() string {
	main := p.Template(mpi.RoleLauncher).Containers
	if len(main) == 0 {
		return ""
	}
	return mpi.CopiedWord(slices.Concat(main[0].Command, main[0].Args))
}

// nodeCause is ownCause for errors that follow from the node, the rights of the pod, its network or its other ranks.
func (p *input) nodeCause(kind string, figures map[string]string) []v1alpha1.Remedy {
	switch kind {
	case "GPU driver":
		// Without any driver, the CUDA runtime reports one that is insufficient.
		if strings.Contains(causeText(figures), "is insufficient") && p.Gpus(p.programRole(figures)) == 0 {
			return codes.GPUNotRequested
		}
	case "broken GPU":
		if figures["node"] != "" && figures["role"] == string(p.programRole(figures)) {
			figures["onNode"] = "node " + figures["node"]
		} else {
			// It is the node of another pod.
			figures["node"] = ""
		}
	case "address of another pod":
		figures["host"] = p.firstHost()
	case "exists":
		if strings.Contains(figures["errorText"], "mkdir: ") {
			return codes.FolderExists
		}
	case "low port":
		if strings.Contains(causeText(figures), "Bind to port") {
			return codes.SSHDPort
		}
	case "length":
		return p.lengthCause(figures)
	case "MPI truncation", "MPI sizes":
		if collectiveCall.MatchString(figures["call"]) {
			return codes.DifferentCounts
		}
	case "license":
		if p.Seen.Isolation != nil {
			figures["policy"] = p.Seen.Isolation.Name
			return codes.IsolatedLicense
		}
	}
	return nil
}

// lengthCause is ownCause for an index beyond the end of a list, and a division by zero.
func (p *input) lengthCause(figures map[string]string) []v1alpha1.Remedy {
	text := causeText(figures)
	if indexError.MatchString(text) && p.fewDevices(figures) {
		return slices.Concat(codes.FewDevices, codes.OwnErrorOf(text).Remedies)
	}
	if rank := figures["rank"]; rank != "" && rank != "0" && divisionByZero.MatchString(text) && callOfReduce.MatchString(p.LauncherCommand()+"\n"+figures["ownSource"]) {
		return slices.Concat(codes.OwnErrorOf(text).Remedies, codes.ReducedToRoot)
	}
	return nil
}

// collectiveCall is a function that all ranks of a communicator call.
var collectiveCall = regexp.MustCompile(`^MPI_I?(?i:bcast|reduce|allreduce|gather|allgather|scatter|alltoall|scan|exscan|neighbor_)`)

// indexError is an index beyond the end of a list, such as that of devices.
var indexError = regexp.MustCompile(`IndexError|out of (?:range|bounds)|out_of_range`)

// fewDevices reports whether a pod template lists fewer devices than its pods have ranks, and adds figures for that.
func (p *input) fewDevices(figures map[string]string) bool {
	roles := []mpi.Role{mpi.RoleWorker}
	if p.Job.Launcher.RunsRanks {
		roles = append(roles, mpi.RoleLauncher)
	}
	for _, role := range roles {
		for _, main := range first(p.Template(role).Containers) {
			if few := p.Job.FindFewDevices(main.Env); few != nil {
				figures["variable"], figures["devices"], figures["programTemplate"] = few.Variable, phrase.Count(int32(few.Devices), "device"), p.field(role)
				return true
			}
		}
	}
	return false
}

// deviceEntry returns the definition of a problem with the GPUs of ranks, with the remedies for a list of fewer devices than ranks, if there is one.
func (p *input) deviceEntry(entry codes.Entry, figures map[string]string) codes.Entry {
	if p.fewDevices(figures) {
		entry.Remedies = slices.Concat(codes.FewDevices, entry.Remedies)
	}
	return entry
}

var (
	// moduleWithout is a module of Python that lacks a name, with its file where Python names it (Python/ceval.c, Objects/moduleobject.c).
	moduleWithout = regexp.MustCompile(`(?:from (?:partially initialized module )?|module )'([\w.]+)'.*?(?:\((/[^()]+)\)|renaming '(/[^']+)'|$)`)
	// unexpandedReference is a reference to a variable that Kubernetes has left as it is.
	unexpandedReference = regexp.MustCompile(`\$\((\w+)\)`)
)

// missingModule returns the remedies for a module that is not the one that the program expects, or that Python does not look for where it is, because
// only the launcher has PYTHONPATH; nil if neither is known.
func (p *input) missingModule(figures map[string]string) []v1alpha1.Remedy {
	const variable = "PYTHONPATH"
	if known := wrongModule(figures); known != nil {
		return known
	}
	if roles, _ := p.setters(variable); len(roles) > 0 && p.isLaunchersOnly(roles, figures) && !p.hasUnknownVariables() {
		figures["variable"] = variable
		remedies := codes.VariableOnlyInLauncher
		if kind := codes.OwnErrorOf(causeText(figures)); kind != nil {
			// The text is cut for a summary, and may be of no kind.
			remedies = slices.Concat(remedies, kind.Remedies)
		}
		return remedies
	}
	return nil
}

// argumentsInOneWord returns the remedies for a program that rejects a word of the job's command with several options, and adds figures for them;
// nil if it rejects none.
func (p *input) argumentsInOneWord(figures map[string]string) []v1alpha1.Remedy {
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		for _, word := range slices.Concat(main.Command, main.Args) {
			if text := causeText(figures); manyOptions.MatchString(word) && strings.Contains(text, word) {
				figures["option"], figures["words"] = strconv.Quote(quotedText(p.mask(word))), list(strings.Fields(p.mask(word)))
				return codes.ArgumentsInOneWord
			}
		}
	}
	return nil
}

// manyOptions is a word of a command with an option and its value, or several options.
var manyOptions = regexp.MustCompile(`^-{1,2}[a-zA-Z][\w-]*(?:=\S+)?(?: +[\w./=,:+-]+)+$`)

// missingFile returns the remedies for a file that is missing because of its name, or which is a command; nil if neither is known.
func (p *input) missingFile(figures map[string]string) []v1alpha1.Remedy {
	file := figures["file"]
	if known := p.emptiedVariable(figures); known != nil {
		return known
	}
	if file != "" && !strings.Contains(file, "/") && path.Base(figures["raisedIn"]) == "subprocess.py" {
		return codes.CommandOfProgram
	}
	if namesOfRename.MatchString(causeText(figures)) {
		return codes.RenamedByAnother
	}
	if mpi.Contains(tokenFolder, file) {
		if p.Job.Kind == mpi.KindTrainJob {
			return codes.NoTokenOfTrainJob
		}
		return codes.NoToken
	}
	if !p.Job.Launcher.RunsRanks && path.IsAbs(file) && createsIn(p.LauncherCommand(), path.Dir(file)) {
		figures["folder"] = path.Dir(file)
		return codes.FolderOnlyInLauncher
	}
	if known := p.mountedElsewhere(figures); known != nil {
		return known
	}
	if known := p.missingOnVolume(figures); known != nil {
		return known
	}
	if name := p.initWriting(file); name != "" {
		figures["container"], figures["folder"] = name, path.Dir(file)
		return codes.FolderOfInitContainer
	}
	if folderOfOnePod.MatchString(file) && p.Job.Ranks() > 1 {
		figures["folder"] = path.Dir(file)
		return codes.FolderOfOnePod
	}
	return nil
}

// tokenFolder is where the kubelet mounts the API token of a pod's service account.
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// initWriting returns the init container that makes the folder of a file or writes there, in the pods of the ranks, whose main container has
// no volume there; "" if there is none.
func (p *input) initWriting(file string) string {
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		spec := p.Template(role)
		if !path.IsAbs(file) || role == mpi.RoleLauncher && !p.Job.Launcher.RunsRanks || facts.VolumeOf(spec, file) != "" {
			continue
		}
		for _, c := range spec.InitContainers {
			if createsIn(strings.Join(slices.Concat(c.Command, c.Args), " "), path.Dir(file)) {
				return c.Name
			}
		}
	}
	return ""
}

// folderOfOnePod is a file in a folder that each pod has of its own, unless a volume is mounted there.
var folderOfOnePod = regexp.MustCompile(`^/(?:tmp|var/tmp|dev/shm)/`)

// notPermitted returns the remedies for a file that may not be executed, or not read because of its mode, and adds figures for them; nil if
// neither is known.
func (p *input) notPermitted(figures map[string]string) []v1alpha1.Remedy {
	if figures["file"] != "" && strings.Contains(figures["codeText"], notExecutedCode) {
		return codes.FileNotExecutable
	}
	if mounted, name := p.unreadable(figures["file"]); mounted != "" {
		figures["volume"], figures["mounted"] = name, mounted
		return codes.UnreadableObject
	}
	return nil
}

// notExecutedCode is how a shell ends that may not execute a file (POSIX).
const notExecutedCode = "exit code 126"

// roleOfRank returns the role of the pod in which a rank runs; that of the first ranks if it is unknown.
func (p *input) roleOfRank(rank string) mpi.Role {
	if number, err := strconv.ParseInt(rank, 10, 32); err == nil {
		if role, _, known := p.PlaceOf(int32(number)); known {
			return role
		}
	}
	if p.Job.Launcher.RunsRanks {
		return mpi.RoleLauncher
	}
	return mpi.RoleWorker
}

// mountedElsewhere returns the remedies for a file in a folder at which only the pods of the other role than the program's mount a volume, and adds
// figures for them; nil if it is in no such folder.
func (p *input) mountedElsewhere(figures map[string]string) []v1alpha1.Remedy {
	file, role := figures["file"], p.programRole(figures)
	if !path.IsAbs(file) || p.Job.Workers.Count == 0 || facts.MountOf(p.Template(role), file) != nil {
		return nil
	}
	other := mpi.RoleWorker
	if role == mpi.RoleWorker {
		if other = mpi.RoleLauncher; !p.Job.Launcher.RunsRanks {
			// The kind of the error has remedies for that.
			return nil
		}
	}
	spec := p.Template(other)
	mount := facts.MountOf(spec, file)
	if mount == nil {
		return nil
	}
	figures["volume"], figures["mounted"], figures["folder"] = mount.Name, asAside(facts.SourceOf(spec, mount.Name)), path.Clean(mount.MountPath)
	if figures["rank"] != "" {
		figures["rankLower"] = "rank " + figures["rank"]
	}
	figures["templateName"], figures["otherTemplate"] = p.templateName(role), p.templateName(other)
	return codes.MountedElsewhere
}

// templateName returns how users call the pod template of a role in a job of this kind.
func (p *input) templateName(role mpi.Role) string {
	switch {
	case p.Job.Kind != mpi.KindTrainJob:
		return "the " + string(role)
	case role == mpi.RoleWorker:
		return "the replicated job node"
	}
	return "the replicated job launcher"
}

// programRole returns the role of the pods in which a program has run, by the figures of its error.
func (p *input) programRole(figures map[string]string) mpi.Role {
	if role := mpi.Role(figures["programRole"]); role != "" {
		return role
	}
	if figures["programTemplate"] == p.field(mpi.RoleWorker) {
		return mpi.RoleWorker
	}
	return mpi.RoleLauncher
}

// onReadOnlyVolume returns the remedies for a file on a volume of a pod that cannot be written to, and adds figures for it; nil if it is on none.
func (p *input) onReadOnlyVolume(spec corev1.PodSpec, figures map[string]string) []v1alpha1.Remedy {
	mount := facts.MountOf(spec, figures["file"])
	if mount == nil || !path.IsAbs(figures["file"]) {
		return nil
	}
	source := facts.SourceOf(spec, mount.Name)
	figures["volume"], figures["mounted"], figures["folder"] = mount.Name, asAside(source), mount.MountPath
	switch isObject := strings.HasPrefix(source, "ConfigMap ") || strings.HasPrefix(source, "Secret "); {
	case isObject:
		return codes.ReadOnlyVolume
	case mount.ReadOnly:
		return codes.ReadOnlyMount
	}
	return nil
}

// asAside returns a text in brackets, with a space before them; "" for none.
func asAside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// missingOnVolume returns the remedies for a file that is missing in a folder at which the pods of the program mount a volume, and adds
// figures for them; nil if it is in no such folder.
func (p *input) missingOnVolume(figures map[string]string) []v1alpha1.Remedy {
	file := figures["file"]
	spec := p.Template(p.programRole(figures))
	mount := facts.MountOf(spec, file)
	if mount == nil || !path.IsAbs(file) || path.Clean(mount.MountPath) == path.Clean(file) {
		return nil
	}
	figures["volume"], figures["folder"] = mount.Name, path.Clean(mount.MountPath)
	source := facts.SourceOf(spec, mount.Name)
	kind, name, _ := strings.Cut(source, " ")
	if isObject := kind == "ConfigMap" || kind == "Secret"; isObject && mount.SubPath == "" && path.Dir(path.Clean(file)) == figures["folder"] {
		figures["mounted"], figures["object"], figures["key"] = source, strings.ToLower(kind)+"/"+name, path.Base(file)
		return codes.MissingKey
	}
	figures["mounted"] = asAside(source)
	if known := filledMeanwhile(spec, mount.Name, figures); known != nil {
		return known
	}
	return codes.MissingOnVolume
}

// filledMeanwhile returns the remedies for a file that is missing in an emptyDir, which is empty at first, if another container mounts it for whose end
// the program does not wait: an init container that restarts always, or a further container. It adds figures for that container; nil if there is none.
func filledMeanwhile(spec corev1.PodSpec, volume string, figures map[string]string) []v1alpha1.Remedy {
	if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume && v.EmptyDir != nil }) {
		return nil
	}
	writes := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly })
	}
	for i, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && writes(c) {
			figures["container"], figures["containerField"] = c.Name, fmt.Sprintf("%s.spec.initContainers[%d]", figures["programTemplate"], i)
			return codes.FilledBySidecar
		}
	}
	for _, c := range spec.Containers[1:] {
		if writes(c) {
			figures["container"] = c.Name
			return codes.FilledByContainer
		}
	}
	return nil
}

// namesOfRename is an error with the names of a file before and after (OSError.__str__ of Python; mv and ln of coreutils).
var namesOfRename = regexp.MustCompile(`'[^']+' -> '[^']+'|\bmv: cannot (?:stat|move) '[^']+'(?: to '[^']+')?: No such file`)

// mountedKey returns the ConfigMap or Secret of which a path is one key, and that key, by the pod template of the program; "" if the path
// is no such mount.
func (p *input) mountedKey(file string) (object, key string) {
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		spec := p.Template(role)
		if len(spec.Containers) == 0 || file == "" {
			continue
		}
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.SubPath == "" || path.Clean(mount.MountPath) != path.Clean(file) {
				continue
			}
			for _, v := range spec.Volumes {
				if of, _ := facts.ObjectOf(v); v.Name == mount.Name && of != "" {
					return of, mount.SubPath
				}
			}
		}
	}
	return "", ""
}

// createsIn reports whether a script makes a folder, or copies files into it.
func createsIn(script, folder string) bool {
	return regexp.MustCompile(`\b(?:mkdir|cp|mv|tar|unzip|wget|curl|touch)\b[^;&|\n]*` + regexp.QuoteMeta(folder) + `(?:[/\s"';&|]|$)`).MatchString(script)
}

// wrongModule returns the remedies for a module that is not the one that the program expects, and adds figures for them; nil if it is missing.
func wrongModule(figures map[string]string) []v1alpha1.Remedy {
	found := moduleWithout.FindStringSubmatch(causeText(figures))
	if found == nil || figures["module"] != "" {
		return nil
	}
	file := found[2] + found[3]
	figures["module"] = found[1]
	if known := shadowedStandard(file, figures); known != nil {
		return known
	}
	if agentapi.IsLibraryFile(file) || file == "" && !strings.Contains(causeText(figures), "partially initialized") {
		return codes.ModuleVersion
	}
	figures["file"] = file
	return codes.ShadowedModule
}

// pythonElsewhere returns the remedies for a Python that looks for its library in another folder, and adds figures for them; nil if it does
// not.
func (p *input) pythonElsewhere(figures map[string]string) []v1alpha1.Remedy {
	if figures["variable"], figures["value"] = p.pythonFolder(); figures["variable"] != "" {
		for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
			if facts.SetsVariable(p.Template(role), figures["variable"]) {
				figures["source"] = "The pod template of the " + string(role) + " sets it."
			}
		}
		return codes.PythonElsewhere
	}
	return nil
}

// pythonPath is where Python reports a variable by which it looks for its library, when it cannot start (Python/pathconfig.c).
var pythonPath = regexp.MustCompile(`^\s+(PYTHONHOME|PYTHONPATH) = '([^']+)'`)

// pythonFolder returns the variable by which a Python that could not start looked for its own library, and its value; "" if the logs
// show none.
func (p *input) pythonFolder() (variable, value string) {
	for _, pod := range p.Pods {
		for _, line := range pod.Log.Lines {
			if found := pythonPath.FindStringSubmatch(line[len(loglines.RankTag.FindString(line)):]); found != nil {
				return found[1], quotedText(found[2])
			}
		}
	}
	return "", ""
}

// smallVolume returns the emptyDir with a limited size on which a file is, and that size; of several, if the file is unknown, none.
func (p *input) smallVolume(file string) (name, size string) {
	spec := p.Template(mpi.RoleWorker)
	on := ""
	if path.IsAbs(file) {
		on = facts.VolumeOf(spec, file)
	}
	for _, v := range spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || on != "" && v.Name != on {
			continue
		}
		if name != "" {
			return "", ""
		}
		name, size = v.Name, v.EmptyDir.SizeLimit.String()
	}
	return name, size
}

// unreadable returns what a file is mounted from and with which mode, if that is a Secret or ConfigMap whose files others than their
// owner and group cannot read, and the name of its volume; "" if it is on no such volume.
func (p *input) unreadable(file string) (mounted, volume string) {
	const readByOthers = 0o4
	if !path.IsAbs(file) {
		return "", ""
	}
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		spec := p.Template(role)
		name := facts.VolumeOf(spec, file)
		for _, v := range spec.Volumes {
			source, mode := facts.ObjectOf(v)
			if v.Name != name || mode == nil || *mode&readByOthers != 0 {
				continue
			}
			group := "without fsGroup"
			if security := spec.SecurityContext; security != nil && security.FSGroup != nil {
				group = fmt.Sprintf("with fsGroup %d", *security.FSGroup)
			}
			return fmt.Sprintf("%s with defaultMode %#o, %s", source, *mode, group), name
		}
	}
	return "", ""
}

// firstHost returns the name of the host of rank 0 for the pods of the job, if mpirun fills the hosts in their order.
func (p *input) firstHost() string {
	if p.Job.Launcher.RunsRanks || p.Job.Workers.Count == 0 {
		return p.Job.HostName(p.Job.LauncherHost(), "")
	}
	return p.Job.HostName(p.Job.WorkerName(0), "")
}

// startedRanks reports whether ranks have run: one is known by its number, an agent saw one, or MPI reported its end.
func (p *input) startedRanks(figures map[string]string) bool {
	if s := p.LauncherSummary(); figures["rank"] != "" || s != nil && (len(s.Ranks) > 0 || s.HostsIdle < s.HostsReached) {
		return true
	}
	return !p.noRankRan() && slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool {
		return pod.Role == mpi.RoleLauncher && slices.ContainsFunc(pod.Log.Lines, loglines.Banner.MatchString)
	})
}

// noRankRan reports whether the launcher's agent, without which no rank starts on a worker, saw none: on no host, and not in the launcher.
func (p *input) noRankRan() bool {
	s := p.LauncherSummary()
	return s != nil && p.Job.UsesAgent() && s.HostsExpected > 0 && s.HostsReached == 0 && s.RanksSeen == 0 && len(s.Ranks) == 0
}

// launchersVolume returns the name of the volume on which the launcher has a file, if the workers mount nothing there; else "".
func (p *input) launchersVolume(file string) string {
	if p.Job.Workers.Count == 0 || !path.IsAbs(file) {
		return ""
	}
	if facts.VolumeOf(p.Template(mpi.RoleWorker), file) != "" {
		return ""
	}
	return facts.VolumeOf(p.Template(mpi.RoleLauncher), file)
}
