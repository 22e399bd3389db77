package mpi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/phrase"
)

// betweenPods are the transports of Open MPI's byte transfer layer that connect pods; the others stay within one
// (ompi/opal/mca/btl).
var betweenPods = []string{"tcp", "ofi", "uct", "openib", "usnic", "ugni", "portals4"}

// selection matches a selection of Open MPI's components in a command line, for example --mca btl ^tcp.
var selection = regexp.MustCompile(`(?:^|\s)--?g?(?:mca|omca)\s+(btl|pml|mtl)\s+["']?([^\s"']+)`)

// warnTransport returns a warning if the launcher selects components of Open MPI that connect no pods.
func (j Job) warnTransport(words []string, env []corev1.EnvVar, command, variables *field.Path) []string {
	selected, inCommand := j.withoutTransport(words, env)
	if selected == "" {
		return nil
	}
	at := variables
	if inCommand {
		at = command
	}
	return []string{fmt.Sprintf("%s: btl %q leaves Open MPI without a transport between the pods: add tcp, or select another messaging layer, such as --mca pml ucx", at, phrase.Cut(selected, maxShownName))}
}

// WithoutTransport returns the selection of Open MPI's transports (btl) in the launcher's command or variables if none of them connects
// pods, and "" otherwise.
func (j Job) WithoutTransport() string {
	containers := j.Launcher.Template.Spec.Containers
	if len(containers) == 0 {
		return ""
	}
	selected, _ := j.withoutTransport(slices.Concat(containers[0].Command, containers[0].Args), containers[0].Env)
	return selected
}

// SelectedComponent returns what the launcher's command or variables select of a framework of Open MPI (btl, pml or mtl), and how, such as
// "ucx (OMPI_MCA_pml)"; "" if they select nothing.
func (j Job) SelectedComponent(framework string) string {
	containers := j.Launcher.Template.Spec.Containers
	if len(containers) == 0 {
		return ""
	}
	selected := ""
	for _, variable := range containers[0].Env {
		if variable.Name == "OMPI_MCA_"+framework && variable.Value != "" {
			selected = fmt.Sprintf("%s (%s)", phrase.Cut(variable.Value, maxShownName), variable.Name)
		}
	}
	for _, found := range selection.FindAllStringSubmatch(strings.Join(slices.Concat(containers[0].Command, containers[0].Args), " "), -1) {
		if found[1] == framework {
			selected = fmt.Sprintf("%s (--mca %s)", phrase.Cut(found[2], maxShownName), framework)
		}
	}
	return selected
}

func (j Job) withoutTransport(words []string, env []corev1.EnvVar) (btl string, inCommand bool) {
	if j.Implementation != OpenMPI || j.hostCount() < 2 {
		return "", false
	}
	selected := map[string]string{}
	for _, variable := range env {
		if component, is := strings.CutPrefix(variable.Name, "OMPI_MCA_"); is {
			selected[component] = strings.TrimSpace(variable.Value)
		}
	}
	for _, found := range selection.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		// The command line overrides the environment.
		selected[found[1]] = found[2]
		inCommand = inCommand || found[1] == "btl"
	}
	if pml := selected["pml"]; pml != "" && pml != "ob1" || !StaysInPod(selected["btl"]) {
		return "", false
	}
	return selected["btl"], inCommand
}

// StaysInPod reports whether a selection of byte transfer layers has none that connects pods.
func StaysInPod(selection string) bool {
	names, excludes := strings.CutPrefix(selection, "^")
	list := strings.Split(names, ",")
	switch {
	case selection == "" || strings.Contains(selection, "$"):
		return false
	case excludes:
		return slices.Contains(list, "tcp")
	}
	return !slices.ContainsFunc(list, func(name string) bool { return slices.Contains(betweenPods, name) })
}
