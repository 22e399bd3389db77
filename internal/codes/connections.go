package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var connections = []Entry{
	{
		Code: NameUnresolved, Phase: v1alpha1.PhaseInitializing, Traits: FollowsPodLoss,
		Summary: "The launcher could not resolve the host name of {host|a worker}. DNS was not ready, or the job's Service is misconfigured.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks instead of the image's ssh. It waits until the names resolve."),
			{Text: "Check that the Service exists, is headless, and publishes addresses that are not ready.", Action: "kubectl -n {namespace} get service {service} -o yaml"},
			{Text: "If it happens only occasionally, start the job again."},
		},
	},
	{
		Code: LauncherNameUnresolved, Phase: v1alpha1.PhaseInitializing,
		Summary: "The workers could not resolve the launcher's host name {host}. Its DNS record appears shortly after the pod.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the job again. A second attempt usually succeeds.", Rerun: true},
			{Text: "Let the launcher's command wait until its own name resolves.", Action: "until getent hosts $(hostname); do sleep 1; done"},
		},
	},
	{
		Code: ConnectionRefused, Phase: v1alpha1.PhaseInitializing, Traits: FollowsPodLoss,
		Summary: "{host|A worker} refused the launcher's connection{portText}: nothing listens there yet, or the port is wrong.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. Workers then need no sshd, and the launcher waits for them."),
			waitForReady("With sshd: add a readiness probe for its port to the workers, and start the launcher when they are ready."),
			{Text: "Check whether sshd is running.", Action: "kubectl -n {namespace} logs {worker}"},
		},
	},
	{
		Code: ConnectionTimedOut, Phase: v1alpha1.PhaseInitializing, Traits: FollowsPodLoss,
		Summary: "The connection to {host|a worker} timed out{seconds}. A NetworkPolicy or a service mesh usually drops the packets.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Allow all traffic between the job's own pods.", Action: "NetworkPolicy for both ends with podSelector {selector}"},
			{Text: "Check the network policies.", Action: listPolicies},
			{Text: "Exclude the job's pods from the service mesh.", Action: "labels: {sidecar.istio.io/inject: \"false\"}", Rerun: true, Changes: leaveMesh},
		},
	},
	{
		Code: WorkerUnreachable, Phase: v1alpha1.PhaseInitializing, Traits: FollowsPodLoss,
		Summary: "The launcher could not reach {hosts|its workers}{seconds}: {message|no response.}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check these workers. They may not have started.", Action: "kubectl -n {namespace} get pods -l {selector} -o wide"},
			{Text: "If they are running, allow all traffic between the job's own pods (NetworkPolicy, service mesh).", Action: listPolicies},
			waitForReady("If they only start slowly, for example because of a large image, let the launcher wait for them."),
		},
	},
	{
		Code: UnknownHost, Phase: v1alpha1.PhaseInitializing,
		Summary: "The command names the host {host}: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the list of hosts from the command (--host, --hostfile, -hosts, -f, -machinefile), and a rankfile (-rf, --rankfile, --map-by rankfile). MPI then uses the job's own.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
			{Text: "If the program needs a list of hosts, use the job's hostfile.", Action: "/etc/mpi/hostfile"},
		},
	},
	{
		Code: KeyRefused, Phase: v1alpha1.PhaseInitializing,
		Summary: "{host|A worker} rejected the launcher's SSH key: the key is not authorized there, or the user differs.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Both sides must use the job's keys from Secret {secret}, not keys of the image.", Action: "spec.sshAuthMountPath: the .ssh folder of the image's user"},
			letAgentStart("Or let the agent start the ranks. It needs neither sshd nor a certain user."),
			{Text: "If the job was just deleted and recreated, start it again: pods may have used the old keys."},
		},
	},
	{
		Code: KeyUnprotected, Phase: v1alpha1.PhaseInitializing,
		Summary: "ssh rejects the job's key because other users can read the file. Kubernetes mounts Secrets with this mode.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. It accepts any file mode."),
			{Text: "With sshd: run as a user who does not own the file, and set a group.", Action: "securityContext: {runAsUser: 1000, fsGroup: 1000}"},
		},
	},
	{
		Code: KeyFileModes, Phase: v1alpha1.PhaseInitializing,
		Summary: "The worker's sshd rejects the job's key because of the owner or mode of {file|the file}. Kubernetes mounts Secrets like this.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Disable this check in the image's sshd_config.", Action: "StrictModes no"},
			letAgentStart("Or let the agent start the ranks. It needs no sshd."),
		},
	},
	{
		Code: NoUserEntry, Phase: v1alpha1.PhaseInitializing,
		Summary: "ssh cannot run as UID {uid|of the pod}, which has no entry in the image's /etc/passwd. OpenShift runs pods with such UIDs.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. It runs as any user."),
			{Text: "Or add an entry when the container starts, if the image permits it.", Action: "echo \"mpi:x:$(id -u):0::/tmp:/bin/sh\" >> /etc/passwd"},
		},
	},
	{
		Code: NoHostKeys, Phase: v1alpha1.PhaseInitializing,
		Summary: "The worker's sshd cannot start: no readable host key.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. Workers then need no sshd."),
			{Text: "Or generate host keys in a writable folder when the container starts, and name them in sshd_config.", Action: "ssh-keygen -q -N '' -t ecdsa -f /tmp/host_key"},
		},
	},
	{
		Code: SSHDOverloaded, Phase: v1alpha1.PhaseInitializing,
		Summary: "A worker's sshd dropped connections: more than MaxStartups arrived at once.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Raise the limit in the image's sshd_config.", Action: "MaxStartups 1000"},
			letAgentStart("Or let the agent start the ranks. It has no such limit, and retries."),
		},
	},
	{
		Code: HostKeyMismatch, Phase: v1alpha1.PhaseInitializing,
		Summary: "Host key verification failed for {host|a worker}: the host at its address did not prove to be this job's worker.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. Both ends then authenticate with the job's own key."),
			{Text: "If the agent is already used: a worker of an earlier job may have had this name. Start the job again.", Action: "kubectl -n {namespace} get pods -o wide"},
			{Text: "With sshd: remove known_hosts files from the image."},
		},
	},
	{
		Code: ShortHostNames, Phase: v1alpha1.PhaseInitializing,
		Summary: "horovodrun could not reach the workers by ssh: it uses host names that DNS does not resolve, such as short ones.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the full host names of the job's hostfile.", Action: "horovodrun --hostfile /etc/mpi/hostfile"},
			{Text: "Or run mpirun instead of horovodrun. It reads the hostfile by itself."},
		},
	},
	{
		Code: PortInUse, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who|A worker} cannot start: another process on its node already uses its port{portText}. With hostNetwork, workers share the node's ports.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove hostNetwork from the workers. Each pod then has its own ports.", Action: "spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: false", Rerun: true, Changes: set("spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork", "false")},
			{Text: "Or run at most one worker of all jobs with hostNetwork on each node.", Action: "{workerTemplate}.spec.affinity.podAntiAffinity"},
		},
	},
	{
		Code: SSHMissing, Phase: v1alpha1.PhaseInitializing,
		Summary: "The launcher's image contains no ssh, which MPI needs to start ranks if the job does not use the agent.",
		Remedies: []v1alpha1.Remedy{
			letAgentStart("Let the agent start the ranks. It needs no ssh in the image."),
			{Text: "Or install an ssh client in the launcher's image.", Action: "apt-get install openssh-client, or dnf install openssh-clients"},
		},
	},
	{
		Code: SSHFailed, Phase: v1alpha1.PhaseInitializing, Strength: Consequence, Traits: FollowsPodLoss,
		Summary: "MPI could not log in to {host|a worker}: ssh itself failed (exit code 255), not the program.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check ssh's own error in the lines before: it names the host name, the network or the key.", Action: launcherLog},
			letAgentStart("Or let the agent start the ranks instead of ssh."),
		},
	},
	{
		Code: RemoteCommandFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "MPI's helper could not be started on {host|a worker}: it is in another folder, or its environment (setvars.sh) is not set.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
			{Text: "Set up MPI for non-interactive shells, too.", Action: "ENV PATH, LD_LIBRARY_PATH and I_MPI_ROOT in the image"},
		},
	},
	{
		Code: DaemonsNotStarted, Phase: v1alpha1.PhaseInitializing, Strength: Consequence, Traits: FollowsPodLoss,
		Summary: "MPI's helper did not start on one or more workers: a worker was not reached, or its image lacks the helper.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the first error before this message.", Action: launcherLog},
			{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
			letAgentStart("Let the agent start the ranks. It reports the problem of each worker."),
		},
	},
	{
		Code: DaemonUnroutable, Phase: v1alpha1.PhaseInitializing, Strength: Consequence, Traits: FollowsPodLoss,
		Summary: "MPI's helper on a worker could not connect back to the launcher, usually because a login failed before.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the first error before this message.", Action: launcherLog},
			{Text: "If pods have more than one network, select one.", Action: "mpirun --mca oob_tcp_if_include eth0"},
		},
	},
	{
		Code: ConnectionLost, Phase: v1alpha1.PhaseRunning, Strength: Consequence, Traits: FollowsPodLoss,
		Summary: "The launcher lost the connection to {host|a worker} while the job was running: the pod ended, or the network failed.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Find out why this worker ended. Its own state explains more than mpirun's output.", Action: "kubectl -n {namespace} describe pod {hostPod}"},
			{Text: "Save checkpoints, so that the next run resumes from there."},
		},
	},
}

