package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
)

// asInit returns the facts with an init container in place of the main container of every pod, so that what holds for a rank's program is asked of it, and
// its index in the list; false if the pod template has no such container.
func (p *input) asInit(pod facts.Pod, name string) (own *input, index int, has bool) {
	spec := p.Template(pod.Role)
	index = slices.IndexFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
	if index < 0 {
		return nil, 0, false
	}
	main := spec.InitContainers[index]
	spec.Containers, spec.InitContainers = []corev1.Container{main}, spec.InitContainers[:index]
	all := *p.Facts
	all.Job.Launcher.Template.Spec, all.Job.Workers.Template.Spec = spec, spec
	return &input{&all}, index, true
}

// initWords adds the error that an init container printed to the figures, and returns the lines of its log that show it and the remedies for it, before
// those of any init container. Both are nil if it printed none.
func (p *input) initWords(pod facts.Pod, name string, figures map[string]string) (evidence []string, remedies []v1alpha1.Remedy) {
	found := loglines.FirstError(pod.Log.Lines)
	own, index, has := p.asInit(pod, name)
	if found == nil || !has {
		return nil, nil
	}
	evidence = own.addError(pod, found, figures)
	rest := codes.InitContainerFailed.Remedies
	if codes.OwnErrorIn(cmp.Or(figures["wholeError"], figures["errorText"]), figures["ownSource"]) == nil {
		return evidence, rest
	}
	entry := own.ownError(codes.Lookup(codes.ApplicationFailed), figures)
	figures["programTemplate"] = p.field(pod.Role)
	at := fmt.Sprintf(".spec.initContainers[%d]", index)
	for _, r := range entry.Remedies {
		r.Action = mainContainer.ReplaceAllLiteralString(r.Action, at)
		if rest, isLaunchers := strings.CutPrefix(r.Action, "{launcherTemplate}"); isLaunchers {
			r.Action = "{programTemplate}" + rest
		}
		for ranks, init := range wordsOfInit {
			r.Text = strings.ReplaceAll(r.Text, ranks, init)
		}
		// What a change would do is meant for the main container.
		r.Rerun, r.Changes = false, nil
		remedies = append(remedies, r)
	}
	return evidence, append(remedies, rest[0])
}

var (
	// mainContainer is the container of a pod template in the actions of remedies.
	mainContainer = regexp.MustCompile(`\.spec\.containers\[0\]`)
	// wordsOfInit maps phrases in remedies for ranks to the phrases for an init container.
	wordsOfInit = map[string]string{
		" in the pod of this rank":                                                           "",
		"in the image of every pod in which ranks run":                                       "in the image of this init container",
		"It must exist in every pod in which a rank opens it: in the image, or on a":         "It must be in the image of this init container, or on a",
		"in both pod templates. Open MPI passes a variable of the launcher on only with -x.": "for this init container: it does not have the variables of other containers.",
	}
)
