package mpi

import (
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reference is a reference to a variable as Kubernetes expands it, or $$, which is a dollar sign (k8s.io/kubernetes/third_party/forked/golang/expansion).
var reference = regexp.MustCompile(`\$\$|\$\(([A-Za-z_][\w.-]*)\)`)

// WarnReferences returns warnings about references to variables that Kubernetes does not expand: only those to variables earlier in the
// list, to known, which come before it, and to those of envFrom, whose names are unknown here, are expanded. at is the list's path.
func WarnReferences(env []corev1.EnvVar, from []corev1.EnvFromSource, at *field.Path, known ...corev1.EnvVar) (warnings []string) {
	if len(from) > 0 {
		return nil
	}
	for i, variable := range env {
		for _, found := range reference.FindAllStringSubmatch(variable.Value, -1) {
			name := found[1]
			defines := func(other corev1.EnvVar) bool { return other.Name == name }
			if name == "" || isServiceVariable(name) || slices.ContainsFunc(env[:i], defines) || slices.ContainsFunc(known, defines) {
				continue
			}
			remedy := "define " + name + ": variables of the image do not count"
			if slices.ContainsFunc(env[i+1:], defines) {
				remedy = "move " + name + " before it"
			}
			warnings = append(warnings, fmt.Sprintf("%s: $(%s) is not expanded, because no such variable is defined before it; %s", at.Index(i).Child("value"), name, remedy))
		}
	}
	return warnings
}

// WarnCommandReferences is WarnReferences for a command or arguments at a path. Shells give $(NAME) a meaning of their own.
func WarnCommandReferences(words []string, env []corev1.EnvVar, from []corev1.EnvFromSource, at *field.Path) (warnings []string) {
	if len(from) > 0 || slices.ContainsFunc(words, isShell) {
		return nil
	}
	for i, word := range words {
		for _, found := range reference.FindAllStringSubmatch(word, -1) {
			name := found[1]
			if name == "" || isServiceVariable(name) || slices.ContainsFunc(env, func(other corev1.EnvVar) bool { return other.Name == name }) {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s: $(%s) is not expanded, because env has no such variable; define it, or correct its name", at.Index(i), name))
		}
	}
	return warnings
}

// UnexpandedIn returns the first word of a container's command or arguments with a reference to a variable that neither Kubernetes nor a
// shell replaces, and the variable; "" if there is none.
func UnexpandedIn(container corev1.Container) (word, variable string) {
	for word, variable := range UnexpandedWords(container) {
		return word, variable
	}
	return "", ""
}

// UnexpandedWords returns all such words, each with the first such variable.
func UnexpandedWords(container corev1.Container) iter.Seq2[string, string] {
	return func(yield func(word, variable string) bool) {
		words := slices.Concat(container.Command, container.Args)
		if len(words) == 0 || slices.ContainsFunc(words, isShell) {
			return
		}
		callsMPI := slices.Contains(Launchers, path.Base(words[0]))
		for _, word := range words {
			name := unexpandedBy(container, word)
			if found := shellVariable.FindStringSubmatch(word); name == "" && found != nil && callsMPI {
				name = found[1] + found[2]
			}
			if name != "" && !yield(word, name) {
				return
			}
		}
	}
}

// unexpandedBy returns the first variable of a word to which it refers as Kubernetes expands it, and that the container does not define; "" if
// there is none.
func unexpandedBy(container corev1.Container, word string) string {
	for _, found := range reference.FindAllStringSubmatch(word, -1) {
		name := found[1]
		if name == "" || len(container.EnvFrom) > 0 || isServiceVariable(name) || slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == name }) {
			continue
		}
		return name
	}
	return ""
}

// isServiceVariable reports whether a name is of those that the kubelet sets for the Services of a namespace.
func isServiceVariable(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

// warnReferences returns those of a job's main containers. The variables of data connections are unknown.
func warnReferences(j Job) (warnings []string) {
	if len(j.Connections) > 0 {
		return nil
	}
	for _, role := range []struct {
		at       *field.Path
		template corev1.PodTemplateSpec
	}{{j.Fields.LauncherTemplate, j.Launcher.Template}, {j.Fields.WorkerTemplate, j.Workers.Template}} {
		for i, container := range role.template.Spec.Containers {
			warnings = append(warnings, j.WarnLocalMaster(container.Env, role.at.Child("spec", "containers").Index(i).Child("env"))...)
			at := role.at.Child("spec", "containers").Index(i)
			warnings = append(warnings, WarnReferences(container.Env, container.EnvFrom, at.Child("env"))...)
			warnings = append(warnings, WarnCommandReferences(container.Command, container.Env, container.EnvFrom, at.Child("command"))...)
			if !slices.ContainsFunc(container.Command, isShell) {
				warnings = append(warnings, WarnCommandReferences(container.Args, container.Env, container.EnvFrom, at.Child("args"))...)
			}
		}
	}
	return warnings
}

// WarnLocalMaster returns a warning about the variable at a path with the address at which the ranks of PyTorch meet, if that is each pod's
// own; nil if it is not.
func (j Job) WarnLocalMaster(env []corev1.EnvVar, at *field.Path) []string {
	for i, v := range env {
		if v.Name == "MASTER_ADDR" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, v.Value) && j.hostCount() > 1 {
			return []string{fmt.Sprintf("%s: MASTER_ADDR is %s, which is another pod for the ranks of each pod, so that they wait for each other and do not begin: name the host of rank 0, which is usually %s",
				at.Index(i).Child("value"), v.Value, j.Hosts("")[0].Name)}
		}
	}
	return nil
}

// WarnPath returns a warning about the variable PATH in the list at a path, with which programs of the image are not found; nil if it is not set,
// or has the folders in which images have programs.
func WarnPath(env []corev1.EnvVar, at *field.Path) []string {
	for i, v := range env {
		if v.Name != "PATH" || v.Value == "" {
			continue
		}
		at := at.Index(i).Child("value")
		if found := shellVariable.FindString(v.Value); found != "" {
			return []string{fmt.Sprintf("%s: PATH replaces that of the image, because no shell expands %s here: write all folders of the image's PATH, or remove the variable",
				at, found[strings.Index(found, "$"):])}
		}
		folders := strings.Split(v.Value, ":")
		hasPrograms := func(folder string) bool {
			return slices.Contains([]string{"/usr/bin", "/bin"}, path.Clean(folder)) || strings.Contains(folder, "$(")
		}
		if !slices.ContainsFunc(folders, hasPrograms) {
			return []string{fmt.Sprintf("%s: PATH replaces that of the image, and has no /usr/bin, so that programs such as sh are not found: add the folders of the image's PATH, or remove the variable", at)}
		}
	}
	return nil
}

// warnPaths returns those of the main containers, in which ranks run.
func warnPaths(j Job) (warnings []string) {
	for _, role := range []struct {
		at       *field.Path
		template corev1.PodTemplateSpec
	}{{j.Fields.LauncherTemplate, j.Launcher.Template}, {j.Fields.WorkerTemplate, j.Workers.Template}} {
		if containers := role.template.Spec.Containers; len(containers) > 0 {
			warnings = append(warnings, WarnPath(containers[0].Env, role.at.Child("spec", "containers").Index(0).Child("env"))...)
		}
	}
	return warnings
}
