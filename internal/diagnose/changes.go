package diagnose

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Options of MPI's launchers in a command whose words are separated by spaces or separator, each with its value.
var (
	hostOptions      = regexp.MustCompile(`[\s\x00](?:--?(?:hosts?|hostfile|machinefile)|-H|-f)[\s\x00=][^\s\x00]+`)
	mappingOptions   = regexp.MustCompile(`[\s\x00](?:--?(?:map-by|npernode|ppn|perhost)|-N)[\s\x00=][^\s\x00]+`)
	placingOptions   = regexp.MustCompile(`[\s\x00](?:--?(?:hosts?|hostfile|machinefile|rankfile)|-H|-f|-rf)[\s\x00=][^\s\x00]+`)
	rankfileOptions  = regexp.MustCompile(`[\s\x00](?:--?rankfile|-rf)[\s\x00=][^\s\x00]+`)
	interfaceOptions = regexp.MustCompile(`[\s\x00](?:--?(?:o|prte|pmix)?mca[\s\x00]\w+_tcp_if_(?:in|ex)clude[\s\x00]|--?iface[\s\x00=])[^\s\x00]+`)
	transportOptions = regexp.MustCompile(`[\s\x00]--?(?:o)?mca[\s\x00](?:pml|btl|mtl|btl_tcp_if_(?:in|ex)clude)[\s\x00][^\s\x00]+`)
	timeOptions      = regexp.MustCompile(`[\s\x00]--?timeout[\s\x00=][^\s\x00]+`)
	numberOfRanks    = regexp.MustCompile(`([\s\x00]--?(?:np?|c)[\s\x00=])\d+`)
	bindingPolicy    = regexp.MustCompile(`([\s\x00]--?bind-to[\s\x00=])[^\s\x00]+`)
)

// separator separates the words of a command: no word contains it.
const separator = "\x00"

// editedOptions are the options that the first remedy of a definition removes from the command, or replaces, by its summary.
var editedOptions = map[string]edit{
	codes.HostNotInJob.Summary:                    {hostOptions, ""},
	codes.HostfileInvalid.Summary:                 {hostOptions, ""},
	codes.HostfileNotRead.Summary:                 {hostOptions, ""},
	codes.Lookup(codes.HostfileIgnored).Summary:   {hostOptions, ""},
	codes.Lookup(codes.UnknownHost).Summary:       {hostOptions, ""},
	codes.MappingConflict.Summary:                 {mappingOptions, ""},
	codes.RankfileInvalid.Summary:                 {rankfileOptions, ""},
	codes.RankByPlace.Summary:                     {rankfileOptions, ""},
	codes.HostByPlace.Summary:                     {hostOptions, ""},
	codes.PlaceBeyondHosts.Summary:                {placingOptions, ""},
	codes.PlaceInvalid.Summary:                    {hostOptions, ""},
	codes.EmptyHostsMissing.Summary:               {hostOptions, ""},
	codes.InterfaceMissing.Summary:                {interfaceOptions, ""},
	codes.InterfaceNotSelected.Summary:            {interfaceOptions, ""},
	codes.ComponentMissing.Summary:                {transportOptions, ""},
	codes.Lookup(codes.NoTransport).Summary:       {transportOptions, ""},
	codes.Lookup(codes.TimeLimitExceeded).Summary: {timeOptions, ""},
	codes.Lookup(codes.NotEnoughSlots).Summary:    {numberOfRanks, "${1}{ranks}"},
	codes.Lookup(codes.WorkersIdle).Summary:       {numberOfRanks, "${1}{ranks}"},
	codes.Lookup(codes.RanksShareCores).Summary:   {bindingPolicy, "${1}none"},
}

// edit replaces options of MPI's launchers.
type edit struct {
	options *regexp.Regexp
	by      string
}

