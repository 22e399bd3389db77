// Package facts holds what is known of a job: pods and their attempts, events, nodes, agents, logs and the specification.
//
// Each source has a file with the questions that causes ask it. Facts state what was observed, and no cause.
package facts

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Facts are a job with all that is known of it.
type Facts struct {
	Job      mpi.Job
	Seen     jobstate.Observed
	Evidence jobstate.Evidence
	Outcome  jobstate.Outcome
	// Pods are the launcher's tries, the latest first, then the workers by index.
	Pods []Pod
	// DeletedWorkers are the workers that something else deleted while the launcher ran.
	DeletedWorkers []DeletedWorker
	// replaced are earlier pods of workers that have a newer one.
	replaced []Pod
	// Signs are what the logs show, in the order in which causes outrank each other.
	Signs []Sign
}

// Sign is a symptom that a log shows.
type Sign struct {
	implementation.Symptom
	Pods []Pod
	// Line is the line that shows it, or the first paragraph of a message of which whole is all of it.
	Line, whole string
	Figures     map[string]string
}

// Failed reports whether the job has failed.
func (f *Facts) Failed() bool { return f.Outcome.Finish != nil && !f.Outcome.Finish.Succeeded }

// Succeeded reports whether the job has succeeded.
func (f *Facts) Succeeded() bool { return f.Outcome.Finish != nil && f.Outcome.Finish.Succeeded }

// Launcher is the launcher's latest try, nil where there is none.
func (f *Facts) Launcher() *Pod {
	if len(f.Pods) > 0 && f.Pods[0].Role == mpi.RoleLauncher {
		return &f.Pods[0]
	}
	return nil
}

// FailedLauncher is the latest try of the launcher that ended badly, nil where there is none.
func (f *Facts) FailedLauncher() *Pod {
	for i := range f.Pods {
		if pod := &f.Pods[i]; pod.Role == mpi.RoleLauncher && pod.End() != nil {
			return pod
		}
	}
	return nil
}

// Known returns the pod of a name; nil if it is another's.
func (f *Facts) Known(name string) *Pod {
	for i := range f.Pods {
		if f.Pods[i].Name == name {
			return &f.Pods[i]
		}
	}
	return nil
}

// StartingPod is a pod that has not got beyond starting; nil where the name is another's.
func (f *Facts) StartingPod(name string) *Pod {
	for i := range f.Pods {
		if f.Pods[i].Name == name && f.Pods[i].Status.Phase == corev1.PodPending {
			return &f.Pods[i]
		}
	}
	return nil
}

// Template is the pod template of a role. For an initializer it is the specification of its pod.
func (f *Facts) Template(role mpi.Role) corev1.PodSpec {
	switch role {
	case mpi.RoleLauncher:
		return f.Job.Launcher.Template.Spec
	case mpi.RoleWorker:
		return f.Job.Workers.Template.Spec
	}
	for _, pod := range f.Seen.Initializers {
		if pod.Labels[mpi.LabelJobSetJob] == string(role) {
			return pod.Spec
		}
	}
	return f.Job.Workers.Template.Spec
}

// PlaceOf returns the role and index of the pod with the slot of a rank: MPI fills hosts one after another. known is false if the job has no
// slot for the rank.
func (f *Facts) PlaceOf(rank int32) (role mpi.Role, index int, known bool) {
	if f.Job.SlotsPerWorker <= 0 || rank < 0 {
		return "", 0, false
	}
	host := int(rank / f.Job.SlotsPerWorker)
	if f.Job.Launcher.RunsRanks {
		if host == 0 {
			return mpi.RoleLauncher, 0, true
		}
		host--
	}
	return mpi.RoleWorker, host, host < int(f.Job.Workers.Count)
}

// HostOf returns the pod with the slot of a rank, as PlaceOf; nil if the pod is unknown.
func (f *Facts) HostOf(rank int32) *Pod {
	role, index, known := f.PlaceOf(rank)
	switch {
	case !known:
		return nil
	case role == mpi.RoleLauncher:
		return f.FailedLauncher()
	}
	for i := range f.Pods {
		if f.Pods[i].Role == role && f.Pods[i].Index == index {
			return &f.Pods[i]
		}
	}
	return nil
}

// HostOfText is HostOf for a rank that was read from a text.
func (f *Facts) HostOfText(rank string) *Pod {
	number, err := strconv.ParseInt(rank, 10, 32)
	if err != nil {
		return nil
	}
	return f.HostOf(int32(number))
}

// FailedCondition is why the launcher's Job failed, nil where it has not.
func (f *Facts) FailedCondition() *batchv1.JobCondition {
	if f.Seen.Launcher == nil {
		return nil
	}
	for i := range f.Seen.Launcher.Status.Conditions {
		c := &f.Seen.Launcher.Status.Conditions[i]
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
