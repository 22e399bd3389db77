package implementation

import (
	"regexp"

	"opendatahub.io/mpijob/internal/codes"
)

// message returns the symptom of a whole message of Open MPI. The figures of a pattern are in the order of the message.
func message(code codes.Code, as *codes.Entry, text, pattern string) Symptom {
	return Symptom{Code: code, As: as, Whole: true, Text: text, Pattern: regexp.MustCompile(regexp.QuoteMeta(text) + pattern)}
}

// Figures of messages, each of which begins with its name.
const (
	onNode     = `(?:.*?(?:Node|Nodename|Local host|Peer host|Host): +(?P<host>\S+))?`
	withOption = `(?:.*?(?:Policy|Directive|Request|Pattern|Option|option|Value|Modifier|PPR|Param name|MCA param|Variable|Param) ?: +(?P<option>\S+))?`
)

// refused returns the symptom of an option that Open MPI does not accept.
func refused(text string) Symptom { return message(codes.LaunchRefused, nil, text, withOption) }

// hardware returns the symptom of a mapping or binding for which a host lacks the hardware.
func hardware(text string) Symptom {
	return message(codes.TooFewCores, &codes.BindingImpossible, text, onNode)
}

// openMPIMessages are phrases of the help texts of Open MPI (ompi and opal), ORTE (version 4) and PRRTE (version 5). Above each group
// are the files.
var openMPIMessages = []Symptom{
	// help-orterun.txt, help-prun.txt: how ranks ended.
	{Code: codes.NotFinalized, Whole: true, Text: "exited due to process rank", Pattern: regexp.MustCompile(`exited due to process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exiting (?:improperly|without calling "finalize")`)},
	{Code: codes.NotFinalized, Whole: true, Text: `exited due to a process exiting without calling "finalize"`},

	// help-prte-odls-default.txt: programs.
	message(codes.ProgramMissing, &codes.ProgramNotAccessible, "lacked permissions to execute an executable", `(?:.*?Executable: +(?P<program>\S+))?`+onNode),

	// help-mpi-btl-tcp.txt, help-oob-tcp.txt, help-mca-bml-r2.txt, help-mpi-runtime.txt, help-mca-base.txt: transports.
	{Code: codes.NoTransport, As: &codes.InterfaceMissing, Whole: true, Text: "MPI processes are unable to reach each other", Also: interfaceIgnored},
	{Code: codes.NoTransport, As: &codes.InterfaceMissing, Whole: true, Text: "at least one MPI process is unreachable from another", Also: interfaceIgnored},
	{Code: codes.NoTransport, Whole: true, Text: "at least one MPI process is unreachable from another"},
	message(codes.NoTransport, &codes.InterfaceMissing, "None of the TCP networks specified to be included for out-of-band communications could be found", `(?:.*?Value given: +(?P<interface>\S+))?`),
	message(codes.NoTransport, &codes.InterfaceMissing, "The specified list of networks to be excluded for TCP out-of-band communications", ``),
	message(codes.NoTransport, &codes.InterfaceMissing, "No network interfaces were found for out-of-band communications", ``),
	message(codes.NoTransport, &codes.ComponentMissing, "A requested component was not found", `.*Framework: +(?:pml|btl|mtl|cm) Component: +(?P<component>\S+)`),
	message(codes.NoTransport, &codes.ComponentMissing, "No components were able to be opened in the", ` (?P<component>(?:pml|btl|mtl)) framework`),
	message(codes.NoTransport, &codes.ComponentMissing, "The OFI MTL was not able to find endpoint information", ``),

	message(codes.LockedMemoryLimit, nil, "failed to initialize while trying to allocate some locked memory", ``),

	// help-oob-tcp.txt, help-orte-runtime.txt, help-prte-runtime.txt: hosts that differ.
	message(codes.LaunchRefused, &codes.VersionsDiffer, "detected a mismatch in versions between two processes", onNode),
	message(codes.LaunchRefused, &codes.VersionsDiffer, "A compressed message was received", ``),

	// help-orte-rmaps-base.txt, -ppr, -rr, -seq and help-prte-rmaps-*.txt: more ranks than slots, or than the mapping allows.
	message(codes.NotEnoughSlots, nil, "Either there are not enough slots available in the system to launch the ", `(?P<slots>\d+)`),
	message(codes.NotEnoughSlots, nil, "There are not enough nodes in your allocation to satisfy your request to launch ", `(?P<slots>\d+)`),
	message(codes.NotEnoughSlots, nil, "There are not enough slots on the nodes in your allocation", ``),
	message(codes.NotEnoughSlots, nil, "All nodes which are allocated for this job are already filled", ``),
	message(codes.NotEnoughSlots, nil, "There are no available nodes allocated to this job", ``),
	message(codes.NotEnoughSlots, nil, "No nodes are available for this job", ``),
	message(codes.LaunchRefused, &codes.MappingConflict, "Your job has requested more processes than the ppr for this topology can support", `(?:.*?Number of procs: +(?P<slots>\d+))?(?:.*? PPR: +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.MappingConflict, "Your job has requested a conflicting number of processes", `(?:.*?number of procs: +(?P<slots>\d+))?`),
	message(codes.LaunchRefused, &codes.MappingConflict, "The provided mapping directives resulted in too many processes being placed on a node", ``),
	message(codes.LaunchRefused, &codes.BindingConflict, `A binding policy was provided that is not supported in combination with the "PE=N" option`, `(?:.*?Policy: +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.BindingConflict, `mapping directive cannot be combined with a binding directive`, `(?:.*?bind-to: +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.MappingConflict, "A sequential map was requested, but not enough node entries", `(?:.*?Num procs: +(?P<slots>\d+))?`),

	// The same files and help-opal-hwloc-base.txt, help-prte-hwloc-base.txt, help-orte-odls-base.txt: hosts lack the hardware.
	hardware("Your job has requested more cpus per process(rank) than there are cpus in a"),
	hardware("Your job failed to map because"),
	hardware("Your job failed to map. Either no mapper was available"),
	hardware("An attempt was made to bind a process to a specific hardware topology"),
	hardware("but an appropriate target could not be found on node"),
	hardware("While computing bindings, we found no available cpus"),
	hardware("A request was made to bind a process, but at least one node does NOT support"),
	hardware("A request was made to bind a process. While the system supports binding the process itself"),
	hardware("No bindable objects of the specified type were available"),
	hardware("No objects of the specified type were found on at least one node"),
	hardware("Unknown binding level"),
	hardware("a directive was also given to map to an object level that"),
	hardware("A request was made to map a specified number of processes to each object of a given type"),
	hardware("There are not enough resources on the available nodes to meet the requested mapping"),
	hardware("The attempt to assign hardware locations to processes"),
	hardware("The request to bind processes to cpus in a provided list"),
	hardware("were found on the local host to meet the requested binding action"),
	message(codes.TooFewCores, &codes.BindingImpossible, "the operation resulted in the processes being unbound", `.*This is an error.*Local host: +(?P<host>\S+)`),
	hardware("tried to bind a new process, but"),
	hardware("A slot list was provided that exceeds the boundaries on available resources"),

	// The same files, help-schizo-*.txt, help-cli.txt, help-mca-var.txt and help-mca-base.txt: options.
	message(codes.LaunchRefused, nil, "The specified ", `\S*(?: \S+)? ?(?:policy|directive) is not recognized`+withOption),
	refused("The mapping request contains"),
	refused("The binding request contains an unrecognized modifier"),
	refused("An invalid value was given for the number of processes per resource (ppr)"),
	refused("An unrecognized value was given for the number of processes per resource (ppr)"),
	refused("The proc-per-resource request is not correct"),
	refused("A request for multiple cpus-per-proc was given, but a conflicting binding policy was specified"),
	refused("policy to be redefined"),
	refused("An unrecognized option was included on the"),
	refused("requires an argument, but no argument was given"),
	refused("was given that requires a value"),
	refused("was given that defines a value multiple times"),
	refused("that a parameter given to a command line option does not match the expected format"),
	refused("Help was requested for an unknown option"),
	refused("The provided command line option requires passing two values"),
	refused("The command line contains a generic MCA param that is not recognized"),
	refused("The command line includes too many instances of the following option"),
	refused("was given an option that expected a string argument"),
	refused("A deprecated command line option was used. It is unclear how to update this option"),
	refused("an MCA parameter was listed more than once on the command line"),
	refused("has detected multiple instances of an MCA param being specified on the command line"),
	refused("MCA framework parameters can only take a single negation operator"),
	refused("More than one hostfile was passed for a single application"),
	refused("You have attempted to pass environment variables to"),
	refused("Conflicting requests for timeout were given"),
	refused("was given a negative number of processes to run"),
	message(codes.LaunchRefused, nil, "ERROR: The ", `"(?P<option>[^"]+)" command line option was listed more than once`),

	// help-hostfile.txt, help-dash-host.txt, help-rmaps_rank_file.txt: hosts.
	message(codes.LaunchRefused, &codes.HostNotInJob, "At least one of the requested hosts is not included in the current allocation", `(?:.*?Missing requested host: +(?P<host>\S+))?`),
	message(codes.LaunchRefused, &codes.HostNotInJob, "Some of the requested hosts are not included in the current allocation", ``),
	message(codes.LaunchRefused, &codes.HostNotInJob, "There are no allocated resources for the application", ``),
	message(codes.LaunchRefused, &codes.HostNotInJob, "A hostfile was provided that contains at least one node not present in the allocation", `(?:.*?node: +(?P<host>\S+))?`),
	message(codes.LaunchRefused, &codes.HostByPlace, "A relative host was specified, but no prior allocation has been made", `(?:.*?(?:hostfile entry|-host): +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.PlaceBeyondHosts, "A relative host was specified, but was not found", `(?:.*?Syntax given: +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.PlaceBeyondHosts, "A relative host was specified, but the index given is beyond", `(?:.*?Index: +(?P<option>\d+))?`),
	message(codes.LaunchRefused, &codes.PlaceBeyondHosts, "Rankfile claimed host ", `(?P<option>\S+) by index that is bigger than`),
	message(codes.LaunchRefused, &codes.PlaceInvalid, "A relative host was improperly specified", `(?:.*?(?:hostfile entry|-host): +(?P<option>\S+))?`),
	message(codes.LaunchRefused, &codes.EmptyHostsMissing, "The requested number of empty hosts was not available", `(?:.*?short by (?P<missing>\d+) hosts)?`),
	message(codes.LaunchRefused, &codes.HostNotInJob, "contained a node (", `(?P<host>[^)\s]+)\) that is not in your allocation`),
	message(codes.HostfileMissing, &codes.HostfileInvalid, "detected a parse error in the hostfile", `: +(?P<file>\S+)`),
	message(codes.HostfileMissing, &codes.HostfileInvalid, "detected a bad parameter in the hostfile", `: +(?P<file>\S+)`),
	message(codes.HostfileMissing, &codes.HostfileInvalid, "A hostfile was provided that contains multiple definitions of the slot count", `(?:.*?hostfile: +(?P<file>\S+))?`),
	message(codes.LaunchRefused, &codes.RankfileInvalid, "unable to open the rankfile", `: +(?P<file>\S+)`),
	message(codes.LaunchRefused, &codes.RankfileInvalid, "detected a parse error in the rankfile", ` \((?P<file>[^)]+)\)`),
	message(codes.LaunchRefused, &codes.RankfileInvalid, "The rankfile that was used claimed that a host was either not allocated", ``),
	message(codes.LaunchRefused, &codes.RankfileInvalid, "Some of the requested ranks are not included in the current allocation", ``),
	message(codes.LaunchRefused, &codes.RankfileInvalid, "A rank is missing its location specification", `(?:.*?Rank file: +(?P<file>\S+))?`),

	// help-orterun.txt, help-prun.txt, help-orte-odls-default.txt, help-prte-odls-default.txt: the program.
	message(codes.LaunchRefused, &codes.ProgramNotNamed, "No executable was specified on the", ``),
	message(codes.LaunchRefused, &codes.ProgramNotNamed, "could not find anything to do", ``),
	message(codes.LaunchRefused, &codes.ProgramNotNamed, "with at least one that failed to specify the number of processes to execute", ``),
	message(codes.LaunchRefused, &codes.ProgramNotNamed, "but failed to provide the number of processes to be executed", ``),
	message(codes.LaunchRefused, &codes.WorkingDirMissing, "the specified working directory", `(?:.*?Working directory: +(?P<file>\S+))?`+onNode),
	message(codes.LaunchRefused, &codes.SystemLimit, "was unable to launch the specified application as it encountered an error: Error: ", `(?P<reason>.+?) Node: +(?P<host>\S+)`),
	message(codes.LaunchRefused, &codes.SystemLimit, "Error: ", `(?P<reason>system limit exceeded on .+? that can be open)`),

	// help-opal-util.txt, help-prte-util.txt, help-orte-runtime.txt: temporary files.
	message(codes.LaunchRefused, &codes.NoTemporaryDir, "A call to mkdir was unable to create the desired directory", `(?:.*?Directory: +(?P<file>\S+))?`),
	message(codes.LaunchRefused, &codes.NoTemporaryDir, "we were unable to set a directory to the desired mode", `(?:.*?Directory: +(?P<file>\S+))?`),
	message(codes.LaunchRefused, &codes.NoTemporaryDir, "The specified location for the temporary directories required by", `(?:.*?Location given: +(?P<file>\S+))?`),
	message(codes.LaunchRefused, &codes.TemporaryPathTooLong, "restriction for Unix's socket's path-length", ``),
}

// interfaceIgnored is the warning about a network interface that does not exist.
var interfaceIgnored = regexp.MustCompile(`An invalid value was given for btl_tcp_if_include.*?Value: +(?P<interface>\S+)`)
