package diagnose

import (
	"path"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// quotedFile is a file in quotation marks, as Python and most programs name it. plainFile is one before the error, as
	// perror(3) names it, such as "cat: /data/x: No such file or directory".
	quotedFile = regexp.MustCompile(`["'` + "`" + `]((?:\.{0,2}/)?[\w.+@%~-]+(?:/[\w.+@%~-]+)*)["']`)
	plainFile  = regexp.MustCompile(`(?:^|[\s:])((?:\.{0,2}/)[\w.+@%~/-]+)(?:: |$)`)
	// missingModule is the module that Python lacks, and variableName the key or variable of that name.
	missingModule = regexp.MustCompile(`No module named ['"]?([\w.]+)`)
	variableName  = regexp.MustCompile(`KeyError: ['"]([A-Z][A-Z0-9_]+)['"]|(?:^|[\s:])([A-Za-z_]\w*): unbound variable`)
)

// ownError returns the definition of a program's error with the remedies for what it reported, and adds figures for them. If MPI
// has started no rank as far as is known, it is not said that it ended others.
func (p *input) ownError(entry codes.Entry, figures map[string]string) codes.Entry {
	figures["programTemplate"] = p.field(mpi.RoleLauncher)
	if p.startedRanks(figures) {
		figures["othersEnded"] = " MPI then ended all other ranks."
		if !p.job.Launcher.RunsRanks {
			figures["programTemplate"] = p.field(mpi.RoleWorker)
		}
	}
	kind := codes.OwnErrorOf(figures["errorText"])
	if kind == nil {
		if figures["errorText"] != "" {
			figures["own"] = "This is an error of the program itself. "
		}
		return entry
	}
	text := figures["errorText"]
	if found := missingModule.FindStringSubmatch(text); found != nil {
		figures["module"] = found[1]
	}
	if found := variableName.FindStringSubmatch(text); found != nil {
		figures["variable"] = found[1] + found[2]
	}
	for _, form := range []*regexp.Regexp{quotedFile, plainFile} {
		if found := form.FindStringSubmatch(text); found != nil && figures["file"] == "" {
			figures["file"] = found[1]
		}
	}
	remedies := kind.Remedies
	if volume := p.launchersVolume(figures["file"]); volume != "" && kind.OnlyInLauncher != nil {
		remedies, figures["volume"] = kind.OnlyInLauncher, volume
	}
	entry.Remedies = slices.Concat(remedies, entry.Remedies)
	return entry
}

// startedRanks reports whether ranks have run: one is known by its number, an agent saw one, or MPI reported its end.
func (p *input) startedRanks(figures map[string]string) bool {
	if s := p.launcherSummary(); figures["rank"] != "" || s != nil && (len(s.Ranks) > 0 || s.HostsIdle < s.HostsReached) {
		return true
	}
	return slices.ContainsFunc(p.pods, func(pod jobPod) bool {
		return pod.role == mpi.RoleLauncher && slices.ContainsFunc(pod.log.Lines, banner.MatchString)
	})
}

// launchersVolume returns the name of the volume on which the launcher has a file, if the workers mount nothing there; else "".
func (p *input) launchersVolume(file string) string {
	if p.job.Workers.Count == 0 || !path.IsAbs(file) {
		return ""
	}
	if volumeOf(p.template(mpi.RoleWorker), file) != "" {
		return ""
	}
	return volumeOf(p.template(mpi.RoleLauncher), file)
}

// volumeOf returns the name of the volume that the first container of a pod mounts at a file or a folder above it; else "".
func volumeOf(spec corev1.PodSpec, file string) string {
	if len(spec.Containers) == 0 {
		return ""
	}
	name, longest := "", ""
	for _, mount := range spec.Containers[0].VolumeMounts {
		if at := path.Clean(mount.MountPath); mpi.Contains(at, file) && len(at) >= len(longest) {
			name, longest = mount.Name, at
		}
	}
	return name
}
