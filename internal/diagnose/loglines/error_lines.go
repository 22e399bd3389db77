package loglines

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// FirstError returns the first error line of the most specific form in a log, or nil.
// What a rank reports because another one has ended is returned only if there is nothing else. Messages of Open MPI after which programs
// continue do not count.
func FirstError(lines []string) *ErrorLine {
	lines = withoutMargins(withoutHarmless(lines))
	if rest := withoutIgnored(lines); rest != nil {
		if found := firstError(rest); found != nil {
			return found
		}
	}
	return firstError(lines)
}

// firstError is FirstError for lines without margins, with what Python ignores.
func firstError(lines []string) *ErrorLine {
	if found := firstErrorBut(lines, func(message string) bool {
		return Aftermath.MatchString(message) || mixedLines.MatchString(message) || interruption.MatchString(message) || reportOfOther.MatchString(message)
	}); found != nil {
		return found
	}
	if found := firstErrorBut(lines, Aftermath.MatchString); found != nil {
		return found
	}
	return firstErrorBut(lines, func(string) bool { return false })
}

// firstErrorBut is firstError without messages that are skipped.
func firstErrorBut(lines []string, skip func(message string) bool) *ErrorLine {
	plain := sync.OnceValue(func() map[string]int { return lastPlain(lines) })
	for _, form := range errorLines {
		if form.find != nil {
			if found := form.find(lines, skip); found != nil {
				return found
			}
			continue
		}
		for i, line := range lines {
			if found := form.match(lines, i, line); found != nil && !skip(found.Message) && (!form.passing || !wentOn(lines, i, plain())) {
				return found
			}
		}
	}
	return nil
}

// IsException reports whether an error is an exception of Python.
func IsException(message string) bool {
	return namedException.pattern.MatchString(message) && !figure.MatchString(message)
}

// figure is a number that a program prints as a result, such as "MeanSquaredError: 0.0123", or what follows "error: " then. The text of a KeyError can be
// a number, too: after a traceback, it is an exception.
var figure = regexp.MustCompile(`^(?:[\w.]+: )?[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf) ?%?$`)

// Aftermath is what a rank reports after another one has ended: the errors of Horovod, NCCL, Gloo, PyTorch's store, and of MPICH over UCX.
var Aftermath = regexp.MustCompile(`Horovod has been shut down|HorovodInternalError: (?:ncclRemoteError|.*gloo/)|ncclRemoteError|gloo/\S+:?\d*\]? ?(?:Connection closed by peer|Read error|Write error|.*Connection reset by peer)|Failed to recv, got 0 bytes|Broken pipe$|UCX netmod.*(?:Connection reset|Endpoint timeout)`)

// interruption is an exception with which Python ends because of a signal that something else has sent, such as OpenBLAS without its threads, or
// because the program called sys.exit.
var interruption = regexp.MustCompile(`^(?:KeyboardInterrupt$|SystemExit\b)`)

// reportOfOther is an exception that only reports how another process, or several tasks, ended, which mostly have reported their own error: those of
// torchrun, torch.multiprocessing, launchers in Python, and groups of exceptions.
var reportOfOther = regexp.MustCompile(`\b(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|RemoteTraceback)(?::|$)|SignalException: Process \d+ got signal|CalledProcessError: Command .* (?:returned non-zero exit status|died with)|RuntimeError: mpirun failed with exit code|^(?:\w+\.)*(?:Base)?ExceptionGroup: .* \(\d+ sub-exceptions?\)$`)

// mixedLines is an exception whose line another rank's traceback has overwritten: the same exception of another rank may be whole.
var mixedLines = regexp.MustCompile(` {1,2}File "[^"]*", line \d+`)

