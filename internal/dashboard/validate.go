package dashboard

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"opendatahub.io/mpijob/internal/jobs"
)

// complete reads the texts of a request into its specification, and returns what is wrong with it.
func complete(request *SpecRequest) []jobs.FieldError {
	spec := &request.Spec
	spec.Deadline, spec.GangTimeout = time.Duration(request.DeadlineSeconds)*time.Second, time.Duration(request.GangTimeoutSeconds)*time.Second
	errs := nameErrors(spec)
	if request.CommandLine != "" {
		command, err := jobs.ParseCommand(request.CommandLine)
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "command", Value: request.CommandLine, Reason: err.Error()})
			command = []string{request.CommandLine} // it is not missing
		}
		spec.Command = command
	}
	flags, err := jobs.SplitCommand(request.FlagLine)
	if err != nil {
		errs = append(errs, jobs.FieldError{Field: "mpiFlags", Value: request.FlagLine, Reason: err.Error()})
	}
	if spec.MPIFlags = flags; spec.GangTimeout > math.MaxInt32*time.Second {
		errs = append(errs, jobs.FieldError{Field: "gangTimeout", Value: spec.GangTimeout.String(), Reason: fmt.Sprintf("is too long; use at most %d seconds", math.MaxInt32)})
	}
	return append(errs, spec.Validate()...)
}

// nameErrors returns what is wrong with the name and the namespace of a job. Names of pods are made from the job's, and are
// host names.
func nameErrors(spec *jobs.Spec) []jobs.FieldError {
	var errs []jobs.FieldError
	if reasons := validation.IsDNS1035Label(spec.Name); spec.Name != "" && len(reasons) > 0 {
		errs = append(errs, jobs.FieldError{Field: "name", Value: spec.Name, Reason: "is not allowed; use lower-case letters, digits and -, and start with a letter, such as train-1"})
	}
	if spec.Namespace == "" {
		errs = append(errs, jobs.FieldError{Field: "namespace", Reason: "is required"})
	}
	return errs
}
