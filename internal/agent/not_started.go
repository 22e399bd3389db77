package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// notStarted reports why the launcher's command could not be started, and returns a shell's exit code.
func (s *supervisor) notStarted(name string, err error) int {
	code, summary := 126, agentapi.Summary{Role: agentapi.RoleLauncher, Code: agentapi.ProgramMissing}
	interpreter, found := interpreterOf(name)
	because := err.Error()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		code = 127
		summary.Message = fmt.Sprintf("The launcher's command %q is not in its image: %v.", name, err)
	case errors.Is(err, unix.ENOENT) && strings.HasSuffix(interpreter, "\r"):
		summary.Code, because = agentapi.WindowsLineEnds, fmt.Sprintf("the first line, which names the interpreter %s, ends with a carriage return", strings.TrimSuffix(interpreter, "\r"))
	case errors.Is(err, unix.ENOENT) && found:
		because = fmt.Sprintf("its interpreter %s is not in the image", interpreter)
	case errors.Is(err, unix.EACCES):
		because = "the file is not executable"
	case errors.Is(err, unix.ENOEXEC):
		because = "it is a script whose first line names no interpreter, or a program for another CPU architecture"
	}
	if summary.Message == "" {
		summary.Message = fmt.Sprintf("The launcher's command %q cannot be started: %s.", name, because)
	}
	summary.ExitCode = new(int32(code))
	fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	writeTermination(summary)
	return code
}

// interpreterOf returns the interpreter that the first line of a script names, as the kernel reads it: up to a space, with the
// carriage return of Windows' line ends.
func interpreterOf(script string) (interpreter string, found bool) {
	const most = 256
	file, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer file.Close()
	head := make([]byte, most)
	n, _ := io.ReadFull(file, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	line, found = strings.CutPrefix(line, "#!")
	line, _, _ = strings.Cut(strings.Trim(line, " \t"), " ")
	return line, found && line != ""
}
