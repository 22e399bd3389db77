package diagnose

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
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// Finding is a finding of a report.
type Finding = v1alpha1.Finding

// find returns the finding of a code about pods, with values filled into its texts, and its evidence.
func (p *input) find(code codes.Code, pods []facts.Pod, more map[string]string, evidence ...string) Finding {
	return p.findAs(codes.Lookup(code), pods, more, evidence...)
}

// findAs is find for a definition other than the code's own.
func (p *input) findAs(entry codes.Entry, pods []facts.Pod, more map[string]string, evidence ...string) Finding {
	values := p.figures(pods)
	maps.Copy(values, more)
	if entry.Code == codes.ProgramMissing && entry.Summary == codes.Lookup(codes.ProgramMissing).Summary {
		evidence = append(evidence, p.missingAfterModules(values)...)
		entry = p.missingProgram(entry, pods, values)
	}
	if entry.Code == codes.LibraryMissing && entry.Summary == codes.Lookup(codes.LibraryMissing).Summary {
		entry = p.missingLibrary(entry, values)
	}
	if slices.Contains([]string{codes.Lookup(codes.ApplicationFailed).Summary, codes.Lookup(codes.Aborted).Summary, codes.EndedBeforeRanks.Summary, codes.EndedAfterRanks.Summary}, entry.Summary) {
		entry = hintOverflow(p.ownError(entry, values), values)
	}
	switch {
	case entry.Code == codes.BusError || entry.Summary == codes.NCCLSharedMemory.Summary:
		entry = p.sharedMemory(entry, pods, values)
	case entry.Code == codes.TooFewCores:
		entry = p.withoutBinding(entry, values)
	case entry.Code == codes.MoreSlotsThanGPUs || entry.Code == codes.WrongGPU:
		entry = p.deviceEntry(entry, values)
	case entry.Code == codes.SegmentationFault:
		var shown []string
		entry, shown = p.crashEntry(entry, values)
		evidence = append(evidence, slices.DeleteFunc(shown, func(line string) bool { return slices.Contains(evidence, line) })...)
	case entry.Code == codes.Killed && values["rank"] != "" && values["limitText"] == "" && len(pods) > 0 && facts.MemoryLimit(p.Template(pods[0].Role)) == 0:
		entry = codes.KilledWithoutLimit
	}
	if codes.Has(entry.Code, codes.RemovesPods) && p.launcherEndedWell() {
		entry.Remedies = slices.Concat(codes.FinishedBefore, slices.DeleteFunc(slices.Clone(entry.Remedies), startsAgain))
	}
	entry, setting := p.ownSetting(entry, values)
	evidence = append(evidence, setting...)
	p.addChanges(entry, pods, values)
	hidden := p.maskFigures(values)
	f := Finding{Code: entry.Code, Severity: p.severityOf(entry), Summary: codes.Fill(entry.Summary, values), Affected: names(pods), Evidence: evidence}
	sameImage := p.Job.Workers.Count > 0 && facts.Image(p.Template(mpi.RoleWorker)) == facts.Image(p.Template(mpi.RoleLauncher))
	for _, r := range entry.Remedies {
		if r.Action == codes.BothImages && sameImage {
			continue
		}
		if hidden {
			r = withoutSecrets(r)
		}
		r.Action = p.nameProgram(r.Action)
		f.Remedies = append(f.Remedies, codes.FillRemedy(r, values))
	}
	if len(pods) > 0 {
		f.Pod = pods[0].Name
	}
	if rank, err := strconv.ParseInt(values["rank"], 10, 32); err == nil {
		f.Rank = new(int32(rank))
	}
	return f
}

// quotedFigures are the figures that can be texts of the specification.
var quotedFigures = []string{"setting", "option", "meant", "words", "script", "lastText", "address", "host"}

// maskFigures hides the secrets in quotedFigures. It reports whether there are any in the words of a command.
func (p *input) maskFigures(figures map[string]string) (inWords bool) {
	for _, name := range quotedFigures {
		if text := figures[name]; text != "" {
			figures[name] = p.mask(text)
			inWords = inWords || name == "words" && figures[name] != text
		}
	}
	return inWords
}

