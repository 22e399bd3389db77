package diagnose

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// containers reports why containers cannot be created.
func containers(p *input) []Finding {
	g := p.Waiting(podstatus.NotCreated)
	if g == nil {
		return nil
	}
	message := cmp.Or(g.Status.State.Waiting.Message, g.Status.State.Waiting.Reason)
	entry, figures := codes.Lookup(codes.ContainerCreateFailed), map[string]string{"message": facts.Sentence(message), "first": creationRemedies[g.Status.State.Waiting.Reason]}
	lack, lacking := p.nodeLacks(g.Pods[0].Role, message, figures)
	program, lacksProgram := missingCommand(message)
	switch absent := missing(message); {
	case absent != "":
		entry, figures["missing"] = codes.Lookup(codes.MissingReference), absent
		if slices.ContainsFunc(p.Job.Connections, func(name string) bool { return absent == fmt.Sprintf("Secret %q", name) }) {
			figures["missing"] = strings.Replace(absent, "Secret", "data connection", 1)
			figures["reference"] = mpi.ConnectionsPath.String()
		}
		if key := missingKey.FindStringSubmatch(absent); key != nil {
			entry, figures["object"], figures["name"] = codes.ReferenceWithoutKey, strings.ToLower(key[2]), key[3]
			if at := keyReference(p.Template(g.Pods[0].Role), key[1], key[3]); at != "" {
				figures["reference"] = p.field(g.Pods[0].Role) + at
			}
		}
	case p.lacksMemory(g.Pods[0], message, figures):
		// Its figures contain the remedy.
	case lacking:
		entry = lack
	case lacksProgram:
		entry, figures["program"], figures["where"] = codes.Lookup(codes.ProgramMissing), program, "the "+string(g.Pods[0].Role)
	case subPathVariable.MatchString(message):
		entry, figures["variable"] = codes.SubPathVariable, subPathVariable.FindStringSubmatch(message)[1]
	case p.mountRefused(g.Pods[0].Role, message, figures):
		// Its figures contain the remedy.
	case p.folderRefused(g.Pods[0].Role, message, figures):
		entry = codes.FolderNotCreated
	default:
		if why, remedy := userRefused(message); why != "" {
			figures["message"], figures["first"] = why, remedy
		}
	}
	f := p.findAs(entry, g.Pods, figures, g.Lines...)
	f.Severity = v1alpha1.SeverityError
	return []Finding{f}
}

// subPathVariable is how the kubelet reports a subPathExpr with an undefined variable (k8s.io/kubernetes/pkg/kubelet/container/helpers.go).
var subPathVariable = regexp.MustCompile(`^missing value for "?(\w+)"?`)

var missingObject = regexp.MustCompile(`(?:(secret|configmap) "([^"]+)" not found|couldn't find key (\S+) in (Secret|ConfigMap) (\S+))`)

// missing returns the Secret or ConfigMap that does not exist according to a message, or "".
func missing(message string) string {
	m := missingObject.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case m[1] != "":
		kind := "Secret"
		if m[1] == "configmap" {
			kind = "ConfigMap"
		}
		return fmt.Sprintf("%s %q", kind, m[2])
	}
	_, name, _ := strings.Cut(m[5], "/")
	if name == "" {
		name = m[5]
	}
	return fmt.Sprintf("key %q of %s %q", m[3], m[4], name)
}

// missingKey matches the text of missing for a key.
var missingKey = regexp.MustCompile(`^key "(.+)" of (Secret|ConfigMap) "(.+)"$`)

// keyReference returns where a pod template has a variable from a key of a Secret or ConfigMap, below the template; "" if it has none.
func keyReference(spec corev1.PodSpec, key, name string) string {
	for list, containers := range map[string][]corev1.Container{"containers": spec.Containers, "initContainers": spec.InitContainers} {
		for i, container := range containers {
			for n, variable := range container.Env {
				from := cmp.Or(variable.ValueFrom, &corev1.EnvVarSource{})
				at := fmt.Sprintf(".spec.%s[%d].env[%d].valueFrom.", list, i, n)
				if ref := from.SecretKeyRef; ref != nil && ref.Key == key && ref.Name == name {
					return at + "secretKeyRef.key"
				}
				if ref := from.ConfigMapKeyRef; ref != nil && ref.Key == key && ref.Name == name {
					return at + "configMapKeyRef.key"
				}
			}
		}
	}
	return ""
}

