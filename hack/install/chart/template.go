package chart

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

// A template writes objects as text of a Go template. Expressions replace values, as tokens until the text exists.
type template struct {
	expressions []string
	text        strings.Builder
	condition   string // of the objects that were added last
}

// token returns a value that becomes the expression in the text. As a value of a map it is a scalar; as an element of a list or
// as a key whose value is nil, it is a block of lines, of which each is indented like the token. As a key it sorts last, so that
// it never begins an element of a list.
func (t *template) token(expression string) string {
	t.expressions = append(t.expressions, expression)
	return fmt.Sprintf("zz%04dz", len(t.expressions)-1)
}

// block adds lines to a map of an object.
func (t *template) block(to map[string]any, lines string) { to[t.token(lines)] = nil }

// wrap puts fields of a map between the lines begin and end; fields that the map does not have are left out.
func (t *template) wrap(fields map[string]any, begin string, names ...string) error {
	some := map[string]any{}
	for _, name := range names {
		if value, has := fields[name]; has {
			some[name] = value
			delete(fields, name)
		}
	}
	text, err := yaml.Marshal(some)
	if err != nil {
		return fmt.Errorf("write fields %v: %w", names, err)
	}
	t.block(fields, begin+"\n"+strings.TrimSpace(string(text))+"\n{{- end }}")
	return nil
}

// add writes an object; if condition is not empty, only where it holds.
func (t *template) add(object *unstructured.Unstructured, condition string) error {
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("write %s: %w", manifests.Key(object), err)
	}
	t.under(condition)
	t.text.WriteString("---\n")
	t.text.Write(text)
	return nil
}

// under ends the condition of the objects before, and begins another one.
func (t *template) under(condition string) {
	if condition == t.condition {
		return
	}
	if t.condition != "" {
		fmt.Fprintf(&t.text, "%s\n", t.token("{{- end }}"))
	}
	if condition != "" {
		fmt.Fprintf(&t.text, "%s\n", t.token("{{- if "+condition+" }}"))
	}
	t.condition = condition
}

var (
	blocks  = regexp.MustCompile(`(?m)^( *)(?:- )?zz(\d{4})z(?:: null)?$`)
	scalars = regexp.MustCompile(`zz(\d{4})z`)
)

// String returns the text. Everything that the objects themselves contain stays as it is, also what looks like a template. The
// namespace of the manifests becomes that of the release. The word INDENT in an expression is the depth of its block.
func (t *template) String() string {
	t.under("")
	text := strings.ReplaceAll(t.text.String(), "{{", `{{ "{{" }}`)
	text = strings.ReplaceAll(text, manifests.Namespace, "{{ .Release.Namespace }}")
	expression := func(digits string) string {
		var i int
		_, _ = fmt.Sscanf(digits, "%d", &i) // the pattern has digits only
		return t.expressions[i]
	}
	text = blocks.ReplaceAllStringFunc(text, func(line string) string {
		parts := blocks.FindStringSubmatch(line)
		depth := len(parts[1])
		lines := strings.NewReplacer("INDENT+2", fmt.Sprint(depth+2), "INDENT", fmt.Sprint(depth)).Replace(expression(parts[2]))
		return parts[1] + strings.ReplaceAll(lines, "\n", "\n"+parts[1])
	})
	return scalars.ReplaceAllStringFunc(text, func(token string) string {
		return expression(scalars.FindStringSubmatch(token)[1])
	})
}
