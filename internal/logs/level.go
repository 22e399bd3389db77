package logs

import (
	"fmt"
	"regexp"
	"strings"
)

// Level is how much a line matters, as far as its text tells.
type Level int

// The levels, from what matters least. LevelNone is that of a line that does not tell.
const (
	LevelNone Level = iota
	LevelDebug
	LevelInfo
	LevelWarning
	LevelError
)

var levelNames = []string{"", "debug", "info", "warning", "error"}

// String is the level's name; empty for LevelNone.
func (l Level) String() string { return levelNames[l] }

// ParseLevel reads the name of a level as people write it.
func ParseLevel(name string) (Level, error) {
	if level, known := declaredLevels[strings.ToLower(name)]; known {
		return level, nil
	}
	return LevelNone, fmt.Errorf("%q is not allowed; use debug, info, warning or error", name)
}

// LevelOf returns the level of a line: the one that a logger wrote, in any of the usual forms, or else that of words with
// which programs and MPI report errors.
func LevelOf(line string) Level {
	if len(line) > 5 && strings.IndexByte("IWEF", line[0]) >= 0 && klogHead.MatchString(line) {
		return map[byte]Level{'I': LevelInfo, 'W': LevelWarning, 'E': LevelError, 'F': LevelError}[line[0]]
	}
	if strings.Contains(line, "evel") || strings.Contains(line, "EVEL") || strings.Contains(line, "everity") || strings.Contains(line, "lvl") {
		if found := declared.FindStringSubmatch(line[:min(len(line), MaxLine)]); found != nil {
			if level, known := declaredLevels[strings.ToLower(found[1])]; known {
				return level
			}
		}
	}
	return spoken(line[:min(len(line), MaxLine)])
}

var (
	// klogHead begins lines of Kubernetes' own logger and of glog: I1121 13:31:00.000000.
	klogHead       = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d`)
	declared       = regexp.MustCompile(`(?i)\b(?:level|levelname|log_level|severity|lvl)["']?\s*[=:]\s*["']?([a-z]+)`)
	declaredLevels = map[string]Level{
		"trace": LevelDebug, "debug": LevelDebug, "info": LevelInfo, "notice": LevelInfo, "warn": LevelWarning, "warning": LevelWarning,
		"error": LevelError, "err": LevelError, "fatal": LevelError, "critical": LevelError, "panic": LevelError,
	}
	// tags are how loggers write a level near the beginning of a line.
	tags = map[string]Level{
		"TRACE": LevelDebug, "DEBUG": LevelDebug, "INFO": LevelInfo, "NOTICE": LevelInfo, "WARN": LevelWarning, "WARNING": LevelWarning,
		"ERROR": LevelError, "FATAL": LevelError, "CRITICAL": LevelError, "SEVERE": LevelError,
	}
	// signs are words that mark a line of a level without being its tag.
	signs = map[string]Level{
		"Warning": LevelWarning, "warning": LevelWarning, "Error": LevelError, "Exception": LevelError, "Traceback": LevelError, "fatal": LevelError, "Fatal": LevelError, "panic": LevelError,
		"TERMINATION": LevelError, "ABORT": LevelError, "MPI_ABORT": LevelError, "SIGSEGV": LevelError, "SIGABRT": LevelError, "SIGKILL": LevelError, "SIGBUS": LevelError, "SIGILL": LevelError, "Segmentation": LevelError,
	}
	// phrases are MPI's own.
	phrases = []string{"mpirun noticed", "exited with non-zero status", "error: ", "error]", "Permission denied", "Connection refused", "command not found", "No such file or directory"}
)

// spoken finds a level's tag among the first words, or else the worst sign in all of them.
func spoken(line string) (worst Level) {
	const early = 80
	for start := 0; start < len(line); {
		if !isWordByte(line[start]) {
			start++
			continue
		}
		end := start
		for end < len(line) && isWordByte(line[end]) {
			end++
		}
		word := line[start:end]
		if level, is := tags[word]; is && start < early {
			return level
		}
		level := signs[word]
		if level == LevelNone && len(word) > len("Error") && (strings.HasSuffix(word, "Error") || strings.HasSuffix(word, "Exception")) {
			level = LevelError
		}
		worst = max(worst, level)
		start = end
	}
	for _, phrase := range phrases {
		if worst < LevelError && strings.Contains(line, phrase) {
			worst = LevelError
		}
	}
	return worst
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
