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
// that is known. It adds figures for the remedies.
func (p *input) crashEntry(entry codes.Entry, figures map[string]string) (as codes.Entry, shown []string) {
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
	own, program := entry.Remedies, p.LauncherCommand()
	undeclared := undeclaredPointers(program)
	switch {
	case p.crashedInCtypes():
		entry.Remedies = slices.Concat(codes.CtypesCrash, own)
	case len(undeclared) > 0:
		figures["function"] = undeclared[0]
		entry.Remedies = slices.Concat(codes.UndeclaredPointer, own)
	case loadsByCtypes.MatchString(program) && !p.showsPythonStack():
		entry.Remedies = slices.Concat(own[:1], codes.CallByCtypes, own[1:])
	}
	entry.Remedies = entry.Remedies[:min(MaxRemedies, len(entry.Remedies))]
	return entry, nil
}

// loadsByCtypes matches the assignment of a library that a program of Python has loaded by ctypes.
var loadsByCtypes = regexp.MustCompile(`\b(\w+)\s*=\s*(?:ctypes\.)?(?:(?:CDLL|PyDLL)|(?:cdll|pydll)\.LoadLibrary)\(`)

// pointerFunctions are functions of C that return a pointer.
const pointerFunctions = `malloc|calloc|realloc|aligned_alloc|memalign|valloc|strdup|strndup|fopen|fdopen|tmpfile|opendir|mmap|dlopen|dlsym|localtime|gmtime`

// undeclaredPointers returns the functions that the program in a command calls by ctypes, such as "lib.malloc", which return a pointer and of which it
// does not declare the result: ctypes then takes it for an int.
func undeclaredPointers(command string) (functions []string) {
	libraries := map[string]bool{}
	for _, library := range loadsByCtypes.FindAllStringSubmatch(command, -1) {
		libraries[library[1]] = true
	}
	if len(libraries) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, call := range undeclaredCall.FindAllStringSubmatch(command, -1) {
		name := call[1] + "." + call[2]
		if libraries[call[1]] && !seen[name] && !strings.Contains(command, name+".restype") {
			functions = append(functions, name)
		}
		seen[name] = true
	}
	return functions
}

// undeclaredCall is a call of a function of a library that returns a pointer.
var undeclaredCall = regexp.MustCompile(`\b(\w+)\.(` + pointerFunctions + `)\(`)

// showsPythonStack reports whether faulthandler has printed where the program crashed.
func (p *input) showsPythonStack() bool {
	return slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool {
		return slices.ContainsFunc(pod.Log.Lines, func(line string) bool { return strings.Contains(line, "Fatal Python error: Segmentation fault") })
	})
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
