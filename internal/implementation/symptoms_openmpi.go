package implementation

import (
	"regexp"
	"slices"

	"opendatahub.io/mpijob/internal/codes"
)

// Symptoms are Open MPI's own texts (its help-*.txt), of version 4 (mpirun, ORTE) and 5 (prterun, PRTE).
func (openMPI) Symptoms() []Symptom { return known(openMPISymptoms, openMPISummingUp) }

// openMPISymptoms are all but those that sum up. Whole messages are more specific than single lines.
var openMPISymptoms = slices.Concat(openMPIMessages, openMPIOwn)

var openMPIOwn = []Symptom{
	{Code: codes.RootRefused, Text: "has detected an attempt to run as root"},
	{Code: codes.NotEnoughSlots, Text: "not enough slots available", Pattern: regexp.MustCompile(`not enough slots available in the system(?: to satisfy the (?P<slots>\d+))?`)},
	{Code: codes.TooFewCores, Text: "A request was made to bind", Pattern: regexp.MustCompile(`made to bind (?:to )?that would re`), More: bound},
	{Code: codes.HostfileMissing, Text: "unable to open the hostfile", More: []*regexp.Regexp{regexp.MustCompile(`^\s+(?P<file>/?\S+)$`)}},
	{Code: codes.SSHMissing, Text: "ssh : rsh", Pattern: regexp.MustCompile(`plm_(?:rsh|ssh)_agent: ssh : rsh`)},
	{Code: codes.MPINotInPath, Text: "not found", Pattern: regexp.MustCompile(`(?P<program>\b(?:orted|prted)): (?:command )?not found`)},
	{Code: codes.MPINotInPath, Text: "No such file or directory", Pattern: regexp.MustCompile(`(?P<program>\S*/(?:orted|prted)): No such file or directory`)},
	{Code: codes.ProgramMissing, Text: `via the "execve" system call`, More: notExecuted},
	{Code: codes.ProgramMissing, Text: "was unable to", Pattern: regexp.MustCompile(`(?:mpirun|mpiexec|prterun) was unable to (?:find the specified executable|launch the specified application as it could not access(?:$| an executable))`), More: notStarted},
	{Code: codes.ProgramMissing, Text: "unable to start the", Pattern: regexp.MustCompile(`(?:mpirun|mpiexec|prterun) was unable to start the (?:specified )?application`), More: notStarted},
	{Code: codes.Killed, Text: "exited on signal 9", Pattern: regexp.MustCompile(onSignal + "9")},
	{Code: codes.SegmentationFault, Text: "exited on signal 11", Pattern: regexp.MustCompile(onSignal + "11")},
	{Code: codes.BusError, Text: "exited on signal 7", Pattern: regexp.MustCompile(onSignal + "7")},
	{Code: codes.IllegalInstruction, Text: "exited on signal 4", Pattern: regexp.MustCompile(onSignal + "4")},
	{Code: codes.Aborted, Text: "exited on signal 6", Pattern: regexp.MustCompile(onSignal + "6")},
	{Code: codes.Killed, Text: "signal 9 (Killed).", Pattern: regexp.MustCompile(`^signal 9 `), Before: noticed},
	{Code: codes.SegmentationFault, Text: "signal 11 (Segmentation fault).", Pattern: regexp.MustCompile(`^signal 11 `), Before: noticed},
	{Code: codes.BusError, Text: "signal 7 (Bus error).", Pattern: regexp.MustCompile(`^signal 7 `), Before: noticed},
	{Code: codes.IllegalInstruction, Text: "signal 4 (Illegal instruction).", Pattern: regexp.MustCompile(`^signal 4 `), Before: noticed},
	{Code: codes.Aborted, Text: "signal 6 (Aborted).", Pattern: regexp.MustCompile(`^signal 6 `), Before: noticed},
	{Code: codes.NotFinalized, Text: "exiting ", Pattern: regexp.MustCompile(`^\s*node (?P<host>\S+) exiting (?:improperly|without calling "finalize")`)},
	{Code: codes.LaunchRefused, Text: ": Error: ", Pattern: regexp.MustCompile(`^(?:\S*/)?[\w.]+: Error: (?:unknown )?option "(?P<option>[^"]+)"`)},
	{Code: codes.NoTransport, Text: "MPI processes are unable to reach each other"},
	{Code: codes.NoTransport, Text: "--> Returned \"Unreachable\""},
	{Code: codes.NoTransport, As: &codes.ComponentMissing, Text: " cannot be selected", Pattern: regexp.MustCompile(`\bPML (?P<component>\S+) cannot be selected`)},
	{Code: codes.WrongInterface, Text: "failed to TCP connect to a peer MPI process"},
	{Code: codes.WrongInterface, Text: "btl_tcp_endpoint", Pattern: regexp.MustCompile(`connect\(\) to (?P<host>[\d.:a-f]+) failed`)},
}