// PortInUseInPod is the definition of PortInUse for a pod with a network of its own.
var PortInUseInPod = Entry{
	Code: PortInUse, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who|A worker} cannot start: another process in its pod already uses its port{portText}. The containers of a pod share its ports.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Let the other container, such as a sidecar, listen on another port.", Action: "{field}.spec.containers"},
		{Text: "If the container's own command starts a server on this port, remove it: the agent or sshd of the job listens there."},
	},
}

// DaemonEnded is the definition of DaemonsNotStarted for a daemon that ended although its worker and its connection are there.
var DaemonEnded = Entry{
	Code: DaemonsNotStarted, Phase: v1alpha1.PhaseInitializing, Strength: Consequence,
	Summary: "MPI's helper on {host|a worker} ended before it started a rank, although the worker runs and its connection was not lost.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check how the command maps and binds ranks: PE in --map-by and --bind-to may ask for more cores than a node has.", Action: "mpirun --bind-to none"},
		{Text: "Let mpirun print what its helpers do.", Action: "mpirun --debug-daemons"},
	},
}

// CoresPerRank is the first remedy of DaemonEnded for a mapping that asks for several cores for each rank. It may use setting, what asks for them,
// and perRank.
var CoresPerRank = []v1alpha1.Remedy{
	{Text: "Check the cores of the workers' nodes: {setting} asks for {perRank} for each rank. If a node has fewer, remove this setting or ask for fewer cores. Without it, ranks are not bound.", Action: "mpirun --map-by slot <program>"},
}