// refusedMount is what runc and crun report of a mount in a container that is not possible (libcontainer/rootfs_linux.go of runc, and
// linux.c of crun), with its path and the error.
var refusedMount = regexp.MustCompile(`(?:to rootfs at "|mount [^ ]+ to )['"` + "`" + `]?(/?[^"'` + "`" + `\s]+)['"` + "`" + `]?.*?(?i:: (not a directory|is a directory|read-only file system))`)

// mountRefused reports whether a container did not start because one of its volumes cannot be mounted at its path, and adds figures for that.
func (p *input) mountRefused(role mpi.Role, message string, figures map[string]string) bool {
	found := refusedMount.FindStringSubmatch(message)
	if found == nil {
		return false
	}
	at := "/" + strings.TrimPrefix(found[1], "/")
	what := "a volume"
	if mount := facts.MountOf(p.Template(role), at); mount != nil {
		what = "volume " + mount.Name
		if source := facts.SourceOf(p.Template(role), mount.Name); source != "" {
			what += " (" + source + ")"
		}
	}
	if strings.EqualFold(found[2], "read-only file system") {
		figures["message"] = fmt.Sprintf("%s cannot be mounted at %s, which does not exist and lies within another volume or an image that cannot be written to.", what, at)
		figures["first"] = "Mount it at a folder that exists, or outside of the other volume."
		return true
	}
	figures["message"] = fmt.Sprintf("%s is mounted at %s. One of the two is a folder and the other a file.", what, at)
	figures["first"] = fmt.Sprintf("A volume is a folder. To mount one of its files there, add subPath: %s to the mount, and defaultMode: 0755 to the volume if it is a program; or mount the volume at a folder.", path.Base(at))
	return true
}

// refusedFolder is what the kubelet reports of a subPath that it cannot create or open, with the volume. It keeps the error to itself
// (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go).
var refusedFolder = regexp.MustCompile(`failed to (?:create subPath directory|prepare subPath) for volumeMount "([^"]+)"`)

// folderRefused reports whether a container did not start because of the subPath of one of its volumes, and adds figures for that.
func (p *input) folderRefused(role mpi.Role, message string, figures map[string]string) bool {
	found := refusedFolder.FindStringSubmatch(message)
	if found == nil {
		return false
	}
	spec := p.Template(role)
	figures["folder"], figures["volume"] = "the folder of a subPath", "volume "+found[1]
	if source := facts.SourceOf(spec, found[1]); source != "" {
		figures["volume"] += " (" + source + ")"
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, mount := range container.VolumeMounts {
			if folder := cmp.Or(mount.SubPath, mount.SubPathExpr); folder != "" && mount.Name == found[1] {
				figures["folder"] = "folder " + folder
			}
		}
	}
	return true
}

// nonNumericUser is a user of an image that the kubelet cannot tell from root.
var nonNumericUser = regexp.MustCompile(`non-numeric user \(([^)]*)\)`)

// userRefused returns why the kubelet does not start a container that must not run as root, and what to do about it
// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/security_context_others.go); "" if its message is about something else.
func userRefused(message string) (why, remedy string) {
	switch user := nonNumericUser.FindStringSubmatch(message); {
	case user != nil:
		return fmt.Sprintf("its securityContext has runAsNonRoot, and the image names its user %q, which may be root.", user[1]),
			"Set runAsUser to the number of this user, or give the image a numeric USER."
	case strings.Contains(message, "image will run as root"):
		return "its securityContext has runAsNonRoot, and the image runs as root.",
			"Set a runAsUser other than 0, or use an image with a numeric USER other than 0. On OpenShift, remove runAsUser: the project sets it."
	case strings.Contains(message, "breaks non-root policy"):
		return "its securityContext has runAsNonRoot and runAsUser 0, which is root.",
			"Set a runAsUser other than 0, or remove it where the image has one. A container needs no root for MPI."
	}
	return "", ""
}

