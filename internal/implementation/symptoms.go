package implementation

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
)

// Symptom is a text by which a log shows what is wrong.
type Symptom struct {
	Code codes.Code
	// Text is part of the line. It is looked for before Pattern, which is slow.
	Text string
	// Pattern, where there is one, matches the line too. Its named groups are figures for the finding: host, program,
	// library, rank, code, signal, size, slots, uid, file, device, option, interface, component, reason.
	Pattern *regexp.Regexp
	// More are figures too, on the lines that follow: of texts that say them one by one.
	More []*regexp.Regexp
	// Before are figures, too, on the few lines before: those of a block that names the rank first.
	Before *regexp.Regexp
	// Whole is set if Text and Pattern match a whole message of Open MPI, between two rulers, written as one line. Versions of Open
	// MPI break the lines of a message differently.
	Whole bool
	// Also, if set, matches another whole message of the same log; otherwise the log does not show the symptom. Its groups are figures.
	Also *regexp.Regexp
	// As is the definition of the finding if it is not that of the code.
	As *codes.Entry
	// Umbrella is set where the text only sums up what has its cause elsewhere.
	Umbrella bool
}

// Match reports whether a line shows the symptom, and the figures in it, a new map.
func (s Symptom) Match(line string) (figures map[string]string, found bool) {
	if !strings.Contains(line, s.Text) {
		return nil, false
	}
	if s.Pattern == nil {
		return map[string]string{}, true
	}
	groups := s.Pattern.FindStringSubmatch(line)
	if groups == nil {
		return nil, false
	}
	figures = map[string]string{}
	add(figures, s.Pattern, groups)
	return figures, true
}

// AddBefore adds the figures that a line before the symptom's tells; those that are known stay. It returns false if the line has none.
func (s Symptom) AddBefore(figures map[string]string, line string) bool {
	if s.Before == nil {
		return false
	}
	groups := s.Before.FindStringSubmatch(line)
	if groups != nil {
		add(figures, s.Before, groups)
	}
	return groups != nil
}

// Add adds the figures that a line after the symptom's tells; those that are known stay.
func (s Symptom) Add(figures map[string]string, line string) {
	for _, pattern := range s.More {
		if groups := pattern.FindStringSubmatch(line); groups != nil {
			add(figures, pattern, groups)
		}
	}
}

// AddAlso reports whether another message of the log is the one of Also, and adds its figures.
func (s Symptom) AddAlso(figures map[string]string, message string) bool {
	groups := s.Also.FindStringSubmatch(message)
	if groups != nil {
		add(figures, s.Also, groups)
	}
	return groups != nil
}

func add(figures map[string]string, pattern *regexp.Regexp, groups []string) {
	for i, name := range pattern.SubexpNames() {
		if name != "" && groups[i] != "" && figures[name] == "" {
			figures[name] = groups[i]
		}
	}
}

// known orders symptoms by strength: connections to the workers first, then errors of the implementation itself, then
// errors of the program, and summaries last.
func known(own, summingUp []Symptom) []Symptom {
	return slices.Concat(wayToWorkers, own, program, summingUp)
}

