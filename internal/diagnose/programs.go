package diagnose

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// programMissing reports that the launcher's own command, or the program of the ranks, does not exist or cannot be started, as the
// launcher's agent found.
func (p *input) programMissing() *Finding {
	s := p.LauncherSummary()
	if s == nil || s.Code != agentapi.ProgramMissing && s.Code != agentapi.WindowsLineEnds {
		return nil
	}
	launcher := p.FailedLauncher()
	if launcher == nil {
		launcher = p.Launcher()
	}
	entry, figures := missingEntry(s)
	f := p.findAs(entry, []facts.Pod{*launcher}, figures)
	// The agent prints its message, too.
	f.Evidence, f.ExitCode = []string{facts.LogLine(*launcher, agentapi.Logger+": "+s.Message)}, s.ExitCode
	return &f
}

// missingEntry returns the definition for what the launcher's agent found of a program that it did not start, with figures.
func missingEntry(s *agentapi.Summary) (entry codes.Entry, figures map[string]string) {
	entry, figures = codes.Lookup(codes.ProgramMissing), map[string]string{"where": "the launcher"}
	name := commandOf.FindStringSubmatch(s.Message)
	if name == nil {
		return entry, figures
	}
	figures["program"] = name[1]
	written, err := strconv.Unquote(name[1])
	if words := splitCommand(written); err == nil && len(words) > 1 {
		entry, figures["words"] = codes.CommandInOneWord, list(words)
	}
	if reason := notStartedFor.FindStringSubmatch(s.Message); reason != nil {
		entry, figures["reason"] = codes.CommandNotStarted, reason[1]
		if strings.HasPrefix(s.Message, "The ranks' program ") {
			entry, figures["where"], figures["program"] = codes.RankNotStarted, "", written
		}
		if strings.HasPrefix(reason[1], "its interpreter ") {
			entry, figures["program"] = codes.InterpreterMissing, written
		}
	}
	if err == nil && figures["words"] == "" && figures["reason"] == "" {
		figures["program"] = written
	}
	if s.Code == agentapi.WindowsLineEnds {
		entry, figures["file"], figures["program"] = codes.Lookup(codes.WindowsLineEnds), written, ""
		if interpreter := interpreterIn.FindStringSubmatch(s.Message); interpreter != nil {
			figures["program"] = interpreter[1]
		}
	}
	return entry, figures
}

var (
	// commandOf is where the agent names the launcher's command or the program of the ranks, notStartedFor why it cannot be started although it exists, and
	// interpreterIn the interpreter of a script.
	commandOf     = regexp.MustCompile(`(?:command|program) ("(?:[^"\\]|\\.)+")`)
	notStartedFor = regexp.MustCompile(`" cannot be started: (.+)\.$`)
	interpreterIn = regexp.MustCompile(`names the interpreter (\S+),`)
)

// splitCommand returns the words of a command that was written as one word. What only a shell understands is left to a shell.
func splitCommand(command string) []string {
	words := strings.Fields(command)
	if len(words) > 1 && strings.ContainsAny(command, "'$|&;<>*?`(){}\\") {
		return []string{"sh", "-c", command}
	}
	return words
}

// list writes words as a list in YAML, which JSON is.
func list(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// notStarted reads why the container runtime could not start a container's command, and returns the definition for it.
func (p *input) notStarted(pod facts.Pod, message string, figures map[string]string) codes.Entry {
	if p.lacksMemory(pod, message, figures) || p.mountRefused(pod.Role, message, figures) {
		return codes.Lookup(codes.ContainerCreateFailed)
	}
	if entry, is := p.nodeLacks(pod.Role, message, figures); is {
		return entry
	}
	program, lacking := missingCommand(message)
	if !lacking {
		figures["message"] = facts.Sentence(message)
		return codes.Lookup(codes.ContainerCreateFailed)
	}
	figures["where"], figures["program"] = lower(pod.Title()), program
	return codes.Lookup(codes.ProgramMissing)
}

// lacksMemory reports whether a container did not start because of a memory limit with which no process starts, and adds figures for that.
func (p *input) lacksMemory(pod facts.Pod, message string, figures map[string]string) bool {
	if !memoryTooSmall.MatchString(message) {
		return false
	}
	limit := "its memory limit"
	if main := p.Template(pod.Role).Containers; len(main) > 0 {
		if q, is := main[0].Resources.Limits[corev1.ResourceMemory]; is {
			limit += " of " + q.String()
		}
	}
	figures["message"] = limit + " is too small for any process."
	figures["first"] = "Increase the memory limit. In quantities, Mi is mebibytes and m is a thousandth: 512Mi."
	return true
}

// memoryTooSmall is what runc and crun report about a memory limit with which no process starts.
var memoryTooSmall = regexp.MustCompile(`unable to set memory limit|memory limit too low|set memory limit|memory\.max.*: (?:Device or resource busy|Invalid argument)`)

// commandMissing is what runc and crun report of a command that they did not find, or whose interpreter does not exist. Other files that are
// missing are not the command.
var commandMissing = regexp.MustCompile("exec: \"([^\"]+)\".*(?:executable file not found|no such file or directory)|\\bexec (/[^\\s:]+): no such file or directory|executable file [`']([^`']+)[`'] not found|exec user process caused.*no such file or directory")

// missingCommand reports whether the container runtime did not find a container's command, and returns it; "" if the message does not name it.
func missingCommand(message string) (program string, is bool) {
	found := commandMissing.FindStringSubmatch(message)
	if found == nil {
		return "", false
	}
	return found[1] + found[2] + found[3], true
}
