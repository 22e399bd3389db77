package trainjob

import (
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

// PodSets returns the pods that Trainer creates for a TrainJob: those of each job of its runtime, also of initializers.
func PodSets(from TrainJob, used Runtime) []mpi.PodSet {
	var sets []mpi.PodSet
	for i := range used.Spec.Template.Spec.ReplicatedJobs {
		of := &used.Spec.Template.Spec.ReplicatedJobs[i]
		if ptr.Deref(of.Replicas, 1) == 0 || used.IsMPI() && of.Name == nodeName && workers(from, used) == 0 {
			continue
		}
		sized := used.sizes(of)
		set := mpi.PodSet{Name: of.Name, Template: template(from, of, sized)}
		if pod := of.pod(); sized && container(&pod.Spec) != nil {
			set.Requests, set.Flag = sizePath, "--cpu"
		}
		sets = append(sets, set)
	}
	return sets
}

// sizes reports whether the resources of a TrainJob are those of a job of its runtime (see Convert).
func (r Runtime) sizes(of *ReplicatedJob) bool {
	if !r.IsMPI() {
		return of.isTrainer()
	}
	return of.Name == launcherName || of.Name == nodeName && r.mpiPolicy().RunLauncherAsNode
}
