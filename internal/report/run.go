package report

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Limits of the parts of a Run, the first three in bytes. They leave room below those of the API's schema for what replaces the rest.
const (
	maxImage   = 1000
	maxCommand = 4000
	maxCreator = 500
	// maxManager is the longest name of a field manager that the API server accepts.
	maxManager = 128
	// maxMPIVersions is how many MPI libraries are kept.
	maxMPIVersions = 4
	// maxUnmasked is how much of a command is masked: more than is kept, so that no secret is cut before it is recognized.
	maxUnmasked = 4 * maxCommand
)

// run returns what the job runs. Once the job has ended, only what is missing is added: the runtime of a TrainJob may change.
func (m maker) run() *v1alpha1.Run {
	run := m.before.Run.DeepCopy()
	if run == nil {
		run = &v1alpha1.Run{}
	}
	// A restarted container may be gone when the next one is counted.
	run.Attempts = max(run.Attempts, m.attempts())
	run.MPIVersions = m.mpiVersions(run.MPIVersions)
	if m.outcome.Finish != nil && m.before.Run != nil {
		return run
	}
	run.Runtime = m.job.Runtime
	if creator := m.job.Authors.Creator; creator != "" {
		run.Creator, run.FieldManager = phrase.Limit(creator, maxCreator), ""
	} else if manager := m.job.Authors.CreatedWith; manager != "" && run.Creator == "" {
		run.FieldManager = phrase.Limit(manager, maxManager)
	}
	launcher, worker := mainOf(m.job.Launcher.Template), mainOf(m.job.Workers.Template)
	main := launcher
	if m.job.Launcher.None {
		main = worker
	}
	command := phrase.QuoteCommand(slices.Concat(main.Command, main.Args))
	run.Command = command[:min(len(command), maxUnmasked)]
	run.Image, run.LauncherImage = phrase.Limit(worker.Image, maxImage), ""
	switch {
	case m.job.Workers.Count == 0 && !m.job.Launcher.None:
		run.Image, worker = phrase.Limit(launcher.Image, maxImage), launcher
	case launcher.Image != worker.Image:
		run.LauncherImage = phrase.Limit(launcher.Image, maxImage)
	}
	run.Requests, run.Limits = first(worker.Resources.Requests), first(worker.Resources.Limits)
	return run
}

// mpiVersions returns the MPI libraries of earlier runs, with those of the launcher's latest runs. The image determines what an
// agent reports, so that only names of MPI libraries with a version count.
func (m maker) mpiVersions(known []string) []string {
	for summary := range m.launcherSummaries() {
		for _, version := range summary.MPIVersions {
			if len(known) < maxMPIVersions && agentapi.IsMPIVersion(version) && !slices.Contains(known, version) {
				known = append(known, version)
			}
		}
	}
	return known
}

// attempts returns how often the launcher's container was started.
func (m maker) attempts() int32 {
	attempts := jobstate.CountAttempts(m.job, m.seen)
	if attempts.Number == 1 && podstatus.LatestStart(m.seen.LauncherPods[len(m.seen.LauncherPods)-1]).IsZero() {
		return 0
	}
	return attempts.Number
}

// mainOf returns the main container of a template; an empty one if it has no containers.
func mainOf(template corev1.PodTemplateSpec) corev1.Container {
	if len(template.Spec.Containers) == 0 {
		return corev1.Container{}
	}
	return template.Spec.Containers[0]
}

// first returns the first resources of a list in the order of their names, as many as a record keeps.
func first(list corev1.ResourceList) corev1.ResourceList {
	const most = 32
	if len(list) == 0 {
		return nil
	}
	kept := make(corev1.ResourceList, len(list))
	for i, name := range slices.Sorted(maps.Keys(list)) {
		if i == most {
			break
		}
		kept[name] = list[name].DeepCopy()
	}
	return kept
}

// MaskCommand masks the command of a record, and cuts it to its limit. Masking comes first: what is left of a secret that
// was cut may not be recognized.
func MaskCommand(status *v1alpha1.JobReportStatus, mask func(string) string) {
	if status.Run != nil {
		status.Run.Command = phrase.Limit(mask(status.Run.Command), maxCommand)
	}
}
