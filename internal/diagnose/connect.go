package diagnose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

var connectTexts = map[mpi.Code]text{
	mpi.CodeNameUnresolved: {
		summary: "The launcher could not look up the name of {host|a worker}: the cluster's name service (DNS) did not know it yet, or the job's Service is not as it should be.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks in place of the image's own ssh: it waits until names are there.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "See that the Service is there, has no cluster IP and publishes addresses that are not ready.", Action: "kubectl -n {namespace} get service {service} -o yaml"},
			{Text: "If it happens now and then only, start the job again."},
		},
	},
	mpi.CodeLauncherUnresolved: {
		summary: "The workers could not look up the launcher's own name, {host|its host name}: that entry of the cluster's name service (DNS) comes a little after the pod.",
		remedies: []Remedy{
			{Text: "Start the job again; a second try usually finds the name."},
			{Text: "Let the launcher's command wait until its own name is known.", Action: "until getent hosts $(hostname); do sleep 1; done"},
		},
	},
	mpi.CodeConnectionRefused: {
		summary: "The launcher reached the machine of {host|a worker}, but nothing listens there{portText}: the worker's program that takes connections had not started, or listens at another port.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks: workers then need no sshd, and the launcher waits for them.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "With sshd: give the worker a readiness probe on its port, and start the launcher when workers are ready.", Action: "spec.launcherCreationPolicy: WaitForWorkersReady"},
			{Text: "Look whether sshd runs.", Action: "kubectl -n {namespace} logs {worker}"},
		},
	},
	mpi.CodeConnectionTimeout: {
		summary: "The launcher could not reach {host|a worker}{seconds}: its packets get no answer. Something on the way drops them, mostly a NetworkPolicy or a service mesh.",
		remedies: []Remedy{
			{Text: "Allow all traffic among the job's own pods.", Action: "NetworkPolicy for both ends with podSelector {selector}"},
			{Text: "See which policies there are.", Action: "kubectl -n {namespace} get networkpolicy"},
			{Text: "Keep a service mesh off the job's pods.", Action: "labels: {sidecar.istio.io/inject: \"false\"}"},
		},
	},
	mpi.CodeUnreachable: {
		summary: "The launcher could not reach {hosts|its workers}{seconds}: {message|no answer came}",
		remedies: []Remedy{
			{Text: "Look how these workers are doing: they may not have started.", Action: "kubectl -n {namespace} get pods -l {selector} -o wide"},
			{Text: "If they run, allow all traffic among the job's own pods (NetworkPolicy, service mesh).", Action: "kubectl -n {namespace} get networkpolicy"},
			{Text: "If they only start slowly, as with a large image, let the launcher wait for them.", Action: "spec.launcherCreationPolicy: WaitForWorkersReady"},
		},
	},
	mpi.CodeKeyRefused: {
		summary: "{host|A worker} did not let the launcher in: it does not know the launcher's key, or the user differs.",
		remedies: []Remedy{
			{Text: "Both sides must have the job's keys, from Secret {secret}, and none of the image's own.", Action: "spec.sshAuthMountPath: the .ssh folder of the user that the image runs as"},
			{Text: "Or let the agent start the ranks: it needs neither sshd nor a user of a certain name.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "If the job was deleted and made anew a moment ago, start it again: pods may have had the old keys."},
		},
	},
	mpi.CodeKeyUnprotected: {
		summary: "The image's ssh refuses the job's key because others than its owner may read the file. Kubernetes mounts Secrets like that.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks: it takes the key whatever its file's mode.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "With sshd: run as a user who does not own the file and give the pods a group for it.", Action: "securityContext: {runAsUser: 1000, fsGroup: 1000}"},
		},
	},
	mpi.CodeKeyModes: {
		summary: "The worker's sshd refuses the job's key because of the owner or mode of {file|its file}. Kubernetes mounts Secrets like that.",
		remedies: []Remedy{
			{Text: "Switch that check off in the image's sshd_config.", Action: "StrictModes no"},
			{Text: "Or let the agent start the ranks: it needs no sshd.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
		},
	},
	mpi.CodeNoUser: {
		summary: "The image's ssh does not run because the pod's user, number {uid|unknown}, has no name in the image (no line in /etc/passwd). OpenShift runs pods as such users.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks: any user will do.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "Or add a line for that user when the container starts, where the image allows it.", Action: "echo \"mpi:x:$(id -u):0::/tmp:/bin/sh\" >> /etc/passwd"},
		},
	},
	mpi.CodeNoHostKeys: {
		summary: "The worker's sshd does not start: it finds no host key that it can read.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks: workers then need no sshd.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "Or make host keys when the container starts, in a folder that its user may write to, and name them in sshd_config.", Action: "ssh-keygen -q -N '' -t ecdsa -f /tmp/host_key"},
		},
	},
	mpi.CodeSSHDOverloaded: {
		summary: "A worker's sshd closed connections at once: it admits only some at the same time, and more came.",
		remedies: []Remedy{
			{Text: "Let sshd admit more at once, in the image's sshd_config.", Action: "MaxStartups 1000"},
			{Text: "Or let the agent start the ranks: it takes as many as come, and tries again.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
		},
	},
	mpi.CodeHostKeyMismatch: {
		summary: "The launcher did not trust what answered at the address of {host|a worker}: it did not prove that it is this job's worker.",
		remedies: []Remedy{
			{Text: "Let the agent start the ranks: both ends then prove themselves by the job's own key.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
			{Text: "If the agent does already: a worker of an earlier job may still have had the name. Start the job again.", Action: "kubectl -n {namespace} get pods -o wide"},
			{Text: "With sshd: take known_hosts files out of the image."},
		},
	},
	mpi.CodeShortHostNames: {
		summary: "horovodrun could not reach the workers by ssh: it tries host names that the cluster's name service (DNS) does not know, such as names without the Service's part.",
		remedies: []Remedy{
			{Text: "Name hosts as in the job's own list, in full.", Action: "horovodrun --hostfile /etc/mpi/hostfile"},
			{Text: "Or call mpirun in place of horovodrun: it reads that list by itself."},
		},
	},
	mpi.CodeSSHFailed: {
		summary: "MPI could not log in to {host|a worker}: ssh itself failed (code 255), not the program.",
		remedies: []Remedy{
			{Text: "Look for ssh's own words in the lines before: they say whether name, network or key was at fault.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "Or let the agent start the ranks in place of ssh.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
		},
	},
	mpi.CodeRemoteCommand: {
		summary: "MPI reached {host|a worker}, but its helper program could not be started there: it is in another folder, or its environment was not set up (setvars.sh).",
		remedies: []Remedy{
			{Text: "Use the same image for the launcher and the workers.", Action: "spec.mpiReplicaSpecs.{Launcher,Worker}.template.spec.containers[0].image"},
			{Text: "See that the image sets up MPI for shells that are not interactive, too.", Action: "ENV PATH, LD_LIBRARY_PATH and I_MPI_ROOT in the image"},
		},
	},
	mpi.CodeDaemonsNotStarted: {
		summary: "MPI could not start its helper on one or more workers; it does not say why. Either a worker was not reached, or the helper is not in the worker's image.",
		remedies: []Remedy{
			{Text: "Look at the first error before this message.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "Use the same image for the launcher and the workers."},
			{Text: "Let the agent start the ranks: it says of each worker what is wrong.", Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}"},
		},
	},
	mpi.CodeDaemonUnroutable: {
		summary: "MPI's helper on a worker could not call back to the launcher. Mostly a login to that worker has failed before; else the launcher's name or network address is not known there.",
		remedies: []Remedy{
			{Text: "Look at the first error before this message.", Action: "kubectl -n {namespace} logs {logPod}"},
			{Text: "If pods have more than one network, name the one to use.", Action: "mpirun --mca oob_tcp_if_include eth0"},
		},
	},
	mpi.CodeConnectionLost: {
		summary: "The launcher lost {host|a worker} while the job ran: its pod ended, or the network was cut.",
		remedies: []Remedy{
			{Text: "Look why that worker ended: its own state says more than mpirun can.", Action: "kubectl -n {namespace} describe pod {hostPod}"},
			{Text: "Let the program save checkpoints, so that a new start goes on from there."},
		},
	},
}

// unreached tells what the launcher's agent says of workers that it did not reach or did not trust.
func unreached(p *patient) []Finding {
	s := p.launcherSummary()
	if s == nil {
		return nil
	}
	var found []Finding
	for _, trouble := range s.Hosts {
		if trouble.Code == launch.ConnectionLost || stillWaiting(trouble, s) {
			continue
		}
		found = append(found, p.hostTrouble(trouble, s))
	}
	if len(s.Hosts) == 0 && (s.Code == launch.Unreachable || s.Code == launch.KeyRefused || s.Code == launch.HostKeyMismatch) {
		found = append(found, p.hostTrouble(launch.HostTrouble{Code: s.Code, Message: s.Message}, s))
	}
	return found
}

// stillWaiting tells whether a host was yet waited for when mpirun gave up, because of something else.
func stillWaiting(trouble launch.HostTrouble, s *launch.Summary) bool {
	return trouble.Code == launch.Unreachable && trouble.Seconds == 0 && s.ExitCode != nil
}

func (p *patient) hostTrouble(trouble launch.HostTrouble, s *launch.Summary) Finding {
	figures := map[string]string{"host": trouble.Host, "hosts": trouble.Host, "message": sentence(trouble.Message), "hostPod": trouble.Host}
	if trouble.Seconds > 0 {
		figures["seconds"] = fmt.Sprintf(" in %d seconds", trouble.Seconds)
	}
	if missing := s.HostsExpected - s.HostsReached; missing > 1 && s.HostsExpected > 0 {
		figures["hosts"] = fmt.Sprintf("%d of its %d workers, such as %s,", missing, s.HostsExpected, trouble.Host)
	}
	code := mpi.Code(trouble.Code)
	evidence := []string{fmt.Sprintf("The launcher's agent says of %s: %s", trouble.Host, trouble.Message)}
	if pod := p.known(trouble.Host); pod != nil && mpi.IsReady(pod.Pod) && strings.Contains(trouble.Message, "connection timed out") {
		// What runs, is ready and does not answer is not to blame: something stands between.
		code, figures["host"] = mpi.CodeConnectionTimeout, figures["hosts"]
		evidence = append(evidence, fmt.Sprintf("Pod %s runs and is ready.", trouble.Host))
	}
	f := p.find(code, p.severity(), nil, figures)
	f.Evidence = evidence
	if trouble.Host != "" {
		f.Affected, f.Pod = []string{trouble.Host}, trouble.Host
	}
	return f
}

// signFinding makes a finding of what logs show.
func (p *patient) signFinding(s sign) Finding {
	figures, pods := p.place(s)
	var words []string
	if s.Code == mpi.CodeApplicationFailed {
		words = p.words(figures)
	}
	said := textOf(s.Code)
	if p.enoughSlots(s) {
		said = hostsUnread
	}
	f := p.findAs(said, s.Code, p.severity(), pods, p.ended(pods[0], figures))
	for _, pod := range s.pods {
		if line, _, found := look(pod.log.Lines, s.Symptom); found {
			f.Evidence = append(f.Evidence, quoted(pod, line))
		}
	}
	f.Evidence = append(f.Evidence, words...)
	return f
}

// place is where a sign is about, as far as its figures tell, and otherwise whose log it stands in; and the figures,
// with what follows from them.
func (p *patient) place(s sign) (map[string]string, []jobPod) {
	figures := map[string]string{}
	maps.Copy(figures, s.figures)
	if (endsRank[s.Code] || ofProgram[s.Code]) && figures["rank"] == "" {
		p.copyRank(figures)
	}
	pods := s.pods[:1]
	if s.Code == mpi.CodeLauncherUnresolved && figures["host"] == "" {
		figures["host"] = p.job.LauncherName()
	}
	if host := figures["host"]; host != "" {
		figures["host"] = short(host)
		figures["hostPod"] = short(host)
	}
	if port := figures["port"]; port != "" {
		figures["portText"] = " (port " + port + ")"
	}
	if rank, err := strconv.ParseInt(figures["rank"], 10, 32); err == nil {
		figures["rankText"], figures["rankWho"] = fmt.Sprintf(" in rank %d", rank), fmt.Sprintf("Rank %d", rank)
		if host := p.hostOf(int32(rank)); host != nil {
			pods = []jobPod{*host}
		}
	}
	if host := p.known(figures["host"]); host != nil {
		pods = []jobPod{*host}
		figures["where"] = lower(host.title())
	}
	figures["whoLower"] = lower(subject(pods))
	p.gpuFigures(pods, figures)
	return figures, pods
}

// endsRank are the codes that tell how a rank ended. Some implementations say which one in another line.
var endsRank = map[mpi.Code]bool{
	mpi.CodeKilled: true, mpi.CodeSegfault: true, mpi.CodeBusError: true, mpi.CodeIllegalInstruction: true, mpi.CodeAborted: true,
}

// ofProgram are the codes of what a rank's program says before it ends.
var ofProgram = map[mpi.Code]bool{
	mpi.CodeLibraryMissing: true, mpi.CodeGPUOutOfMemory: true, mpi.CodeNoGPU: true, mpi.CodeTypeUnsupported: true, mpi.CodeCountOverflow: true,
}

// copyRank adds the rank that ended first: as a log says or, failing that, as an agent saw.
func (p *patient) copyRank(figures map[string]string) {
	for _, other := range p.signs {
		if rank := other.figures["rank"]; rank != "" {
			figures["rank"], figures["host"] = rank, other.figures["host"]
			return
		}
	}
	if first, _ := p.firstRank(); first != nil && first.Signal != 15 {
		figures["rank"] = fmt.Sprint(first.Rank)
	}
}

// symptoms tells what logs show, but for what only sums up.
func symptoms(p *patient) []Finding {
	var found []Finding
	for _, s := range p.signs {
		if !s.Umbrella && !p.endedAfterwards(s) {
			found = append(found, p.signFinding(s))
		}
	}
	return found
}

// endedAfterwards tells whether a log shows a rank that was killed because another had ended with a code of its own, as
// the agent saw. Intel MPI kills the others and tells of them alone.
func (p *patient) endedAfterwards(s sign) bool {
	first, _ := p.firstRank()
	return s.Code == mpi.CodeKilled && first != nil && first.Signal == 0 && first.ExitCode > 0 && s.figures["rank"] != fmt.Sprint(first.Rank)
}

// summings tells what logs sum up, and what the agent says of workers that it lost: consequences, as a rule.
func summings(p *patient) []Finding {
	var found []Finding
	if s := p.launcherSummary(); s != nil {
		for _, trouble := range s.Hosts {
			if trouble.Code == launch.ConnectionLost || stillWaiting(trouble, s) {
				found = append(found, p.hostTrouble(trouble, s))
			}
		}
	}
	for _, s := range p.signs {
		if s.Umbrella || p.endedAfterwards(s) {
			found = append(found, p.signFinding(s))
		}
	}
	return found
}

var agentWaits = regexp.MustCompile(`^mpi-agent: waiting for (\d+) of (\d+) hosts for (\d+) s; ([^:]+): (.+)$`)

// waitingForHosts tells that the launcher's agent still waits for workers, as it says in its log.
func waitingForHosts(p *patient) []Finding {
	const patience = 60
	launcher := p.launcher()
	if launcher == nil || p.failed() || !mpi.IsRunning(launcher.Pod) {
		return nil
	}
	for _, line := range slices.Backward(launcher.log.Lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		said := agentWaits.FindStringSubmatch(line)
		if said == nil {
			return nil
		}
		if seconds, err := strconv.Atoi(said[3]); err != nil || seconds < patience {
			return nil
		}
		f := p.find(mpi.CodeUnreachable, Warning, []jobPod{*launcher}, map[string]string{
			"hosts": fmt.Sprintf("%s of its %s workers yet, such as %s", said[1], said[2], said[4]), "message": sentence(said[5]),
		})
		f.Evidence = []string{quoted(*launcher, line)}
		return []Finding{f}
	}
	return nil
}

// short is a host's name without its domain; an address stays as it is.
func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	if _, err := strconv.Atoi(name); err == nil || name == "" {
		return host
	}
	return name
}
