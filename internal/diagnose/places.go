package diagnose

import "strings"

// Remedies name fields as MPIJobs have them. Users of TrainJobs have written some of these elsewhere, and others have
// been written for them by whoever made the runtime.
var trainJobPlaces = strings.NewReplacer(
	"spec.trainer.spec.containers[0].resources", "spec.trainer.resourcesPerNode",
	"spec.trainer.spec.containers[0].image", "spec.trainer.image",
	"spec.mpiReplicaSpecs.{Launcher,Worker}.template.spec.containers[0].image", "spec.trainer.image",
	"spec.trainer.spec", "the runtime's pod templates: spec",
	"spec.trainer.metadata", "the runtime's pod templates: metadata",
	"spec.runPolicy.schedulingPolicy.priorityClass", "the runtime's pod templates: spec.priorityClassName",
	"spec.mpiImplementation: OpenMPI, Intel or MPICH", "the runtime's annotation mpi.opendatahub.io/mpi-implementation: OpenMPI, Intel or MPICH",
	// With a runtime of ours the launcher waits by itself.
	"spec.launcherCreationPolicy: WaitForWorkersReady", "",
	`{"spec":{"runPolicy":{"suspend":true}}}`, `{"spec":{"suspend":true}}`,
)

// inKind makes a remedy's action one for the job's own kind.
func (p *patient) inKind(action string) string {
	if p.job.Kind == "TrainJob" {
		return trainJobPlaces.Replace(action)
	}
	return action
}