// wayToWorkers are the texts of OpenSSH, of tools that call it, and of name resolution.
var wayToWorkers = []Symptom{
	{Code: codes.LauncherNameUnresolved, Text: "Could not resolve hostname", Pattern: regexp.MustCompile(`Could not resolve hostname (?P<host>\S+-launcher[^\s:]*)`)},
	{Code: codes.NameUnresolved, Text: "Could not resolve hostname", Pattern: regexp.MustCompile(`Could not resolve hostname (?P<host>[^\s:]+)`)},
	{Code: codes.KeyUnprotected, Text: "UNPROTECTED PRIVATE KEY"},
	{Code: codes.KeyFileModes, Text: "bad ownership or modes", Pattern: regexp.MustCompile(`bad ownership or modes for (?:file|directory) (?P<file>\S+)`)},
	{Code: codes.NoUserEntry, Text: "No user exists for uid", Pattern: regexp.MustCompile(`No user exists for uid (?P<uid>\d+)`)},
	{Code: codes.NoHostKeys, Text: "no hostkeys available"},
	{Code: codes.HostKeyMismatch, Text: "Host key verification failed"},
	{Code: codes.KeyRefused, Text: "Permission denied (publickey", Pattern: regexp.MustCompile(`(?:@(?P<host>[^\s:]+): )?Permission denied`)},
	{Code: codes.ConnectionRefused, Text: "Connection refused", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): Connection refused`)},
	{Code: codes.ConnectionTimedOut, Text: "Connection timed out", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): Connection timed out`)},
	{Code: codes.ConnectionTimedOut, Text: "No route to host", Pattern: regexp.MustCompile(`connect to host (?P<host>\S+) port (?P<port>\d+): No route to host`)},
	{Code: codes.SSHDOverloaded, Text: "exchange_identification", Pattern: regexp.MustCompile(`exchange_identification: (?:read: Connection reset by peer|Connection closed by remote host)`)},
	{Code: codes.PortInUse, Text: "address already in use", Pattern: regexp.MustCompile(`mpi-agent: take connections: listen tcp \S*:(?P<port>\d+): bind: address already in use`)},
	{Code: codes.PortInUse, Text: "Address already in use", Pattern: regexp.MustCompile(`Bind to port (?P<port>\d+) on \S+ failed: Address already in use`)},
	{Code: codes.ShortHostNames, Text: "ssh not successful"},
	{Code: codes.ShortHostNames, Text: "SSH was not successful"},
}

// torchMemory is what PyTorch reports of a GPU whose memory is full.
var torchMemory = regexp.MustCompile(`(?:CUDA|HIP|XPU) out of memory(?:.*?Tried to allocate (?P<size>[\d.]+ [KMGT]iB))?(?:.*?(?:capacity of (?P<total>[\d.]+ [KMGT]iB)|; (?P<total2>[\d.]+ [KMGT]iB) total capacity))?`)

