package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is an object of any kind in a file.
type document struct {
	// where is the file, and which of its documents it is where there are several.
	where  string
	object map[string]any
}

// readDocuments reads objects of YAML or JSON; - is standard input. What kubectl prints as a list are several.
func (f *Factory) readDocuments(file string) ([]document, error) {
	in := f.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, exitf(ExitError, "%v", err)
		}
		defer opened.Close()
		in = opened
	} else {
		file = "standard input"
	}
	var found []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for i := 1; ; i++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		objects, err := decode(text)
		if err != nil {
			return nil, exitf(ExitError, "%s, document %d: %v", file, i, err)
		}
		for _, object := range objects {
			found = append(found, document{where: file, object: object})
		}
	}
	if len(found) == 0 {
		return nil, exitf(ExitError, "%s has nothing in it", file)
	}
	return found, nil
}

// decode reads one document, which may be empty, or a list.
func decode(text []byte) ([]map[string]any, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, errors.New("it is neither an object of YAML nor one of JSON")
	}
	items, isList := object["items"].([]any)
	if object == nil || !isList {
		if object == nil {
			return nil, nil
		}
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
