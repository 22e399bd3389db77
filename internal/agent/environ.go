package agent

import (
	"slices"
	"strings"
)

// variable is the value of a variable in an environment; the last one counts.
func variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// setVariable returns an environment in which a variable has a value, once.
func setVariable(env []string, name, value string) []string {
	set := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			set = append(set, entry)
		}
	}
	return append(set, name+"="+value)
}
