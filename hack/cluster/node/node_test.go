package node

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/hack/cluster/internal/golden"
	"opendatahub.io/mpijob/hack/cluster/layout"
)

func TestFiles(t *testing.T) {
	n := layout.Layout{State: "/clone/.cluster"}.Node(2)
	tests := map[string]Options{
		"v1":     {Minor: 37, CgroupV1: true, Shim: "/cache/containerd-shim-runc-v2", CA: "/ca.crt", Cert: "/node.crt", Key: "/node.key"},
		"v2":     {Minor: 37, Shim: "/cache/containerd-shim-runc-v2", CA: "/ca.crt", Cert: "/node.crt", Key: "/node.key", FeatureGates: map[string]bool{"GenericWorkload": true}},
		"static": {Minor: 37, Shim: "/cache/containerd-shim-runc-v2", CA: "/ca.crt", Cert: "/node.crt", Key: "/node.key", CPUManager: CPUManagerStatic},
		"oldest": {Minor: 29, CgroupV1: true, Shim: "/cache/containerd-shim-runc-v2", CA: "/ca.crt", Cert: "/node.crt", Key: "/node.key"},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			files, err := Files(n, options)
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range files {
				golden.Check(t, name+"/"+file, content)
			}
		})
	}
}

func TestCommandLines(t *testing.T) {
	l := layout.Layout{State: "/clone/.cluster"}
	containerd := Containerd(l.Node(2), l, "/cache/containerd")
	kubelet := Kubelet(l.Node(2), l, "/cache/kubelet", "/clone/.cluster/config/node-2.kubeconfig", Options{})
	golden.Check(t, "command-lines", strings.Join(containerd.Args, "\n")+"\n\n"+strings.Join(kubelet.Args, "\n")+"\n")
}

func TestNodesShareNothingOnTheMachine(t *testing.T) {
	l := layout.Layout{State: "/clone/.cluster"}
	first, second := Mounts(l.Node(1)), Mounts(l.Node(2))
	for i, bind := range first.Binds {
		if bind.Target != second.Binds[i].Target {
			t.Errorf("nodes see %s and %s, want the same path", bind.Target, second.Binds[i].Target)
		}
		if bind.Source == second.Binds[i].Source {
			t.Errorf("both nodes have %s at %s", bind.Source, bind.Target)
		}
	}
}
