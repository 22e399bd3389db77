package addon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"opendatahub.io/mpijob/hack/cluster/internal/golden"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		want map[string]string
		err  string
	}{
		"none":             {want: map[string]string{}},
		"trainer":          {want: map[string]string{"trainer": "v2.3.0"}},
		"trainer=v2.1.0":   {want: map[string]string{"trainer": "v2.1.0"}},
		" trainer=v2.3.0 ": {want: map[string]string{"trainer": "v2.3.0"}},
		"trainer=v1":       {err: `there is no version "v1" of add-on trainer: write one of v2.3.0, v2.1.0`},
		"slurm":            {err: `there is no add-on "slurm": write one of none, trainer, kueue`},
		"trainer,none":     {err: `there is no add-on "none"`},
		"":                 {err: `there is no add-on ""`},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := Parse(text)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestCheckKubernetes(t *testing.T) {
	tests := map[string]struct {
		wanted map[string]string
		minor  int
		err    string
	}{
		"no add-on":  {minor: 29},
		"new enough": {wanted: map[string]string{"trainer": "v2.3.0", "kueue": "v0.19.2"}, minor: 33},
		"an older version fits": {
			wanted: map[string]string{"trainer": "v2.3.0"}, minor: 31,
			err: "the add-on trainer v2.3.0 needs Kubernetes 1.33 or later, and this cluster has 1.31: " +
				"use trainer=v2.1.0 (--with trainer=v2.1.0, make WITH=trainer=v2.1.0), or use a new cluster of a later version (--kubernetes)",
		},
		"oldest of Kueue": {wanted: map[string]string{"kueue": "v0.19.2"}, minor: 29},
		"one is too new": {
			wanted: map[string]string{"trainer": "v2.1.0", "kueue": "v0.19.2"}, minor: 29,
			err: "the add-on trainer v2.1.0 needs Kubernetes 1.31 or later, and this cluster has 1.29: " +
				"leave it out (--with none, make WITH=none), or use a new cluster of a later version (--kubernetes)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckKubernetes(test.wanted, test.minor)
			if got := errorText(err); got != test.err {
				t.Errorf("got error %q, want %q", got, test.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEveryAddOnHasAnOldestKubernetes(t *testing.T) {
	for _, a := range All() {
		for _, v := range a.Versions {
			if v.OldestMinor == 0 {
				t.Errorf("%s %s does not name the oldest Kubernetes that it runs with", a.Name, v.Version)
			}
		}
	}
}

func TestKustomization(t *testing.T) {
	for _, a := range All() {
		for _, v := range a.Versions {
			t.Run(a.Name+"-"+v.Version, func(t *testing.T) {
				golden.Check(t, "kustomization-"+a.Name+"-"+v.Version+".yaml", v.Kustomization())
			})
		}
	}
}

func TestControllersArePinned(t *testing.T) {
	for _, a := range All() {
		for _, v := range a.Versions {
			for _, c := range v.Controllers {
				pin := filepath.Join("..", "build", c.Name+"-"+c.Version, "go.mod")
				content, err := os.ReadFile(pin)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range []string{"tool " + c.Package + "\n", "\t" + c.Module + " " + c.Version + " "} {
					if !strings.Contains(string(content), line) {
						t.Errorf("%s does not have %q", pin, line)
					}
				}
			}
		}
	}
}

func TestWithoutTakesOutTheResourceAlone(t *testing.T) {
	const kustomization = `resources:
  - ../../base/crds
  - ../../third-party/jobset # Comment this line if JobSet is installed.
  - ../../third-party/jobset-2
images: []
`
	const want = `resources:
  - ../../base/crds
  - ../../third-party/jobset-2
images: []
`
	if got, err := without(kustomization, "../../third-party/jobset"); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := without(want, "../../third-party/jobset"); err == nil {
		t.Error("no error though upstream does not have the resource any more")
	}
}

func TestSplit(t *testing.T) {
	const manifests = `apiVersion: v1
kind: Namespace
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  names:
    kind: JobSet
---
apiVersion: v1
kind: ConfigMap
data:
  text: |
    kind: CustomResourceDefinition
`
	definitions, objects := split(manifests)
	if strings.Count(definitions, "---") != 1 || !strings.Contains(definitions, "kind: JobSet\n---\n") {
		t.Errorf("definitions: %q", definitions)
	}
	if strings.Count(objects, "---") != 2 || !strings.Contains(objects, "Namespace") || !strings.Contains(objects, "ConfigMap") {
		t.Errorf("objects: %q", objects)
	}
}
