package chart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/hack/install/manifests"
)

const keepAnnotation = "helm.sh/resource-policy"

// Compare describes how the objects of the chart differ from manifests, one line for each object. Intended differences are not
// described: the manifests create their namespace, the chart labels Deployments, webhooks and policies with its version, and has CRDs kept
// when it is uninstalled. Images without a tag are those with the tag latest. The order of variables of an environment does not matter,
// nor does the namespace that kustomize 5.8.1 gives to policies, which have none.
func Compare(chart, want []*unstructured.Unstructured, version string) ([]string, error) {
	var lines []string
	chart, want = copyOf(chart), copyOf(want)
	for _, object := range chart {
		if object.GetKind() == "CustomResourceDefinition" {
			annotations := object.GetAnnotations()
			if annotations[keepAnnotation] != "keep" {
				lines = append(lines, fmt.Sprintf("%s: the annotation %s is %q, want \"keep\"", manifests.Key(object), keepAnnotation, annotations[keepAnnotation]))
			}
			delete(annotations, keepAnnotation)
			object.SetAnnotations(annotations)
		}
	}
	for _, object := range slices.Concat(chart, want) {
		sortEnvironments(object.Object)
		if manifests.IsPolicy(object) {
			object.SetNamespace("")
		}
	}
	want = slices.DeleteFunc(want, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Namespace" })
	for _, object := range want {
		manifests.SetVersion(object, version)
		tagImages(object.Object)
	}
	differences, err := manifests.Differences(chart, want)
	return append(lines, differences...), err
}

func copyOf(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		copies[i] = object.DeepCopy()
	}
	return copies
}

// tagImages adds the tag latest to images without a tag or digest.
func tagImages(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			if image, is := element.(string); is && key == "image" && !strings.ContainsAny(image[strings.LastIndex(image, "/")+1:], ":@") {
				value[key] = image + ":latest"
			}
			tagImages(element)
		}
	case []any:
		for _, element := range value {
			tagImages(element)
		}
	}
}

// sortEnvironments sorts variables by their names: an overlay of kustomize moves those that it changes.
func sortEnvironments(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			if list, is := element.([]any); is && key == "env" {
				slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
			}
			sortEnvironments(element)
		}
	case []any:
		for _, element := range value {
			sortEnvironments(element)
		}
	}
}

func nameOf(variable any) string {
	fields, _ := variable.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
