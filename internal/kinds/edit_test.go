package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/kinds"
)

// TestSetVariable: a variable keeps its place, so that others can refer to it, and is there once.
func TestSetVariable(t *testing.T) {
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	for name, test := range map[string]struct {
		env, want   []any
		name, value string
	}{
		"changed":         {[]any{variable("A", "1"), variable("B", "$(A)")}, []any{variable("A", "2"), variable("B", "$(A)")}, "A", "2"},
		"added":           {[]any{variable("A", "1")}, []any{variable("A", "1"), variable("B", "2")}, "B", "2"},
		"removed":         {[]any{variable("A", "1"), variable("B", "2")}, []any{variable("B", "2")}, "A", ""},
		"there twice":     {[]any{variable("A", "1"), variable("A", "3")}, []any{variable("A", "2")}, "A", "2"},
		"from a Secret":   {[]any{map[string]any{"name": "A", "valueFrom": map[string]any{}}}, []any{variable("A", "2")}, "A", "2"},
		"nothing was set": {nil, []any{variable("A", "2")}, "A", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, kinds.SetVariable(test.env, test.name, test.value)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