// creationRemedies are the first remedies for reasons for which a container runtime cannot create a container
// (k8s.io/cri-api/pkg/errors).
var creationRemedies = map[string]string{
	"ImageVolumeMountFailed": "Correct the image volume in the pod template. If it has none, the image of the operator's agent cannot be mounted: report it to the cluster administrator.",
	"RROUnsupported":         "Remove recursiveReadOnly from the volume mounts: the node does not support it.",
}

// commands reports containers that did not start because of a NUL character in their command. Webhooks refuse these in MPIJobs.
func commands(p *input) []Finding {
	for _, pod := range p.Pods {
		main := p.Template(pod.Role).Containers
		if len(main) == 0 || pod.End() == nil && !facts.HasWaiting(pod) {
			continue
		}
		at := slices.IndexFunc(slices.Concat(main[0].Command, main[0].Args), func(word string) bool { return strings.Contains(word, "\x00") })
		if at < 0 {
			continue
		}
		f := p.findAs(codes.CommandWithNUL, []facts.Pod{pod}, nil)
		// A command may contain secrets.
		f.Severity, f.ExitCode, f.Evidence = v1alpha1.SeverityError, pod.ExitCode(), []string{fmt.Sprintf("Word %d of the command of container %s contains it.", at+1, main[0].Name)}
		return []Finding{f}
	}
	return nil
}

// unstartable reports containers whose command the container runtime could not start.
func unstartable(p *input) []Finding {
	var pods []facts.Pod
	for _, pod := range p.Pods {
		if end := pod.End(); end != nil && (end.Reason == facts.StartError || end.Reason == "ContainerCannotRun") {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	f := p.containerEnd(pods[0])
	f.Affected = names(pods)
	return []Finding{f}
}

// initContainers reports workers that do not start because an init container failed. The launcher then cannot reach them.
func initContainers(p *input) []Finding {
	var found []Finding
	for _, pod := range p.Pods {
		end := pod.End()
		if pod.Role != mpi.RoleWorker || pod.FailedInit() == "" || end == nil || pod.DeletionTimestamp != nil {
			continue
		}
		if end.ExitCode == facts.Terminated || end.ExitCode == facts.KilledCode {
			// It was ended with its pod.
			continue
		}
		if f := p.containerEnd(pod); len(found) == 0 {
			found = append(found, f)
		} else {
			absorb(&found[0], Finding{Affected: f.Affected, Evidence: f.Evidence[:1]})
		}
	}
	return found
}

// crashes reports workers in a crash loop. For a launcher, how its program ended is a better cause.
func crashes(p *input) []Finding {
	g := p.Waiting(podstatus.CrashLoop)
	if g == nil || g.Pods[0].Role == mpi.RoleLauncher || g.Pods[0].IsSidecar(g.Status.Name) {
		return nil
	}
	figures := map[string]string{"container": g.Status.Name, "times": fmt.Sprint(g.Status.RestartCount + 1), "code": "unknown"}
	var code *int32
	if last := g.Status.LastTerminationState.Terminated; last != nil {
		figures["code"], code = fmt.Sprint(last.ExitCode), &last.ExitCode
	}
	entry := codes.Lookup(codes.CrashLoop)
	if facts.IsInit(g.Pods[0], g.Status.Name) {
		entry = codes.InitContainerCrashes
	}
	words := facts.LastLines(g.Pods[0])
	if entry.Summary == codes.InitContainerCrashes.Summary {
		if own, remedies := p.initWords(g.Pods[0], g.Status.Name, figures); remedies != nil {
			words, entry.Remedies = own, remedies
		}
	}
	f := p.findAs(entry, g.Pods, figures)
	f.ExitCode = code
	f.Evidence = append(g.Lines, words...)
	return []Finding{f}
}
