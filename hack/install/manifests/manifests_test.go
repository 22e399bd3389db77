package manifests

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestBuildInstallsIntoOneNamespace(t *testing.T) {
	objects, err := Build("../../../config/default")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && namespace != Namespace {
			t.Errorf("%s is not in the namespace %s", Key(object), Namespace)
		}
	}
	if len(objects) < 20 {
		t.Errorf("config/default has %d objects, want 20 or more", len(objects))
	}
}

func TestDifferences(t *testing.T) {
	const want = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: '1', m: '2'}, list: [1, {z: 3}]}"
	cases := map[string]struct {
		got  string
		want []string
	}{
		"equal":           {want, nil},
		"other value":     {strings.Replace(want, "'2'", "'3'", 1), []string{`ConfigMap ns/a: data.m is "3", want "2"`}},
		"other type":      {strings.Replace(want, "'2'", "2", 1), []string{`ConfigMap ns/a: data.m is 2, want "2"`}},
		"missing field":   {strings.Replace(want, ", m: '2'", "", 1), []string{`ConfigMap ns/a: data.m is <nil>, want "2"`}},
		"more fields":     {strings.Replace(want, "m: '2'", "m: '2', v: '0'", 1), []string{`ConfigMap ns/a: data.v is "0", want <nil>`}},
		"within a list":   {strings.Replace(want, "z: 3", "z: 4", 1), []string{"ConfigMap ns/a: list[1].z is 4, want 3"}},
		"another object":  {strings.Replace(want, "name: a", "name: b", 1), []string{"ConfigMap ns/a: is missing", "ConfigMap ns/b: is not expected"}},
		"another version": {strings.Replace(want, "apiVersion: v1", "apiVersion: v2", 1), []string{`ConfigMap ns/a: apiVersion is "v2", want "v1"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte("---\n" + c.got + "\n---\n"))
			if err != nil {
				t.Fatal(err)
			}
			expected, err := Parse([]byte(want))
			if err != nil {
				t.Fatal(err)
			}
			if found, err := Differences(got, expected); err != nil || !slices.Equal(found, c.want) {
				t.Errorf("Differences = %q, %v, want %q", found, err, c.want)
			}
		})
	}
}

func TestDifferencesRefusesTwoObjectsOfOneName(t *testing.T) {
	objects, err := Parse([]byte("{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Differences(objects, nil); err == nil || !strings.Contains(err.Error(), "Pod a") {
		t.Errorf("Differences = %v, want an error that names the Pod a", err)
	}
}

// TestShippedRuntimes: the runtimes that the command line and the dashboard contain are those of the folder.
func TestShippedRuntimes(t *testing.T) {
	const folder = "../../../config/runtimes"
	text, err := build(folder + "/openshift")
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile(folder + "/shipped.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, embedded) {
		t.Error("config/runtimes/shipped.yaml is not what kustomize builds; run make generate")
	}
}

// TestScriptsLabelVersions: what install.yaml of a release and make deploy label is what IsVersioned selects.
func TestScriptsLabelVersions(t *testing.T) {
	for _, script := range []string{"release.sh", "deploy.sh"} {
		text, err := os.ReadFile("../../" + script)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\{kind: (\w+), path: metadata/labels, create: true\}`).FindAllStringSubmatch(string(text), -1)
		labeled := map[string]bool{}
		for _, kind := range found {
			labeled[kind[1]] = true
		}
		objects, err := Build("../../../config/default")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if kind := object.GetKind(); labeled[kind] != IsVersioned(kind) {
				t.Errorf("%s labels %s with the version: %v, want %v", script, kind, labeled[kind], IsVersioned(kind))
			}
		}
	}
}

// TestKeep: what has the label that docs/install.md and make undeploy leave out when they delete the manifests is what jobs and reports are lost
// with.
func TestKeep(t *testing.T) {
	for _, folder := range []string{"default", "without-policies"} {
		objects, err := Build("../../../config/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			want := object.GetKind() == "CustomResourceDefinition" || object.GetKind() == "Namespace"
			if got := object.GetLabels()["mpi.opendatahub.io/keep"] == "true"; got != want {
				t.Errorf("%s: %s is kept: %v, want %v", folder, Key(object), got, want)
			}
		}
	}
}