// errorLine is a form in which a runtime reports the error that ends a program.
type errorLine struct {
	// text is part of every such line. It is searched before the pattern, which is slow.
	text string
	// ends, if set, are texts of which every such line ends with one, after a colon.
	ends []string
	// pattern matches the line without its tag. Group error is the message, and rank the rank that reports it.
	pattern *regexp.Regexp
	// next takes the message from the next line that is not empty.
	next bool
	// stack, if set, matches the lines of the error's stack that follow. The last one that has a text is the cause, and is added.
	stack *regexp.Regexp
	// but, if set, matches messages that are no errors.
	but *regexp.Regexp
	// passing is set if programs and scripts often continue after such an error.
	passing bool
	// find looks for the form in a whole log instead. The others are not set.
	find func(lines []string, skip func(message string) bool) *ErrorLine
}

// namedException is the exception with which a traceback of Python ends, by its name (Lib/traceback.py).
var namedException = errorLine{text: "", pattern: regexp.MustCompile(`^(?P<error>(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)|Exception)(?::(?: .*)?)?)$`), but: figure}

// firstNamedException returns the first exception that has a name such as ValueError, or the one that its chain ends with, whether the log has its
// traceback or not. Exceptions that are skipped do not count, nor those that the program handled. Nil if there is none.
func firstNamedException(lines []string, skip func(message string) bool) *ErrorLine {
	for i, line := range lines {
		found := namedException.match(lines, i, line)
		if found == nil {
			continue
		}
		tag := RankTag.FindString(found.Line)
		if text := found.Line[len(tag):]; exceptionLine.MatchString(text) {
			if strings.HasSuffix(text, ":") && !strings.Contains(text, ": ") && !isIndented(lines, i-1, tag) {
				// It is a heading.
				continue
			}
			rank := found.Rank
			found = exceptionAt(lines, i)
			found.Rank = rank
		}
		if !skip(found.Message) && !isHandled(lines, i, skip) {
			return endOfChain(lines, i, found, skip)
		}
	}
	return nil
}

