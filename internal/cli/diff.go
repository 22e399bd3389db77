package cli

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// asWritten is a job as its user has written it: without what the API server, controllers and the operator have added.
func asWritten(object *unstructured.Unstructured) *unstructured.Unstructured {
	written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()}}
	written.SetName(object.GetName())
	written.SetNamespace(object.GetNamespace())
	written.SetLabels(object.GetLabels())
	annotations := object.GetAnnotations()
	for _, name := range []string{"kubectl.kubernetes.io/last-applied-configuration", mpi.AnnotationCreator, mpi.AnnotationSuspendSetBy, mpi.AnnotationChangedBy} {
		delete(annotations, name)
	}
	if len(annotations) > 0 {
		written.SetAnnotations(annotations)
	}
	if spec, found := object.DeepCopy().Object["spec"]; found {
		written.Object["spec"] = spec
	}
	withoutQueues(written)
	return written
}

// withoutQueues takes out what queues have written into a TrainJob: where its pods go, which the next queue will say anew.
func withoutQueues(object *unstructured.Unstructured) {
	patches, found, _ := unstructured.NestedSlice(object.Object, "spec", "runtimePatches")
	if !found {
		return
	}
	var kept []any
	for _, patch := range patches {
		one, _ := patch.(map[string]any)
		if manager, _ := one["manager"].(string); strings.HasPrefix(manager, "kueue.x-k8s.io/") {
			continue
		}
		delete(one, "time")
		kept = append(kept, one)
	}
	unstructured.RemoveNestedField(object.Object, "spec", "runtimePatches")
	if len(kept) > 0 {
		_ = unstructured.SetNestedSlice(object.Object, kept, "spec", "runtimePatches")
	}
}

// diff are the lines in which two objects differ, as YAML, with some around them; empty where they are the same.
func (f *Factory) diff(nameA string, a *unstructured.Unstructured, nameB string, b *unstructured.Unstructured, stream any) (string, error) {
	textA, err := yaml.Marshal(a.Object)
	if err != nil {
		return "", err
	}
	textB, err := yaml.Marshal(b.Object)
	if err != nil {
		return "", err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(textA)), B: difflib.SplitLines(string(textB)), FromFile: nameA, ToFile: nameB, Context: 2,
	})
	if err != nil || !f.colours(stream) {
		return text, err
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		body, end := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			body = f.paintOn(stream, green, body)
		case strings.HasPrefix(line, "-"):
			body = f.paintOn(stream, red, body)
		case strings.HasPrefix(line, "@@"):
			body = f.paintOn(stream, cyan, body)
		}
		if lines[i] = body; end {
			lines[i] += "\n"
		}
	}
	return strings.Join(lines, ""), nil
}
