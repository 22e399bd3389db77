package agent

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestIdleHosts: a host is idle if no rank was observed on it in any launch although ranks were on others. What lasted only a
// few seconds is no proof.
func TestIdleHosts(t *testing.T) {
	t.Parallel()
	session := func(host string, seconds, ranks int32) record {
		return record{Host: host, Reached: time.Unix(1, 0), Seconds: seconds, Worker: &agentapi.Summary{RanksSeen: ranks}}
	}
	for name, test := range map[string]struct {
		records []record
		want    int32
	}{
		"all are used":                        {[]record{session("a", 60, 2), session("b", 60, 2)}, 0},
		"one has no ranks":                    {[]record{session("a", 60, 2), session("b", 60, 0)}, 1},
		"one was not connected":               {[]record{session("a", 60, 2)}, 1},
		"one has no ranks, for a moment":      {[]record{session("a", 3, 2), session("b", 3, 0)}, 0},
		"one was not connected, for a moment": {[]record{session("a", 3, 2)}, 1},
		"no rank was observed":                {[]record{session("a", 60, 0), session("b", 60, 0)}, 0},
		"nothing was connected":               {nil, 0},
		"one after the other":                 {[]record{session("a", 60, 2), session("b", 60, 2), session("a", 60, 0)}, 0},
		"one has not told":                    {[]record{session("a", 60, 2), {Host: "b", Reached: time.Unix(1, 0), Seconds: 60}}, 0},
		"one could not be reached":            {[]record{session("a", 60, 2), {Host: "b", Seconds: 60}}, 1},
		"more hosts than were expected":       {[]record{session("a", 60, 2), session("b", 60, 2), session("c", 60, 2)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := idleHosts(test.records, 2); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
