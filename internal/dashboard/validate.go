package dashboard

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
	errs = append(errs, completePods(request)...)
	return append(errs, spec.Validate()...)
}

// sharedMemory is the path of shared memory in pods.
const sharedMemory = "/dev/shm"

// completePods reads what a request has about pods into its specification, and returns what is wrong with it.
func completePods(request *SpecRequest) (errs []jobs.FieldError) {
	spec := &request.Spec
	for _, limit := range []struct {
		seconds *int64
		into    **time.Duration
	}{{request.TTLSeconds, &spec.TTL}, {request.GracePeriodSeconds, &spec.GracePeriod}} {
		if limit.seconds != nil {
			*limit.into = new(time.Duration(*limit.seconds) * time.Second)
		}
	}
	if request.Shm != "" {
		volume, err := jobs.ParseVolume(string(jobs.VolumeMemory) + "/" + request.Shm + ":" + sharedMemory)
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "shm", Value: request.Shm, Reason: "is not a quantity; use a value such as 8Gi"})
		} else {
			spec.Volumes = append(slices.Clip(spec.Volumes), volume)
		}
	}
	for _, text := range request.Tolerations {
		toleration, err := jobs.ParseToleration(text)
		if invalid, is := errors.AsType[*jobs.InvalidError](err); is {
			errs = append(errs, invalid.Fields...)
			continue
		}
		spec.Tolerations = append(slices.Clip(spec.Tolerations), toleration)
	}
	return errs
}

// separatePods moves what a form has in other fields out of the specification of a request, as completePods reads it.
func separatePods(request *SpecRequest) {
	spec := &request.Spec
	for _, limit := range []struct {
		seconds **int64
		from    **time.Duration
	}{{&request.TTLSeconds, &spec.TTL}, {&request.GracePeriodSeconds, &spec.GracePeriod}} {
		if *limit.from != nil {
			*limit.seconds, *limit.from = new(int64(**limit.from/time.Second)), nil
		}
	}
	// Another place in the list would be another name of the volume.
	if last := len(spec.Volumes) - 1; last >= 0 && spec.Volumes[last].Source == jobs.VolumeMemory && spec.Volumes[last].Path == sharedMemory {
		request.Shm, spec.Volumes = spec.Volumes[last].Size, spec.Volumes[:last]
	}
	var texts []string
	for _, toleration := range spec.Tolerations {
		text, is := jobs.TolerationText(toleration)
		if !is {
			return
		}
		texts = append(texts, text)
	}
	request.Tolerations, spec.Tolerations = texts, nil
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
