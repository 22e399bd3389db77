package facts

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

// TimeLimit returns the line in which MPI's launcher reports that it ended the ranks at its own time limit, and the limit if it names one; "" if
// none does. A program can print such a line, too, and the limit can be that of an earlier launch: the command has to set it for its only launch,
// and no rank may have ended by itself.
func (f *Facts) TimeLimit() (line, limit string) {
	launcher := f.FailedLauncher()
	if launcher == nil || !f.setsTimeLimit() || f.endedByItself() || CodeOfCrash(*launcher.ExitCode()) != "" {
		return "", ""
	}
	if s := launcher.Summary; s != nil && (s.Launches > 1 || s.MPISucceeded) {
		return "", ""
	}
	line, limit = loglines.TimeLimit(launcher.Log.Lines)
	if other := loglines.FirstError(launcher.Log.Lines); line == "" || other != nil && !strings.Contains(line, other.Message) {
		return "", ""
	}
	return line, limit
}

// setsTimeLimit reports whether the launcher's command launches ranks once, with a time limit.
func (f *Facts) setsTimeLimit() bool {
	command := f.LauncherCommand()
	launches := mpi.OptionsOfLaunchers(command)
	if len(launches) != 1 {
		return false
	}
	main := f.Template(mpi.RoleLauncher).Containers[0]
	return timeOption.MatchString(launches[0]) || timeVariable.MatchString(command) ||
		slices.ContainsFunc(main.Env, func(v corev1.EnvVar) bool { return timeVariable.MatchString(v.Name + "=") })
}

var (
	// timeOption is the option of Open MPI for a time limit, and timeVariable the variable of Open MPI and MPICH, or of Intel MPI.
	timeOption   = regexp.MustCompile(`(?:^|\s)--?timeout[\s=]`)
	timeVariable = regexp.MustCompile(`\b(?:MPIEXEC_TIMEOUT|I_MPI_JOB_TIMEOUT)=`)
)

// endedByItself reports whether a rank failed before MPI's launcher ended the ranks, which it does by signals.
func (f *Facts) endedByItself() bool {
	first, _ := f.FirstRank()
	if first == nil {
		return f.OomRank() != nil
	}
	isOther := first.Signal == 0 && first.ExitCode > 0 && first.ExitCode != Terminated && first.ExitCode != KilledCode
	isCrash := CodeOfCrash(128+first.Signal) != ""
	return first.OOM || f.OomRank() != nil || isOther || isCrash
}
