package jobs

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Decode reads one YAML or JSON document: one object, the objects of a list, or none if it is empty.
func Decode(document []byte) ([]map[string]any, error) {
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, errors.New("it is not a YAML or JSON object")
	}
	if object == nil {
		return nil, nil
	}
	items, isList := object["items"].([]any)
	if !isList {
		return []map[string]any{object}, nil
	}
	var all []map[string]any
	for _, item := range items {
		if one, is := item.(map[string]any); is {
			all = append(all, one)
		}
	}
	return all, nil
}
