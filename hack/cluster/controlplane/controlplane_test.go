package controlplane

import (
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/certs"
	"opendatahub.io/mpijob/hack/cluster/internal/golden"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/process"
)

func parts(settings Settings) Parts {
	l := layout.Layout{State: "/clone/.cluster"}
	return Parts{
		Layout: l, Binaries: binaries.Set{Dir: "/cache/bin"}, Settings: settings,
		Store: certs.Store{Dir: l.Certs(), Now: time.Now},
	}
}

func TestCommandLinesAndFiles(t *testing.T) {
	tests := map[string]Settings{
		"plain":  {Minor: 37},
		"oldest": {Minor: 29},
		"gangs": {
			Minor:         37,
			FeatureGates:  map[string]bool{"GenericWorkload": true, "AnotherGate": false},
			RuntimeConfig: map[string]string{"scheduling.k8s.io/v1beta1": "true"},
		},
	}
	for name, settings := range tests {
		t.Run(name, func(t *testing.T) {
			p := parts(settings)
			for _, spec := range []process.Spec{
				p.EtcdSpec(), p.APIServerSpec(), p.ControllerManagerSpec(), p.SchedulerSpec(), p.ProxySpec(),
				p.PolicyAgentSpec("/clone/bin/cluster", "policy-agent"),
			} {
				golden.Check(t, name+"/"+spec.Name+".args", strings.Join(spec.Args, "\n")+"\n")
			}
			files, err := p.Files()
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range files {
				golden.Check(t, name+"/"+file, content)
			}
		})
	}
}

func TestSchedulerHealth(t *testing.T) {
	for minor, path := range map[int]string{29: "/healthz", 30: "/healthz", 31: "/readyz", 37: "/readyz"} {
		if url := SchedulerHealth(minor); !strings.HasSuffix(url, path) {
			t.Errorf("1.%d: %s, want %s", minor, url, path)
		}
	}
}

func TestKubeconfigsOfAllClients(t *testing.T) {
	l := layout.Layout{State: t.TempDir()}
	p := Parts{Layout: l, Store: certs.Store{Dir: l.State + "/config", Now: time.Now}}
	nodes := []layout.Node{l.Node(1), l.Node(2)}
	if err := p.Certificates(nodes); err != nil {
		t.Fatal(err)
	}
	if err := p.Kubeconfigs(nodes); err != nil {
		t.Fatal(err)
	}
}
