package diagnose

import (
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// Remedies name the fields of MPIJobs. In TrainJobs some of these have other names, and others are part of the runtime.
var trainJobPlaces = strings.NewReplacer(
	"spec.trainer.spec.containers[0].resources", "spec.trainer.resourcesPerNode",
	"spec.trainer.spec.containers[0].image", "spec.trainer.image",
	"spec.trainer.spec.containers[0].command", "spec.trainer.command",
	"spec.trainer.spec.containers[0].args", "spec.trainer.args",
	"spec.trainer.spec.containers[0].env", "spec.trainer.env",
	"spec.mpiReplicaSpecs.{Launcher,Worker}.template.spec.containers[0].image", "spec.trainer.image",
	"spec.trainer.spec", "the pod templates, in spec.runtimePatches or the runtime: spec",
	"spec.trainer.metadata", "the runtime's pod templates: metadata",
	"spec.runPolicy.schedulingPolicy.priorityClass", "metadata.annotations[mpi.opendatahub.io/priority-class], or the runtime's pod templates: spec.priorityClassName",
	"spec.mpiImplementation: OpenMPI, Intel or MPICH", "the runtime's annotation mpi.opendatahub.io/mpi-implementation: OpenMPI, Intel or MPICH",
	// With this project's runtimes, the launcher waits by itself.
	"spec.launcherCreationPolicy: WaitForWorkersReady", "",
)

// trainJobPatch suspends a TrainJob. In commands only this is replaced: another replacement could end a quotation.
var trainJobPatch = strings.NewReplacer(`{"spec":{"runPolicy":{"suspend":true}}}`, `{"spec":{"suspend":true}}`)

// useAgent is the change of a job that lets the agent start its ranks.
var useAgent = v1alpha1.FieldChange{Field: "metadata.annotations[" + mpi.AnnotationLaunch + "]", Value: mpi.LaunchAgent}

// adaptRemedy names the fields of a remedy as users of the job's kind write them. A change of a field that a user cannot set
// leaves only the text.
func (p *input) adaptRemedy(remedy *v1alpha1.Remedy) {
	rename := func(text string) string { return text }
	if p.Job.Kind == mpi.KindTrainJob {
		rename = trainJobPlaces.Replace
	}
	remedy.Action = inOptionsOf(p.Job.Implementation, remedy.Action)
	switch isTrainJob := p.Job.Kind == mpi.KindTrainJob; {
	case isTrainJob && codes.IsCommand(remedy.Action):
		remedy.Action = boundAction(trainJobPatch.Replace(remedy.Action))
	default:
		remedy.Action = boundAction(rename(remedy.Action))
	}
	for i, change := range remedy.Changes {
		change.Field = rename(change.Field)
		if !p.isField(change.Field) || len(change.Value) > maxValue {
			remedy.Rerun, remedy.Changes = false, nil
			return
		}
		remedy.Changes[i] = change
	}
	if setsCommand := func(c v1alpha1.FieldChange) bool {
		return c.Field == rename(p.field(mpi.RoleLauncher)+".spec.containers[0].command")
	}; slices.ContainsFunc(remedy.Changes, setsCommand) && p.launcherHasArgs() {
		// The command is the whole one.
		if !codes.IsCommand(remedy.Action) {
			remedy.Action += ", and no args"
		}
		remedy.Changes = append(remedy.Changes, v1alpha1.FieldChange{Field: rename(p.field(mpi.RoleLauncher) + ".spec.containers[0].args"), Value: "null"})
	}
	if slices.Contains(remedy.Changes, useAgent) && p.Job.Workers.HasCommand() {
		// A worker with a command of its own runs that, and not the agent.
		remedy.Action += ", and no command or args in the workers' container"
		for _, name := range []string{"command", "args"} {
			remedy.Changes = append(remedy.Changes, v1alpha1.FieldChange{Field: p.field(mpi.RoleWorker) + ".spec.containers[0]." + name, Value: "null"})
		}
	}
	// An action that is no change is for users, and so is the decision to run the job again.
	remedy.Rerun = remedy.Rerun && (len(remedy.Changes) > 0 || remedy.Action == "")
}

// launcherHasArgs reports whether the launcher's command has arguments in a list of their own.
func (p *input) launcherHasArgs() bool {
	main := p.Template(mpi.RoleLauncher).Containers
	return len(main) > 0 && len(main[0].Args) > 0
}

// isField reports whether users can set a field in the job's own kind: a path, or the variable of a name.
func (p *input) isField(name string) bool {
	if p.Job.Kind == mpi.KindTrainJob {
		return strings.HasPrefix(name, "spec.trainer.") || p.Job.Fields.Deadline != nil && name == p.Job.Fields.Deadline.String() || strings.HasPrefix(name, "env.") || name == mpi.RDMAPath.String()
	}
	return strings.HasPrefix(name, "spec.") || strings.HasPrefix(name, "metadata.") || strings.HasPrefix(name, "env.")
}
