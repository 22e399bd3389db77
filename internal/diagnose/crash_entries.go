package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
)

var (
	// threadsNotStarted is what OpenBLAS reports before a crash: it uses the threads that it could not start.
	threadsNotStarted = regexp.MustCompile(`^OpenBLAS blas_thread_init: pthread_create failed`)
	// fortranCrash is what the runtimes of Fortran report of a crash: Intel's and libgfortran.
	fortranCrash = regexp.MustCompile(`^forrtl: severe \(174\): SIGSEGV|^Program received signal SIGSEGV`)
)

// crashEntry returns the definition of a segmentation fault by what the program printed before it, and the line; entry if it printed nothing
// that is known.
func (p *input) crashEntry(entry codes.Entry) (as codes.Entry, shown []string) {
	for _, known := range []struct {
		line *regexp.Regexp
		as   codes.Entry
	}{{threadsNotStarted, codes.ThreadsNotStarted}, {fortranCrash, codes.FortranCrash}} {
		for _, pod := range p.Pods {
			for _, line := range pod.Log.Lines {
				if known.line.MatchString(line[len(loglines.RankTag.FindString(line)):]) {
					return known.as, []string{facts.LogLine(pod, line)}
				}
			}
		}
	}
	if strings.Contains(p.LauncherCommand(), "ctypes") || slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool { return slices.ContainsFunc(pod.Log.Lines, inCtypes.MatchString) }) {
		entry.Remedies = slices.Concat(codes.CtypesCrash, entry.Remedies)[:min(MaxRemedies, len(entry.Remedies)+1)]
	}
	return entry, nil
}

// inCtypes is a line of faulthandler's stack in the module ctypes.
var inCtypes = regexp.MustCompile(`^\s*File ".*/ctypes/`)
