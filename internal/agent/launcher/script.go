package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// whyNotExecuted explains the kernel's error for a file that exists, as execve(2) returns it.
func whyNotExecuted(name string, err error) (agentapi.Code, string) {
	interpreter, found := interpreterOf(name)
	switch {
	case errors.Is(err, unix.ENOENT) && strings.HasSuffix(interpreter, "\r"):
		return agentapi.WindowsLineEnds, fmt.Sprintf("the first line, which names the interpreter %s, ends with a carriage return", strings.TrimSuffix(interpreter, "\r"))
	case errors.Is(err, unix.ENOENT) && found:
		return agentapi.ProgramMissing, fmt.Sprintf("its interpreter %s is not in the image", interpreter)
	case errors.Is(err, unix.EACCES):
		return agentapi.ProgramMissing, "the file is not executable"
	case errors.Is(err, unix.ENOEXEC):
		return agentapi.ProgramMissing, agentapi.UnknownFormat
	}
	return agentapi.ProgramMissing, err.Error()
}

// explainNoRanks completes the summary of a command that failed, if its only run of an MPI launcher has started no rank because the
// ranks' program is a script without its interpreter. Open MPI 5 ends then without a message.
func explainNoRanks(summary *agentapi.Summary, all []outcome.Launch) {
	if len(all) != 1 || summary.Code != "" || summary.RanksSeen > 0 || summary.InitSeconds > 0 || len(summary.Ranks) > 0 {
		return
	}
	program := mpirun.ProgramOf(all[0].Args, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	path, err := exec.LookPath(program)
	if err != nil {
		return
	}
	interpreter, found := interpreterOf(path)
	if !found {
		return
	}
	if _, err := os.Stat(interpreter); !errors.Is(err, os.ErrNotExist) {
		return
	}
	code, because := whyNotExecuted(path, unix.ENOENT)
	summary.Code, summary.Message = code, fmt.Sprintf("The ranks' program %q cannot be started: %s.", program, because)
}

// explainLineEnds completes the summary of a command that failed, if it is a shell script with Windows line ends, or the ranks' program
// is one: the shell reads the carriage return as a part of the word before it. What the program printed does not show it.
func explainLineEnds(summary *agentapi.Summary, command []string, all []outcome.Launch) {
	if summary.Code != "" && (summary.Code != agentapi.RankFailed || !isShellError(summary.Ranks)) {
		return
	}
	script, what := windowsScript(command), "launcher's command"
	for _, l := range all {
		if script == "" {
			script, what = windowsScript(l.Args), "ranks' program"
		}
	}
	if script != "" {
		summary.Code, summary.Message = agentapi.WindowsLineEnds, fmt.Sprintf("The %s %q is a shell script with Windows line ends (CR LF).", what, script)
	}
}

// isShellError reports whether a rank ended first as shells end that do not understand a line of their script.
func isShellError(ends []agentapi.RankEnd) bool {
	return len(ends) > 0 && ends[0].Signal == 0 && (ends[0].ExitCode == 2 || ends[0].ExitCode == 126 || ends[0].ExitCode == 127)
}

// windowsScript returns the first of the words of a command that is a shell script with Windows line ends: one that a shell is to run, or
// whose first line names a shell; "" if there is none.
func windowsScript(words []string) string {
	const most = 4096
	isShell := false
	for _, word := range words {
		if shell.MatchString(word) {
			isShell = true
			continue
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			head := process.Head(word, most)
			first, _, _ := bytes.Cut(head, []byte("\n"))
			if bytes.HasSuffix(first, []byte("\r")) && (isShell || bytes.HasPrefix(first, []byte("#!")) && shell.Match(bytes.TrimRight(first, "\r"))) {
				return word
			}
		}
	}
	return ""
}

// shell matches a shell, also as the interpreter that the first line of a script names.
var shell = regexp.MustCompile(`(?:^|[/ ])(?:ba|da|k|z|a)?sh$`)

// interpreterOf returns the interpreter that the first line of a script names, as the kernel reads it: up to a space, with the
// carriage return of Windows' line ends.
func interpreterOf(script string) (interpreter string, found bool) {
	const most = 256
	line, _, _ := strings.Cut(string(process.Head(script, most)), "\n")
	line, found = strings.CutPrefix(line, "#!")
	line, _, _ = strings.Cut(strings.Trim(line, " \t"), " ")
	return line, found && line != ""
}