// errorLines are the forms of runtimes, the most specific first. Generic ones are last.
var errorLines = []errorLine{
	{find: firstNamedException},
	{find: AfterTraceback},
	{find: torchrunError},
	// Open MPI: ompi/errhandler/errhandler_predefined.c.
	{text: "*** MPI_ERR_", pattern: regexp.MustCompile(`\*\*\* (?P<error>MPI_ERR_\w+(?:: .*)?)$`)},
	// MPICH and Intel MPI: src/mpi/errhan/errutil.c.
	{text: "Fatal error in ", pattern: regexp.MustCompile(`(?:\(rank (?P<rank>\d+) in comm \d+\): )?Fatal error in (?P<error>\w+: .*?)(?:, error stack:)?$`), stack: stackLine},
	// MPI, of calls before MPI_Init and after MPI_Finalize.
	{text: "MPI_", pattern: regexp.MustCompile(`\*\*\* (?P<error>(?:The \w+\(\)|An MPI) function was called (?:before|after) MPI_\w+ was invoked)`)},
	{text: "Attempting to use an MPI routine", pattern: regexp.MustCompile(`(?P<error>Attempting to use an MPI routine .+)$`)},
	// Open MPI: a launcher that a rank starts.
	{text: "recursive calls", pattern: regexp.MustCompile(`(?P<error>\w+ does not support recursive calls)`)},
	// LAMMPS: src/error.cpp.
	{text: "ERROR", pattern: regexp.MustCompile(`^ERROR(?: on proc (?P<rank>\d+))?: (?P<error>.+)$`)},
	// GROMACS: src/gromacs/utility/fatalerror.cpp.
	{text: "rror", pattern: regexp.MustCompile(`^(?:Fatal error|Error in user input|Inconsistency in user input|File input/output error|Software inconsistency error):$`), next: true},
	{find: petscError},
	// OpenFOAM: src/OpenFOAM/db/error/error.C.
	{text: "--> FOAM FATAL", pattern: regexp.MustCompile(`^--> FOAM FATAL (?:IO )?ERROR\b`), next: true},
	// Quantum ESPRESSO: UtilXlib/error_handler.f90.
	{text: "Error in routine ", pattern: regexp.MustCompile(`^\s*Error in routine +\S+ +\(\s*-?\d+\):$`), next: true},
	// WRF: frame/module_wrf_error.F.
	{text: "FATAL CALLED FROM FILE:", pattern: regexp.MustCompile(`^\s*FATAL CALLED FROM FILE:`), next: true},
	// Intel's MKL.
	{text: "MKL FATAL ERROR", pattern: regexp.MustCompile(`^(?P<error>(?i:intel (?:one)?)MKL FATAL ERROR: .+)$`)},
	// FlexNet and what is licensed by it.
	{text: "icen", pattern: regexp.MustCompile(`(?P<error>(?i:licen[cs]e server machine is down|failed to check ?out (?:\S+ ){0,3}licen[cs]e|licen[cs]e checkout failed|could not (?:connect to any licen[cs]e server|obtain (?:a )?licen[cs]e)|unable to (?:obtain|check ?out) (?:an? |the )?licen[cs]e|licensed number of users already reached|flex(?:net|lm) licensing (?:checkout )?error).*)$`)},
	// HPL, Abseil and others, which write the error below where it is.
	{text: ":", pattern: regexp.MustCompile(`^(?:\w+ )?(?:ERROR|FATAL)\b[^:]{1,80}:$`), next: true, but: figure},
	// Rust, Go and Java.
	{text: "' panicked at ", pattern: regexp.MustCompile(`^thread '[^']*'(?: \(\d+\))? panicked at \S+:\d+:\d+:$`), next: true},
	{text: "panic: ", pattern: regexp.MustCompile(`^panic: (?P<error>.+)$`)},
	{text: "' panicked at '", pattern: regexp.MustCompile(`^thread '[^']*' panicked at (?P<error>'.+', \S+:\d+:\d+)$`)},
	{text: "Exception in thread ", pattern: regexp.MustCompile(`^Exception in thread "[^"]*" (?P<error>.+)$`), stack: javaStack},
	// Perl: what die(1) adds.
	{text: " line ", pattern: regexp.MustCompile(`^(?P<error>\S.* at (?:\S+\.p[lm]|-e) line \d+\.)$`)},
	// Hydra: hydra/_internal/utils.py and config_loader_impl.py.
	{text: "'", pattern: regexp.MustCompile(`^(?P<error>(?:Could not override|Cannot find primary config) '[^']+'.*|Key '[^']+' is not in struct)$`)},
	// The linker, before the file that it does not find.
	{text: "cannot find -l", pattern: regexp.MustCompile(`(?:^|/)(?P<error>ld(?:\.\w+)?: cannot find -l[^\s:]+).*$`)},
	{text: "undefined reference to ", pattern: regexp.MustCompile(`(?P<error>undefined reference to .+)$`)},
	// sudo, and apt: apt-pkg/contrib/error.cc.
	{text: "sudo: ", pattern: regexp.MustCompile(`^(?P<error>sudo: .+)$`), passing: true},
	{text: "E: ", pattern: regexp.MustCompile(`^(?P<error>E: (?:Could not|Unable to|Failed to|Package|Sub-process|The repository|List directory) .+)$`), passing: true},
	// Qt.
	{text: "qt.", pattern: regexp.MustCompile(`^(?P<error>qt\.[\w.]+: (?i:could not) .+)$`)},
	// Libraries that cannot start their threads.
	{text: "libgomp: Thread creation failed", pattern: regexp.MustCompile(`^(?P<error>libgomp: .+)$`)},
	{text: "pthread_create failed", pattern: regexp.MustCompile(`^(?P<error>OpenBLAS blas_thread_init: pthread_create failed.*)$`)},
	// Fortran: libgfortran and Intel's runtime.
	{text: "Fortran runtime error", pattern: regexp.MustCompile(`(?P<error>Fortran runtime error: .+)$`)},
	{text: "forrtl: ", pattern: regexp.MustCompile(`(?P<error>forrtl: (?:severe|error) .+)$`)},
	// LLVM's and Intel's OpenMP: openmp/runtime/src/kmp_i18n.cpp.
	{text: "OMP: Error #", pattern: regexp.MustCompile(`(?P<error>OMP: Error #\d+: .+)$`)},
	{text: "ERROR STOP", pattern: regexp.MustCompile(`^(?P<error>ERROR STOP\b.*)$`)},
	{text: "Operating system error: ", pattern: regexp.MustCompile(`^(?P<error>Operating system error: .+)$`)},
	{text: "Error allocating ", pattern: regexp.MustCompile(`^(?P<error>Error allocating \d+ bytes.*)$`)},
	// The runtimes of C++: GNU's and LLVM's.
	{text: "what():", pattern: regexp.MustCompile(`^\s*what\(\): +(?P<error>.+)$`)},
	{text: "pure virtual method called", pattern: regexp.MustCompile(`^(?P<error>pure virtual method called)$`)},
	{text: "terminate called ", pattern: regexp.MustCompile(`(?P<error>terminate called (?:after throwing|without an active|recursively).*)$`)},
	{text: "libc++abi: terminating", pattern: regexp.MustCompile(`^libc\+\+abi: terminating (?:due to|with) (?P<error>.+)$`)},
	// glog, Abseil and TensorFlow, whose fatal errors end the program.
	{text: "] Check failed: ", pattern: regexp.MustCompile(`\] (?P<error>Check failed: .+)$`)},
	// Programs for CPUs that a node does not have: TensorFlow, the loader of glibc, and Intel's compilers.
	{text: "was compiled to use ", pattern: regexp.MustCompile(`(?P<error>The \w+ library was compiled to use .+)$`)},
	{text: "CPU ISA level", pattern: regexp.MustCompile(`(?P<error>\S+: CPU ISA level is lower than required.*)$`)},
	{text: "Please verify that both the operating system and the processor", pattern: regexp.MustCompile(`^(?P<error>Please verify that both the operating system and the processor support .+)$`)},
	// Python, of its own start and its interpreter. Signals are no cause.
	{text: "Fatal Python error: ", pattern: regexp.MustCompile(`^Fatal Python error: (?P<error>.+)$`), but: fatalSignal},
	// The C libraries: glibc's and musl's.
	{text: "Assertion ", pattern: regexp.MustCompile("(?P<error>\\S+: .*Assertion [`'].*' failed[.!]?)$")},
	{text: "Assertion failed: ", pattern: regexp.MustCompile(`^(?P<error>Assertion failed: .+)$`)},
	{text: "Fatal glibc error: ", pattern: regexp.MustCompile(`^Fatal glibc error: (?P<error>.+)$`)},
	{text: "*** ", pattern: regexp.MustCompile(`\*\*\* (?P<error>(?:stack smashing|buffer overflow) detected) \*\*\*`)},
	{text: "(): ", pattern: regexp.MustCompile(`(?P<error>\b(?:malloc|malloc_consolidate|free|realloc|munmap_chunk|calloc)\(\): .+)$`)},
	{text: "double free or corruption", pattern: regexp.MustCompile(`(?P<error>double free or corruption.*)$`)},
	{text: "corrupted", pattern: regexp.MustCompile(`^(?P<error>corrupted (?:size|double-linked|unsorted).*)$`)},
	{text: "' not found (required by ", pattern: regexp.MustCompile("(?P<error>\\S+: version [`']\\S+' not found \\(required by .+\\))$")},
	{text: "symbol lookup error", pattern: regexp.MustCompile(`(?P<error>\S+: symbol lookup error: .+)$`)},
	// MPI's launchers, of their own command.
	{text: "unknown option", pattern: regexp.MustCompile(`^(?:\S*/)?[\w.]+: Error: (?P<error>unknown option .+)$`)},
	{text: "unrecognized argument", pattern: regexp.MustCompile(`^\[mpiexec@\S+\] .*(?P<error>unrecognized argument .+)$`)},
	// mpicc and the like of Open MPI (opal/tools/wrappers/help-opal-wrapper.txt).
	{text: "wrapper compiler", pattern: regexp.MustCompile(`^(?P<error>.*wrapper compiler was unable to find the specified compiler.*)$`)},
	// NCCL: src/debug.cc.
	{text: "NCCL WARN ", pattern: regexp.MustCompile(`NCCL WARN (?P<error>.*(?i:error|fail|refused|timed out|abort).*)$`)},
	// Python, of its script.
	{text: ": can't open file '", pattern: regexp.MustCompile(`^\S*python[\d.]*: (?P<error>can't open file '.+)$`)},
	{text: "can't find '__main__' module", pattern: regexp.MustCompile(`^\S*python[\d.]*: (?P<error>can't find '__main__' module in '.+')$`)},
	// Compilers and make.
	{text: "rror: ", pattern: regexp.MustCompile(`^(?P<error>[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: .+)$`)},
	{text: ": *** ", pattern: regexp.MustCompile(`^make(?:\[\d+\])?: \*\*\* (?P<error>.+)$`), but: endOfRecipe},
	// Clients of S3: aws and mc.
	{text: "An error occurred (", pattern: regexp.MustCompile(`(?P<error>An error occurred \(\w+\) when calling .+)$`)},
	{text: "Unable to locate credentials", pattern: regexp.MustCompile(`^(?P<error>Unable to locate credentials.*)$`)},
	{text: " failed: ", pattern: regexp.MustCompile(`^(?P<error>(?:upload|download|copy|move) failed: .+)$`)},
	{text: "mc: <ERROR> ", pattern: regexp.MustCompile(`^mc: <ERROR> (?P<error>.+)$`)},
	// Archives and JSON in scripts.
	{text: ": not in gzip format", pattern: archiveError, passing: true},
	{text: "does not look like a tar archive", pattern: archiveError, passing: true},
	{text: "cannot find or open ", pattern: archiveError, passing: true},
	{text: "unexpected end of file", pattern: archiveError, passing: true},
	{text: "ormat not recognized", pattern: archiveError, passing: true},
	{text: "jq: ", pattern: regexp.MustCompile(`^(?P<error>jq: (?:parse )?error\b.+)$`), passing: true},
	// Downloads.
	{text: "curl: (", pattern: regexp.MustCompile(`^(?P<error>curl: \(\d+\) .+)$`)},
	{text: "wget: ", pattern: regexp.MustCompile(`^(?P<error>wget: (?:can't connect|download timed out|unable to resolve|bad address|server returned error).*)$`)},
	// Files.
	{text: "No such file or directory", pattern: regexp.MustCompile(`^(?P<error>.*\S: No such file or directory.*)$`), but: notNeeded, passing: true},
	{text: "ermission denied", pattern: regexp.MustCompile(`^(?P<error>.*\S: [Pp]ermission denied)$`), passing: true},
	{text: "No space left on device", pattern: regexp.MustCompile(`^(?P<error>.*No space left on device.*)$`)},
	// Other errors of the C library, as perror(3) and error(3) write them, and those of shells that cannot start a process.
	{ends: errnoTexts, pattern: regexp.MustCompile(`^(?P<error>(?:[^\s:]+: )+(?:[^:]{1,200}: )?[^:]+)$`), passing: true},
	// Shells, of what cannot be executed.
	{text: "xec", pattern: regexp.MustCompile(`(?P<error>\S+: (?:cannot execute binary file: )?Exec format error.*)$`)},
	{text: "cannot execute", pattern: regexp.MustCompile(`(?P<error>\S+: cannot execute.*)$`)},
	{text: "syntax error near", pattern: regexp.MustCompile(`(?P<error>syntax error near .*)$`)},
	{text: "unbound variable", pattern: regexp.MustCompile(`(?P<error>\w+: unbound variable)$`)},
	// dash, and busybox (src/expand.c).
	{text: "parameter not set", pattern: regexp.MustCompile(`^\S+: (?:line )?\d+: (?P<error>\w+: parameter not set)$`)},
	// R: the call, which may be on a line of its own (src/main/errors.c).
	{text: "Error in ", pattern: regexp.MustCompile(`^Error in .+? : (?P<error>\S.*)$`)},
	{text: "Error in ", pattern: regexp.MustCompile(`^Error in .+ :$`), next: true},
	plainError,
	{text: ": error: ", pattern: regexp.MustCompile(`^(?P<error>[\w./-]+: error: .+)$`)},
	{text: "NVML", pattern: regexp.MustCompile(`^(?P<error>Failed to initialize NVML: .+)$`)},
	// CUDA's samples and what follows them, NVIDIA's compilers for OpenACC, ROCm, nvidia-smi and the kernel's driver.
	{text: "CUDA error", pattern: regexp.MustCompile(`^(?P<error>CUDA error(?: at \S+:\d+|:) .+)$`)},
	{text: "GPUassert: ", pattern: regexp.MustCompile(`^(?P<error>GPUassert: .+)$`)},
	{text: "call to cu", pattern: regexp.MustCompile(`^(?P<error>call to cu\w+ returned error \d+.*)$`)},
	{text: "Memory access fault by GPU", pattern: regexp.MustCompile(`^(?P<error>Memory access fault by GPU .+)$`)},
	{text: "Unable to determine the device handle", pattern: regexp.MustCompile(`^(?P<error>Unable to determine the device handle for .+)$`)},
	{text: "NVRM: Xid", pattern: regexp.MustCompile(`(?P<error>NVRM: Xid .+)$`)},
	// mkdir and others, after which scripts often continue, and taskset.
	{text: "File exists", pattern: regexp.MustCompile(`^(?P<error>.*\S: File exists)$`), passing: true},
	{text: "taskset: ", pattern: regexp.MustCompile(`^(?P<error>taskset: .*affinity: .+)$`)},
	// Shells, of a script, which mostly continues after an error.
	{text: ": ", pattern: regexp.MustCompile(`^` + scriptLine + `(?P<error>.+)$`), but: shellWarning},
}

