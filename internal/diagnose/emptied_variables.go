package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

// wordWithVariable is a word of a script with a variable, as in /data/part-$RANK.csv.
var wordWithVariable = regexp.MustCompile("[^\\s\"'`;|&()<>=]*\\$[^\\s\"'`;|&()<>]+")

// emptiedVariable returns the remedies for a file that is missing because a variable in its name was empty where a shell replaced it, and adds
// figures for them; nil if no word of the launcher's command becomes this name.
func (p *input) emptiedVariable(figures map[string]string) []v1alpha1.Remedy {
	file := figures["file"]
	if file == "" {
		return nil
	}
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		words := slices.Concat(main.Command, main.Args)
		for _, script := range words {
			if sources.MatchString(script) {
				return nil
			}
			for _, word := range wordWithVariable.FindAllString(script, mostWords) {
				name := emptyIn(word, file)
				if name == "" || isAssigned(name, script) || facts.SetsVariable(p.Template(mpi.RoleWorker), name) || facts.SetsVariable(p.Template(mpi.RoleLauncher), name) {
					continue
				}
				figures["variable"], figures["option"] = name, quotedText(p.mask(word))
				return p.emptyRemedies(name, words, figures)
			}
		}
	}
	return nil
}

// emptyRemedies returns the remedies for a variable that was empty in the launcher's command; nil if it may have a value there.
func (p *input) emptyRemedies(name string, words []string, figures map[string]string) []v1alpha1.Remedy {
	of := p.Job.Implementation
	if of == "" {
		of = mpi.OpenMPI
	}
	meant, isOwn := implementation.RankVariable(name, of)
	_, isScript := mpi.ScriptOf(words)
	switch {
	case isOwn && isScript:
		return codes.ReplacedTooEarly
	case isOwn:
		return nil
	case meant != "":
		figures["meant"], figures["setBy"] = meant, implementation.NameOf(of)
		return codes.VariableOfOtherMPI
	case p.hasUnknownVariables() || setElsewhere.MatchString(name):
		return nil
	}
	return codes.EmptyVariable
}

const (
	// mostWords is how many words with variables are looked at, and longestWord and mostReferences how long they are, and how many variables they have.
	mostWords, longestWord, mostReferences = 200, 256, 8
)

// emptyIn returns the variable of a word of a script that had no value where the word became a file's name; "" if it did not become that.
func emptyIn(word, file string) string {
	found := referenced.FindAllStringSubmatchIndex(word, -1)
	if len(word) > longestWord || len(found) > mostReferences || !identifies(word, found) {
		return ""
	}
	for i, reference := range found {
		if withoutValue(word, found, i).MatchString(file) {
			return strings.Trim(word[reference[0]:reference[1]], "${}")
		}
	}
	return ""
}

// identifies reports whether a file name shows which reference of a word was empty: what remains of the word is long enough, no two
// references are next to each other, and the ranks' shell replaces none of them.
func identifies(word string, references [][]int) bool {
	for i, reference := range references {
		if reference[0] > 0 && word[reference[0]-1] == '\\' || i > 0 && reference[0] == references[i-1][1] {
			return false
		}
	}
	return len(strings.Trim(referenced.ReplaceAllString(word, ""), "/.-_")) >= 3
}

// withoutValue matches what a word becomes if one of its references has no value.
func withoutValue(word string, references [][]int, empty int) *regexp.Regexp {
	var form strings.Builder
	form.WriteString("^")
	at := 0
	for i, reference := range references {
		form.WriteString(regexp.QuoteMeta(word[at:reference[0]]))
		if at = reference[1]; i != empty {
			form.WriteString(`[^/\s]*`)
		}
	}
	form.WriteString(regexp.QuoteMeta(word[at:]) + "$")
	return regexp.MustCompile(form.String())
}
