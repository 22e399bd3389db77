package trainjob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// Place tells by a pod's labels alone what it is of its TrainJob: the launcher, or the worker of a number. Those that fetch
// data or a model beforehand have the name of their job for a role. Pods knows better where the runtime is known.
func Place(pod *corev1.Pod) (mpi.Role, int) {
	of := pod.Labels[labelJob]
	switch {
	case of == launcherName:
		return mpi.RoleLauncher, 0
	case strings.HasSuffix(of, "-initializer"):
		return mpi.Role(of), 0
	}
	index := number(pod, labelIndex)
	if index == 0 {
		index = number(pod, labelJobPart)
	}
	return mpi.RoleWorker, index
}