// plainError is what most programs write. Fortran begins lines with a blank.
var plainError = errorLine{text: "", pattern: regexp.MustCompile(`^ ?(?i:fatal error|fatal|error)\b(?: in [^:]+)?: ?(?P<error>\S.*)$`), but: figure}

// errnoTexts are texts of errno(3) after which scripts often end.
var errnoTexts = []string{
	"Text file busy", "Stale file handle", "Stale NFS file handle", "Input/output error", "Remote I/O error", "Too many open files", "Too many open files in system", "Argument list too long",
	"Cannot allocate memory", "Read-only file system", "Disk quota exceeded", "Device or resource busy", "Transport endpoint is not connected", "Not a directory", "Resource temporarily unavailable",
	"File too large", "File name too long", "Invalid cross-device link", "Operation not permitted",
}

// endOfRecipe is make's report of a command that failed, which has reported its own error.
var endOfRecipe = regexp.MustCompile(`^\[[^\]]*\] Error \d+`)

// archiveError is an error of a program that unpacks archives.
var archiveError = regexp.MustCompile(`^(?P<error>(?:tar|gzip|gunzip|bzip2|xz|zstd|unzip): .+)$`)

// fatalSignal is a signal that ended Python, as its fault handler reports it.
var fatalSignal = regexp.MustCompile(`^(?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating[ -]point exception)$`)

