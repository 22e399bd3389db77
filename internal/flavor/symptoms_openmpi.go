package flavor

import (
	"regexp"

	"opendatahub.io/mpijob/internal/mpi"
)

// Symptoms are Open MPI's own texts (its help-*.txt), of version 4 (mpirun, ORTE) and 5 (prterun, PRTE).
func (openMPI) Symptoms() []Symptom { return known(openMPIOwn, openMPISummingUp) }

var openMPIOwn = []Symptom{
	{Code: mpi.CodeRootRefused, Text: "has detected an attempt to run as root"},
	{Code: mpi.CodeNotEnoughSlots, Text: "not enough slots available", Pattern: regexp.MustCompile(`not enough slots available in the system(?: to satisfy the (?P<slots>\d+))?`)},
	{Code: mpi.CodeTooFewCores, Text: "A request was made to bind", Pattern: regexp.MustCompile(`made to bind (?:to )?that would re`), More: bound},
	{Code: mpi.CodeDaemonMissing, Text: "not found", Pattern: regexp.MustCompile(`(?P<program>\b(?:orted|prted)): (?:command )?not found`)},
	{Code: mpi.CodeDaemonMissing, Text: "No such file or directory", Pattern: regexp.MustCompile(`(?P<program>\S*/(?:orted|prted)): No such file or directory`)},
	{Code: mpi.CodeProgramMissing, Text: "was unable to", Pattern: regexp.MustCompile(`(?:mpirun|mpiexec|prterun) was unable to (?:find the specified executable|launch the specified application)`), More: notStarted},
	{Code: mpi.CodeProgramMissing, Text: "unable to start the", Pattern: regexp.MustCompile(`(?:mpirun|mpiexec|prterun) was unable to start the (?:specified )?application`), More: notStarted},
	{Code: mpi.CodeKilled, Text: "exited on signal 9", Pattern: regexp.MustCompile(onSignal + "9")},
	{Code: mpi.CodeSegfault, Text: "exited on signal 11", Pattern: regexp.MustCompile(onSignal + "11")},
	{Code: mpi.CodeBusError, Text: "exited on signal 7", Pattern: regexp.MustCompile(onSignal + "7")},
	{Code: mpi.CodeIllegalInstruction, Text: "exited on signal 4", Pattern: regexp.MustCompile(onSignal + "4")},
	{Code: mpi.CodeAborted, Text: "exited on signal 6", Pattern: regexp.MustCompile(onSignal + "6")},
	{Code: mpi.CodeWrongInterface, Text: "failed to TCP connect to a peer MPI process"},
	{Code: mpi.CodeWrongInterface, Text: "btl_tcp_endpoint", Pattern: regexp.MustCompile(`connect\(\) to (?P<host>[\d.:a-f]+) failed`)},
}

// notStarted are what Open MPI says, line by line, of a program that it could not start.
var notStarted = []*regexp.Regexp{
	regexp.MustCompile(`^\s*(?:Executable|Application name|Program): +(?P<program>\S+)`),
	regexp.MustCompile(`^\s*Node: +(?P<host>\S+)`),
}

// bound are what it says of a binding that it refused.
var bound = []*regexp.Regexp{regexp.MustCompile(`^\s*#processes: +(?P<slots>\d+)`), regexp.MustCompile(`^\s*Node: +(?P<host>\S+)`)}

const onSignal = `(?:process rank (?P<rank>\d+) .*on node (?P<host>\S+) )?exited on signal `

var openMPISummingUp = []Symptom{
	{Code: mpi.CodeConnectionLost, Text: "has lost communication with a remote daemon", Umbrella: true},
	{Code: mpi.CodeDaemonUnroutable, Text: "does not know how to route a message to the specified daemon", Umbrella: true},
	{Code: mpi.CodeDaemonsNotStarted, Text: "was unable to reliably start one or more daemons", Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "Process name: [", Pattern: regexp.MustCompile(`Process name: \[\S*,(?P<rank>\d+)\]`), Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "processes exited with non-zero status", Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "a non-zero exit code", Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "MPI_ABORT was invoked", Pattern: regexp.MustCompile(`MPI_ABORT was invoked on rank (?P<rank>\d+)`), Umbrella: true},
}
