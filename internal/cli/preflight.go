package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// readJobs reads the MPIJobs and TrainJobs of a file; - is standard input. They go to the namespace; where the user has
// named that, a file that says another is refused.
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
			return nil, usagef("%s %s in %s is for the namespace %s, and -n says %s", object.GetKind(), object.GetName(), file, its, namespace)
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		return nil, exitf(ExitError, "there is nothing in %s", file)
	}
	return objects, nil
}

// readJob reads one document; nil for an empty one.
func readJob(document []byte) (*unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
		return nil, err
	}
	if len(object.Object) == 0 {
		return nil, nil
	}
	for _, kind := range jobKinds {
		if object.GroupVersionKind() == kind {
			return &object, nil
		}
	}
	if object.GetKind() == kubeflow.Kind {
		return nil, fmt.Errorf("%s %s is of %s, which this operator does not run: migrate it to %s", object.GetKind(), object.GetName(), object.GetAPIVersion(), kubeflow.SchemeGroupVersion)
	}
	return nil, fmt.Errorf("%s %s (%s) is no job: only MPIJobs (%s) and TrainJobs (%s) are created here, use kubectl create for others",
		object.GetKind(), object.GetName(), object.GetAPIVersion(), kubeflow.SchemeGroupVersion, trainjob.GroupVersion)
}

// asMPIJob is an object as an MPIJob; false where it is none.
func asMPIJob(object *unstructured.Unstructured) (*kubeflow.MPIJob, bool) {
	if object.GetKind() != kubeflow.Kind {
		return nil, false
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, false
	}
	var job kubeflow.MPIJob
	return &job, json.Unmarshal(data, &job) == nil
}

// checkOffline tells what the operator would find wrong with a job, without asking it.
func checkOffline(object *unstructured.Unstructured) error {
	from, is := asMPIJob(object)
	if !is {
		return nil
	}
	job, errs := mpijob.Kind{}.Convert(from)
	errs = append(errs, mpi.Validate(job)...)
	if len(errs) == 0 {
		return nil
	}
	var lines []string
	for _, err := range errs {
		lines = append(lines, "  - "+err.Error())
	}
	return &exitError{code: ExitError, err: fmt.Errorf("mpijob/%s cannot run as it is written", object.GetName()), more: lines}
}

// warnOffline tells what in an MPIJob runs but is hardly what its user means, without asking the operator.
func (o *createOptions) warnOffline(object *unstructured.Unstructured) {
	from, is := asMPIJob(object)
	if !is {
		return
	}
	job, errs := mpijob.Kind{}.Convert(from)
	if len(errs) > 0 {
		return
	}
	for _, warning := range mpi.Warnings(job) {
		say(o.ErrOut, "%s %s", o.paintOn(o.ErrOut, yellow, "warning:"), warning)
	}
}

// preview says what an hour of the job costs, where somebody has written prices down.
func (o *createOptions) preview(ctx context.Context, object *unstructured.Unstructured) {
	launcher, worker, workers, known := sizesOf(object)
	if !known {
		return
	}
	prices, written, err := o.prices(ctx, object.GetNamespace())
	if err != nil {
		say(o.ErrOut, "note: what the job costs is not known: %v", err)
		return
	}
	if !written {
		return
	}
	use := cost.ForHours(mpi.Requests(worker), float64(workers), 1).Plus(cost.ForHours(mpi.Requests(launcher), 1, 1))
	rates := prices.On(worker.NodeSelector)
	text := fmt.Sprintf("An hour of this job costs about %s", prices.Amount(rates.Of(use)))
	if unpriced := rates.Unpriced(use); len(unpriced) > 0 {
		text += ", without " + strings.Join(unpriced, ", ") + ", which have no price"
	}
	say(o.ErrOut, "%s.", text)
}

// sizesOf are the pods of a job, as far as its own text says what they ask for.
func sizesOf(object *unstructured.Unstructured) (launcher, worker corev1.PodSpec, workers int32, known bool) {
	if from, is := asMPIJob(object); is {
		job, errs := mpijob.Kind{}.Convert(from)
		return job.Launcher.Template.Spec, job.Workers.Template.Spec, job.Workers.Count, len(errs) == 0
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return launcher, worker, 0, false
	}
	from, err := trainjob.Decode(data)
	if err != nil || from.Spec.Trainer == nil || from.Spec.Trainer.ResourcesPerNode == nil || from.Spec.Trainer.NumNodes == nil {
		return launcher, worker, 0, false
	}
	worker.Containers = []corev1.Container{{Resources: *from.Spec.Trainer.ResourcesPerNode}}
	return launcher, worker, *from.Spec.Trainer.NumNodes, true
}
