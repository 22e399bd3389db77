package agentapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPUs is more CPUs than a machine has.
const maxCPUs = 1 << 14

// ParseCPUs returns the CPUs of a list such as "0-3,8" (cpuset(7), "List format"), in order. It returns false if the text is no list, or
// an empty one.
func ParseCPUs(list string) (cpus []int, ok bool) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, lastErr := strconv.Atoi(to)
		if err != nil || lastErr != nil || first < 0 || last < first || last >= maxCPUs {
			return nil, false
		}
		// A program can write a list that names the same CPUs again and again.
		if len(cpus)+last-first >= maxCPUs {
			return nil, false
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), true
}

// CountCPUs returns the number of CPUs in such a list; 0 if it is none.
func CountCPUs(list string) int {
	cpus, _ := ParseCPUs(list)
	return len(cpus)
}

// FormatCPUs returns CPUs as a list such as "0-3,8". They are in order, each once.
func FormatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if part := strconv.Itoa(cpus[i]); last == i {
			parts = append(parts, part)
		} else {
			parts = append(parts, fmt.Sprintf("%s-%d", part, cpus[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}