// shellWarning is what bash reports of a locale that the image does not have, and does without.
var shellWarning = regexp.MustCompile(`\bwarning: setlocale: `)

// notNeeded is what Open MPI, TensorFlow and bash report of a file that they look for and do without.
var notNeeded = regexp.MustCompile(`\(ignored\)$|Could not load dynamic library '|` + shellWarning.String())

// lastPlain returns the indexes of the last lines that are plain errors, by their tag.
func lastPlain(lines []string) map[string]int {
	last := map[string]int{}
	for i, line := range lines {
		if plainError.match(lines, i, line) != nil {
			last[RankTag.FindString(line)] = i
		}
	}
	return last
}

// wentOn reports whether a program or script continued after the error in a line, until it reported a plain one: more than a few lines later,
// or after the error of rm, which a script seldom depends on. What follows at once is about the same error.
func wentOn(lines []string, at int, lastPlain map[string]int) bool {
	const nearby = 3
	tag := RankTag.FindString(lines[at])
	if withoutPrivilege.MatchString(lines[at][len(tag):]) {
		return printsMore(lines[at+1:], rankOf(lines[at]))
	}
	last, is := lastPlain[tag]
	return is && (last > at+nearby || last > at && removal.MatchString(lines[at][len(tag):]))
}

// withoutPrivilege is what libraries report of a call that containers are mostly not permitted, and do without. numactl ends after it.
var withoutPrivilege = regexp.MustCompile(`^(?:\S+: )*(?:[gs]et_mempolicy|mbind|move_pages|sched_setaffinity|kill)\b.*: Operation not permitted\s*$`)

