package trainjob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// Place returns the role of a TrainJob's pod, and the index of a worker, by the pod's labels alone. The role of pods that
// fetch data or a model is the name of their job. Pods is more exact, but needs the runtime.
func Place(pod *corev1.Pod) (mpi.Role, int) {
	of := pod.Labels[labelJob]
	switch {
	case of == launcherName:
		return mpi.RoleLauncher, 0
	case strings.HasSuffix(of, "-initializer"):
		return mpi.Role(of), 0
	}
	return mpi.RoleWorker, workerIndex(pod)
}
