package flavor

import (
	"regexp"

	"opendatahub.io/mpijob/internal/mpi"
)

// Symptoms are those of Hydra, MPICH's launcher.
func (mpich) Symptoms() []Symptom { return known(hydraOwn, hydraSummingUp) }

// Symptoms are those of Hydra in Intel's form.
func (intelMPI) Symptoms() []Symptom { return known(hydraOwn, hydraSummingUp) }

var hydraOwn = []Symptom{
	{Code: mpi.CodeLauncherUnresolved, Text: "unable to get host address for", Pattern: regexp.MustCompile(`unable to get host address for (?P<host>\S+)`)},
	{Code: mpi.CodeLauncherUnresolved, Text: "getaddrinfo returned error"},
	{Code: mpi.CodeSSHFailed, Text: "unable to run bstrap_proxy", Pattern: regexp.MustCompile(`unable to run bstrap_proxy on (?P<host>\S+) .*exit code 65280`)},
	{Code: mpi.CodeRemoteCommand, Text: "unable to run bstrap_proxy", Pattern: regexp.MustCompile(`unable to run bstrap_proxy on (?P<host>\S+) .*exit code 256\b`)},
	{Code: mpi.CodeDaemonMissing, Text: "not found", Pattern: regexp.MustCompile(`(?P<program>\b(?:hydra_pmi_proxy|hydra_bstrap_proxy)): (?:command )?not found`)},
	{Code: mpi.CodeDaemonMissing, Text: "No such file or directory", Pattern: regexp.MustCompile(`(?P<program>\S*(?:hydra_pmi_proxy|hydra_bstrap_proxy)): No such file or directory`)},
	{Code: mpi.CodeProgramMissing, Text: "execvp error on file", Pattern: regexp.MustCompile(`execvp error on file (?P<program>\S+)`)},
	{Code: mpi.CodeKilled, Text: "KILLED BY SIGNAL: 9"},
	{Code: mpi.CodeKilled, Text: "EXIT CODE: 9", Pattern: regexp.MustCompile(`EXIT CODE: 9\b`)},
	{Code: mpi.CodeSegfault, Text: "KILLED BY SIGNAL: 11"},
	{Code: mpi.CodeSegfault, Text: "EXIT CODE: 139"},
	{Code: mpi.CodeBusError, Text: "KILLED BY SIGNAL: 7"},
	{Code: mpi.CodeIllegalInstruction, Text: "KILLED BY SIGNAL: 4"},
}

var hydraSummingUp = []Symptom{
	{Code: mpi.CodeConnectionLost, Text: "callback returned error status", Umbrella: true},
	{Code: mpi.CodeConnectionLost, Text: "assert (!closed) failed", Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "RUNNING AT", Pattern: regexp.MustCompile(`RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)`), Umbrella: true},
	{Code: mpi.CodeApplicationFailed, Text: "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", Umbrella: true},
}
