package ranks

import (
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestMayBeKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  agentapi.RankEnd
		want bool
	}{
		"killed":                       {agentapi.RankEnd{ExitCode: 137, Signal: 9}, true},
		"a shell whose program was":    {agentapi.RankEnd{ExitCode: 137}, true},
		"not known":                    {agentapi.RankEnd{ExitCode: -1}, true},
		"terminated":                   {agentapi.RankEnd{ExitCode: 143, Signal: 15}, false},
		"failed":                       {agentapi.RankEnd{ExitCode: 1}, false},
		"ended well":                   {agentapi.RankEnd{}, false},
		"a shell whose program failed": {agentapi.RankEnd{ExitCode: 139}, false},
	} {
		if got := mayBeKilled(test.end); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