// printsMore reports whether a rank prints other lines in the rest of a log, before MPI reports its end.
func printsMore(rest []string, rank string) bool {
	for _, line := range rest {
		if ruler.MatchString(line) || strings.HasPrefix(line, "=====") {
			return false
		}
		text := strings.TrimSpace(line[len(RankTag.FindString(line)):])
		if rankOf(line) == rank && text != "" && !LauncherWords.MatchString(text) && !withoutPrivilege.MatchString(text) {
			return true
		}
	}
	return false
}

// removal is an error of rm and rmdir.
var removal = regexp.MustCompile(`^(?:\S*/)?rm(?:dir)?: `)

func (e errorLine) match(lines []string, i int, line string) *ErrorLine {
	if !e.isPossible(line) {
		return nil
	}
	line = strings.TrimRight(line, " \r")
	found := ErrorLine{Line: line}
	text := line
	if tag := RankTag.FindStringSubmatch(text); tag != nil {
		found.Rank, text = tag[1], text[len(tag[0]):]
	} else if LauncherWords.MatchString(text) && !usage.MatchString(text) {
		return nil
	}
	groups := e.pattern.FindStringSubmatch(text)
	if groups == nil {
		if text = otherTag.ReplaceAllString(text, ""); text == line || LauncherWords.MatchString(text) {
			return nil
		}
		if groups = e.pattern.FindStringSubmatch(text); groups == nil {
			return nil
		}
	}
	for i, name := range e.pattern.SubexpNames() {
		switch {
		case name == "error":
			found.Message = strings.TrimSpace(withoutScript(groups[i]))
		case name == "rank" && groups[i] != "":
			found.Rank = groups[i]
		}
	}
	if e.next {
		found.Message = nextMessage(lines[i+1:])
	}
	found.Message += continued(found.Message, lines[i+1:])
	if e.stack != nil {
		if cause := lastOf(lines[i+1:], e.stack); cause != "" {
			found.Message += ": " + cause
		}
	}
	if e.isNone(found.Message) {
		return nil
	}
	before := lines[max(0, i-4):i]
	if strings.HasPrefix(found.Message, "MPI_ERR_") {
		before = ofProcess(lines[:i], line)
		found.Call, found.Host = failedCall(before)
	}
	found.Rank = cmp.Or(found.Rank, reportedBy(before))
	return &found
}

