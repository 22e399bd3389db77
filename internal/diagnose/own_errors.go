package diagnose

import (
	"fmt"
	"path"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// quotedFile is a file in quotation marks, as Python and most programs name it. plainFile is one before the error, as
	// perror(3) names it, such as "cat: /data/x: No such file or directory".
	quotedFile = regexp.MustCompile(`["'` + "`" + `]((?:\.{0,2}/)?[\w.+@%~-]+(?:/[\w.+@%~-]+)*)["']`)
	plainFile  = regexp.MustCompile(`(?:^|[\s:])((?:\.{0,2}/)[\w.+@%~/-]+)(?:: |$)`)
	// missingModule is the module that Python lacks, and variableName the key or variable of that name.
	// notDropped is an error of a connection that was refused, or whose host has no address.
	notDropped    = regexp.MustCompile(`(?i)refused|name or service not known|name resolution|n.t resolve|to resolve|no such host|servname`)
	missingModule = regexp.MustCompile(`No module named ['"]?([\w.]+)`)
	variableName  = regexp.MustCompile(`KeyError: ['"]([A-Z][A-Z0-9_]+)['"]|(?:^|[\s:])([A-Za-z_]\w*): (?:unbound variable|parameter not set)|environment variable (\w+) expected, but not set`)
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
			entry.Remedies = codes.KnownError
		}
		return entry
	}
	text := figures["errorText"]
	if found := missingModule.FindStringSubmatch(text); found != nil {
		figures["module"] = found[1]
	}
	if found := variableName.FindStringSubmatch(text); found != nil {
		figures["variable"] = found[1] + found[2] + found[3]
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
	if known := p.ownCause(kind.Name, figures); known != nil {
		remedies = known
	}
	entry.Remedies = slices.Clone(remedies)
	return entry
}

// ownCause returns the remedies for a program's error whose cause the job itself shows, and adds figures for them; nil if it does not.
func (p *input) ownCause(kind string, figures map[string]string) []v1alpha1.Remedy {
	switch kind {
	case "variable":
		if name := figures["variable"]; p.job.Workers.Count > 0 && setsVariable(p.template(mpi.RoleLauncher), name) && !setsVariable(p.template(mpi.RoleWorker), name) {
			return codes.VariableOnlyInLauncher
		}
	case "permission":
		if mounted, name := p.unreadable(figures["file"]); mounted != "" {
			figures["volume"], figures["mounted"] = name, mounted
			return codes.UnreadableObject
		}
	case "network":
		// A NetworkPolicy drops packets. What refuses a connection was reached, and names are resolved anyway.
		if p.seen.Isolation != nil && !notDropped.MatchString(figures["errorText"]) {
			figures["policy"], figures["address"] = p.seen.Isolation.Name, p.address(figures["errorText"])
			return codes.IsolatedNetwork
		}
	}
	return nil
}

// setsVariable reports whether the first container of a pod template sets an environment variable.
func setsVariable(spec corev1.PodSpec, name string) bool {
	return len(spec.Containers) > 0 && name != "" && slices.ContainsFunc(spec.Containers[0].Env, func(env corev1.EnvVar) bool { return env.Name == name })
}

// unreadable returns what a file is mounted from and with which mode, if that is a Secret or ConfigMap whose files others than their
// owner and group cannot read, and the name of its volume; "" if it is on no such volume.
func (p *input) unreadable(file string) (mounted, volume string) {
	const readByOthers = 0o4
	if !path.IsAbs(file) {
		return "", ""
	}
	for _, role := range []mpi.Role{mpi.RoleWorker, mpi.RoleLauncher} {
		spec := p.template(role)
		name := volumeOf(spec, file)
		for _, v := range spec.Volumes {
			source, mode := "", (*int32)(nil)
			switch {
			case v.Secret != nil:
				source, mode = "Secret "+v.Secret.SecretName, v.Secret.DefaultMode
			case v.ConfigMap != nil:
				source, mode = "ConfigMap "+v.ConfigMap.Name, v.ConfigMap.DefaultMode
			}
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

var (
	webAddress  = regexp.MustCompile(`\b(?:https?|ftp|s3)://[^\s'"<>)\]]+`)
	hostAndPort = regexp.MustCompile(`host='([^']+)', port=(\d+)`)
)

// address returns what a program could not connect to: as its error names it, or the last address in the launcher's log; "" if it is
// unknown.
func (p *input) address(text string) string {
	if found := hostAndPort.FindStringSubmatch(text); found != nil {
		return found[1] + ":" + found[2]
	}
	if found := webAddress.FindString(text); found != "" {
		return found
	}
	if launcher := p.launcher(); launcher != nil {
		for _, line := range slices.Backward(launcher.log.Lines) {
			if found := webAddress.FindString(line); found != "" {
				return found
			}
		}
	}
	return ""
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
