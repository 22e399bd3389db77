package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// parameter is ${NAME} or ${NAME:-default} in a text. $${ is an ordinary ${, such as a shell's.
var parameter = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// parameters are those in the texts of an object, with their defaults; nil for one that has none. One with two different
// defaults is an error.
func parameters(object any) (map[string]*string, error) {
	found := map[string]*string{}
	var err error
	eachText(object, func(text string) any {
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
				err = fmt.Errorf("the parameter %s has two defaults, %q and %q", name, *before, *value)
			}
		}
		return text
	})
	return found, err
}

// fill is an object with its parameters replaced. A text that is one parameter alone becomes what its value is in YAML, a
// number for one, unless that is an object or a list: values are the user's, and must not add fields. What is missing or
// unknown is told at once.
func fill(object map[string]any, values map[string]string) (map[string]any, error) {
	known, err := parameters(object)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, given := values[name]; !given && known[name] == nil {
			problems = append(problems, fmt.Sprintf("%s has no value: say -p %s=VALUE", name, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, has := known[name]; !has {
			problems = append(problems, fmt.Sprintf("it has no parameter %s%s", name, meant(name, slices.Sorted(maps.Keys(known)))))
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	valueOf := func(name string) string {
		if value, given := values[name]; given {
			return value
		}
		return *known[name]
	}
	filled := eachText(object, func(text string) any {
		if m := parameter.FindStringSubmatch(text); m != nil && m[0] == text && !strings.HasPrefix(text, "$$") {
			return scalar(valueOf(m[1]))
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

// escaped is a text without parameters: fill makes of it what it was.
func escaped(text string) string {
	return parameter.ReplaceAllStringFunc(text, func(found string) string { return "$" + found })
}

// scalar is a value as YAML reads it, where that is a number or true or false.
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

// eachText is a copy of an object in which a function has replaced every text.
func eachText(value any, replace func(string) any) any {
	switch v := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			replaced[name] = eachText(v[name], replace)
		}
		return replaced
	case []any:
		replaced := make([]any, len(v))
		for i, entry := range v {
			replaced[i] = eachText(entry, replace)
		}
		return replaced
	case string:
		return replace(v)
	}
	return value
}