// isPossible reports whether a line contains what every line of the form does, which is found faster than its pattern.
func (e errorLine) isPossible(line string) bool {
	return strings.Contains(line, e.text) && (e.ends == nil || slices.ContainsFunc(e.ends, func(end string) bool { return strings.HasSuffix(strings.TrimRight(line, " \r"), ": "+end) }))
}

// javaStack is a line of the stack of an exception of Java, with the exceptions that it follows from.
var javaStack = regexp.MustCompile(`^(?:\s+(?:at |\.\.\. \d+ (?:more|common)).*|(?:Caused by: )(.+))$`)

// isNone reports whether a message of the form is no error.
func (e errorLine) isNone(message string) bool {
	return message == "" || e.but != nil && e.but.MatchString(message)
}

// usage is what launchers write about how they are called.
var usage = regexp.MustCompile(`unknown option|unrecognized argument|recursive calls`)

// LauncherWords begin lines of MPI's launchers and of the agent about the program. They are not the program's own words.
var LauncherWords = regexp.MustCompile(`^(?:mpi-agent:|mpirun|mpiexec|prterun|prted|orted|ORTE|PRTE|Open RTE|\[mpiexec@|\[proxy:)|^\s*Process name:|errors? (?:was|were) suppressed|/help-\S+\.txt: No such file|(?:orted|prted|hydra_\w+): `)

