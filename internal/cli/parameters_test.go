package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"image": "${REGISTRY:-quay.io/me}/train:${TAG}", "workers": "${WORKERS:-4}", "name": "${NAME:-}", "plain": "no $parameter here", "script": "echo $${HOME} $(X)",
		"list": []any{"${TAG}", int64(3), map[string]any{"x": "${TAG}"}},
	}
	found, err := parameters(object)
	if err != nil {
		t.Fatal(err)
	}
	if got := parameterText(found); got != "NAME=,REGISTRY=quay.io/me,TAG,WORKERS=4" {
		t.Errorf("the parameters are %s", got)
	}
	filled, err := fill(object, map[string]string{"TAG": "8", "NAME": "{a: b}"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"image": "quay.io/me/train:8", "workers": int64(4), "name": "{a: b}", "plain": "no $parameter here", "script": "echo ${HOME} $(X)",
		"list": []any{int64(8), int64(3), map[string]any{"x": int64(8)}},
	}
	if diff := cmp.Diff(want, filled); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = fill(object, map[string]string{"TAGS": "8", "X": "1"})
	for _, want := range []string{"TAG has no value: say -p TAG=VALUE", "it has no parameter TAGS; did you mean TAG?", "it has no parameter X"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := parameters(map[string]any{"a": "${A:-1}", "b": "${A:-2}"}); err == nil || !strings.Contains(err.Error(), `two defaults, "1" and "2"`) {
		t.Errorf("two defaults: %v", err)
	}
}

func TestEscaped(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "${A}", "$${A}", "$$${A:-x}", "${A:0:3} ${B%.x} $(C) $D ${}", "${A:-${B}}"} {
		filled, err := fill(map[string]any{"a": escaped(text)}, nil)
		if err != nil || filled["a"] != text {
			t.Errorf("%q comes back as %q: %v", text, filled["a"], err)
		}
	}
}
