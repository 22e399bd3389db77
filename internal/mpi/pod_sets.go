package mpi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodSet is a group of equal pods of a job, as Kueue counts them.
type PodSet struct {
	Name     string
	Template corev1.PodTemplateSpec
	// Requests is the job's field that sets what the pods request, and Flag the flag of the command line; empty if only the runtime sets that.
	Requests *field.Path
	Flag     string
}

// PodSets returns the pods of a job whose user writes their templates.
func (j Job) PodSets() []PodSet {
	requests := func(template *field.Path) *field.Path {
		return template.Child("spec", "containers").Index(0).Child("resources", "requests")
	}
	sets := []PodSet{{Name: "launcher", Template: j.Launcher.Template, Requests: requests(j.Fields.LauncherTemplate), Flag: "--launcher-cpu"}}
	if j.Workers.Count > 0 {
		sets = append(sets, PodSet{Name: "workers", Template: j.Workers.Template, Requests: requests(j.Fields.WorkerTemplate), Flag: "--cpu"})
	}
	return sets
}
