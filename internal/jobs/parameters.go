package jobs

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/phrase"
)

// parameter is ${NAME} or ${NAME:-default} in a text. $${ is an escaped ${, such as a shell variable.
var parameter = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Parameters are the parameters of a template with their defaults; nil for a parameter that requires a value.
type Parameters map[string]*string

// String returns the parameters as NAME or NAME=DEFAULT, sorted.
func (p Parameters) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if value := p[name]; value != nil {
			name += "=" + *value
		}
		words = append(words, name)
	}
	return strings.Join(words, ",")
}

// FindParameters returns the parameters in the texts of an object. Two different defaults of one parameter are an error.
func FindParameters(object any) (Parameters, error) {
	found := Parameters{}
	var err error
	mapTexts(object, func(text string) any {
		for _, m := range parameter.FindAllStringSubmatchIndex(text, -1) {
			if strings.HasPrefix(text[m[0]:], "$$") {
				continue
			}
			name := text[m[2]:m[3]]
			before, known := found[name]
			var value *string
			if m[4] >= 0 {
				value = new(text[m[6]:m[7]])
			}
			switch {
			case !known || before == nil:
				found[name] = value
			case value != nil && *value != *before:
				err = fmt.Errorf("parameter %s has two defaults, %q and %q", name, *before, *value)
			}
		}
		return text
	})
	return found, err
}

// FillIn returns an object with its parameters replaced. A text that is only a parameter becomes a number or a boolean if
// its field is one; in unknown fields, if its value is one in YAML. It never becomes an object or a list, so that
// values cannot add fields. InvalidError lists all missing and unknown parameters.
func FillIn(object map[string]any, values map[string]string) (map[string]any, error) {
	known, err := FindParameters(object)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(known))
	var problems []FieldError
	for _, name := range names {
		if _, given := values[name]; !given && known[name] == nil {
			problems = append(problems, FieldError{Field: name, Reason: "is required"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, has := known[name]; !has {
			problems = append(problems, FieldError{Field: name, Reason: "is not a parameter of the template" + phrase.DidYouMean(phrase.Similar(name, names))})
		}
	}
	if len(problems) > 0 {
		return nil, Invalid(problems...)
	}
	valueOf := func(name string) string {
		if value, given := values[name]; given {
			return value
		}
		return *known[name]
	}
	kind, _ := object["kind"].(string)
	filled := mapFields(object, fieldTypes[kind], func(text string, field reflect.Type) any {
		if m := parameter.FindStringSubmatch(text); m != nil && m[0] == text && !strings.HasPrefix(text, "$$") {
			return valueFor(field, valueOf(m[1]))
		}
		return parameter.ReplaceAllStringFunc(text, func(found string) string {
			if strings.HasPrefix(found, "$$") {
				return found[1:]
			}
			return valueOf(parameter.FindStringSubmatch(found)[1])
		})
	})
	return filled.(map[string]any), nil
}

// Escape returns a text in which nothing is a parameter. FillIn turns it back.
func Escape(text string) string {
	return parameter.ReplaceAllStringFunc(text, func(found string) string { return "$" + found })
}

// fieldTypes are the types of jobs, by kind. The type of TrainJobs only has some of their fields.
var fieldTypes = map[string]reflect.Type{
	kubeflow.Kind: reflect.TypeFor[kubeflow.MPIJob](),
	trainjob.Kind: reflect.TypeFor[trainjob.TrainJob](),
}

// valueFor returns a text as the value of a field of a type; nil if the type is unknown. A text that is no value of the type
// stays a text, about which the API server has the better error.
func valueFor(field reflect.Type, text string) any {
	if field == nil {
		return scalar(text)
	}
	switch field.Kind() {
	case reflect.Bool:
		if value, err := strconv.ParseBool(text); err == nil {
			return value
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if value, err := strconv.ParseInt(text, 10, 64); err == nil {
			return value
		}
	case reflect.Struct:
		if value, err := strconv.ParseInt(text, 10, 32); err == nil && field == reflect.TypeFor[intstr.IntOrString]() {
			return value
		}
	}
	return text
}

// scalar returns the number or boolean that a text is in YAML, else the text.
func scalar(text string) any {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return text
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return text
	}
	switch value.(type) {
	case int64, float64, bool:
		return value
	}
	return text
}

// mapTexts returns a copy of an object with every text replaced.
func mapTexts(value any, replace func(string) any) any {
	return mapFields(value, nil, func(text string, _ reflect.Type) any { return replace(text) })
}

// mapFields is mapTexts with the types of the fields; nil for fields of unknown type.
func mapFields(value any, field reflect.Type, replace func(string, reflect.Type) any) any {
	for field != nil && field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			replaced[name] = mapFields(v[name], fieldType(field, name), replace)
		}
		return replaced
	case []any:
		replaced := make([]any, len(v))
		for i, entry := range v {
			replaced[i] = mapFields(entry, fieldType(field, ""), replace)
		}
		return replaced
	case string:
		return replace(v, field)
	}
	return value
}

// fieldType returns the type of a field of a struct by its name in JSON, or of the entries of a map or a list; nil if it is
// unknown.
func fieldType(parent reflect.Type, name string) reflect.Type {
	if parent == nil {
		return nil
	}
	switch parent.Kind() {
	case reflect.Map, reflect.Slice:
		return parent.Elem()
	case reflect.Struct:
		var inline []reflect.Type
		for field := range parent.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case tag == name:
				return field.Type
			case tag == "" && field.Anonymous:
				inline = append(inline, field.Type)
			}
		}
		for _, embedded := range inline {
			if found := fieldType(embedded, name); found != nil {
				return found
			}
		}
	}
	return nil
}
