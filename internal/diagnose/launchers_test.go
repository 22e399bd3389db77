package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

const ruler = "\n--------------------------------------------------------------------------\n"

// TestMessagesOfLaunchers has a row for each kind of message by which launchers and libraries refuse or lose a job: the phrases that
// tell them, with the line breaks and the details that follow them.
func TestMessagesOfLaunchers(t *testing.T) {
	t.Parallel()
	const internal = "[pi-worker-0:00042] *** MPI_ERR_INTERN: internal error\n"
	type row struct {
		code codes.Code
		// summary and action are parts of the finding's summary, and of the action of one of its remedies.
		summary, action string
		log             string
		change          func(*mpi.Job)
	}
	message := func(code codes.Code, summary, action, text string) row {
		return row{code: code, summary: summary, action: action, log: ruler + text + ruler}
	}
	line := func(code codes.Code, summary, action, text string, change func(*mpi.Job)) row {
		return row{code, summary, action, text, change}
	}
	const relative = "A relative host was specified, but no prior allocation has been made.\nThus, there is no way to determine the proper host to be used.\n\n"
	withRankfile := func(j *mpi.Job) {
		j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-n", "2", "--rankfile", "/code/ranks.txt", "pi"}
	}
	const endpoint = "[pi-worker-0][[1,1],0][btl_tcp_endpoint.c:625:x] connect() to 10.244.0.9:1024 failed: Connection refused (111)\n"
	for name, test := range map[string]row{
		// Open MPI: how ranks ended.
		"a signal, of version 5":      {code: codes.SegmentationFault, summary: "in rank 2", log: "step 1" + ruler + "prterun noticed that process rank 2 with PID 35 on node pi-worker-1 exited on\nsignal 11 (Segmentation fault)." + ruler},
		"not finalized, of version 4": {code: codes.NotFinalized, summary: "in rank 2", log: endpoint + ruler + "mpirun has exited due to process rank 2 with PID 0 on\nnode pi-worker-1 exiting improperly. There are" + ruler},
		"not finalized, of version 5": {code: codes.NotFinalized, summary: "in rank 2", log: endpoint + ruler + "prterun has exited due to process rank 2 with PID 0 on node pi-worker-1 exiting\nimproperly. There are" + ruler},
		"not finalized, of version 1": {code: codes.NotFinalized, summary: "in rank 2", log: endpoint + ruler + "mpirun has exited due to process rank 2 with PID 7 on\nnode pi-worker-1 exiting without calling \"finalize\". This may" + ruler},
		"not finalized, unknown":      message(codes.NotFinalized, "without MPI_Finalize", "", "mpirun has exited due to a process exiting without calling \"finalize\","),
		"aborted":                     message(codes.ApplicationFailed, "in rank 3", "", "mpirun has exited due to process rank 3 with PID 9 on\nnode pi-worker-1 calling \"abort\". This may"),

		// Open MPI: transports.
		"unknown interface": {code: codes.NoTransport, summary: "no network interface eth7", action: "ls /sys/class/net", log: ruler + "WARNING: An invalid value was given for btl_tcp_if_include.  This\nvalue will be ignored.\n\n  Local host: pi-worker-0\n  Value:      eth7\n  Message:    Unknown interface name" +
			ruler + "At least one pair of MPI processes are unable to reach each other for\nMPI communications.\n\n  BTLs attempted: self" + ruler + internal},
		"excluded":                 {code: codes.NoTransport, summary: "the command excludes TCP", action: "OMPI_MCA_btl", log: ruler + "At least one pair of MPI processes are unable to reach each other for\nMPI communications.\n\n  BTLs attempted: self vader" + ruler + internal},
		"unreachable at MPI_Init":  {code: codes.NoTransport, log: ruler + "MPI_INIT has failed because at least one MPI process is unreachable\nfrom another.  This" + ruler + "  --> Returned \"Unreachable\" (-12) instead of \"Success\" (0)\n" + internal},
		"a missing component":      message(codes.NoTransport, "cannot use ucx", "ompi_info", "A requested component was not found, or was unable to be opened.  This\nmeans\n\nHost:      pi-worker-0\nFramework: pml\nComponent: ucx"),
		"no component":             message(codes.NoTransport, "cannot use btl", "", "No components were able to be opened in the btl framework."),
		"another component":        message(codes.ApplicationFailed, "A requested component was not found", "", "A requested component was not found, or was unable to be opened.\n\nHost:      x\nFramework: coll\nComponent: hcoll"),
		"a component not selected": line(codes.NoTransport, "cannot use ucx", "", "[pi-worker-0:00031] PML ucx cannot be selected", nil),
		"interface of daemons":     message(codes.NoTransport, "no network interface ib0", "oob_tcp_if_include eth0", "None of the TCP networks specified to be included for out-of-band communications\ncould be found:\n\n  Value given: ib0"),
		"UCX":                      line(codes.NoTransport, "UCX has no transport", "UCX_TLS=tcp,sm,self", "[1700000000.1] [pi-worker-0:7    :0] select.c:517  UCX  ERROR no active messages transport to pi-worker-1: Unsupported operation", nil),
		"locked memory":            message(codes.LockedMemoryLimit, "", "", "The OpenFabrics (openib) BTL failed to initialize while trying to\nallocate some locked memory."),
		"locked memory of UCX":     line(codes.LockedMemoryLimit, "", "", "UCX  ERROR ibv_reg_mr failed: Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)", nil),

		// Open MPI: slots, mappings and hardware.
		"ppr":                                  message(codes.LaunchRefused, "requests 8 ranks, but its mapping 1:node allows fewer", "ppr:2:node", "Your job has requested more processes than the ppr for\nthis topology can support:\n\n  App: ranks\n  Number of procs:  8\n  PPR: 1:node\n\nPlease revise the conflict and try again."),
		"cores of a rank that is not bound":    message(codes.LaunchRefused, "the binding policy is NONE", "--bind-to core", "[pi-launcher:00013] PRTE ERROR: Bad parameter in file ../../src/mca/rmaps/base/rmaps_base_map_job.c at line 775\nA binding policy was provided that is not supported in combination\nwith the \"PE=N\" option:\n\n  Policy:  NONE\n\nWhen"),
		"cores of a rank, bound otherwise":     message(codes.LaunchRefused, "the binding policy is none", "--bind-to core", "The PE=<list> mapping directive cannot be combined with a\nbinding directive other than \"core\" or \"hwt\" as it already\nmandates that we bind to the specified cpu(s). The conflicting\ndirectives that were given are:\n\n  map-by:  slot:PE=2\n  bind-to: none\n\nPlease resolve the conflict and try again."),
		"npernode":                             message(codes.LaunchRefused, "requests 9 ranks", "", "Your job has requested a conflicting number of processes for the\napplication:\n\nApp: ranks\nnumber of procs:  9"),
		"nodes":                                message(codes.NotEnoughSlots, "requested 16 ranks", "", "There are not enough nodes in your allocation to satisfy your request to launch\n16 processes on a per-node basis"),
		"slots of version 5":                   message(codes.NotEnoughSlots, "requested 16 ranks", "", "Either there are not enough slots available in the system to launch\nthe 16 processes that were requested"),
		"filled":                               message(codes.NotEnoughSlots, "requested more ranks", "", "All nodes which are allocated for this job are already filled."),
		"no sockets":                           message(codes.TooFewCores, "pi-worker-1 lacks the cores", "--bind-to none", "No objects of the specified type were found on at least one node:\n\n  Type: NUMANode\n  Node: pi-worker-1"),
		"too many cores per rank":              message(codes.TooFewCores, "lacks the cores", "--bind-to none", "Your job has requested more cpus per process(rank) than there\nare cpus in a socket:\n\n  Cpus/rank: 64"),
		"no mapping":                           message(codes.TooFewCores, "lacks the cores", "lscpu", "Your job failed to map. Either no mapper was available, or none\nof the available mappers"),
		"binding is not supported":             message(codes.TooFewCores, "pi-worker-0 lacks", "", "A request was made to bind a process, but at least one node does NOT\nsupport binding processes to cpus.\n\nNode: pi-worker-0"),
		"binding, a warning":                   {code: codes.ApplicationFailed, summary: "ValueError", log: ruler + "A request to bind the processes to a core was made, but the operation\nresulted in the processes being unbound. This is only a warning.\n\n  Local host: x" + ruler + "ValueError: no"},
		"policy":                               message(codes.LaunchRefused, "does not accept nodes", "--help", "The specified mapping policy is not recognized:\n\n  Policy: nodes\n\nPlease"),
		"directive of version 5":               message(codes.LaunchRefused, "does not accept nodes", "--help", "The specified mapping directive is not recognized:\n\n  Directive: nodes\n\nPlease"),
		"modifier":                             message(codes.LaunchRefused, "does not accept slot:PF=2", "", "The mapping request contains an unrecognized modifier:\n\n  Request: slot:PF=2"),
		"ppr without a number":                 message(codes.LaunchRefused, "does not accept node", "", "An invalid value was given for the number of processes\nper resource (ppr) to be mapped on each node:\n\n  PPR:  node"),
		"two policies":                         message(codes.LaunchRefused, "given twice", "", "Conflicting directives for mapping policy are causing the policy\nto be redefined:\n\n  New policy:   RANK_FILE"),
		"unknown option":                       line(codes.LaunchRefused, "does not accept --alow-run-as-root", "", "mpirun: Error: unknown option \"--alow-run-as-root\"\nType", nil),
		"a path of the launcher":               line(codes.LaunchRefused, "does not accept --alow", "", "/opt/openmpi/bin/mpirun: Error: unknown option \"--alow\"", nil),
		"a help file is missing":               message(codes.ApplicationFailed, "get help about: no-slots", "", "Sorry!  You were supposed to get help about:\n    no-slots\nBut I couldn't open the help file:\n    /usr/share/openmpi/help-x.txt: No such file or directory.  Sorry!"),
		"an option without a value":            line(codes.LaunchRefused, "does not accept -np", "", "mpirun: Error: option \"-np\" did not have enough parameters (1)", nil),
		"unknown option of version 5":          message(codes.LaunchRefused, "does not accept alow-run-as-root", "", "An unrecognized option was included on the mpirun command line:\n\n   Option: alow-run-as-root"),
		"an option without a value, version 5": message(codes.LaunchRefused, "does not accept --np", "", "An option was included on the mpirun command line that requires\nan argument, but no argument was given:\n\n  Option: --np"),
		"a policy without a value":             message(codes.LaunchRefused, "does not accept PE", "", "A mapping policy was given that requires a value, but the provided value is invalid:\n\n  Policy:  PE\n  Given:   PE=x"),
		"rulers with a space":                  {code: codes.LaunchRefused, summary: "names no program", log: strings.ReplaceAll(ruler, "\n-", "\n -") + "No executable was specified on the prterun command line." + strings.ReplaceAll(ruler, "\n-", "\n -")},
		"an option twice":                      message(codes.LaunchRefused, "does not accept np", "", "ERROR: The \"np\" command line option was listed more than once on the command line.\nOnly"),
		"an MCA parameter twice":               message(codes.LaunchRefused, "does not accept btl", "", "Error: an MCA parameter was listed more than once on the command line, or\nmultiple times\n\n  Param:  btl\n  Value:  tcp"),
		"negations":                            message(codes.LaunchRefused, "given twice", "", "MCA framework parameters can only take a single negation operator\n(\"^\"), and"),
		"no program":                           message(codes.LaunchRefused, "names no program", "", "No executable was specified on the mpirun command line.\n\nAborting."),
		"programs without -np":                 message(codes.LaunchRefused, "names no program", "", "mpirun found multiple applications specified on the command line, with\nat least one that failed to specify the number of processes to execute."),
		"working directory":                    message(codes.LaunchRefused, "working directory /data/run does not exist on pi-worker-1", "--wdir /tmp", "mpirun was unable to launch the specified application as it could not\nchange to the specified working directory:\n\nWorking directory: /data/run\nNode: pi-worker-1"),
		"working directory, version 5":         message(codes.LaunchRefused, "working directory /data/run does not exist on pi-worker-1", "", "prterun was unable to launch the specified application as it could not find\nthe specified working directory:\n\n   Working directory: /data/run\n   Node: pi-worker-1"),
		"a limit":                              message(codes.LaunchRefused, "pi-worker-1 cannot start its ranks: system limit exceeded on number of processes", "", "mpirun was unable to launch the specified application as it encountered an error:\n\nError: system limit exceeded on number of processes that can be started\nNode: pi-worker-1\n\nwhen"),
		"execve":                               message(codes.ProgramMissing, "/data", "", "Open MPI tried to fork a new process via the \"execve\" system call but\nfailed.  Open MPI\n\n  Local host:        pi-worker-1\n  Application name:  /data"),
		"a program that is missing":            message(codes.ProgramMissing, "Program /app/solver", "", "mpirun was unable to find the specified executable file, and therefore\ndid not launch the job.\n\nNode:       pi-worker-0\nExecutable: /app/solver"),
		"a program of version 5":               message(codes.ProgramMissing, "Program ./simulate is not in the image of worker 1, or is not executable", "", "prterun was unable to launch the specified application as it lacked\npermissions to execute an executable:\n\n   Executable: ./simulate\n   Node: pi-worker-1\n\nwhile attempting to start process rank 1."),
		"temporary files":                      message(codes.LaunchRefused, "cannot create /tmp/ompi.x", "env: TMPDIR", "A call to mkdir was unable to create the desired directory:\n\n  Directory: /tmp/ompi.x\n  Error:     Read-only file system"),
		"a long path":                          message(codes.LaunchRefused, "too long", "TMPDIR=/tmp", "The call to pmix_init_server() failed. This may be due to your\nsystem's restriction for Unix's socket's path-length."),

		// Open MPI: hosts and their files.
		"hosts":                         message(codes.LaunchRefused, "names node7 that is not in the job's hostfile", "--hostfile", "At least one of the requested hosts is not included in the current allocation.\n\nMissing requested host: node7"),
		"a place of a hostfile":         message(codes.LaunchRefused, "its hostfile or --host names a host by its place (+n0), which needs a batch system. The hosts are pi-worker-0.pi.ns.svc to pi-worker-3.pi.ns.svc.", "pi-worker-0.pi.ns.svc slots=2", relative+"hostfile entry: +n0\n\nPlease see the orte_hosts man page for further information."),
		"a place of --host":             message(codes.LaunchRefused, "names a host by its place (+n2)", "mpirun <program>", relative+"   --host: +n2\n\nRe-run this command with \"--help hosts\" for further information."),
		"a place of a rankfile":         line(codes.LaunchRefused, "its rankfile names a host by its place (+n0)", "rank 0=pi-worker-0.pi.ns.svc slot=0", ruler+relative+"hostfile entry: +n0\n"+ruler+ruler+"An internal error has occurred in ORTE:\n\n[[51856,0],0] FORCE-TERMINATE AT (null):1 - error ../../../../../orte/mca/ras/base/ras_base_allocate.c(247)\n\nThis is something that should be reported to the developers."+ruler, withRankfile),
		"a place beyond a rankfile's":   message(codes.LaunchRefused, "by its place +n4, and the job has only 4 workers: +n0 to +n3.", "--host +n0", "Rankfile claimed host +n4 by index that is bigger than number of allocated hosts."),
		"a place beyond the hosts":      message(codes.LaunchRefused, "by its place +n4, and the job has only 4 workers", "", "A relative host was specified, but was not found. The requested host\nwas specified with \"--host\" as:\n\n   Index: 5\n   Syntax given: +n4\n\nRe-run"),
		"an index beyond the hosts":     message(codes.LaunchRefused, "by its place +n9, and the job has only 4 workers", "", "A relative host was specified, but the index given is beyond the\nnumber of hosts in the current allocation:\n\n   Index: 9\n   #hosts: 4\n\nYou could"),
		"a place that is none":          message(codes.LaunchRefused, "+3 is no place of a host", "", "A relative host was improperly specified \u2014 the value provided was.\n\n   --host: +3\n\nYou may"),
		"empty hosts":                   message(codes.LaunchRefused, "empty hosts (+e), of which 2 are missing: the job has 4 workers.", "+e:1", "The requested number of empty hosts was not available - the system was\nshort by 2 hosts.  Please recheck your allocation."),
		"hosts, version 4":              message(codes.LaunchRefused, "names a host", "", "Some of the requested hosts are not included in the current allocation for the\napplication:\n  ranks"),
		"hostfile":                      message(codes.HostfileMissing, "hostfile /work/hosts: a line", "", "Open RTE detected a parse error in the hostfile:\n    /work/hosts\nIt occured on line number 1 on token 5."), //nolint:misspell // Open MPI spells it so
		"rankfile":                      message(codes.LaunchRefused, "rankfile /work/ranks", "", "Open RTE was unable to open the rankfile:\n    /work/ranks\nCheck"),
		"versions":                      message(codes.LaunchRefused, "different versions", "", "Open MPI detected a mismatch in versions between two processes.  This\n\n  Local host:             pi-launcher\n"),
		"a daemon that does not report": message(codes.DaemonsNotStarted, "", "", "A daemon failed to report back after being spawned. This could\nbe due to several factors\n\n  Local host:    pi-launcher\n  Remote host:   pi-worker-1"),
		"a daemon that died":            message(codes.DaemonsNotStarted, "", "", "An ORTE daemon has unexpectedly failed after launch and before\ncommunicating back to mpirun."),
		"no connection":                 message(codes.DaemonUnroutable, "", "", "ORTE is unable to establish a communication connection to the\nspecified daemon located on the indicated node:"),

		// MPICH and Intel MPI.
		"Hydra, unknown option":       line(codes.LaunchRefused, "does not accept alow-run", "", "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument alow-run\n[mpiexec@pi-launcher] HYDU_parse_array (lib/utils/args.c:181): argument matching returned error", mpich),
		"Hydra, binding":              line(codes.LaunchRefused, "does not accept corez", "", "[mpiexec@pi-launcher] HYDT_topo_hwloc_init (lib/tools/topo/hwloc/topo_hwloc.c:378): unrecognized directive \"corez\"", mpich),
		"Hydra, no program":           line(codes.LaunchRefused, "names no program", "", "[mpiexec@pi-launcher] main (mpiexec/mpiexec.c:61): No executable provided. Try -h for usages.", mpich),
		"Hydra, interface":            line(codes.NoTransport, "no network interface ib0", "", "[mpiexec@pi-launcher] HYDU_sock_get_iface_ip (lib/utils/sock.c:451): unable to find interface ib0", mpich),
		"Hydra, hostfile":             line(codes.HostfileMissing, "a line is not valid", "HOST:2", "[mpiexec@pi-launcher] process_mfile_token (mpiexec/utils.c:90): unexpected token slots=2", mpich),
		"Hydra, binding of version 5": line(codes.LaunchRefused, "does not accept foo", "", "[proxy:0@pi-worker-0] get_hw_obj_list (topo/hwloc/topo_hwloc.c:378): unrecognized directive \"foo\"\n[proxy:0@pi-worker-0] HYDT_dmxu_poll_wait_for_event (demux_poll.c:76): callback returned error status", mpich),
		"Hydra, form of the hostfile": line(codes.HostfileMissing, "a line is not valid", "HOST:2", "[mpiexec@pi-launcher] HYDU_process_mfile_token (lib/utils/args.c:301): token slots not supported at this time", mpich),
		"Hydra, working directory":    line(codes.LaunchRefused, "working directory /no/such does not exist on pi-worker-0", "", "[proxy:0@pi-worker-0] launch_procs (proxy/pmip_cb.c:884): unable to change wdir to /no/such (No such file or directory)\n[mpiexec@pi-launcher] control_cb (pmiserv_cb.c:280): assert (!closed) failed", mpich),
		"Intel MPI, hostfile":         line(codes.HostfileMissing, "could not open the hostfile /no/such", "", "[mpiexec@pi-launcher] HYD_hostfile_unique_parse (hostfile/hydra_hostfile.c:157): /no/such no such file, or not a regular file", intelMPI),
		"mpi4py":                      line(codes.ApplicationFailed, "Message truncated", "MPI_Probe", "Traceback (most recent call last):\n  File \"/t.py\", line 9, in <module>\nmpi4py.MPI.Exception: Message truncated, error stack:", mpich),
		"Hydra, not known":            line(codes.ApplicationFailed, "error parsing port range", "", "[mpiexec@pi-launcher] HYDU_sock_create (lib/utils/sock.c:50): error parsing port range\n[mpiexec@pi-launcher] main (mpiexec/mpiexec.c:50): process manager returned error launching processes", mpich),
		"Hydra, killed":               line(codes.Killed, "", "", "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)", mpich),
		"MPICH, abort":                line(codes.ApplicationFailed, "in rank 2", "", "application called MPI_Abort(MPI_COMM_WORLD, 3) - process 2", mpich),
		"MPICH, its stack":            line(codes.ApplicationFailed, "PMPI_Bcast: Other MPI error: Out of memory", "", "Abort(7) on node 1 (rank 1 in comm 0): Fatal error in PMPI_Bcast: Other MPI error, error stack:\nPMPI_Bcast(419)....: MPI_Bcast(buf=0x7ff) failed\nMPIR_Bcast_impl(8).: \nMPID_x(31).........: Out of memory\nstep 7", mpich),
		"MPICH, provider":             line(codes.NoTransport, "provider of libfabric", "FI_PROVIDER=tcp", "Abort(606197647): Fatal error in internal_Init: Other MPI error, error stack:\ninternal_Init(66)........: MPI_Init(argc=0x7f, argv=0x7f) failed\ncreate_vni_context(982)..: OFI endpoint open failed (ofi_init.c:982:create_vni_context:Cannot allocate memory)", mpich),
		"Intel MPI, provider":         line(codes.NoTransport, "provider of libfabric", "FI_PROVIDER=tcp", "Abort(1091215) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack:\nMPIDI_OFI_mpi_init_hook(1061): OFI addrinfo() failed (ofi_init.c:1061:MPIDI_OFI_mpi_init_hook:No data available)", intelMPI),
		"Intel MPI, fabric":           line(codes.NoTransport, "provider of libfabric", "I_MPI_FABRICS", "[0] MPI startup(): tmi fabric is not available and fallback fabric is not enabled", intelMPI),
		"Intel MPI, ssh":              line(codes.SSHFailed, "pi-worker-0", "", "[mpiexec@pi-launcher] Error: Unable to run bstrap_proxy on pi-worker-0.pi.ns.svc (pid 31, exit code 65280)", func(j *mpi.Job) { intelMPI(j); sshd(j) }),
		"Intel MPI, not known":        line(codes.ApplicationFailed, "Cannot read the topology", "", "[mpiexec@pi-launcher] Error: Cannot read the topology", intelMPI),
		"Hydra, only a proxy":         line(codes.ConnectionLost, "", "", "[mpiexec@pi-launcher-0] control_cb (pm/pmiserv/pmiserv_cb.c:206): assert (!closed) failed", mpich),

		// Horovod, Gloo and NCCL.
		"Horovod, slots":       line(codes.NotEnoughSlots, "requested 16 ranks", "", "ValueError: Requested more processes (16) than there are available slots (8)", nil),
		"Horovod, stalled":     line(codes.CollectiveTimeout, "did not submit a tensor", "Missing ranks", "Missing ranks:\n3!: [grad.0]\nOne or more rank (marked by \"!\") is stalled for longer than 60 seconds. Will shutdown.", nil),
		"Horovod, consequence": line(codes.ApplicationFailed, "in rank 2 with exit code 1: ValueError: no rows", "", "[1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was\n[1,2]<stderr>:ValueError: no rows", nil),
		"Gloo":                 line(codes.WrongInterface, "with Gloo or NCCL", "GLOO_SOCKET_IFNAME=eth0", "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error", nil),
		"Gloo, interface":      line(codes.NoTransport, "no network interface ib0", "", "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ib0", nil),
		"NCCL, interface":      line(codes.NoTransport, "no network interface of the name", "NCCL_SOCKET_IFNAME", "pi-worker-0:71:71 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found", nil),
		"NCCL, connection":     line(codes.WrongInterface, "with Gloo or NCCL", "", "pi-worker-0:71:71 [0] misc/socket.cc:49 NCCL WARN socketStartConnect: Connect to 10.0.0.7<35861> failed : Connection refused", nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes []func(*mpi.Job)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			found := failed(1, "starting\n"+test.log, changes...).findings()
			hasAction := func(r v1alpha1.Remedy) bool { return strings.Contains(r.Action, test.action) }
			if len(found) == 0 || found[0].Code != test.code || !strings.Contains(found[0].Summary, test.summary) || !slices.ContainsFunc(found[0].Remedies, hasAction) {
				t.Errorf("found %+v", found)
			}
			for _, f := range found {
				sound(t, f)
			}
			if len(found) > 1 && found[1].Code == codes.ProgramMissing {
				t.Errorf("a line of the same message is reported as %s", found[1].Code)
			}
		})
	}
}
