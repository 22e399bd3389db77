package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// existing runs hack/existing.sh for a kubeconfig, with programs that print how they are called.
func existing(t *testing.T, kubeconfig string, hasK3s bool, arguments ...string) (output string, failed bool) {
	t.Helper()
	home, programs := t.TempDir(), t.TempDir()
	if kubeconfig != "" {
		if err := os.Mkdir(filepath.Join(home, ".kube"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".kube", "config"), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kind", "k3d", "minikube", "k3s"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	k3s := filepath.Join(home, "none")
	if hasK3s {
		k3s = home
	}
	command := exec.CommandContext(t.Context(), "../existing.sh", arguments...)
	command.Env = []string{"HOME=" + home, "PATH=" + programs + ":" + os.Getenv("PATH"), "K3S_FOLDER=" + k3s}
	text, err := command.CombinedOutput()
	return strings.TrimSpace(string(text)), err != nil
}

// minikubes is a kubeconfig as minikube writes it, with a context of a profile and one that another tool made.
func minikubes(profile, current string) string {
	return `apiVersion: v1
clusters:
- cluster:
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
        version: v1.37.0
      name: cluster_info
    server: https://192.168.49.2:8443
  name: ` + profile + `
- cluster:
    server: https://api.example.com:6443
  name: example
contexts:
- context:
    cluster: ` + profile + `
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
        version: v1.37.0
      name: context_info
    namespace: default
    user: ` + profile + `
  name: ` + profile + `
- context:
    cluster: example
    user: example
  name: production
current-context: ` + current + `
kind: Config
`
}

// TestExistingClusters: a cluster for development is offered, with the command that loads images into it, and no other cluster is.
func TestExistingClusters(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig string
		hasK3s     bool
		offered    string
		load       string
	}{
		"kind":                         {kubeconfig: "current-context: kind-dev\n", offered: "a cluster of kind (kind-dev)", load: "kind load image-archive a.tar --name dev"},
		"k3d, quoted":                  {kubeconfig: "apiVersion: v1\ncurrent-context: \"k3d-mine\"\n", offered: "a cluster of k3d (k3d-mine)", load: "k3d image import a.tar --cluster mine"},
		"minikube":                     {kubeconfig: "current-context: minikube", offered: "a cluster of minikube", load: "minikube image load a.tar --profile minikube"},
		"another profile of minikube":  {kubeconfig: minikubes("lab", "lab"), offered: "a cluster of minikube (lab)", load: "minikube image load a.tar --profile lab"},
		"default, a profile":           {kubeconfig: minikubes("default", "default"), hasK3s: true, offered: "a cluster of minikube (default)", load: "minikube image load a.tar --profile default"},
		"beside a profile of minikube": {kubeconfig: minikubes("lab", "production")},
		"k3s":                          {kubeconfig: "current-context: default", hasK3s: true, offered: "a cluster of k3s", load: "k3s ctr images import a.tar"},
		"CRC":                          {kubeconfig: "current-context: default/api-crc-testing:6443/kubeadmin", offered: "make run CLUSTER=current IMG="},
		"default, but not that of k3s": {kubeconfig: "current-context: default"},
		"production":                   {kubeconfig: "current-context: prod/api-example-com:6443/admin\ncontexts: [{name: kind-dev}]\n"},
		"no context":                   {kubeconfig: "apiVersion: v1\n"},
		"no kubeconfig":                {},
	} {
		t.Run(name, func(t *testing.T) {
			offer, failed := existing(t, test.kubeconfig, test.hasK3s, "offer")
			if failed || !strings.Contains(offer, test.offered) || (offer != "") != (test.offered != "") {
				t.Errorf("it offers %q, want %q", offer, test.offered)
			}
			loaded, failed := existing(t, test.kubeconfig, test.hasK3s, "load", "a.tar")
			if failed != (test.load == "") || !failed && loaded != test.load {
				t.Errorf("it loads by %q, failed: %t; want %q", loaded, failed, test.load)
			}
		})
	}
}