// stackLine is a line of the error stack of MPICH and Intel MPI.
var stackLine = regexp.MustCompile(`^(?:\[\d+\] )?\w+\(\d+\)\.*: ?(.*?)\s*$`)

// lastOf returns the text of the last of the lines at the beginning that match a pattern and have a text; "" if none has.
func lastOf(lines []string, pattern *regexp.Regexp) string {
	text := ""
	for _, line := range lines {
		found := pattern.FindStringSubmatch(line)
		if found == nil {
			break
		}
		text = cmp.Or(found[1], text)
	}
	return text
}

// nextMessage returns the first line that is not empty, without the tag of its rank and marks around it, and the lines on which it goes on: a
// program that wraps its text ends a line when it is full, and not with a sentence.
func nextMessage(lines []string) string {
	const full, most = 60, 1000
	text := ""
	for _, line := range lines {
		line = strings.Trim(line[len(RankTag.FindString(line)):], " \t\r<>")
		if line == "" && text == "" {
			continue
		}
		if line == "" || LauncherWords.MatchString(line) || text != "" && endOfMessage.MatchString(line) {
			break
		}
		if text += " " + line; len(line) < full || strings.ContainsAny(line[len(line)-1:], ".:!?") || len(text) > most {
			break
		}
	}
	return strings.TrimSpace(text)
}

// endOfMessage is what follows a message and is not a part of it: a line across the page, and a note.
var endOfMessage = regexp.MustCompile(`^(?:[-=*%#~][-=*%#~ ]*|note: .*)$`)

// continued returns the indented lines with which a message that ends with a colon goes on, after a blank; "" if there are none.
func continued(message string, lines []string) (text string) {
	const most = 3
	if !strings.HasSuffix(message, ":") {
		return ""
	}
	for _, line := range lines[:min(most, len(lines))] {
		line = line[len(RankTag.FindString(line)):]
		if trimmed := strings.TrimSpace(line); trimmed != "" && strings.TrimLeft(line, " \t") != line {
			text += " " + trimmed
			continue
		}
		break
	}
	return text
}

// reportedBy returns the rank that Open MPI names before an error, or "".
func reportedBy(lines []string) string {
	for _, line := range lines {
		if found := reporter.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

// ofProcess returns the lines of Open MPI's message that ends with an error, without those of other processes that print one at the same time: what is
// before the asterisks is the tag, the host and the process ID.
func ofProcess(before []string, line string) (own []string) {
	const most, between = 4, 12
	prefix, _, _ := strings.Cut(line, "*** ")
	if strings.TrimSpace(prefix) == "" {
		return before[max(0, len(before)-most):]
	}
	for _, other := range before[max(0, len(before)-between):] {
		if start, _, isMessage := strings.Cut(other, "*** "); isMessage && start == prefix {
			own = append(own, other)
		}
	}
	return own[max(0, len(own)-most):]
}

// failedCall returns the function of MPI that Open MPI names before its error, and the host that printed it; "" if it names none.
func failedCall(lines []string) (call, host string) {
	for _, line := range slices.Backward(lines) {
		if found := lineOfCall.FindStringSubmatch(line); found != nil {
			return found[2], found[1]
		}
	}
	return "", ""
}

// lineOfCall is where Open MPI names the function in which the error after it occurred (ompi/errhandler/errhandler_predefined.c). In
// version 5, processes have no host.
var lineOfCall = regexp.MustCompile(`(?:\[([\w.-]+):\d+\] )?\*\*\* An error occurred in (\w+)`)

// reporter is where Open MPI names the process that reported the error before.
var reporter = regexp.MustCompile(`reported by process \[\d+,(\d+)\]`)

// tracedCommand is a command that a shell prints before it runs it (set -x).
var tracedCommand = regexp.MustCompile(`^\++ (\S.*)$`)

// LastTraced returns the last command of a shell script in a log; "" if the shell does not print its commands.
func LastTraced(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if found := tracedCommand.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}
