package rsh

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSSH(t *testing.T) {
	tests := map[string]struct {
		line string
		want target
	}{
		"Open MPI":             {"-x pi-worker-0.pi.ns.svc PATH=/usr/bin:$PATH ; orted -mca ess env", target{host: "pi-worker-0.pi.ns.svc", command: "PATH=/usr/bin:$PATH ; orted -mca ess env"}},
		"Hydra":                {"-x -q pi-worker-1 hydra_pmi_proxy --control-port pi:1 -n 2", target{host: "pi-worker-1", command: "hydra_pmi_proxy --control-port pi:1 -n 2"}},
		"horovodrun":           {"-o PasswordAuthentication=no -o StrictHostKeyChecking=no host true", target{host: "host", command: "true", anyHostKey: true}},
		"DeepSpeed by pdsh":    {"-2 -a -x -l user -p 2222 host -n date", target{}},
		"flags in one word":    {"-xnTp2222 user@host date", target{host: "host", port: 2222, noInput: true, command: "date"}},
		"horovodrun's":         {"-o PasswordAuthentication=no -o StrictHostKeyChecking=no host -p 23 -o ConnectTimeout=10 true", target{host: "host", port: 23, anyHostKey: true, wait: 10 * time.Second, command: "true"}},
		"after the host, --":   {"host -n -- -x -n", target{host: "host", noInput: true, command: "-x -n"}},
		"options of a command": {"host ls -n", target{host: "host", command: "ls -n"}},
		"setting with spaces":  {"-oConnectTimeout=7 -o Port=23 host", target{host: "host", port: 23, wait: 7 * time.Second}},
		"URL":                  {"ssh://me@host:2200 true", target{host: "host", port: 2200, command: "true"}},
		"end of flags":         {"-- host -n", target{host: "host", command: "-n"}},
		"version":              {"-V", target{version: true}},
		"identity":             {"-i /key -F none host cat", target{host: "host", identity: "/key", command: "cat"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseSSH(strings.Fields(test.line))
			if test.want == (target{}) {
				if err == nil {
					t.Fatalf("no error for %q", test.line)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSSHErrors(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"nothing":        {"", "no host given"},
		"no value":       {"-p", "option -p needs a value"},
		"port":           {"-p 99999 host", `port "99999"`},
		"unknown option": {"-Z host", "unknown option -Z"},
		"timeout":        {"-o ConnectTimeout=soon host", `ConnectTimeout "soon"`},
		"empty host":     {"me@ true", `host "me@" is empty`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseSSH(strings.Fields(test.line)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
