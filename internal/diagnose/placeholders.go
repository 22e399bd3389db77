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
	valueFlags       = regexp.MustCompile(`^-[XW]`)
	interpreterFlags = regexp.MustCompile(`^-[bBEIOsSuvqP]+$`)
)

// placeholder is what remedies have for the program that MPI starts. maxProgram is the longest program that replaces it, in bytes.
const (
	placeholder = "<program>"
	maxProgram  = 160
)

// nameProgram replaces the placeholders for the program of the ranks in the command of a remedy, if ownProgram knows it.
func (p *input) nameProgram(action string) string {
	if !strings.Contains(action, placeholder) && action != codes.ByMPI4Py {
		return action
	}
	program, options := p.ownProgram()
	if program == nil {
		return action
	}
	text, isPython := strings.Join(program, " "), interpreter.MatchString(path.Base(program[0]))
	switch {
	case action == codes.ByMPI4Py && (!isPython || slices.Contains(program, "mpi4py")):
		return action
	case action == codes.ByMPI4Py && byMPI4Py(program) == "":
		return action
	case action == codes.ByMPI4Py:
		return strings.Join(strings.Fields("mpirun "+p.plainOptions(options)+" "+byMPI4Py(program)), " ")
	case strings.Contains(action, "python "+placeholder) && isPython:
		return strings.ReplaceAll(action, "python "+placeholder, text)
	case strings.Contains(action, "python "+placeholder):
		return action
	case strings.Contains(action, "ldd "+placeholder) && (isPython || !path.IsAbs(program[0])):
		return action
	case strings.Contains(action, "ldd "+placeholder):
		return strings.ReplaceAll(action, placeholder, program[0])
	}
	return strings.ReplaceAll(action, placeholder, text)
}

// ownProgram returns the words of the program of the ranks and the options of MPI's launcher, if the specification has a single call of it whose
// program needs no quotes and contains no secrets; nil otherwise.
func (p *input) ownProgram() (program []string, options string) {
	command := p.LauncherCommand()
	programs, all := mpi.ProgramsOfLaunchers(command), mpi.OptionsOfLaunchers(command)
	if len(programs) != 1 || len(programs[0]) == 0 {
		return nil, ""
	}
	spec := p.Template(mpi.RoleLauncher)
	if words := slices.Concat(spec.Containers[0].Command, spec.Containers[0].Args); !shell.MatchString(path.Base(words[0])) && slices.ContainsFunc(words, hasBlank) {
		return nil, ""
	}
	program = programs[0]
	text := strings.Join(program, " ")
	isPlain := !slices.ContainsFunc(program, func(word string) bool { return !plainWord.MatchString(word) })
	if !isPlain || len(text) > maxProgram || p.mask(text) != text || shell.MatchString(path.Base(program[0])) {
		return nil, ""
	}
	return program, all[0]
}

// byMPI4Py returns the command of a Python program with the module by which an exception ends all ranks; "" if it has an option that is unknown here.
func byMPI4Py(program []string) string {
	at := 1
	for at < len(program) && (interpreterFlags.MatchString(program[at]) || valueFlags.MatchString(program[at])) {
		if at++; len(program[at-1]) == len("-X") && valueFlags.MatchString(program[at-1]) {
			// Its value is the next word.
			at++
		}
	}
	if at >= len(program) || strings.HasPrefix(program[at], "-") && program[at] != "-m" && program[at] != "-c" {
		return ""
	}
	return strings.Join(slices.Insert(slices.Clone(program), at, "-m", "mpi4py"), " ")
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
