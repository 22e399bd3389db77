package diagnose

import (
	"fmt"
	"regexp"
	"strconv"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

var networkTexts = map[mpi.Code]text{
	mpi.CodeNotEnoughSlots: {
		summary: "mpirun was asked for {slots|more} ranks (processes of the program) and the job has {ranks} slots for them: {workers} workers with {perWorker} each.",
		remedies: []Remedy{
			{Text: "Ask mpirun for {ranks} ranks, or leave -np out: it then fills every slot.", Action: "mpirun -np {ranks}"},
			{Text: "Or give the job more slots: more workers, or more slots in each of them.", Action: "{slotsField}"},
			{Text: "If the numbers fit, MPI did not read the job's list of hosts: take --host and --hostfile out of the command."},
		},
	},
	mpi.CodeTooFewCores: {
		summary: "mpirun wanted to give each of {slots|its} ranks (processes of the program) a processor core of its own, and there are fewer cores where they were to run.",
		remedies: []Remedy{
			{Text: "Let ranks share cores: in a container, the limit of CPUs divides them anyway.", Action: "mpirun --bind-to none"},
			{Text: "Or have no more slots in each worker than machines have cores.", Action: "{slotsField}"},
		},
	},
	mpi.CodeHostfileIgnored: {
		summary: "All ranks ran beside the launcher and none on the job's {workers} workers: MPI found {found} of {expected} slots. The result would look right and be computed on one machine.",
		remedies: []Remedy{
			{Text: "Take --host, --hostfile and settings of one's own for hosts out of the command and the image.", Action: "mpirun <program>"},
			{Text: "Name the MPI that is really in the image.", Action: "spec.mpiImplementation: OpenMPI, Intel or MPICH"},
			{Text: "If the command calls another host list by design, use the job's.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
		},
	},
	mpi.CodeMixedMPI: {
		summary: "Every process took itself for the only one (rank 0 of 1): the program was built with another MPI than the mpirun that started it, so that the same work was done {times} times over.",
		remedies: []Remedy{
			{Text: "See which MPI the program uses, and which mpirun is called.", Action: "ldd <program> | grep mpi; mpirun --version"},
			{Text: "Build the program, or mpi4py, against the MPI of the image.", Action: "pip install --no-binary=mpi4py --force-reinstall mpi4py"},
		},
	},
	mpi.CodeWrongInterface: {
		summary: "Ranks could not connect to each other{hostText}: MPI chose a network that does not lead from pod to pod, or a policy drops the connections.",
		remedies: []Remedy{
			{Text: "Name the pods' network.", Action: "mpirun --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"},
			{Text: "Allow all traffic among the job's own pods, on every port.", Action: "kubectl -n {namespace} get networkpolicy"},
		},
	},
	mpi.CodeCountOverflow: {
		summary: "The program handed MPI more than 2,147,483,647 elements at once, and MPI counts no further.",
		remedies: []Remedy{
			{Text: "Exchange in smaller pieces: a smaller bucket or fusion size.", Action: "HOROVOD_FUSION_THRESHOLD, or DeepSpeed's reduce_bucket_size"},
			{Text: "Or split the array in the program."},
		},
	},
	mpi.CodeTypeUnsupported: {
		summary: "The program exchanged numbers of a type that PyTorch's MPI back end does not know, mostly 16-bit ones (fp16, bf16).",
		remedies: []Remedy{
			{Text: "On GPUs exchange over NCCL, and let MPI only start the ranks.", Action: "torch.distributed.init_process_group(backend=\"nccl\")"},
			{Text: "Or turn tensors into float32 before they are exchanged."},
		},
	},
	mpi.CodeMemlock: {
		summary: "The fast network (RDMA) needs more locked memory than the pods may have; MPI fails, or falls back to something slow.",
		remedies: []Remedy{
			{Text: "Ask whoever runs the cluster to raise the machines' limit for containers.", Action: "LimitMEMLOCK=infinity for the container runtime"},
			{Text: "Or allow it to the pods, if you may; it helps programs that run as root alone.", Action: "securityContext: {capabilities: {add: [IPC_LOCK]}}"},
		},
	},
	mpi.CodeNCCLTimeout: {
		summary: "{rankWho|A rank} waited for the others in a collective operation until its time was over: at least one rank had hung, ended, or taken another path through the program.",
		remedies: []Remedy{
			{Text: "Find the rank that is not among those that complain: it is the one that hangs or has ended.", Action: "kubectl -n {namespace} logs {logPod} | grep -o 'Rank [0-9]*' | sort | uniq -c"},
			{Text: "Look for conditions in the program by which only some ranks take part in an exchange (saving, evaluating, uneven data)."},
			{Text: "If a long step is normal, allow more time.", Action: "init_process_group(timeout=timedelta(minutes=60))"},
		},
	},
	mpi.CodeNCCLSystem: {
		summary: "NCCL, which moves data among GPUs, met an error of the system: mostly a wrong network interface, or too little shared memory.",
		remedies: []Remedy{
			{Text: "Let it say more, and look at the first warning.", Action: "env: NCCL_DEBUG=INFO"},
			{Text: "Name the pods' network.", Action: "env: NCCL_SOCKET_IFNAME=eth0"},
			{Text: "Give the pods more shared memory.", Action: "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}], mounted at /dev/shm"},
		},
	},
	mpi.CodeRootRefused: {
		summary: "mpirun does not run as root unless it is told that this is meant.",
		remedies: []Remedy{
			{Text: "Run the pods as a user.", Action: "securityContext: {runAsUser: 1000}"},
			{Text: "Or tell mpirun that root is meant; in a container that is no risk of its own.", Action: "env: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
		},
	},
}

// hostsUnread is what "not enough slots" means where the job has enough of them.
var hostsUnread = text{
	summary: "MPI did not read the job's list of hosts, or the command chooses among them: it found no room for {slots} ranks (processes of the program), and the job has {ranks} slots: {workers} workers with {perWorker} each.",
	remedies: []Remedy{
		{Text: "Take --host, --hostfile, --map-by and settings of one's own for hosts out of the command and the image.", Action: "mpirun -np {slots} <program>"},
		{Text: "If the command is to name a list of hosts, let it name the job's.", Action: "mpirun --hostfile /etc/mpi/hostfile"},
		{Text: "Look whether something else sets the variables by which Open MPI 4 and 5 find the list.", Action: "env: OMPI_MCA_orte_default_hostfile, PRTE_MCA_prte_default_hostfile"},
	},
}

// enoughSlots tells whether a job has the slots that MPI says it has not.
func (p *patient) enoughSlots(s sign) bool {
	asked, err := strconv.ParseInt(s.figures["slots"], 10, 64)
	return s.Code == mpi.CodeNotEnoughSlots && err == nil && asked <= p.job.Ranks()
}

// hostfileIgnored tells that no rank ran on a worker.
func hostfileIgnored(p *patient) []Finding {
	s := p.launcherSummary()
	if s == nil || s.Code != launch.HostfileIgnored {
		return nil
	}
	launcher := p.failedLauncher()
	if launcher == nil {
		launcher = p.launcher()
	}
	f := p.find(mpi.CodeHostfileIgnored, Error, []jobPod{*launcher}, map[string]string{
		"found": strconv.Itoa(int(s.SlotsFound)), "expected": strconv.Itoa(int(s.SlotsExpected)),
	})
	f.Evidence = []string{fmt.Sprintf("The launcher's agent says: %d of %d workers were used, %d of %d slots; %d ranks ran in the launcher's own pod.",
		s.HostsReached, s.HostsExpected, s.SlotsFound, s.SlotsExpected, s.RanksSeen)}
	f.ExitCode = s.ExitCode
	return []Finding{f}
}

var onlyRank = regexp.MustCompile(`(?i)\brank:? 0 (?:of|out of|/) 1\b|\brank 0, size 1\b|\brank=0,? (?:world_)?size=1\b`)

// mixedMPI tells that processes which mpirun started together took themselves for alone. This looks like success.
func mixedMPI(p *patient) []Finding {
	if p.job.Ranks() < 2 || p.outcome.Finish == nil {
		return nil
	}
	for _, pod := range p.pods {
		if pod.role != mpi.RoleLauncher {
			continue
		}
		var lines []string
		for _, line := range pod.log.Lines {
			if onlyRank.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) < 2 {
			continue
		}
		f := p.find(mpi.CodeMixedMPI, Warning, p.pods[:1], map[string]string{"times": strconv.Itoa(len(lines))})
		f.Evidence = []string{quoted(pod, lines[0]), fmt.Sprintf("There are %d lines like this one.", len(lines))}
		f.Pod, f.Affected = pod.Name, []string{pod.Name}
		return []Finding{f}
	}
	return nil
}