// addChanges adds the figures with which remedies change the job of a finding, as far as they follow from the job and the other figures.
func (p *input) addChanges(entry codes.Entry, pods []facts.Pod, figures map[string]string) {
	role := mpi.RoleWorker
	if len(pods) > 0 {
		role = pods[0].Role
	}
	if command := p.newCommand(entry, figures); command != "" {
		figures["newCommand"] = command
	}
	switch entry.Code {
	case codes.ProbeFailed, codes.WorkersNotReady:
		figures["probeField"] = p.probeField(role, figures)
	case codes.ContainerCreateFailed:
		figures["hookField"] = p.containerField(role, "lifecycle.postStart", func(c corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil })
	case codes.SchedulingGated:
		if len(p.Template(role).SchedulingGates) > 0 {
			figures["gatesField"] = p.field(role) + ".spec.schedulingGates"
		}
	case codes.WorkerEnded:
		// Only the runtime of a TrainJob has the command of its workers.
		if p.Job.Workers.HasCommand() && p.Job.Launch != mpi.LaunchSSHD && p.Job.Kind != mpi.KindTrainJob {
			figures["commandField"], figures["argsField"] = p.field(role)+".spec.containers[0].command", p.field(role)+".spec.containers[0].args"
		}
	case codes.DeadlineExceeded:
		if seconds := p.Job.Lifecycle.Deadline; seconds != nil && figures["enough"] == "" {
			figures["enough"] = strconv.FormatInt(2**seconds, 10)
		}
	case codes.CPUThrottled, codes.Straggler:
		figures["moreCPU"] = p.moreCPU(mpi.RoleWorker)
	}
}

// newCommand returns the launcher's command as the first remedy of a definition changes it, as a list in YAML; "" if that does not follow from the
// command.
func (p *input) newCommand(entry codes.Entry, figures map[string]string) string {
	if edits, is := editedOptions[entry.Summary]; is {
		return p.commandWith(edits.options, codes.Fill(edits.by, figures))
	}
	program := figures["program"]
	switch entry.Summary {
	case codes.Lookup(codes.TooFewCores).Summary:
		if option := p.bindingOption(); option != "" {
			return p.commandWith(regexp.MustCompile(`[\s\x00]`+strings.Join(quoted(strings.Fields(option)), `[\s\x00]`)), "")
		}
	case codes.NumberedPython.Summary:
		return p.commandCalling(program, program+"3")
	case codes.ProgramMissingInLauncher.Summary, codes.MPIRunMissing.Summary:
		if meant := phrase.Misspelled(path.Base(program), mpi.Launchers); meant != "" && meant != program {
			return p.commandCalling(program, meant)
		}
	case codes.ValueAsProgram.Summary:
		if name, _, is := strings.Cut(figures["meant"], "="); is {
			return p.commandWithOnce(`([\s\x00]`+strings.Join(quoted(strings.Fields(name)), `[\s\x00]`)+`)[\s\x00](`+regexp.QuoteMeta(program)+`)($|[\s\x00])`, "${1}=${2}${3}")
		}
	}
	return ""
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = regexp.QuoteMeta(word)
	}
	return all
}

// launcherWords returns the words of the launcher's command and arguments, joined by separator; "" if its image has the command.
func (p *input) launcherWords() string {
	main := first(p.Template(mpi.RoleLauncher).Containers)
	if len(main) == 0 || len(main[0].Command) == 0 {
		return ""
	}
	return strings.Join(slices.Concat(main[0].Command, main[0].Args), separator)
}

// commandWith returns the launcher's command with options of MPI's launchers replaced, as a list in YAML; "" if it has none of them, or a program has
// such options, too.
func (p *input) commandWith(options *regexp.Regexp, by string) string {
	text, ofLaunchers := p.launcherWords(), 0
	for _, all := range mpi.OptionsOfLaunchers(strings.ReplaceAll(text, separator, " ")) {
		ofLaunchers += len(options.FindAllString(" "+all, -1))
	}
	at := options.FindAllStringIndex(text, -1)
	if ofLaunchers == 0 || ofLaunchers != len(at) || strings.Contains(by, "$") && ofLaunchers > 1 {
		return ""
	}
	if slices.ContainsFunc(at, func(at []int) bool { return !isPlain(text, at[0], at[1]) }) {
		return ""
	}
	return p.asCommand(text, options.ReplaceAllString(text, by))
}

