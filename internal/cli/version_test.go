package cli

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/version"
)

func TestVersionMismatch(t *testing.T) {
	tests := map[string]struct {
		client   string
		operator *component
		want     string
		agent    string
	}{
		"same version":         {"v1.2.3", &component{Version: "v1.2.3"}, "", "v1.2.3"},
		"another agent":        {"v1.2.3", &component{Version: "v1.2.3"}, "the operator has version v1.2.3 and the agent v1.1.0; ask a cluster administrator to install the same version of both", "v1.1.0"},
		"an agent of a branch": {"v1.2.3", &component{Version: "v1.2.3"}, "", "dev"},
		"different versions":   {"v1.2.3", &component{Version: "v1.1.0"}, "the client has version v1.2.3 and the operator v1.1.0; install the same version of both", ""},
		"operator unreadable":  {"v1.2.3", &component{Error: "forbidden"}, "", ""},
		"operator not read":    {"v1.2.3", nil, "", ""},
		"unstamped client":     {version.Unknown, &component{Version: "v1.1.0"}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (versions{Client: version.Info{Version: test.client}, Operator: test.operator, Agent: &component{Version: test.agent}}).mismatch(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPrintVersions(t *testing.T) {
	all := versions{
		Client:   version.Info{Version: "v1.2.3", GoVersion: "go1.26.0", Platform: "linux/amd64"},
		Operator: &component{Version: "v1.2.3", Image: "operator:v1.2.3", Namespace: "mpijob-system"},
		Agent:    &component{Version: "v1.2.3", Image: "agent:v1.2.3"},
	}
	unreadable := versions{Client: all.Client, Operator: &component{Error: "connection refused"}}
	tests := map[string]struct {
		versions versions
		form     string
		want     string
	}{
		"text": {all, "", `Client:    v1.2.3 (go1.26.0, linux/amd64)
Operator:  v1.2.3 (operator:v1.2.3, namespace mpijob-system)
Agent:     v1.2.3 (agent:v1.2.3)
`},
		"client only":         {versions{Client: all.Client}, "", "Client:    v1.2.3 (go1.26.0, linux/amd64)\n"},
		"operator unreadable": {unreadable, "", "Client:    v1.2.3 (go1.26.0, linux/amd64)\nOperator:  unknown (connection refused)\n"},
		"yaml": {all, "yaml", `agent:
  image: agent:v1.2.3
  version: v1.2.3
client:
  goVersion: go1.26.0
  platform: linux/amd64
  version: v1.2.3
operator:
  image: operator:v1.2.3
  namespace: mpijob-system
  version: v1.2.3
`},
		"json": {versions{Client: all.Client}, "json", `{
  "client": {
    "version": "v1.2.3",
    "goVersion": "go1.26.0",
    "platform": "linux/amd64"
  }
}
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := test.versions.print(&out, test.form); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), test.want)
			}
		})
	}
}
