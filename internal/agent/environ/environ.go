// Package environ reads and changes environments: lists of "name=value".
package environ

import (
	"slices"
	"strings"
)

// Get is the value of a variable in an environment; the last one counts.
func Get(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// Set returns an environment in which a variable has a value, once.
func Set(env []string, name, value string) []string {
	set := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			set = append(set, entry)
		}
	}
	return append(set, name+"="+value)
}
