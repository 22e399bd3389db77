package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// readJobs reads the MPIJobs and TrainJobs of a file; - is standard input. Jobs without a namespace get the given one. If
// the user has set that explicitly, another namespace in the file is an error.
func readJobs(file string, stdin io.Reader, namespace string, named bool) ([]*unstructured.Unstructured, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, exitf(ExitError, "read %s: %v", file, innermost(err))
	}
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, exitf(ExitError, "read %s: %v", file, err)
		}
		object, err := readJob(document)
		if err != nil {
			return nil, exitf(ExitError, "read %s: %v", file, err)
		}
		if object == nil {
			continue
		}
		switch its := object.GetNamespace(); {
		case its == "":
			object.SetNamespace(namespace)
		case named && its != namespace:
			return nil, usagef("%s %s in %s has namespace %s, but -n is %s", object.GetKind(), object.GetName(), file, its, namespace)
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		return nil, exitf(ExitError, "%s contains no jobs", file)
	}
	return objects, nil
}

// readJob reads one document; nil if it is empty.
func readJob(document []byte) (*unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
		return nil, err
	}
	if len(object.Object) == 0 {
		return nil, nil
	}
	if jobs.IsJob(object.GroupVersionKind()) {
		return &object, nil
	}
	if object.GetKind() == kubeflow.Kind {
		return nil, fmt.Errorf("%s %s has API version %s, which the operator does not run; convert it to %s with migrate", object.GetKind(), object.GetName(), object.GetAPIVersion(), kubeflow.SchemeGroupVersion)
	}
	return nil, fmt.Errorf("%s %s (%s) is not a job; use MPIJobs (%s) and TrainJobs (%s) here, and kubectl create for other objects",
		object.GetKind(), object.GetName(), object.GetAPIVersion(), kubeflow.SchemeGroupVersion, trainjob.GroupVersion)
}
