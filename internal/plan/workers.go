package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// missingWorkers returns the pods of workers that do not exist. A terminating pod still uses its name; its successor
// is planned when it is gone.
func missingWorkers(job mpi.Job, seen jobstate.Observed, settings Settings) []Object {
	have := make(map[int]bool, len(seen.Workers))
	for _, worker := range seen.Workers {
		have[worker.Index] = true
	}
	var pods []Object
	for index := range int(job.Workers.Count) {
		if !have[index] {
			pod := worker(job, index, settings)
			pinned(&pod.Spec, seen, pod.Name, true)
			pods = append(pods, pod)
		}
	}
	return pods
}

// workersFrom returns the workers to delete whose index is at least from.
func workersFrom(seen jobstate.Observed, from int) []Ref {
	return refs(seen, func(worker jobstate.Worker) bool { return worker.Index >= from })
}

// lostWorkers returns the workers that failed and are replaced: all if the job requests it, else those that were disrupted. Their
// successors are planned when they are gone.
func lostWorkers(job mpi.Job, seen jobstate.Observed) []Ref {
	return refs(seen, func(worker jobstate.Worker) bool {
		return worker.Index < int(job.Workers.Count) && worker.Pod.Status.Phase == corev1.PodFailed && jobstate.IsReplaced(job, worker)
	})
}

// finishedWorkers returns the workers that the job's clean-up policy deletes after it finished.
func finishedWorkers(job mpi.Job, seen jobstate.Observed) []Ref {
	return refs(seen, func(worker jobstate.Worker) bool {
		return job.DeletesWhenFinished(podstatus.HasEnded(worker.Pod))
	})
}

func refs(seen jobstate.Observed, which func(jobstate.Worker) bool) []Ref {
	var refs []Ref
	for _, worker := range seen.Workers {
		if worker.Pod.DeletionTimestamp == nil && which(worker) {
			refs = append(refs, Ref{Kind: "Pod", Namespace: worker.Pod.Namespace, Name: worker.Pod.Name, UID: worker.Pod.UID})
		}
	}
	return slices.Clip(refs)
}

// sshd is the command of workers without the agent, as in mpi-operator.
var sshd = []string{"/usr/sbin/sshd", "-De"}

// worker returns the pod of a worker.
func worker(job mpi.Job, index int, settings Settings) *corev1.Pod {
	template := job.Workers.Template.DeepCopy()
	isolatePod(template)
	labels := withLabels(template.Labels, job.PodLabels(mpi.RoleWorker))
	labels[mpi.LabelIndex] = job.WorkerIndex(index)

	spec := template.Spec
	name := job.WorkerName(index)
	setHost(job, &spec, name)
	// The launchers of MPICH and Intel MPI make their workers connect to the launcher's host name without domain.
	domain := settings.ClusterDomain
	if domain == "" {
		domain = "cluster.local"
	}
	if spec.DNSConfig == nil {
		spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	spec.DNSConfig.Searches = append(spec.DNSConfig.Searches, job.ServiceName()+"."+job.Namespace+".svc."+domain)
	spec.RestartPolicy = job.Workers.RestartPolicy
	spec.Affinity = job.WithTopologyAffinity(spec.Affinity, template.Annotations)

	main := &spec.Containers[0]
	switch {
	case job.Workers.HasCommand():
	case job.UsesAgent():
		main.Command = []string{agentapi.Binary, "serve"}
	default:
		main.Command = slices.Clone(sshd)
	}
	addEnv(main, corev1.EnvVar{Name: mpi.EnvRole, Value: string(mpi.RoleWorker)})
	addConnections(job, main)
	mountKeys(job, &spec)
	annotations := template.Annotations
	if job.UsesAgent() {
		addAgent(job, &spec, settings)
		annotations = withMain(annotations, spec)
	}

	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta(job, name, ""),
		Spec:       spec,
	}
	pod.Labels, pod.Annotations = labels, annotations
	return pod
}

// setHost sets a pod's DNS name under the job's Service.
func setHost(job mpi.Job, spec *corev1.PodSpec, name string) {
	spec.Hostname, spec.Subdomain = name, job.ServiceName()
	if spec.HostNetwork {
		// Without it, a pod in the host network cannot resolve names of the cluster.
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
}

// withLabels adds the operator's labels to the user's labels.
func withLabels(users, ours map[string]string) map[string]string {
	labels := maps.Clone(ours)
	for key, value := range users {
		if _, taken := ours[key]; !taken {
			labels[key] = value
		}
	}
	return labels
}

// addEnv adds variables that the user has not set.
func addEnv(container *corev1.Container, vars ...corev1.EnvVar) {
	for _, v := range vars {
		if !slices.ContainsFunc(container.Env, func(have corev1.EnvVar) bool { return have.Name == v.Name }) {
			container.Env = append(container.Env, v)
		}
	}
}
