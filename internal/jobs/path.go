package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// setPath sets the field at a path such as spec.mpiReplicaSpecs.Worker.template.spec.containers[0].image. Brackets contain
// the index of a list entry, or a name with dots.
func setPath(in map[string]any, path, value string) error {
	steps, err := splitPath(path)
	if err != nil {
		return err
	}
	var parsed any
	if value != "" {
		data, err := yaml.YAMLToJSON([]byte(value))
		if err != nil {
			return fmt.Errorf("is not a YAML value: %w", err)
		}
		if err := json.Unmarshal(data, &parsed); err != nil {
			return err
		}
		if _, isText := parsed.(string); !isText && parsed != nil && holdsTexts(steps) {
			parsed = value
		}
	}
	var at any = in
	for i, step := range steps {
		if i == len(steps)-1 {
			return setEntry(at, step, parsed, strings.Join(steps[:i], "."))
		}
		if parent, is := at.(map[string]any); is && parent[step] == nil {
			parent[step] = map[string]any{}
		}
		if at, err = entry(at, step, strings.Join(steps[:i], ".")); err != nil {
			return err
		}
	}
	return nil
}

// holdsTexts reports whether the last step of a path is in an object that the API only allows texts in, also true and 1.
func holdsTexts(steps []string) bool {
	return len(steps) > 1 && slices.Contains([]string{"annotations", "labels", "nodeSelector"}, steps[len(steps)-2])
}

// entry returns an entry of an object or a list. The path is the path of the parent, for errors.
func entry(parent any, step, path string) (any, error) {
	switch parent := parent.(type) {
	case map[string]any:
		return parent[step], nil
	case []any:
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 || n >= len(parent) {
			return nil, fmt.Errorf("has no entry %s at %s: the list has %d entries", step, path, len(parent))
		}
		return parent[n], nil
	}
	return nil, fmt.Errorf("cannot be set: %s is a value, not an object", path)
}

// setEntry sets an entry of an object or a list; nil removes it from an object.
func setEntry(parent any, step string, value any, path string) error {
	if _, err := entry(parent, step, path); err != nil {
		return err
	}
	switch parent := parent.(type) {
	case map[string]any:
		if parent[step] = value; value == nil {
			delete(parent, step)
		}
	case []any:
		n, _ := strconv.Atoi(step)
		parent[n] = value
	}
	return nil
}

func splitPath(path string) ([]string, error) {
	var steps []string
	for rest := path; rest != ""; {
		if inner, found := strings.CutPrefix(rest, "["); found {
			step, after, closed := strings.Cut(inner, "]")
			if !closed || step == "" {
				return nil, errors.New("has an open or empty bracket")
			}
			steps = append(steps, step)
			rest = strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, errors.New("has an empty path element")
		}
		steps = append(steps, rest[:end])
		rest = strings.TrimPrefix(rest[end:], ".")
	}
	return steps, nil
}
