package report

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// stacks is the command that shows the call stacks of the ranks of a running job.
var stacks, _, _ = strings.Cut(codes.ShowStacks.Action, "{")

// podCommand matches a remedy's command about one pod.
var podCommand = regexp.MustCompile(`^kubectl -n \S+ (logs|exec|describe pod|delete pod) ([a-z0-9][a-z0-9.-]*)(.*)$`)

// adaptRemedies replaces the commands that cannot work in the state that the job's pods are in: nothing can be executed in a
// container that has ended, and a pod that is gone has no log. A copy of the job can execute the command, and what is left of logs is
// in the report. Remedies that look at processes of the job end with them. Pods last by name.
func adaptRemedies(report *v1alpha1.JobReport, lasts map[string]bool) {
	for i := range report.Status.Findings {
		var remedies []v1alpha1.Remedy
		for _, remedy := range report.Status.Findings[i].Remedies {
			command, isOver := adapted(report, lasts, remedy.Action)
			if isOver {
				continue
			}
			remedy.Action = command
			remedies = append(remedies, remedy)
		}
		// Findings of the previous report are shared with it.
		report.Status.Findings[i].Remedies = remedies
	}
}

// adapted returns a command that works, "" if there is none, and whether the remedy is of no use any more.
func adapted(report *v1alpha1.JobReport, lasts map[string]bool, command string) (string, bool) {
	if strings.HasPrefix(command, stacks) {
		return command, report.Status.CompletionTime != nil
	}
	parts := podCommand.FindStringSubmatch(command)
	if parts == nil {
		return command, false
	}
	verb, name, rest := parts[1], parts[2], parts[3]
	var pod v1alpha1.PodStatus
	switch at := slices.IndexFunc(report.Status.Pods, func(pod v1alpha1.PodStatus) bool { return pod.Name == name }); {
	case at >= 0:
		pod = report.Status.Pods[at]
	case !strings.HasPrefix(name, report.Spec.JobRef.Name+"-"):
		// A pod of another job.
		return command, false
	}
	isGone := !lasts[name]
	hasEnded := isGone || pod.Phase == "Succeeded" || pod.Phase == "Failed"
	job := strings.ToLower(report.Spec.JobRef.Kind) + "/" + report.Spec.JobRef.Name + " -n " + report.Namespace
	switch {
	case verb == "logs" && isGone:
		return "kubectl odh mpijob logs " + job, false
	case verb == "logs" && strings.Contains(rest, "--previous") && pod.Restarts == 0:
		return strings.Replace(command, " --previous", "", 1), false
	case verb == "describe pod" && isGone:
		return "kubectl odh mpijob describe " + job, false
	case verb == "delete pod" && hasEnded:
		return "", false
	case verb == "exec" && hasEnded:
		command = strings.TrimPrefix(rest, " -- ")
		return inCopy(report, job, pod.Role, command), command == codes.ShowProcesses
	}
	return command, false
}

// inCopy returns the command that executes another one in a small copy of a job and shows its output: on a worker, unless it is to be
// on the launcher, or the job has no MPI and the pods of all workers execute it.
func inCopy(report *v1alpha1.JobReport, job, role, command string) string {
	if report.Status.MPI.Implementation != "" && role != string(mpi.RoleLauncher) && !strings.HasPrefix(command, "mpirun ") {
		command = "mpirun -n 1 " + command
	}
	copied := "kubectl odh mpijob clone " + job + " --workers 1 --command " + phrase.QuoteWord(command) + " --logs"
	if len(copied) > diagnose.MaxLine {
		return ""
	}
	return copied
}
