package dashboard

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated writes the description of the API and the types of the web pages from the Go types, with -update.
func TestGenerated(t *testing.T) {
	s := &Server{}
	schemas := newSchemas()
	for _, value := range []any{Problem{}, Login{}} {
		schemas.of(reflect.TypeOf(value))
	}
	paths := map[string]map[string]any{}
	for _, route := range s.routes() {
		operation := map[string]any{"summary": route.summary}
		if route.in != nil && reflect.TypeOf(route.in).NumField() > 0 {
			operation["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": schemas.of(reflect.TypeOf(route.in))}}}
		}
		kind := "application/json"
		if route.stream != nil {
			kind = "text/event-stream"
		}
		operation["responses"] = map[string]any{
			"200":     map[string]any{"description": "The result", "content": map[string]any{kind: map[string]any{"schema": schemas.of(reflect.TypeOf(route.out))}}},
			"default": map[string]any{"description": "A problem", "content": map[string]any{"application/json": map[string]any{"schema": schemas.of(reflect.TypeFor[Problem]())}}},
		}
		var parameters []any
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(route.path, -1) {
			parameters = append(parameters, map[string]any{"name": name[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if paths["/api/v1"+route.path] == nil {
			paths["/api/v1"+route.path] = map[string]any{}
		}
		paths["/api/v1"+route.path][strings.ToLower(route.method)] = operation
	}
	document := map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "Dashboard of MPIJobs for OpenShift AI", "version": "v1"},
		"paths": paths, "components": map[string]any{
			"schemas":         schemas.json,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{map[string]any{"token": []any{}}},
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(document); err != nil {
		t.Fatal(err)
	}
	compare(t, "openapi.json", text.String())
	compare(t, filepath.Join("..", "..", "web", "src", "api", "types.ts"), schemas.typescript())
}

// compare compares a generated file with what it should contain.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/dashboard -run TestGenerated -update\n%s", file, diff)
	}
}

// schemas are the JSON schemas and TypeScript types of Go types, by name.
type schemas struct {
	json map[string]any
	ts   map[string]string
}

func newSchemas() *schemas { return &schemas{map[string]any{}, map[string]string{}} }

// nameOf returns the name of a type: types of other packages get that of their package, as far as names would be ambiguous.
func nameOf(t reflect.Type) string {
	switch {
	case strings.HasSuffix(t.PkgPath(), "api/v1alpha1") && !strings.HasPrefix(t.Name(), "JobReport"):
		return "Report" + t.Name()
	case strings.HasSuffix(t.PkgPath(), "internal/jobs") && t.Name() == "Spec":
		return "JobSpec"
	}
	return t.Name()
}

func (s *schemas) of(t reflect.Type) map[string]any {
	schema, _ := s.both(t)
	return schema
}

// both returns the JSON schema and the TypeScript of a type.
func (s *schemas) both(t reflect.Type) (map[string]any, string) {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}, "string"
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer"}, "number"
	case reflect.TypeFor[corev1.EnvVar]():
		text := map[string]any{"type": "string"}
		return map[string]any{"type": "object", "properties": map[string]any{"name": text, "value": text}}, "{name: string; value?: string}"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.both(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}, "string"
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, "boolean"
	case reflect.Float64:
		return map[string]any{"type": "number"}, "number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}, "number"
	case reflect.Slice:
		items, ts := s.both(t.Elem())
		if strings.ContainsAny(ts, " {") {
			ts = "(" + ts + ")"
		}
		return map[string]any{"type": "array", "items": items}, ts + "[]"
	case reflect.Map:
		values, ts := s.both(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, "Record<string, " + ts + ">"
	case reflect.Struct:
		s.add(t)
		return map[string]any{"$ref": "#/components/schemas/" + nameOf(t)}, nameOf(t)
	}
	panic(fmt.Sprintf("a field of type %s is not supported", t))
}

func (s *schemas) add(t reflect.Type) {
	name := nameOf(t)
	if _, done := s.ts[name]; done {
		return
	}
	s.ts[name] = ""
	properties, required := map[string]any{}, []string{}
	var lines strings.Builder
	for field := range t.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag == "-" || tag == "" {
			continue
		}
		schema, ts := s.both(field.Type)
		optional := strings.Contains(options, "omitempty")
		nullable := field.Type.Kind() == reflect.Pointer && !optional || name == "LogEvent" && tag == "waiting"
		if nullable {
			ts += " | null"
			schema = map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
		}
		properties[tag] = schema
		mark := ""
		if optional {
			mark = "?"
		} else {
			required = append(required, tag)
		}
		fmt.Fprintf(&lines, "  %s%s: %s;\n", tag, mark, ts)
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	s.json[name] = schema
	s.ts[name] = lines.String()
}

func (s *schemas) typescript() string {
	var out strings.Builder
	out.WriteString("// Generated from internal/dashboard/routes.go. Do not edit: go test ./internal/dashboard -run TestGenerated -update\n")
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range s.ts {
			if !yield(name) {
				return
			}
		}
	}) {
		fmt.Fprintf(&out, "\nexport interface %s {\n%s}\n", name, s.ts[name])
	}
	return out.String()
}
