package loglines

import (
	"path"
	"regexp"
	"strings"
)

// scriptLine is how shells begin an error of a script: dash ("run.sh: 3: "), bash and busybox ("run.sh: line 3: "). Of a script in the
// command itself (sh -c) they name the shell.
const scriptLine = `(?:(?:[^\s:]*/[^\s:]+|[^\s:]*sh): (?:-c: )?(?:line )?|[^\s:]+: line )\d+: `

// inScript matches such a beginning, with the script and the number of its line.
var inScript = regexp.MustCompile(`^([^\s:]+): (?:-c: )?(?:line )?(\d+): `)

// withoutScript returns an error without the script and the line that a shell writes before it.
func withoutScript(message string) string { return beginsInScript.ReplaceAllString(message, "") }

var beginsInScript = regexp.MustCompile(`^` + scriptLine)

// ScriptPlace returns where in a script a shell reported an error, by its line of a log, such as "run.sh, line 3"; "" if the line is not a
// shell's, or the script is part of the command.
func ScriptPlace(line string) string {
	text := line[len(RankTag.FindString(line)):]
	if !beginsInScript.MatchString(text) {
		return ""
	}
	found := inScript.FindStringSubmatch(text)
	if found == nil || IsShell(found[1]) {
		return ""
	}
	return path.Base(found[1]) + ", line " + found[2]
}

// IsShell reports whether a program is a shell.
func IsShell(program string) bool {
	switch strings.TrimPrefix(path.Base(program), "-") {
	case "sh", "bash", "dash", "ash", "ksh", "zsh", "busybox":
		return true
	}
	return false
}
