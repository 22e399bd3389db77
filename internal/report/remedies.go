package report

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// podCommand matches a remedy's command about one pod.
var podCommand = regexp.MustCompile(`^kubectl -n \S+ (logs|exec|describe pod|delete pod) ([a-z0-9][a-z0-9.-]*)(.*)$`)

// adaptRemedies replaces the commands that cannot work in the state that the job's pods are in: nothing can be executed in a
// container that has ended, and a pod that is gone has no log. What is left of both is in the report. Pods exist by name.
func adaptRemedies(report *v1alpha1.JobReport, exists map[string]bool) {
	for i := range report.Status.Findings {
		remedies := report.Status.Findings[i].Remedies
		if !slices.ContainsFunc(remedies, func(r v1alpha1.Remedy) bool { return adapted(report, exists, r.Action) != r.Action }) {
			continue
		}
		// Findings of the previous report are shared with it.
		remedies = slices.Clone(remedies)
		for at := range remedies {
			remedies[at].Action = adapted(report, exists, remedies[at].Action)
		}
		report.Status.Findings[i].Remedies = remedies
	}
}

// adapted returns a command that works, or "" if there is none.
func adapted(report *v1alpha1.JobReport, exists map[string]bool, command string) string {
	parts := podCommand.FindStringSubmatch(command)
	if parts == nil {
		return command
	}
	verb, name, flags := parts[1], parts[2], parts[3]
	var pod v1alpha1.PodStatus
	switch at := slices.IndexFunc(report.Status.Pods, func(pod v1alpha1.PodStatus) bool { return pod.Name == name }); {
	case at >= 0:
		pod = report.Status.Pods[at]
	case !strings.HasPrefix(name, report.Spec.JobRef.Name+"-"):
		// A pod of another job.
		return command
	}
	isGone := !exists[name]
	hasEnded := isGone || pod.Phase == "Succeeded" || pod.Phase == "Failed"
	job := strings.ToLower(report.Spec.JobRef.Kind) + "/" + report.Spec.JobRef.Name + " -n " + report.Namespace
	switch {
	case verb == "logs" && isGone:
		return "kubectl odh mpijob logs " + job
	case verb == "logs" && strings.Contains(flags, "--previous") && pod.Restarts == 0:
		return strings.Replace(command, " --previous", "", 1)
	case verb == "describe pod" && isGone:
		return "kubectl odh mpijob describe " + job
	case (verb == "exec" || verb == "delete pod") && hasEnded:
		return ""
	}
	return command
}
