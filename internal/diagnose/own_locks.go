package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// ofAgent matches the comment in which the launcher's agent reports the values of variables in a line.
var ofAgent = regexp.MustCompile(` +# \w+ = "[^"]*"(?:, \w+ = "[^"]*")*$`)

// codeOf returns a line of a program without its own comment, as it is shown, and the code in it. The line shown keeps the values that the agent reports.
func codeOf(line string) (shown, code string) {
	values := ofAgent.FindString(line)
	code = strings.TrimSpace(agentapi.WithoutComment(strings.TrimSuffix(line, values)))
	if code == "" {
		return line, line
	}
	return code + values, code
}

// takenLock is a line that waits for a lock of the program's own threads: by a with statement, or acquire. A lock of MPI is one of other ranks.
var takenLock = regexp.MustCompile(`^(?:async )?with ((?:\w+\.)*(?:\w*(?i:lock|mutex|semaphore|condition)\w*|(?:\w+_)?cond|_cv|cv)(?:\[[^\]]*\])?)(?: as \w+)?\s*[:,]|((?:[\w.]|\[[^\]]*\]|\(\))+)\.acquire\(`)

// lockOf returns the lock for which a line waits; "" if it waits for none.
func lockOf(source string) string {
	found := takenLock.FindStringSubmatch(source)
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

// ownLock returns the lock for which a place waits if a function that has led there may hold it, and that function: it is the same one, or another one of the
// same class with a lock of its object. Without the code around the other calls, it is not certain.
func (at place) ownLock() (lock, caller, called string) {
	lock = lockOf(at.source)
	if lock == "" || len(at.calls) < 2 {
		return "", "", ""
	}
	inner := stackCall.FindStringSubmatch(at.calls[0])
	if inner == nil {
		return "", "", ""
	}
	class := classOf(inner[1])
	for _, call := range at.calls[1:] {
		outer := stackCall.FindStringSubmatch(call)
		if outer == nil || outer[1] == wholeModule {
			continue
		}
		isSame := outer[1] == inner[1] && outer[2] == inner[2]
		if isSame || class != "" && classOf(outer[1]) == class && strings.HasPrefix(lock, "self.") {
			return lock, outer[1], inner[1]
		}
	}
	return "", "", ""
}

// classOf returns the class in the full name of a method; "" if the name has none.
func classOf(name string) string { return name[:max(strings.LastIndex(name, "."), 0)] }

// nameOwnLock adds the lock to the figures that each of the ranks which wait for one of their own threads may hold itself, and reports whether all may.
func nameOwnLock(all []place, figures map[string]string) bool {
	waiting := slices.DeleteFunc(slices.Clone(all), func(at place) bool { return lockOf(at.source) == "" })
	for _, at := range waiting {
		lock, caller, called := at.ownLock()
		if lock == "" {
			return false
		}
		figures["object"], figures["first"], figures["second"] = lock, caller, called
	}
	return len(waiting) > 0
}
