package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"opendatahub.io/mpijob/internal/jobs"
)

// document is an object of any kind from a file.
type document struct {
	// where is the file.
	where  string
	object map[string]any
}

// readDocuments reads YAML or JSON objects, and the objects of lists; - is standard input.
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
		objects, err := jobs.Decode(text)
		if err != nil {
			return nil, exitf(ExitError, "%s, document %d: %v", file, i, err)
		}
		for _, object := range objects {
			found = append(found, document{where: file, object: object})
		}
	}
	if len(found) == 0 {
		return nil, exitf(ExitError, "%s contains no objects", file)
	}
	return found, nil
}

// printInvalid prints every error in the job of a document.
func printInvalid(to io.Writer, from document, problem string, errs field.ErrorList) {
	say(to, "%s %s: %s %s:", paintOn(to, red, "error:"), from.where, nameIn(from.object), problem)
	for _, err := range errs {
		say(to, "  - %s", oneLine(err.Error()))
	}
}

// nameIn returns the name of a job, of Kubernetes or of SageMaker.
func nameIn(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	kind := strings.ToLower(u.GetKind())
	if name, is := object["TrainingJobName"].(string); is {
		return "training job " + oneLine(name)
	}
	return fmt.Sprintf("%s/%s (%s)", kind, cmp.Or(oneLine(u.GetName()), "?"), oneLine(u.GetAPIVersion()))
}