// program are the texts of the program itself: of the loader, Python, CUDA, NCCL, and of the shell.
var program = []Symptom{
	{Code: codes.LibraryMissing, Text: "loading shared libraries", Pattern: regexp.MustCompile(`loading shared libraries: (?P<library>[^\s:]+)`)},
	{Code: codes.LibraryMissing, Text: "cannot open shared object file", Pattern: regexp.MustCompile(`\b(?:OSError|ImportError): (?P<library>[^\s:]+): cannot open shared object file`)},
	{Code: codes.WindowsLineEnds, Text: `\r`, Pattern: regexp.MustCompile(`\benv: \S*?(?P<program>[\w./+-]+)\\r\S*: No such file or directory`)},
	{Code: codes.WindowsLineEnds, Text: "^M: bad interpreter", Pattern: regexp.MustCompile(`(?P<file>[^\s:]+): (?P<program>[^\s:]+)\^M: bad interpreter`)},
	{Code: codes.WindowsLineEnds, Text: `\r': command not found`, Pattern: regexp.MustCompile(`(?P<file>[^\s:]+): line \d+: \$'(?P<program>[^\s']*)\\r': command not found`)},
	// dash writes the carriage return itself, of which a log keeps what follows.
	{Code: codes.WindowsLineEnds, Text: ": not found", Pattern: regexp.MustCompile(`^: not found$`)},
	{Code: codes.ProgramMissing, Text: ": bad interpreter", Pattern: regexp.MustCompile(`: (?P<program>[^\s:]+): bad interpreter: No such file or directory`)},
	{Code: codes.ProgramMissing, Text: "not found", Pattern: regexp.MustCompile(`^(?:\S+ )?(?:/\S*/)?(?:ba|da|k|z)?sh: (?:line )?(?:\d+: )?(?:exec: )?(?P<program>[^\s:]+): (?:command )?not found`)},
	// The same of a script that is a file.
	{Code: codes.ProgramMissing, Text: "not found", Pattern: regexp.MustCompile(`^(?:(?:[^\s:]*/[^\s:]+|[^\s:]+sh): (?:line )?|[^\s:]+: line )\d+: (?:exec: )?(?P<program>[^\s:]+): (?:command )?not found`)},
	// The same of programs that start others: coreutils, busybox, util-linux and numactl.
	{Code: codes.ProgramMissing, Text: ": No such file or directory", Pattern: regexp.MustCompile("^(?:\\S*/)?(?:env|nice|nohup|timeout|stdbuf|taskset|setsid|chrt|ionice|numactl): (?:can't execute |failed to (?:run command|execute) |execution of )?['`\\x{2018}]?(?P<program>[\\w.+/-]+)['\\x{2019}]?: No such file or directory$")},
	{Code: codes.NoGPUVisible, Text: "no CUDA-capable device is detected"},
	{Code: codes.NoGPUVisible, Text: "No CUDA GPUs are available"},
	{Code: codes.NoGPUVisible, Text: "Found no NVIDIA driver on your system"},
	{Code: codes.NoGPUVisible, As: &codes.NCCLWithoutGPU, Text: "ProcessGroupNCCL is only supported with GPUs, no GPUs found"},
	{Code: codes.MoreSlotsThanGPUs, Text: "Duplicate GPU detected"},
	{Code: codes.MoreSlotsThanGPUs, Text: "invalid device ordinal"},
	{Code: codes.GPUOutOfMemory, Text: "CUDA out of memory", Pattern: torchMemory},
	{Code: codes.GPUOutOfMemory, Text: "CUDA_ERROR_OUT_OF_MEMORY"},
	{Code: codes.GPUOutOfMemory, Text: "HIP out of memory", Pattern: torchMemory},
	{Code: codes.GPUOutOfMemory, Text: "XPU out of memory", Pattern: torchMemory},
	{Code: codes.GPUOutOfMemory, Text: "cudaErrorMemoryAllocation"},
	{Code: codes.GPUOutOfMemory, Text: "cuMemAlloc returned error 2"},
	{Code: codes.GPUOutOfMemory, Text: "out_of_memory: CUDA error"},
	{Code: codes.GPUOutOfMemory, Text: "cupy.cuda.memory.OutOfMemoryError", Pattern: regexp.MustCompile(`Out of memory allocating (?P<size>[\d,]+ bytes)`)},
	{Code: codes.GPUOutOfMemory, Text: "CUDA error: out of memory"},
	{Code: codes.GPUOutOfMemory, Text: "CUBLAS_STATUS_ALLOC_FAILED"},
	{Code: codes.GPUOutOfMemory, Text: "Cuda failure ", Pattern: regexp.MustCompile(`Cuda failure (?:\d+ )?'out of memory'`)},
	{Code: codes.GPUOutOfMemory, As: &codes.GPUTakenAtStart, Text: "OOM when allocating tensor", Pattern: regexp.MustCompile(`OOM when allocating tensor.*GPU`)},
	{Code: codes.GPUOutOfMemory, As: &codes.GPUTakenAtStart, Text: "RESOURCE_EXHAUSTED: ", Pattern: regexp.MustCompile(`RESOURCE_EXHAUSTED: (?:Out of memory (?:while trying to allocate|allocating)|Failed to allocate request for) (?P<size>[\d.]+ ?(?:bytes|[KMGT]iB))`)},
	{Code: codes.GPUOutOfMemory, As: &codes.GPUTakenAtStart, Text: "ResourceExhaustedError", Pattern: regexp.MustCompile(`ResourceExhaustedError: .*failed to allocate memory`)},
	{Code: codes.DataTypeUnsupported, Text: "IndexError: map::at"},
	{Code: codes.CountOverflow, Text: "MPI_ERR_COUNT"},
	{Code: codes.LockedMemoryLimit, Text: "RLIMIT_MEMLOCK too small"},
	{Code: codes.LockedMemoryLimit, Text: "The locked memory limit for this process is too small"},
	{Code: codes.LockedMemoryLimit, Text: "max locked memory (ulimit -l)"},
	{Code: codes.LockedMemoryLimit, Text: "Call to ibv_reg_", Pattern: regexp.MustCompile(`Call to ibv_reg_\w+ failed.*Cannot allocate memory`)},
	{Code: codes.BusError, Text: "Bus error"},
	{Code: codes.BusError, Text: "insufficient shared memory (shm)"},
	{Code: codes.SegmentationFault, Text: "Segmentation fault"},
	{Code: codes.SegmentationFault, Text: "forrtl: severe (174): SIGSEGV"},
	{Code: codes.SegmentationFault, Text: "PETSC ERROR: Caught signal number 11", Pattern: regexp.MustCompile(`\[(?P<rank>\d+)\]PETSC ERROR: Caught signal number 11\b`)},
	{Code: codes.IllegalInstruction, Text: "Illegal instruction"},
	{Code: codes.NotEnoughSlots, Text: "than there are available slots", Pattern: regexp.MustCompile(`Requested more processes \((?P<slots>\d+)\) than there are available slots`)},
	{Code: codes.NotEnoughSlots, Text: "Not enough slots on the hosts", Pattern: regexp.MustCompile(`Not enough slots on the hosts to fulfill the (?P<slots>\d+) requested`)},
	{Code: codes.NoTransport, As: &codes.InterfaceMissing, Text: "no socket interface found"},
	{Code: codes.NoTransport, As: &codes.InterfaceMissing, Text: "Unable to find ", Pattern: regexp.MustCompile(`Unable to find (?:address|interface) for: (?P<interface>\S+)`)},
	{Code: codes.WrongInterface, As: &codes.PeersUnreachable, Text: "Gloo connectFullMesh failed"},
	{Code: codes.WrongInterface, As: &codes.PeersUnreachable, Text: "gloo/", Pattern: regexp.MustCompile(`gloo/\S+ ?(?:[Cc]onnect timeout|timed out connecting|connect \S+: (?:Connection|No route))`)},
	{Code: codes.WrongInterface, As: &codes.PeersUnreachable, Text: "NCCL WARN", Pattern: regexp.MustCompile(`NCCL WARN .*[Cc]onnect(?:ing)? (?:to|from) \S+ failed ?: (?:Connection (?:refused|timed out)|No route to host)`)},
	// The same as PyTorch shows it, after "Last error:".
	{Code: codes.WrongInterface, As: &codes.PeersUnreachable, Text: "onnect to ", Pattern: regexp.MustCompile(`^(?:Call to connect|socket\w+Connect: [Cc]onnect) to \S+ failed ?: (?:Connection (?:refused|timed out)|No route to host)`)},
	{Code: codes.CollectiveTimeout, As: &codes.TensorsMissing, Text: "is stalled for longer than"},
	{Code: codes.NCCLSystemError, As: &codes.NCCLSharedMemory, Text: "shared memory segment /dev/shm/nccl-"},
	{Code: codes.NCCLSystemError, Text: "unhandled system error", Pattern: regexp.MustCompile(`(?i)nccl`)},
	{Code: codes.NCCLSystemError, Text: "ncclSystemError"},
	{Code: codes.CollectiveTimeout, Text: "Watchdog caught collective operation timeout", Pattern: regexp.MustCompile(`(?:\[?[Rr]ank ?(?P<rank>\d+)\]?)?.*Watchdog caught collective operation timeout`)},
	{Code: codes.NoTransport, As: &codes.UCXTransportMissing, Text: "UCX  ERROR", Pattern: regexp.MustCompile(`UCX  ERROR (?:no usable transports/devices|no (?:active messages|auxiliary|remote registered memory access) transport to )`)},
	{Code: codes.ServiceMesh, Text: "upstream connect error or disconnect/reset before headers"},
	{Code: codes.ClockSkew, Text: "certificate is not yet valid"},
	{Code: codes.ClockSkew, Text: "certificate has expired or is not yet valid"},
	{Code: codes.ClockSkew, Text: "Clock skew too great"},
	{Code: codes.ClockSkew, As: &codes.RequestTimeSkewed, Text: "RequestTimeTooSkewed"},
	{Code: codes.ClockSkew, As: &codes.RequestTimeSkewed, Text: "REQUEST_TIME_TOO_SKEWED"},
	{Code: codes.ClockSkew, As: &codes.RequestTimeSkewed, Text: "The difference between the request time and the "},
}
