package flavor

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// Symptom is a text by which a log shows what is wrong.
type Symptom struct {
	Code mpi.Code
	// Text is part of the line. It is looked for before Pattern, which is slow.
	Text string
	// Pattern, where there is one, matches the line too. Its named groups are figures for the finding: host, program,
	// library, rank, code, signal, size, slots, uid, file, device.
	Pattern *regexp.Regexp
	// More are figures too, on the lines that follow: of texts that say them one by one.
	More []*regexp.Regexp
	// Umbrella is set where the text only sums up what has its cause elsewhere.
	Umbrella bool
}

// Match tells whether a line shows the symptom, and the figures in it.
func (s Symptom) Match(line string) (figures map[string]string, found bool) {
	if !strings.Contains(line, s.Text) {
		return nil, false
	}
	if s.Pattern == nil {
		return nil, true
	}
	groups := s.Pattern.FindStringSubmatch(line)
	if groups == nil {
		return nil, false
	}
	figures = map[string]string{}
	add(figures, s.Pattern, groups)
	return figures, true
}

// Add adds the figures that a line after the symptom's tells; those that are known stay.
func (s Symptom) Add(figures map[string]string, line string) {
	for _, pattern := range s.More {
		if groups := pattern.FindStringSubmatch(line); groups != nil {
			add(figures, pattern, groups)
		}
	}
}

func add(figures map[string]string, pattern *regexp.Regexp, groups []string) {
	for i, name := range pattern.SubexpNames() {
		if name != "" && groups[i] != "" && figures[name] == "" {
			figures[name] = groups[i]
		}
	}
}

// known is the order in which causes outrank each other: the way to the workers, what an implementation says of
// itself, then the program, and last what only sums up.
func known(own, summingUp []Symptom) []Symptom {
	return slices.Concat(wayToWorkers, own, program, summingUp)
}

// wayToWorkers are the texts of OpenSSH, of tools that call it, and of name resolution.
var wayToWorkers = []Symptom{
	{Code: mpi.CodeLauncherUnresolved, Text: "Could not resolve hostname", Pattern: regexp.MustCompile(`Could not resolve hostname (?P<host>\S+-launcher[^\s:]*)`)},
	{Code: mpi.CodeNameUnresolved, Text: "Could not resolve hostname", Pattern: regexp.MustCompile(`Could not resolve hostname (?P<host>[^\s:]+)`)},
	{Code: mpi.CodeKeyUnprotected, Text: "UNPROTECTED PRIVATE KEY"},
	{Code: mpi.CodeKeyModes, Text: "bad ownership or modes", Pattern: regexp.MustCompile(`bad ownership or modes for (?:file|directory) (?P<file>\S+)`)},
	{Code: mpi.CodeNoUser, Text: "No user exists for uid", Pattern: regexp.MustCompile(`No user exists for uid (?P<uid>\d+)`)},
	{Code: mpi.CodeNoHostKeys, Text: "no hostkeys available"},
	{Code: mpi.CodeHostKeyMismatch, Text: "Host key verification failed"},
	{Code: mpi.CodeKeyRefused, Text: "Permission denied (publickey", Pattern: regexp.MustCompile(`(?:@(?P<host>[^\s:]+): )?Permission denied`)},
	{Code: mpi.CodeConnectionRefused, Text: "Connection refused", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): Connection refused`)},
	{Code: mpi.CodeConnectionTimeout, Text: "Connection timed out", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): Connection timed out`)},
	{Code: mpi.CodeConnectionTimeout, Text: "No route to host", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): No route to host`)},
	{Code: mpi.CodeSSHDOverloaded, Text: "exchange_identification", Pattern: regexp.MustCompile(`exchange_identification: (?:read: Connection reset by peer|Connection closed by remote host)`)},
	{Code: mpi.CodeShortHostNames, Text: "ssh not successful"},
	{Code: mpi.CodeShortHostNames, Text: "SSH was not successful"},
}

// program are the texts of the program itself: of the loader, Python, CUDA, NCCL, and of the shell.
var program = []Symptom{
	{Code: mpi.CodeLibraryMissing, Text: "loading shared libraries", Pattern: regexp.MustCompile(`loading shared libraries: (?P<library>[^\s:]+)`)},
	{Code: mpi.CodeProgramMissing, Text: "not found", Pattern: regexp.MustCompile(`^(?:\S+ )?(?:/\S*/)?(?:ba|da|k|z)?sh: (?:line )?(?:\d+: )?(?P<program>[^\s:]+): (?:command )?not found`)},
	{Code: mpi.CodeNoGPU, Text: "no CUDA-capable device is detected"},
	{Code: mpi.CodeNoGPU, Text: "No CUDA GPUs are available"},
	{Code: mpi.CodeNoGPU, Text: "Found no NVIDIA driver on your system"},
	{Code: mpi.CodeSharedGPUs, Text: "Duplicate GPU detected"},
	{Code: mpi.CodeSharedGPUs, Text: "invalid device ordinal"},
	{Code: mpi.CodeGPUOutOfMemory, Text: "CUDA out of memory", Pattern: regexp.MustCompile(`CUDA out of memory(?:.*?Tried to allocate (?P<size>[\d.]+ [KMGT]iB))?(?:.*?(?:capacity of (?P<total>[\d.]+ [KMGT]iB)|; (?P<total2>[\d.]+ [KMGT]iB) total capacity))?`)},
	{Code: mpi.CodeGPUOutOfMemory, Text: "CUDA_ERROR_OUT_OF_MEMORY"},
	{Code: mpi.CodeGPUOutOfMemory, Text: "HIP out of memory"},
	{Code: mpi.CodeTypeUnsupported, Text: "IndexError: map::at"},
	{Code: mpi.CodeCountOverflow, Text: "MPI_ERR_COUNT"},
	{Code: mpi.CodeMemlock, Text: "RLIMIT_MEMLOCK too small"},
	{Code: mpi.CodeMemlock, Text: "The locked memory limit for this process is too small"},
	{Code: mpi.CodeBusError, Text: "Bus error"},
	{Code: mpi.CodeBusError, Text: "insufficient shared memory (shm)"},
	{Code: mpi.CodeSegfault, Text: "Segmentation fault"},
	{Code: mpi.CodeIllegalInstruction, Text: "Illegal instruction"},
	{Code: mpi.CodeNCCLSystem, Text: "unhandled system error", Pattern: regexp.MustCompile(`(?i)nccl`)},
	{Code: mpi.CodeNCCLSystem, Text: "ncclSystemError"},
	{Code: mpi.CodeNCCLTimeout, Text: "Watchdog caught collective operation timeout", Pattern: regexp.MustCompile(`(?:\[?[Rr]ank ?(?P<rank>\d+)\]?)?.*Watchdog caught collective operation timeout`)},
	{Code: mpi.CodeServiceMesh, Text: "upstream connect error or disconnect/reset before headers"},
	{Code: mpi.CodeClockSkew, Text: "certificate is not yet valid"},
	{Code: mpi.CodeClockSkew, Text: "certificate has expired or is not yet valid"},
	{Code: mpi.CodeClockSkew, Text: "Clock skew too great"},
}
