package diagnose

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// inlineOfScript is a program that a script of a shell gives to Python as an argument in quotation marks: its lines are not changed in single ones, and in
	// double ones only where they have variables.
	inlineOfScript = regexp.MustCompile(`(?s)\bpython[\d.]*(?:\s+(?:-[a-zA-Z]*[WX]\s+\S+|-[a-zA-Z]*m\s+mpi4py|-[a-zA-Z]+))*\s+-[a-zA-Z]*c\s+(?:'([^']+)'|"((?:[^"\\]|\\.)+)")`)
	// hereDocument is a program that a script gives to Python as its standard input, by a quoted delimiter.
	hereDocument = regexp.MustCompile(`(?m)\bpython[\d.]*\b[^\n|;&]*<<(-?)\s*(?:'(\w+)'|"(\w+)"|(\w+))[^\n]*\n`)
	// programOption is how Python is given a program as a word, such as -c or -uc.
	programOption = regexp.MustCompile(`^-[a-zA-Z]*c$`)
	// inlineFrame is a call in a program that has no file: one in an argument, or in the standard input.
	inlineFrame = regexp.MustCompile(`File "(<string>|<stdin>)", line (\d+)`)
)

const (
	// mostPrograms is how many programs of a command are looked for, and longestScript the longest word of it, in bytes, that is read for them.
	mostPrograms  = 2
	longestScript = 64 << 10
)

// standardInput is the name that Python gives to the file of a program that is its standard input.
const standardInput = "<stdin>"

// inlineSource returns the line of a program in the launcher's command which a line of a traceback names; "" if the line names a file, or the
// command has no such program, or several. Python shows no source of these before version 3.13.
func (p *input) inlineSource(frame string) string {
	named := inlineFrame.FindStringSubmatch(frame)
	if named == nil {
		return ""
	}
	var programs []string
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		programs = inlinePrograms(slices.Concat(main.Command, main.Args), named[1])
	}
	number, err := strconv.Atoi(named[2])
	if len(programs) != 1 || err != nil {
		return ""
	}
	lines := strings.Split(programs[0], "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.TrimSpace(p.mask(lines[number-1]))
}

// inlineProgram returns the only program of Python in the launcher's command that has no file; "" if there is none, or several.
func (p *input) inlineProgram() string {
	for _, main := range first(p.Template(mpi.RoleLauncher).Containers) {
		words := slices.Concat(main.Command, main.Args)
		if programs := append(inlinePrograms(words, agentapi.InlineFile), inlinePrograms(words, standardInput)...); len(programs) == 1 {
			return programs[0]
		}
	}
	return ""
}

// inlinePrograms returns the programs of Python in a command that have no file: as an argument (agentapi.InlineFile), or as the standard input.
func inlinePrograms(words []string, file string) (programs []string) {
	for i, word := range words {
		if len(programs) >= mostPrograms {
			break
		}
		if len(word) > longestScript {
			continue
		}
		if i >= 2 && programOption.MatchString(words[i-1]) {
			if endsWithPython(words[:i-1]) {
				if file == agentapi.InlineFile {
					programs = append(programs, word)
				}
				continue
			}
		}
		if file == standardInput {
			programs = append(programs, hereDocuments(word)...)
			continue
		}
		for _, found := range inlineOfScript.FindAllStringSubmatch(word, mostPrograms) {
			programs = append(programs, cmp.Or(found[1], inDoubleQuotes.Replace(found[2])))
		}
	}
	return programs
}

// inDoubleQuotes replaces what a shell replaces in double quotation marks, but for variables and commands.
var inDoubleQuotes = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`", "\\\n", "")

// valueOption is an option of Python with its value in the next word. The module mpi4py accepts -c, as Python does (python -m mpi4py -c).
var valueOption = regexp.MustCompile(`^-[a-zA-Z]*([mWX])$`)

// endsWithPython reports whether words end with Python and options of its own.
func endsWithPython(words []string) bool {
	for i, word := range slices.Backward(words) {
		switch {
		case strings.HasPrefix(word, "-"):
		case interpreter.MatchString(path.Base(word)):
			return true
		case i == 0:
			return false
		default:
			if option := valueOption.FindStringSubmatch(words[i-1]); option == nil || option[1] == "m" && word != "mpi4py" {
				return false
			}
		}
	}
	return false
}

// hereDocuments returns the texts that a script gives to Python as its standard input: at most two, since more than one does not show which one it is.
func hereDocuments(script string) (texts []string) {
	for len(texts) < mostPrograms {
		at := hereDocument.FindStringSubmatchIndex(script)
		if at == nil {
			return texts
		}
		delimiter := ""
		for group := 4; group < len(at); group += 2 {
			if at[group] >= 0 {
				delimiter = script[at[group]:at[group+1]]
			}
		}
		indented, ended := at[2] < at[3], false
		var lines []string
		script = script[at[1]:]
		for rest := script; rest != "" && !ended; {
			var line string
			line, rest, _ = strings.Cut(rest, "\n")
			if indented {
				line = strings.TrimLeft(line, "\t")
			}
			if ended = line == delimiter; ended {
				script = rest
			} else {
				lines = append(lines, line)
			}
		}
		if !ended {
			return texts
		}
		texts = append(texts, strings.Join(lines, "\n"))
	}
	return texts
}