// NoServerInFirstContainer is NoServerOnWorkers for workers with several containers. It may use container, the first one, and others.
var NoServerInFirstContainer = Entry{
	Code: SSHMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "Ranks run in the first container of a worker, here {container}. It runs {setting} in place of the agent, and is no SSH server, so that mpirun cannot start ranks there.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Put the container of the program, without a command, first in the list ({others}). The agent then runs there.", Action: "{workerTemplate}.spec.containers"},
		{Text: "If {container} is the container of the program, remove its command.", Action: "{workerTemplate}.spec.containers[0].command"},
	},
}

// NoServerOnWorkers is the definition of codes about connections to workers whose command is no SSH server.
var NoServerOnWorkers = Entry{
	Code: SSHMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "The workers run {setting}, the command of their pod template, in place of the agent. It is no SSH server, so that mpirun cannot start ranks there.",
	Remedies: []v1alpha1.Remedy{
		letAgentStart("Remove the command of the workers. The agent then runs there, and keeps the pods running until the job ends."),
		{Text: "Or let it start an SSH server that stays in the foreground, and use an image with OpenSSH in launcher and workers.", Action: "command: [/usr/sbin/sshd, -De]"},
	},
}

// OwnDNSPolicy are the first remedies for names that are not found because the pods do not ask the cluster's name servers. They use dnsPolicy, its
// value.
var OwnDNSPolicy = []v1alpha1.Remedy{
	{
		Text:   "Remove dnsPolicy: {dnsPolicy} from the pod templates: with it, the pods do not ask the name servers of the cluster, which know the names of the job's pods.",
		Action: "{launcherTemplate}.spec.dnsPolicy",
		Rerun:  true, Changes: set("{launcherTemplate}.spec.dnsPolicy", "null", "{workerTemplate}.spec.dnsPolicy", "null"),
	},
	{Text: "Or set the name servers of the cluster, and the search domains of the namespace.", Action: "{launcherTemplate}.spec.dnsConfig"},
}
