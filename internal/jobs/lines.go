package jobs

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Lines returns a function that finds the line of a field in a job's YAML, the first of which is 1: the line of the field, such as
// spec.mpiReplicaSpecs[Worker].replicas, or of the nearest field around it. It returns 0 if the text has none of them.
func Lines(text string) func(path string) int {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return func(string) int { return 0 }
	}
	return func(path string) int {
		steps, err := splitPath(path)
		if err != nil {
			return 0
		}
		line, at := 0, document.Content[0]
		for _, step := range steps {
			key, value := nodeAt(at, step)
			if value == nil {
				break
			}
			line, at = key.Line, value
		}
		return line
	}
}

// nodeAt returns the node that names an entry of an object or a list, and its value; nil if there is none.
func nodeAt(parent *yaml.Node, step string) (key, value *yaml.Node) {
	for parent.Kind == yaml.AliasNode {
		parent = parent.Alias
	}
	switch parent.Kind {
	case yaml.MappingNode:
		for pair := range slices.Chunk(parent.Content, 2) {
			if pair[0].Value == step {
				return pair[0], pair[1]
			}
		}
	case yaml.SequenceNode:
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(parent.Content) {
			return parent.Content[n], parent.Content[n]
		}
	}
	return nil, nil
}
