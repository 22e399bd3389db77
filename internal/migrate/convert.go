package migrate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// Target is what jobs are converted to. An empty one is TrainJob, but V2beta1 for MPIJobs of earlier versions.
type Target string

// The targets.
const (
	TrainJob Target = "trainjob"
	// V2beta1 is an MPIJob of kubeflow.org/v2beta1.
	V2beta1 Target = "v2beta1"
)

// Targets returns the names of the targets.
func Targets() []string { return []string{string(TrainJob), string(V2beta1)} }

// Conversion is the conversion of a job, in one or two steps.
type Conversion struct {
	// Target is what the job was converted to.
	Target Target
	// Steps are the successful steps; the object of the last one is the new job.
	Steps []Result
	// Errors are the reasons why the job cannot be converted.
	Errors field.ErrorList
}

// Object returns the new job; nil if the job cannot be converted.
func (c Conversion) Object() map[string]any {
	if len(c.Errors) > 0 {
		return nil
	}
	return c.Steps[len(c.Steps)-1].Object
}

// Convert converts a job of any kind that Recognize knows. It fails if there is nothing to convert; errors in the job are in the
// result.
func Convert(object map[string]any, to Target, options Options) (Conversion, error) {
	of, err := Recognize(object)
	if err != nil {
		return Conversion{}, err
	}
	if to == "" {
		to = TrainJob
		if of == OfOldMPIJob {
			to = V2beta1
		}
	}
	c := Conversion{Target: to}
	switch {
	case of == OfSageMaker:
		c.add(FromSageMaker(object, to == V2beta1, options))
	case of == OfMPIJob && to == V2beta1:
		return Conversion{}, fmt.Errorf("it is already an MPIJob of v2beta1")
	case of == OfMPIJob:
		c.add(ToTrainJob(object, options))
	default:
		c.add(ToV2beta1(object, options))
		if to == TrainJob && len(c.Errors) == 0 {
			c.add(ToTrainJob(c.Object(), options))
		}
	}
	return c, nil
}

// add adds the result of a step.
func (c *Conversion) add(result Result, errs field.ErrorList) {
	if c.Errors = errs; len(errs) == 0 {
		c.Steps = append(c.Steps, result)
	}
}

// ParseRuntime reads NAME, clustertrainingruntime/NAME or trainingruntime/NAME; false for other texts.
func ParseRuntime(text string) (trainjob.RuntimeRef, bool) {
	kind, name, qualified := strings.Cut(text, "/")
	switch {
	case !qualified:
		return trainjob.RuntimeRef{Name: kind}, true
	case strings.EqualFold(kind, trainjob.ClusterRuntimeKind):
		return trainjob.RuntimeRef{Name: name}, true
	case strings.EqualFold(kind, trainjob.RuntimeKind):
		return trainjob.RuntimeRef{Name: name, Kind: trainjob.RuntimeKind}, true
	}
	return trainjob.RuntimeRef{}, false
}

// ParseTrainer reads a version of Kubeflow Trainer, such as v2.1, and returns whether its TrainJobs have podTemplateOverrides, as
// Options.Overrides; false for texts that are no version 2. The empty text is the latest version.
func ParseTrainer(text string) (overrides, known bool) {
	version := strings.TrimPrefix(text, "v")
	return version == "2.1" || strings.HasPrefix(version, "2.1."), version == "" || strings.HasPrefix(version, "2.")
}

// ParseInstance reads the size of an instance: at least a core and a GiB of memory, as quantities. It returns nil if nothing is set,
// and false for texts that are no such size.
func ParseInstance(cpu, memory string, devices int64, device string) (*Instance, bool) {
	if cpu == "" && memory == "" && devices == 0 {
		return nil, true
	}
	cores, errCPU := resource.ParseQuantity(cpu)
	bytes, errMemory := resource.ParseQuantity(memory)
	if errCPU != nil || errMemory != nil || cores.Value() < 1 || bytes.Value() < 1<<30 || devices < 0 {
		return nil, false
	}
	return &Instance{CPUs: cores.Value(), MemoryGiB: bytes.Value() >> 30, Devices: devices, Device: device}, true
}