// mask hides the secrets in a text of the specification.
func (p *input) mask(text string) string {
	if p.Evidence.Mask == nil {
		return text
	}
	return p.Evidence.Mask(text)
}

// sharedMemory is the folder of POSIX shared memory (shm_open(3)).
const sharedMemory = "/dev/shm"

// sharedMemory returns the definition of a problem with shared memory for those of the pods in which ranks ran, or else for the template of
// such pods, and adds what is mounted there to the figures.
func (p *input) sharedMemory(entry codes.Entry, pods []facts.Pod, figures map[string]string) codes.Entry {
	role := p.ranksRole()
	spec := p.Template(role)
	runsRanks := func(pod facts.Pod) bool {
		return pod.Role == role || pod.Role == mpi.RoleLauncher && p.Job.Launcher.RunsRanks
	}
	if i := slices.IndexFunc(pods, runsRanks); i >= 0 {
		spec, role = p.Template(pods[i].Role), pods[i].Role
	}
	mount := facts.MountOf(spec, sharedMemory)
	if mount == nil {
		return entry
	}
	figures["shmText"] = "the volume " + mount.Name + " is mounted there"
	for _, volume := range spec.Volumes {
		switch {
		case volume.Name != mount.Name || volume.EmptyDir == nil:
		case volume.EmptyDir.SizeLimit != nil:
			figures["shmText"] = fmt.Sprintf("the volume %s has a sizeLimit of %s", volume.Name, volume.EmptyDir.SizeLimit)
		default:
			figures["shmText"] = fmt.Sprintf("the volume %s has no sizeLimit", volume.Name)
			if figures["field"] = p.field(role); volume.EmptyDir.Medium == corev1.StorageMediumMemory {
				entry = entry.WithUnlimitedShm()
			}
		}
	}
	return entry
}

// withoutBinding returns the definition of TooFewCores with the remedy to remove the option of the command that binds or maps ranks.
func (p *input) withoutBinding(entry codes.Entry, figures map[string]string) codes.Entry {
	if option := p.bindingOption(); option != "" {
		figures["option"], entry.Remedies = option, slices.Concat([]v1alpha1.Remedy{codes.BindingOption}, entry.Remedies[1:])
	}
	return entry
}

// bindingOption returns the first option of the launcher's command that binds or maps ranks to hardware, with its value; "" if there is none.
func (p *input) bindingOption() string {
	for _, option := range bindingOptions.FindAllString(p.LauncherCommand(), -1) {
		if !strings.HasSuffix(option, "none") {
			return strings.TrimSpace(option)
		}
	}
	return ""
}

var bindingOptions = regexp.MustCompile(`(?i)(?:^|\s)--?(?:(?:bind-to|cpus-per-proc|cpus-per-rank|cpu-set|cpu-list|rankfile)[ =]\S+|map-by[ =]\S*(?:core|socket|package|numa|cache|hwthread|pe=|pe-list)\S*|bind-to-core|bind-to-socket)`)

// launcherEndedWell reports whether the job has failed although its launcher had ended with exit code 0: Kubeflow Trainer fails a TrainJob
// that loses a worker before it has noticed that.
func (p *input) launcherEndedWell() bool {
	launcher := p.Launcher()
	return launcher != nil && p.Failed() && launcher.Status.Phase == corev1.PodSucceeded
}

// startsAgain reports whether a remedy is nothing but another start of the job.
func startsAgain(r v1alpha1.Remedy) bool { return r.Rerun && r.Action == "" && len(r.Changes) == 0 }

// severityOf returns the severity of a code's findings: the code's own, if it has one and the job has not failed.
func (p *input) severityOf(entry codes.Entry) v1alpha1.Severity {
	switch {
	case p.Failed():
		return v1alpha1.SeverityError
	case entry.Severity != "":
		return entry.Severity
	case p.Outcome.NeedsAction:
		return v1alpha1.SeverityError
	}
	return v1alpha1.SeverityWarning
}
