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
	if p.crashedInCtypes() {
		entry.Remedies = slices.Concat(codes.CtypesCrash, entry.Remedies)[:min(MaxRemedies, len(entry.Remedies)+1)]
	}
	return entry, nil
}

// crashedInCtypes reports whether faulthandler shows that the call which crashed is one of ctypes with a pointer, or of a program in the command
// that uses ctypes. Loading a library can crash, too, and is no such call.
func (p *input) crashedInCtypes() bool {
	for _, pod := range p.Pods {
		crash, thread := false, false
		for _, line := range pod.Log.Lines {
			line = line[len(loglines.RankTag.FindString(line)):]
			switch frame := stackFrame.FindStringSubmatch(line); {
			case strings.HasPrefix(line, "Fatal Python error: Segmentation fault"):
				crash, thread = true, false
			case crash && strings.HasPrefix(line, "Current thread"):
				thread = true
			case !crash || !thread || frame == nil:
			case pointerCall.MatchString(frame[2]) && strings.HasSuffix(frame[1], "/ctypes/__init__.py"):
				return true
			case frame[1] == "<string>" && strings.Contains(p.LauncherCommand(), "ctypes"):
				return true
			default:
				// The innermost call is the first.
				crash = false
			}
		}
	}
	return false
}

var (
	// stackFrame is a call in a stack that faulthandler prints.
	stackFrame = regexp.MustCompile(`^\s*File "(.+)", line \d+ in (\S+)`)
	// pointerCall is a function of ctypes that reads from a pointer.
	pointerCall = regexp.MustCompile(`^(?:w?string_at|memoryview_at|cast)$`)
)
