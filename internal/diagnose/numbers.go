package diagnose

import (
	"cmp"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
)

// aboutNumbers are the kinds of errors that can follow from numbers of which NumPy has warned.
var aboutNumbers = []string{"check", "assertion", "missing values", "overflow", "domain", "singular"}

// addContext adds what a program printed before an error to the figures, as far as that is about it: a warning of NumPy, of which it returns the line as
// evidence, and the option that was probably meant.
func (p *input) addContext(pod facts.Pod, found *loglines.ErrorLine, figures map[string]string) []string {
	kind := codes.OwnErrorOf(figures["wholeError"])
	if kind != nil && kind.Name == "unknown arguments" {
		figures["meant"] = meantOption(kind.Matches, figures["wholeError"], loglines.Options(pod.Log.Lines, found))
	}
	if kind == nil || !slices.Contains(aboutNumbers, kind.Name) {
		return nil
	}
	warning, place := loglines.NumberWarning(pod.Log.Lines, found)
	if warning == nil {
		return nil
	}
	figures["warned"] = quotedText(warning.Message) + " (" + quotedText(place) + ")"
	return []string{facts.LogLine(pod, warning.Line)}
}

// numbersCause returns the remedies for a condition that the program tests itself, or for numbers that are wrong, with what the job shows of their cause,
// and adds figures for that; nil if it shows nothing.
func (p *input) numbersCause(kind string, figures map[string]string) (remedies []v1alpha1.Remedy) {
	if kind == "check" || kind == "assertion" {
		remedies = p.bufferChanged(figures)
	}
	if figures["warned"] != "" {
		remedies = slices.Concat(remedies, codes.NumbersWarned)
	}
	if own := codes.OwnErrorOf(cmp.Or(figures["wholeError"], causeText(figures))); remedies != nil && own != nil {
		remedies = slices.Concat(remedies, own.Remedies)
	}
	return remedies
}
