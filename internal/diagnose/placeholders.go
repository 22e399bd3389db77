package diagnose

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// plainWord is a word that a shell and the command of a container take alike.
	plainWord = regexp.MustCompile(`^[\w./:=,@%+-]+$`)
	// interpreter is the program of a Python script, and its flags those without a value.
	interpreter      = regexp.MustCompile(`^python[\d.]*$`)
	interpreterFlags = regexp.MustCompile(`^-[bBEIOsSuvqP]+$`)
)

// placeholder is what remedies have for the program that MPI starts. maxProgram is the longest program that replaces it, in bytes.
const (
	placeholder = "<program>"
	maxProgram  = 160
)

// nameProgram replaces the placeholders for the program of the ranks in the command of a remedy, if the specification has a single call of MPI's
// launcher whose words need no quotes and contain no secrets.
func (p *input) nameProgram(action string) string {
	if !strings.Contains(action, placeholder) && action != codes.ByMPI4Py {
		return action
	}
	command := p.LauncherCommand()
	programs, options := mpi.ProgramsOfLaunchers(command), mpi.OptionsOfLaunchers(command)
	if len(programs) != 1 || len(programs[0]) == 0 {
		return action
	}
	if spec := p.Template(mpi.RoleLauncher); !shell.MatchString(path.Base(strings.Fields(command)[0])) && slices.ContainsFunc(slices.Concat(spec.Containers[0].Command, spec.Containers[0].Args), hasBlank) {
		return action
	}
	program := programs[0]
	text := strings.Join(program, " ")
	isPlain := !slices.ContainsFunc(program, func(word string) bool { return !plainWord.MatchString(word) })
	if !isPlain || len(text) > maxProgram || p.mask(text) != text || shell.MatchString(path.Base(program[0])) {
		return action
	}
	isPython := interpreter.MatchString(path.Base(program[0]))
	switch {
	case action == codes.ByMPI4Py:
		if !isPython || slices.Contains(program, "mpi4py") {
			return action
		}
		at := 1
		for at < len(program) && interpreterFlags.MatchString(program[at]) {
			at++
		}
		words := slices.Insert(slices.Clone(program), at, "-m", "mpi4py")
		return strings.Join(strings.Fields("mpirun "+p.plainOptions(options[0])+" "+strings.Join(words, " ")), " ")
	case strings.Contains(action, "python "+placeholder):
		if !isPython {
			return action
		}
		return strings.ReplaceAll(action, "python "+placeholder, text)
	case strings.Contains(action, "ldd "+placeholder):
		if isPython || !path.IsAbs(program[0]) {
			return action
		}
		return strings.ReplaceAll(action, placeholder, program[0])
	}
	return strings.ReplaceAll(action, placeholder, text)
}

// plainOptions returns the options of MPI's launcher if they need no quotes and contain no secrets; else "...".
func (p *input) plainOptions(options string) string {
	if slices.ContainsFunc(strings.Fields(options), func(word string) bool { return !plainWord.MatchString(word) }) || p.mask(options) != options {
		return "..."
	}
	return options
}

// hasBlank reports whether a word of a command needs quotes in a shell, which the command in one line does not have.
func hasBlank(word string) bool { return word == "" || strings.ContainsAny(word, " \t\n") }

var shell = regexp.MustCompile(`^(?:[bdkz]?a?sh)$`)
