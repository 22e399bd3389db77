package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// waitingText says which hosts are waited for and why, those that share a reason together; empty: none.
func (s *supervisor) waitingText(now time.Time) string {
	var reasons []string
	names := map[string][]string{}
	all, longest := hosts(readRecords(s.folder)), time.Duration(0)
	waited := 0
	for _, r := range all {
		if !r.Reached.IsZero() || r.Over {
			continue
		}
		waited++
		longest = max(longest, now.Sub(r.Since))
		// The reason does not contain the address, which differs from host to host.
		why := cmp.Or(r.Why, "connecting")
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], short(r.Host))
	}
	if waited == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "waiting for %d of %d hosts for %d s", waited, max(len(all), int(s.expected.others)), int(longest.Seconds()))
	for _, why := range reasons {
		fmt.Fprintf(&text, "; %s: %s", some(names[why]), why)
	}
	return text.String()
}
