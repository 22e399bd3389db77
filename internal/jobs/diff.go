package jobs

import (
	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Diff returns the differences of two objects as a unified diff of their YAML; empty if they are equal.
func Diff(nameA string, a *unstructured.Unstructured, nameB string, b *unstructured.Unstructured) (string, error) {
	textA, err := yaml.Marshal(a.Object)
	if err != nil {
		return "", err
	}
	textB, err := yaml.Marshal(b.Object)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(textA)), B: difflib.SplitLines(string(textB)), FromFile: nameA, ToFile: nameB, Context: 2,
	})
}
