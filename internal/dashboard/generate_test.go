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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated writes the description of the API from the Go types, with -update.
func TestGenerated(t *testing.T) {
	s := &Server{}
	schemas := newSchemas(t)
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
		for _, name := range route.query {
			parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
		}
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
}

// parameter matches the places where handlers read a parameter in the URL.
var parameter = regexp.MustCompile(`(?:values|Query\(\))\.Get\("(\w+)"\)|list\((?:values|c\.URL\.Query\(\)), "(\w+)"\)|parse\("(\w+)"|\{"(page|size)", &q`)

// TestParametersAreDescribed compares the parameters that the API describes with those that handlers read.
func TestParametersAreDescribed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read, described := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range parameter.FindAllStringSubmatch(string(code), -1) {
			read[strings.Join(match[1:], "")] = true
		}
	}
	for _, route := range (&Server{}).routes() {
		for _, name := range route.query {
			described[name] = true
		}
	}
	if diff := cmp.Diff(read, described); diff != "" {
		t.Errorf("the parameters of routes.go (+) are not those that handlers read (-):\n%s", diff)
	}
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

// schemas are the JSON schemas of Go types, by name.
type schemas struct {
	t     *testing.T
	json  map[string]any
	types map[string]reflect.Type
	enums map[string][]string
}

func newSchemas(t *testing.T) *schemas {
	return &schemas{t, map[string]any{}, map[string]reflect.Type{}, enums(t)}
}

// enums returns the values of the types of api/v1alpha1 that have a fixed set of them.
func enums(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files, err := filepath.Glob(filepath.Join("..", "..", "api", "v1alpha1", "*_types.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^// \+kubebuilder:validation:Enum=(\S+)\n(?:// .*\n)*type (\w+) string`).FindAllStringSubmatch(string(code), -1) {
			found[match[2]] = strings.Split(match[1], ";")
		}
	}
	if len(found["Phase"]) == 0 {
		t.Fatal("the phases are not found")
	}
	return found
}

// nameOf returns the name of a type: types of other packages get that of their package, as far as names would be ambiguous.
func nameOf(t reflect.Type) string {
	switch {
	case isReport(t) && !strings.HasPrefix(t.Name(), "JobReport"):
		return "Report" + t.Name()
	case strings.HasSuffix(t.PkgPath(), "internal/jobs") && t.Name() == "Spec":
		return "JobSpec"
	}
	return t.Name()
}

func isReport(t reflect.Type) bool { return strings.HasSuffix(t.PkgPath(), "api/v1alpha1") }

// of returns the JSON schema of a type.
func (s *schemas) of(t reflect.Type) map[string]any {
	text := map[string]any{"type": "string"}
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[resource.Quantity]():
		return text
	case reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "format": "byte"}
	case reflect.TypeFor[corev1.EnvVar]():
		return map[string]any{"type": "object", "properties": map[string]any{"name": text, "value": text}, "required": []string{"name"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		if values := s.enums[t.Name()]; isReport(t) && values != nil {
			s.json[nameOf(t)] = map[string]any{"type": "string", "enum": values}
			return map[string]any{"$ref": "#/components/schemas/" + nameOf(t)}
		}
		return text
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		s.add(t)
		return map[string]any{"$ref": "#/components/schemas/" + nameOf(t)}
	}
	panic(fmt.Sprintf("a field of type %s is not supported", t))
}

func (s *schemas) add(t reflect.Type) {
	name := nameOf(t)
	if known, done := s.types[name]; done {
		if known != t {
			s.t.Errorf("%s and %s have the same name", known, t)
		}
		return
	}
	s.types[name] = t
	properties, required := map[string]any{}, []string{}
	for field := range t.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag == "-" || tag == "" {
			continue
		}
		schema := s.of(field.Type)
		optional := strings.Contains(options, "omitempty")
		if field.Type.Kind() == reflect.Pointer && !optional || name == "LogEvent" && tag == "waiting" {
			schema = map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
		}
		properties[tag] = schema
		if !optional {
			required = append(required, tag)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	s.json[name] = schema
}
