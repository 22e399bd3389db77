package diagnose

import (
	"cmp"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

// launcherTexts are what only the launchers of an MPI print, and not its programs: ORTE and PRRTE of Open MPI, Hydra, and Intel's Hydra. A line of
// Hydra's that is not Intel's own may be of either.
var launcherTexts = []struct {
	of      mpi.Implementation
	pattern *regexp.Regexp
	// version follows the name of the MPI if only one has such a launcher.
	version string
}{
	{of: mpi.OpenMPI, version: " 5", pattern: regexp.MustCompile(`^PRTE (?:was|has|does|daemon)|\bhelp-(?:prte|prterun)\b|^(?:prterun|prte) was unable to|^\[[^\]]+:\d+\] (?:\[\[\d+,\d+\],\d+\] )?PRTE_ERROR_LOG`)},
	{of: mpi.OpenMPI, pattern: regexp.MustCompile(`^ORTE (?:was|has|does|daemon)|^The value of the MCA parameter "\w+"|\bhelp-orte\b|^(?:orterun|mpirun) was unable to|^\[[^\]]+:\d+\] \[\[\d+,\d+\],\d+\] ORTE_ERROR_LOG`)},
	{of: mpi.IntelMPI, pattern: regexp.MustCompile(`^\[bstrap:|\blibhydra/|^Intel\(R\) MPI Library`)},
	{of: mpi.MPICH, pattern: regexp.MustCompile(`^\[(?:mpiexec|proxy:[\d:]+)@[^\]]+\] .*\b(?:pm/pmiserv|tools/bootstrap|ui/mpich|utils/(?:args|sock|launch)\b)`)},
}

// otherMPI reports that the launcher's image has another MPI than the one that the job is set up for, if MPI has not used all hosts: what fails
// next, such as a crash of a helper that got the settings of the other one, follows from that.
func otherMPI(p *input) []Finding {
	launcher := p.FailedLauncher()
	if launcher == nil {
		return nil
	}
	other, found, line := p.findOtherMPI(*launcher)
	if s := p.LauncherSummary(); other == "" || s != nil && (s.RanksSeen > 0 || len(s.Ranks) > 0) {
		// Ranks that ran next to the launcher only: hostfileIgnored.
		return nil
	}
	_, figures := p.otherMPIEntry(other, found)
	entry := codes.OtherMPIRefused
	if p.Job.Kind == mpi.KindTrainJob {
		entry = codes.OtherMPIRefusedByRuntime
	}
	evidence := "Launcher's agent: the launcher of MPI in the image is that of " + found + "."
	if line != "" {
		evidence = facts.LogLine(*launcher, line)
	}
	f := p.findAs(entry, []facts.Pod{*launcher}, figures, evidence)
	f.ExitCode = launcher.ExitCode()
	return []Finding{f}
}

// findOtherMPI returns the MPI of a launcher's image if it is not the one that the job is set up for, by its version or else by what its launcher
// printed, and its name; "" if none is known. line is what was printed, if that shows it.
func (p *input) findOtherMPI(launcher facts.Pod) (other mpi.Implementation, found, line string) {
	if s := launcher.Summary; s != nil && len(s.MPIVersions) > 0 {
		if other = implementation.OtherThan(p.Job.Implementation, s.MPIVersions); other != "" {
			found = s.MPIVersions[0]
		}
		return other, found, ""
	}
	for _, printed := range launcher.Log.Lines {
		printed = printed[len(loglines.RankTag.FindString(printed)):]
		for _, text := range launcherTexts {
			if !text.pattern.MatchString(printed) {
				continue
			}
			if job := cmp.Or(p.Job.Implementation, mpi.OpenMPI); text.of == job || text.of == mpi.MPICH && job == mpi.IntelMPI {
				// Earlier versions of Intel MPI print what MPICH does.
				return "", "", ""
			}
			if other == "" || other == text.of && text.version != "" {
				other, found, line = text.of, implementation.NameOf(text.of)+text.version, printed
			}
		}
	}
	return other, found, line
}

// otherMPIEntry returns the definition for an image with another MPI than the job's, and its figures.
func (p *input) otherMPIEntry(other mpi.Implementation, found string) (codes.Entry, map[string]string) {
	entry, figures := codes.OtherMPI, map[string]string{"found": found, "expected": implementation.NameOf(cmp.Or(p.Job.Implementation, mpi.OpenMPI)), "value": string(other)}
	if p.Job.Kind == mpi.KindTrainJob {
		entry, figures["runtime"] = codes.OtherMPIThanRuntime, runtimeFor(other, found)
	}
	return entry, figures
}

// runtimeFor returns the name of the shipped runtime for an MPI and its version.
func runtimeFor(of mpi.Implementation, version string) string {
	switch {
	case of == mpi.MPICH:
		return "mpi-mpich"
	case of == mpi.IntelMPI:
		return "mpi-intel"
	case strings.HasPrefix(version, implementation.NameOf(mpi.OpenMPI)+" 5"):
		return "mpi-openmpi5"
	}
	return "mpi-openmpi"
}