// noticed is the first line of what PRRTE reports of a rank that a signal ended. The signal is on the second one.
var noticed = regexp.MustCompile(`noticed that process rank (?P<rank>\d+) .*on node (?P<host>\S+) exited on$`)

// notStarted are what Open MPI says, line by line, of a program that it could not start.
var notStarted = []*regexp.Regexp{
	regexp.MustCompile(`^\s*(?:Executable|Application name|Program): +(?P<program>\S+)`),
	regexp.MustCompile(`^\s*Node: +(?P<host>\S+)`),
}

// notExecuted are what Open MPI and PRRTE print, line by line, of a program that exists and that the kernel did not execute
// (help-orte-odls-default.txt, help-prte-odls-default.txt).
var notExecuted = []*regexp.Regexp{
	regexp.MustCompile(`^\s*Application name: +(?P<program>\S+)`),
	regexp.MustCompile(`^\s*Local host: +(?P<host>\S+)`),
	regexp.MustCompile(`^\s*Error: +(?P<errno>\S.*)$`),
}

// bound match the details of a binding that Open MPI refused.
var bound = []*regexp.Regexp{regexp.MustCompile(`^\s*#processes: +(?P<slots>\d+)`), regexp.MustCompile(`^\s*Node: +(?P<host>\S+)`)}

// remoteDaemon is where Open MPI names the host of a daemon that it lost.
var remoteDaemon = []*regexp.Regexp{regexp.MustCompile(`^\s*Remote daemon: .* on node (?P<host>\S+)`)}

const onSignal = `(?:process rank (?P<rank>\d+) .*on node (?P<host>\S+) )?exited on signal `

var openMPISummingUp = []Symptom{
	{Code: codes.ConnectionLost, Text: "has lost communication with a remote daemon", More: remoteDaemon, Umbrella: true},
	{Code: codes.DaemonUnroutable, Text: "does not know how to route a message to the specified daemon", Umbrella: true},
	{Code: codes.DaemonsNotStarted, Text: "was unable to reliably start one or more daemons", Umbrella: true},
	{Code: codes.DaemonUnroutable, Text: "is unable to establish a communication connection to the specified daemon", Whole: true, Umbrella: true},
	{Code: codes.DaemonsNotStarted, Text: "daemon has unexpectedly failed after launch", Whole: true, Umbrella: true},
	{Code: codes.DaemonsNotStarted, Text: "A daemon died unexpectedly", Whole: true, Umbrella: true},
	{Code: codes.DaemonsNotStarted, Text: "A daemon failed to report back after being spawned", Pattern: regexp.MustCompile(`Remote host: +(?P<host>\S+)`), Whole: true, Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "abort", Pattern: regexp.MustCompile(`exited due to process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) calling "abort"`), Whole: true, Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "Process name: [", Pattern: regexp.MustCompile(`Process name: \[\S*,(?P<rank>\d+)\]`), Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "processes exited with non-zero status", Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "a non-zero exit code", Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "MPI_ABORT was invoked", Pattern: regexp.MustCompile(`MPI_ABORT was invoked on rank (?P<rank>\d+)`), Umbrella: true},
}