// isPlain reports whether the words at a place of a command, without a value that has spaces, are an option with its whole value: a shell reads
// quotation marks, substitutions and escaped characters beyond the next space.
func isPlain(text string, from, to int) bool {
	word := text[from:to]
	if end := strings.IndexAny(text[to:]+" ", " \t\n\x00"); end > 0 {
		word += text[to : to+end]
	}
	if text[from:from+1] == separator && to < len(text) && text[to:to+1] != separator {
		return false
	}
	return !strings.ContainsAny(word, "\"'`$()\\") && !strings.HasSuffix(text[:from], `\`)
}

// commandCalling returns the launcher's command with another program in place of one that it calls once, as a list in YAML; "" if it does not.
func (p *input) commandCalling(program, by string) string {
	if program == "" {
		return ""
	}
	return p.commandWithOnce(`(^|[\s\x00;&|(])`+regexp.QuoteMeta(program)+`($|[\s\x00;&|)])`, "${1}"+by+"${2}")
}

// commandWithOnce returns the launcher's command with the only match of a pattern replaced, as a list in YAML; "" if it has none or several.
func (p *input) commandWithOnce(pattern, by string) string {
	text, only := p.launcherWords(), regexp.MustCompile(pattern)
	if len(only.FindAllString(text, -1)) != 1 {
		return ""
	}
	return p.asCommand(text, only.ReplaceAllString(text, by))
}

// asCommand writes the words of a changed command as a list in YAML; "" if it is the same, too long for a change, or has a secret.
func (p *input) asCommand(before, after string) string {
	words := list(strings.Split(after, separator))
	if after == before || p.mask(words) != words || len(words) > maxValue {
		return ""
	}
	return words
}

// maxValue is how long the value of a change may be, in bytes (v1alpha1.FieldChange).
const maxValue = 512

// containerField returns the path of a field of the only container of a role's pods that has it; "" if none has it, or several do.
func (p *input) containerField(role mpi.Role, name string, has func(corev1.Container) bool) (at string) {
	for i, container := range p.Template(role).Containers {
		switch {
		case !has(container):
		case at != "":
			return ""
		default:
			at = fmt.Sprintf("%s.spec.containers[%d].%s", p.field(role), i, name)
		}
	}
	return at
}

// probeField returns the path of the probe that a finding names.
func (p *input) probeField(role mpi.Role, figures map[string]string) string {
	if figures["containers"] != "" {
		return ""
	}
	kind := figures["probe"] + figures["awaited"]
	if kind == "" {
		kind = "readiness"
	}
	return p.containerField(role, kind+"Probe", func(c corev1.Container) bool {
		return kind == "liveness" && c.LivenessProbe != nil || kind == "readiness" && c.ReadinessProbe != nil || kind == "startup" && c.StartupProbe != nil
	})
}

// moreCPU returns a CPU limit of one CPU for each rank of a pod; "" if it has no limit, or a higher one.
func (p *input) moreCPU(role mpi.Role) string {
	for _, main := range first(p.Template(role).Containers) {
		if limit, is := main.Resources.Limits[corev1.ResourceCPU]; is && limit.CmpInt64(int64(p.Job.SlotsPerWorker)) < 0 {
			return fmt.Sprintf("%q", fmt.Sprint(p.Job.SlotsPerWorker))
		}
	}
	return ""
}

// withoutSecrets removes the changes of a remedy that would write a masked text into the job.
func withoutSecrets(remedy v1alpha1.Remedy) v1alpha1.Remedy {
	if slices.ContainsFunc(remedy.Changes, func(c v1alpha1.FieldChange) bool { return strings.Contains(c.Value, "{words}") }) {
		remedy.Rerun, remedy.Changes = false, nil
	}
	return remedy
}

// secured returns the definition of a pod that a Pod Security level forbids with the changes that let the level allow it, where these are changes of the
// only containers of the pods: message is the API server's.
func (p *input) secured(entry codes.Entry, message string, figures map[string]string) codes.Entry {
	violations := strings.Split(figures["violations"], ", ")
	if entry.Code != codes.PodSecurityDenied || ofPod.MatchString(message) || slices.ContainsFunc(violations, func(violation string) bool { return !ofContainer.MatchString(violation) }) {
		return entry
	}
	change := restricted
	switch forbidden := figures["capabilities"]; {
	case forbidden != "" && len(violations) > 1:
		return entry
	case forbidden != "":
		change = func(c *corev1.SecurityContext) {
			c.Capabilities.Add = slices.DeleteFunc(c.Capabilities.Add, func(name corev1.Capability) bool {
				return slices.Contains(strings.Split(forbidden, ", "), string(name))
			})
		}
	case figures["level"] != "restricted":
		change, entry.Remedies = baseline, slices.Concat(codes.PrivilegeDenied, entry.Remedies[1:])
	}
	var changes []v1alpha1.FieldChange
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		spec := p.Template(role)
		if len(spec.Containers) > 1 || len(spec.InitContainers) > 0 || figures["level"] == "restricted" && isUnrestricted(spec.SecurityContext) {
			return entry
		}
		for _, main := range spec.Containers {
			if value := changedSecurity(main.SecurityContext, change); value != "" {
				changes = append(changes, v1alpha1.FieldChange{Field: p.field(role) + ".spec.containers[0].securityContext", Value: value})
			}
		}
	}
	if len(changes) > 0 {
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[0].Rerun, entry.Remedies[0].Changes = true, changes
	}
	return entry
}

// changedSecurity returns a changed security context in YAML; "" if it stays the same.
func changedSecurity(before *corev1.SecurityContext, change func(*corev1.SecurityContext)) string {
	after := before.DeepCopy()
	if after == nil {
		after = &corev1.SecurityContext{}
	}
	if after.Capabilities == nil {
		after.Capabilities = &corev1.Capabilities{}
	}
	unchanged := after.DeepCopy()
	change(after)
	value, err := json.Marshal(after)
	if err != nil || equality.Semantic.DeepEqual(unchanged, after) {
		return ""
	}
	return string(value)
}

// ofContainer matches the violations of Pod Security levels that the security context of a container ends.
var ofContainer = regexp.MustCompile(`^(?:allowPrivilegeEscalation != false|(?:unrestricted|non-default) capabilities|runAsNonRoot != true|seccompProfile|privileged|runAsUser=0)$`)

// ofPod matches violations of the security context of the pod, and annotations, which the context of a container does not end.
var ofPod = regexp.MustCompile(`\((?:pod must not |pod and containers? |forbidden annotation)`)

// isUnrestricted reports whether the security context of a pod has what the level restricted forbids, which that of a container does not end.
func isUnrestricted(c *corev1.PodSecurityContext) bool {
	return c != nil && (c.RunAsUser != nil && *c.RunAsUser == 0 || c.RunAsNonRoot != nil && !*c.RunAsNonRoot ||
		c.SeccompProfile != nil && c.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined)
}

// baseline removes what the Pod Security level baseline forbids a container.
func baseline(c *corev1.SecurityContext) {
	c.Privileged = nil
	if c.SeccompProfile != nil && c.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined {
		c.SeccompProfile = nil
	}
}

// restricted sets what the Pod Security level restricted demands of a container.
func restricted(c *corev1.SecurityContext) {
	c.AllowPrivilegeEscalation, c.Privileged, c.RunAsNonRoot = new(false), nil, new(true)
	c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	if c.RunAsUser != nil && *c.RunAsUser == 0 {
		c.RunAsUser = nil
	}
}
