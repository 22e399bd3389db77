package docs

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/preview"
)

// A manifest is an object in a page, as it is there or completed from a part.
type manifest struct {
	at     string
	object *unstructured.Unstructured
}

// bases complete the parts of objects that pages show.
var bases = map[string]string{
	kubeflow.Kind: `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: part}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: launcher, image: a, command: [mpirun, b]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: a}]}}}
`,
	mpi.KindTrainJob: `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: part}
spec: {runtimeRef: {name: mpi-openmpi}}
`,
	"Deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: part}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: operator, image: a}]}}
`,
}

// manifestsOf returns the objects in the YAML blocks of a page, and checks Helm's values in it.
func manifestsOf(t *testing.T, page string, blocks []block) (found []manifest) {
	t.Helper()
	for _, b := range blocks {
		if b.language != "yaml" || b.mark == "example" {
			continue
		}
		at := fmt.Sprintf("%s:%d", page, b.line)
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(b.text, -1) {
			var content any
			if err := sigsyaml.UnmarshalStrict([]byte(document), &content); err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			fields, _ := content.(map[string]any)
			switch {
			case b.mark == "part" && b.of == "values":
				checkValues(t, at, fields)
			case b.mark == "part":
				object, err := complete(b.of, content)
				if err != nil {
					t.Errorf("%s: %v", at, err)
					continue
				}
				found = append(found, manifest{at, object})
			case isObject(document):
				found = append(found, manifest{at, &unstructured.Unstructured{Object: fields}})
			}
		}
	}
	return found
}

// complete puts a part of an object, at its path, into the rest of the object: "MPIJob spec.runPolicy".
func complete(of string, part any) (*unstructured.Unstructured, error) {
	kind, path, _ := strings.Cut(of, " ")
	base, has := bases[kind]
	if !has {
		return nil, fmt.Errorf("there are no parts of %q", kind)
	}
	for _, key := range slices.Backward(strings.Split(path, ".")) {
		if index, err := strconv.Atoi(key); err == nil {
			list := make([]any, index+1)
			list[index] = part
			part = list
		} else if key != "" {
			part = map[string]any{key: part}
		}
	}
	var object map[string]any
	if err := sigsyaml.Unmarshal([]byte(base), &object); err != nil {
		return nil, fmt.Errorf("read the base: %w", err)
	}
	merged, _ := merge(object, part).(map[string]any)
	return &unstructured.Unstructured{Object: merged}, nil
}

// merge puts values over those of a base; what is null stays as it is.
func merge(base, over any) any {
	switch over := over.(type) {
	case nil:
		return base
	case map[string]any:
		fields, is := base.(map[string]any)
		if !is {
			return over
		}
		for key, value := range over {
			fields[key] = merge(fields[key], value)
		}
		return fields
	case []any:
		list, _ := base.([]any)
		for i, value := range over {
			if i < len(list) {
				list[i] = merge(list[i], value)
			} else {
				list = append(list, value)
			}
		}
		return list
	}
	return over
}

// checkValues: the chart has these values.
func checkValues(t *testing.T, at string, fields map[string]any) {
	t.Helper()
	values := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(read(t, filepath.Join(root, "charts", "mpijob-operator", "values.yaml"))), &values); err != nil {
		t.Fatal(err)
	}
	for _, path := range pathsOf("", fields) {
		if !hasValue(values, strings.Split(path, ".")) {
			t.Errorf("%s: the chart has no value %s", at, path)
		}
	}
}

func pathsOf(prefix string, value any) (paths []string) {
	fields, is := value.(map[string]any)
	if !is || len(fields) == 0 {
		return []string{strings.TrimPrefix(prefix, ".")}
	}
	for key, below := range fields {
		paths = append(paths, pathsOf(prefix+"."+key, below)...)
	}
	return paths
}

// TestManifests: every object in the pages has only fields of its API. MPIJobs and TrainJobs are valid.
func TestManifests(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, m := range manifestsOf(t, page, blocks) {
			checked++
			for _, problem := range problemsOf(t, strict, m.object) {
				t.Errorf("%s: %s %s: %s", m.at, m.object.GetKind(), m.object.GetName(), problem)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d objects were found", checked)
	}
}

// buildGroups are those of objects that build images on OpenShift. TestBuildOnOpenShift of hack/install has the types of OpenShift. The module of
// Shipwright is not in the proxy.
var buildGroups = []string{"build.openshift.io", "image.openshift.io", "shipwright.io"}

func problemsOf(t *testing.T, strict runtime.Decoder, object *unstructured.Unstructured) (problems []string) {
	t.Helper()
	// This module does not have the types of TrainJobs: TestOnAPIServer has their definition.
	if object.GetKind() != mpi.KindTrainJob && !slices.Contains(buildGroups, object.GroupVersionKind().Group) {
		document, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := strict.Decode(document, nil, nil); err != nil {
			problems = append(problems, err.Error())
		}
	}
	switch object.GetKind() {
	case kubeflow.Kind:
		object.SetNamespace(cmp.Or(object.GetNamespace(), "team"))
		_, errs := preview.MPIJob(object, plan.Settings{})
		for _, err := range errs {
			problems = append(problems, err.Error())
		}
	case mpi.KindTrainJob:
		_, errs := preview.DecodeTrainJob(object)
		for _, err := range errs {
			problems = append(problems, err.Error())
		}
	}
	return problems
}
