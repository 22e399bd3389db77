package implementation

import (
	"regexp"

	"opendatahub.io/mpijob/internal/codes"
)

// Symptoms are those of Hydra, MPICH's launcher.
func (mpich) Symptoms() []Symptom { return known(hydraOwn, hydraSummingUp) }

// Symptoms are those of Hydra in Intel's form.
func (intelMPI) Symptoms() []Symptom { return known(hydraOwn, hydraSummingUp) }

var hydraOwn = []Symptom{
	{Code: codes.LauncherNameUnresolved, Text: "unable to get host address for", Pattern: regexp.MustCompile(`unable to get host address for (?P<host>\S+)`)},
	{Code: codes.LauncherNameUnresolved, Text: "getaddrinfo returned error"},
	{Code: codes.SSHFailed, Text: "nable to run bstrap_proxy", Pattern: regexp.MustCompile(`[Uu]nable to run bstrap_proxy on (?P<host>\S+) .*exit code 65280`)},
	{Code: codes.RemoteCommandFailed, Text: "nable to run bstrap_proxy", Pattern: regexp.MustCompile(`[Uu]nable to run bstrap_proxy on (?P<host>\S+) .*exit code 256\b`)},
	{Code: codes.HostfileMissing, Text: "unable to open host", Pattern: regexp.MustCompile(`unable to open host ?file:? (?P<file>\S+)`)},
	{Code: codes.HostfileMissing, Text: "unable to parse hostfile", Pattern: regexp.MustCompile(`unable to parse hostfile`)},
	{Code: codes.HostfileMissing, As: &codes.HostfileInvalid, Text: "unexpected token", Pattern: regexp.MustCompile(`process_mfile_token .*unexpected token`)},
	{Code: codes.HostfileMissing, As: &codes.HostfileInvalid, Text: "not supported at this time", Pattern: regexp.MustCompile(`\btoken \S+ not supported at this time`)},
	{Code: codes.HostfileMissing, Text: "no such file, or not a regular file", Pattern: regexp.MustCompile(`^\[mpiexec@\S+ HYD_hostfile\S+ .*: (?P<file>\S+) no such file`)},
	{Code: codes.LaunchRefused, As: &codes.WorkingDirMissing, Text: "unable to change wdir to", Pattern: regexp.MustCompile(`^\[proxy:[^@]*@(?P<host>[^\]]+)\] .*unable to change wdir to (?P<file>\S+)`)},
	{Code: codes.HostfileMissing, As: &codes.HostfileInvalid, Text: "duplicate username setting"},
	{Code: codes.NoTransport, As: &codes.InterfaceMissing, Text: "unable to find interface", Pattern: regexp.MustCompile(`unable to find interface (?P<interface>\S+)`)},
	{Code: codes.LaunchRefused, Text: "@", Pattern: regexp.MustCompile(`^\[(?:mpiexec|proxy:\S+)@.*(?:unrecognized argument|unrecognized directive|duplicate setting:|bad launcher type|unrecognized sort order) ?"?(?P<option>[^\s"]*)`)},
	{Code: codes.LaunchRefused, As: &codes.ProgramNotNamed, Text: "xecutable", Pattern: regexp.MustCompile(`^\[mpiexec@.*(?:(?i:no executable (?:provided|specified))|Missing executable)`)},
	{Code: codes.MPINotInPath, Text: "not found", Pattern: regexp.MustCompile(`(?P<program>\b(?:hydra_pmi_proxy|hydra_bstrap_proxy)): (?:command )?not found`)},
	{Code: codes.MPINotInPath, Text: "No such file or directory", Pattern: regexp.MustCompile(`(?P<program>\S*(?:hydra_pmi_proxy|hydra_bstrap_proxy)): No such file or directory`)},
	{Code: codes.SSHMissing, Text: "execvp error on file", Pattern: regexp.MustCompile(`execvp error on file (?:\S*/)?ssh \(`)},
	{Code: codes.ProgramMissing, Text: "execvp error on file", Pattern: regexp.MustCompile(`^(?:\[proxy:[\d:]+@(?P<host>[^\]\s]+)\] )?.*execvp error on file (?P<program>\S+)(?: \((?P<errno>[^()]+)\))?`)},
	{Code: codes.Killed, Text: "KILLED BY SIGNAL: 9", Before: runningAt},
	{Code: codes.Killed, Text: "EXIT CODE: 9", Pattern: regexp.MustCompile(`EXIT CODE: 9\b`), Before: runningAt},
	{Code: codes.SegmentationFault, Text: "KILLED BY SIGNAL: 11", Before: runningAt},
	{Code: codes.SegmentationFault, Text: "EXIT CODE: 139", Before: runningAt},
	{Code: codes.Killed, Text: "EXIT STRING: Killed"},
	{Code: codes.BusError, Text: "KILLED BY SIGNAL: 7", Before: runningAt},
	{Code: codes.Aborted, Text: "KILLED BY SIGNAL: 6", Before: runningAt},
	{Code: codes.Aborted, Text: "EXIT STRING: Aborted"},
	{Code: codes.IllegalInstruction, Text: "KILLED BY SIGNAL: 4", Before: runningAt},
	{Code: codes.NoTransport, As: &codes.ProviderMissing, Text: "OFI ", Pattern: regexp.MustCompile(`OFI (?:addrinfo\(\)|fi_getinfo\(\)|get(?:info)?|endpoint open|EP enable|fabric open failure|domain open|(?:endpoint|domain|fabric) \w+) failed`)},
	{Code: codes.NoTransport, As: &codes.ProviderMissing, Text: "No valid libfabric provider"},
	{Code: codes.NoTransport, As: &codes.ProviderMissing, Text: "OFI Provider name does not match"},
	{Code: codes.NoTransport, As: &codes.ProviderMissing, Text: "fabric is not available and fallback fabric is not enabled"},
	{Code: codes.NoTransport, As: &codes.UCXTransportMissing, Text: "ucx function returned with failed status", Pattern: regexp.MustCompile(`Destination is unreachable|No such device|Unsupported operation`)},
}

// runningAt is how Hydra names the rank of a block about how it ended.
var runningAt = regexp.MustCompile(`RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)`)

// processAt is how MPICH's Hydra names the host of a process that ended, without its rank. Codes 9 and 15 are those of signals by which
// it ended the process itself.
var processAt = regexp.MustCompile(`^=\s+PID \d+ RUNNING AT (?P<host>\S+)`)

var hydraSummingUp = []Symptom{
	{Code: codes.ConnectionLost, Text: "callback returned error status", Umbrella: true},
	{Code: codes.ConnectionLost, Text: "assert (!closed) failed", Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "application called MPI_Abort", Pattern: regexp.MustCompile(`application called MPI_Abort\(.*\) - process (?P<rank>\d+)`), Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "RUNNING AT", Pattern: regexp.MustCompile(`RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)`), Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "EXIT CODE: ", Pattern: regexp.MustCompile(`EXIT CODE: (?:[1-8]|1[0-4]|1[6-9]|[2-9]\d|1[01]\d|12[0-7])\s*$`), Before: processAt, Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", Umbrella: true},
}
