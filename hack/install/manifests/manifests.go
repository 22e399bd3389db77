// Package manifests reads the manifests of the folder config, as kustomize builds them, and compares objects.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Namespace is the namespace that the manifests install into.
const Namespace = "mpijob-system"

// LabelVersion is on the objects that IsVersioned selects.
const LabelVersion = "app.kubernetes.io/version"

// IsVersioned reports whether releases label objects of a kind with their version: the programs, and what an upgrade can leave behind, so
// that kubectl odh mpijob doctor compares it.
func IsVersioned(kind string) bool {
	return slices.Contains([]string{
		"Deployment", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}, kind)
}

// SetVersion labels an object with a version if IsVersioned selects it.
func SetVersion(object *unstructured.Unstructured, version string) {
	if !IsVersioned(object.GetKind()) {
		return
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelVersion] = version
	object.SetLabels(labels)
}

// IsPolicy reports whether an object is a ValidatingAdmissionPolicy or its binding, which Kubernetes serves from 1.30 on.
func IsPolicy(object *unstructured.Unstructured) bool {
	return strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy")
}

// Build returns the objects of a folder with a kustomization.yaml, in its order.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	text, err := build(folder)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// build returns the objects of a folder as YAML.
func build(folder string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	return text, nil
}

// WriteRuntimes writes the runtimes of the folder config/runtimes/openshift, which config/runtimes/shipped.go embeds.
func WriteRuntimes(root string) error {
	folder := filepath.Join(root, "config", "runtimes")
	text, err := build(filepath.Join(folder, "openshift"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "shipped.yaml"), text, 0o644)
}

// Parse returns the objects of YAML documents, without empty documents.
func Parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Key identifies an object within a cluster: group, kind, namespace and name. The version is left out: an object is the same
// in all of them.
func Key(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind().String()
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + " " + namespace + "/" + object.GetName()
	}
	return kind + " " + object.GetName()
}

// ByKey returns objects by their keys. It fails if two have the same one.
func ByKey(objects []*unstructured.Unstructured) (map[string]*unstructured.Unstructured, error) {
	byKey := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		key := Key(object)
		if byKey[key] != nil {
			return nil, fmt.Errorf("two objects are %s", key)
		}
		byKey[key] = object
	}
	return byKey, nil
}

// Differences describes how objects differ from others, in the order of the keys: one line for each object that is missing,
// unexpected, or different, with the first field that differs.
func Differences(got, want []*unstructured.Unstructured) ([]string, error) {
	is, err := ByKey(got)
	if err != nil {
		return nil, err
	}
	should, err := ByKey(want)
	if err != nil {
		return nil, err
	}
	var lines []string
	for key, object := range should {
		if is[key] == nil {
			lines = append(lines, key+": is missing")
		} else if field := difference("", is[key].Object, object.Object); field != "" {
			lines = append(lines, key+": "+field)
		}
	}
	for key := range is {
		if should[key] == nil {
			lines = append(lines, key+": is not expected")
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// difference describes the first field in which two values differ; "" if they are equal.
func difference(path string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, is := got.(map[string]any)
		if !is {
			break
		}
		for _, key := range keys(got, want) {
			if found := difference(path+"."+key, got[key], want[key]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		got, is := got.([]any)
		if !is || len(got) != len(want) {
			break
		}
		for i := range want {
			if found := difference(fmt.Sprintf("%s[%d]", path, i), got[i], want[i]); found != "" {
				return found
			}
		}
		return ""
	default:
		if fmt.Sprintf("%T %v", got, got) == fmt.Sprintf("%T %v", want, want) {
			return ""
		}
	}
	return fmt.Sprintf("%s is %#v, want %#v", strings.TrimPrefix(path, "."), got, want)
}

func keys(maps ...map[string]any) []string {
	var all []string
	for _, m := range maps {
		for key := range m {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
