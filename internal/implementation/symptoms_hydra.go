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
	{Code: codes.SSHFailed, Text: "unable to run bstrap_proxy", Pattern: regexp.MustCompile(`unable to run bstrap_proxy on (?P<host>\S+) .*exit code 65280`)},
	{Code: codes.RemoteCommandFailed, Text: "unable to run bstrap_proxy", Pattern: regexp.MustCompile(`unable to run bstrap_proxy on (?P<host>\S+) .*exit code 256\b`)},
	{Code: codes.HostfileMissing, Text: "unable to open host", Pattern: regexp.MustCompile(`unable to open host ?file:? (?P<file>\S+)`)},
	{Code: codes.HostfileMissing, Text: "unable to parse hostfile", Pattern: regexp.MustCompile(`unable to parse hostfile`)},
	{Code: codes.MPINotInPath, Text: "not found", Pattern: regexp.MustCompile(`(?P<program>\b(?:hydra_pmi_proxy|hydra_bstrap_proxy)): (?:command )?not found`)},
	{Code: codes.MPINotInPath, Text: "No such file or directory", Pattern: regexp.MustCompile(`(?P<program>\S*(?:hydra_pmi_proxy|hydra_bstrap_proxy)): No such file or directory`)},
	{Code: codes.SSHMissing, Text: "execvp error on file", Pattern: regexp.MustCompile(`execvp error on file (?:\S*/)?ssh \(`)},
	{Code: codes.ProgramMissing, Text: "execvp error on file", Pattern: regexp.MustCompile(`execvp error on file (?P<program>\S+)`)},
	{Code: codes.Killed, Text: "KILLED BY SIGNAL: 9"},
	{Code: codes.Killed, Text: "EXIT CODE: 9", Pattern: regexp.MustCompile(`EXIT CODE: 9\b`)},
	{Code: codes.SegmentationFault, Text: "KILLED BY SIGNAL: 11"},
	{Code: codes.SegmentationFault, Text: "EXIT CODE: 139"},
	{Code: codes.BusError, Text: "KILLED BY SIGNAL: 7"},
	{Code: codes.IllegalInstruction, Text: "KILLED BY SIGNAL: 4"},
}

var hydraSummingUp = []Symptom{
	{Code: codes.ConnectionLost, Text: "callback returned error status", Umbrella: true},
	{Code: codes.ConnectionLost, Text: "assert (!closed) failed", Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "RUNNING AT", Pattern: regexp.MustCompile(`RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)`), Umbrella: true},
	{Code: codes.ApplicationFailed, Text: "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", Umbrella: true},
}
