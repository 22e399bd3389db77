package diagnose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

var agentWaits = regexp.MustCompile(`^mpi-agent: waiting for (\d+) of (\d+) hosts for (\d+) s; ([^:]+): (.+)$`)

// batchLauncher reports a launcher whose setting has MPI start its processes by a batch system.
func batchLauncher(p *input) []Finding {
	launcher, main := p.FailedLauncher(), p.Template(mpi.RoleLauncher).Containers
	if launcher == nil || len(main) == 0 {
		return nil
	}
	setting, system := mpi.BatchLauncher(slices.Concat(main[0].Command, main[0].Args), main[0].Env)
	if system == "" || !p.mayHaveStartedMPI(main[0]) {
		return nil
	}
	figures := map[string]string{"option": system, "setting": setting}
	if !strings.HasPrefix(setting, "-") {
		figures["at"] = "env"
	}
	return []Finding{p.findAs(codes.BatchLauncher, []facts.Pod{*launcher}, figures,
		fmt.Sprintf("Pod %s: container ended with exit code %d (%s).", launcher.Name, launcher.End().ExitCode, endReason(launcher.End())))}
}

// mayHaveStartedMPI reports whether the launcher's command called MPI's launcher, and no rank of it was seen: the command is MPI's launcher
// itself, or the launcher's agent saw one.
func (p *input) mayHaveStartedMPI(main corev1.Container) bool {
	s := p.LauncherSummary()
	if s != nil && s.RanksSeen > 0 {
		return false
	}
	words := slices.Concat(main.Command, main.Args)
	return len(words) > 0 && slices.Contains(mpi.Launchers, path.Base(words[0])) || s != nil && (s.Launches > 0 || len(s.MPIVersions) > 0)
}

// callsTimeout matches a command that gives its program a time by timeout(1).
var callsTimeout = regexp.MustCompile(`(?:^|[\s;&|/])timeout\s+(?:-\S+\s+)*[\d.]+[smhd]?\s`)

// endedByTimeout reports whether the program timeout in the launcher's command ended it.
func (p *input) endedByTimeout() bool {
	launcher := p.FailedLauncher()
	return launcher != nil && launcher.End().ExitCode == timeIsOver && callsTimeout.MatchString(p.LauncherCommand())
}

// timeIsOver is the exit code of timeout(1) if it has ended its program.
const timeIsOver = 124

// unreached returns findings for workers that the launcher's agent could not reach or did not trust.
func unreached(p *input) []Finding {
	s := p.LauncherSummary()
	if s == nil {
		return nil
	}
	if p.endedByTimeout() {
		// The launcher had no time to wait for them.
		return nil
	}
	batch := len(batchLauncher(p)) > 0
	var found, foreign []Finding
	for _, trouble := range s.Hosts {
		if trouble.Code == agentapi.ConnectionLost || p.stillWaiting(trouble, s) {
			continue
		}
		if trouble.Code == agentapi.UnknownHost && batch {
			// It is an argument of the batch system's own launcher, which the agent got in place of a host.
			continue
		}
		if p.namesForeignHost(trouble.Host) {
			// A job may get hosts with higher numbers, for which the agent waits.
			trouble.Code, trouble.Message = agentapi.UnknownHost, p.foreignHostText(trouble.Host)
			foreign = append(foreign, p.hostTrouble(trouble, s))
			continue
		}
		found = append(found, p.hostTrouble(trouble, s))
	}
	if len(foreign) > 0 {
		// MPI gives up because of them, whatever it still waits for.
		return foreign
	}
	if len(s.Hosts) == 0 && (s.Code == agentapi.Unreachable || s.Code == agentapi.KeyRefused || s.Code == agentapi.HostKeyMismatch) {
		found = append(found, p.hostTrouble(agentapi.HostTrouble{Code: s.Code, Message: s.Message}, s))
	}
	return found
}

// namesForeignHost reports whether the launcher's command names a host that is none of the job's.
func (p *input) namesForeignHost(host string) bool {
	return host != "" && !p.Job.IsHost(host) && slices.Contains(wordsOfHosts.Split(p.LauncherCommand(), -1), host)
}

// foreignHostText describes a host that is none of the job's.
func (p *input) foreignHostText(host string) string {
	text := "it is none of the job's hosts, which are " + p.Job.HostRange()
	if strings.HasPrefix(host, strings.TrimSuffix(p.Job.WorkerName(0), "0")) {
		text += "; workers are numbered from 0"
	}
	return text
}

// wordsOfHosts separates the hosts of a list, and their slots, from each other and from the options before them.
var wordsOfHosts = regexp.MustCompile(`[\s,:="']+`)

// stillWaiting reports whether a host was yet waited for when mpirun gave up, because of something else, or when the job's
// deadline was over.
func (p *input) stillWaiting(trouble agentapi.HostTrouble, s *agentapi.Summary) bool {
	return trouble.Code == agentapi.Unreachable && trouble.Seconds == 0 && (s.ExitCode != nil || p.deadlineExceeded())
}

// deadlineExceeded reports whether the job failed because of its deadline.
func (p *input) deadlineExceeded() bool {
	if !p.Failed() {
		return false
	}
	// Kubeflow Trainer states the reason in the TrainJob, and deletes the launcher's Job. This may fail before because its pod ends.
	failed := p.FailedCondition()
	return failed != nil && failed.Reason == batchv1.JobReasonDeadlineExceeded || p.Outcome.Finish.Reason == codes.DeadlineExceeded
}

func (p *input) hostTrouble(trouble agentapi.HostTrouble, s *agentapi.Summary) Finding {
	figures := map[string]string{"host": trouble.Host, "hosts": trouble.Host, "message": facts.Sentence(trouble.Message)}
	at := p.OfHost(trouble.Host)
	if at != nil {
		figures["hostPod"] = at.Name
	}
	if trouble.Seconds > 0 {
		figures["seconds"] = fmt.Sprintf(" after %d seconds", trouble.Seconds)
	}
	if missing := s.HostsExpected - s.HostsReached; missing > 1 && s.HostsExpected > 0 {
		figures["hosts"] = fmt.Sprintf("%d of its %d workers (such as %s)", missing, s.HostsExpected, trouble.Host)
	}
	code := string(trouble.Code)
	evidence := []string{fmt.Sprintf("Launcher's agent, %s: %s", trouble.Host, trouble.Message)}
	if at != nil && podstatus.IsReady(at.Pod) && strings.Contains(trouble.Message, "connection timed out") {
		// What runs, is ready and does not answer is not to blame: something stands between.
		code, figures["host"] = codes.ConnectionTimedOut, figures["hosts"]
		evidence = append(evidence, fmt.Sprintf("Pod %s is running and ready.", at.Name))
	}
	entry := p.withOwnDNS(codes.Lookup(code), trouble.Message, figures)
	if at != nil && code == codes.WorkerUnreachable && !p.Job.Launcher.AfterWorkers {
		if name, started := facts.InitAt(*at, p.LauncherEnd()); name != "" {
			evidence = append(evidence, p.initStillRan(*at, name, started, figures)...)
			// The launcher can wait: the last remedy.
			entry.Remedies = slices.Concat(codes.InitAwaited, entry.Remedies[len(entry.Remedies)-1:])
		}
	}
	f := p.findAs(entry, nil, figures, evidence...)
	switch {
	case code == codes.UnknownHost:
		f.Affected, f.Pod = []string{p.Launcher().Name}, p.Launcher().Name
	case at != nil:
		f.Affected, f.Pod = []string{at.Name}, at.Name
	case trouble.Host != "":
		f.Affected, f.Pod = []string{trouble.Host}, trouble.Host
	}
	return f
}

// unresolved matches what the agent and OpenSSH report of a name that was not found.
var unresolved = regexp.MustCompile(`name cannot be (?:looked up|resolved)|Could not resolve hostname|Name or service not known|unable to get host address`)

// withOwnDNS returns a definition with the remedies for a name that is not found because the job's pods do not ask the cluster's name servers, and
// adds figures for them; the definition as it is if that is not the cause. An empty message may be of such a name, or not.
func (p *input) withOwnDNS(entry codes.Entry, message string, figures map[string]string) codes.Entry {
	asks := p.Job.Launcher.Template.Spec
	if entry.Code == codes.LauncherNameUnresolved {
		asks = p.Job.Workers.Template.Spec
	}
	policy := asks.DNSPolicy
	if entry.Code == codes.UnknownHost || mpi.AsksClusterDNS(asks) || asks.HostNetwork || policy != corev1.DNSDefault && policy != corev1.DNSNone || message != "" && !unresolved.MatchString(message) {
		return entry
	}
	figures["dnsPolicy"] = string(policy)
	entry.Remedies = slices.Clone(codes.OwnDNSPolicy)
	return entry
}

// initStillRan returns the evidence of an init container of a worker that ran when the launcher ended, and adds figures for it.
func (p *input) initStillRan(at facts.Pod, name string, started time.Time, figures map[string]string) []string {
	figures["container"] = name
	figures["message"] = fmt.Sprintf("its init container %s was still running.", name)
	if end := p.LauncherEnd(); end.After(started) {
		figures["message"] = fmt.Sprintf("its init container %s was still running, after %d seconds.", name, int(end.Sub(started).Seconds()))
	}
	evidence := []string{fmt.Sprintf("Pod %s: init container %s was running since %s.", at.Name, name, facts.TimeText(started))}
	if last := facts.LastLines(at); len(last) > 0 {
		_, text, _ := strings.Cut(last[len(last)-1], ": ")
		figures["message"] += " It last printed: " + quotedText(text) + "."
		evidence = append(evidence, last[len(last)-1])
	}
	return evidence
}

// waitingForHosts reports that the launcher's agent still waits for workers, according to its log. Workers whose init containers run have
// not begun to listen: slowStart reports them. Nor are workers reported here that have no address because they have no node: unplaced does.
func waitingForHosts(p *input) []Finding {
	const patience = 60
	launcher := p.Launcher()
	if launcher == nil || p.Failed() || !podstatus.IsRunning(launcher.Pod) || slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool { return podstatus.RunningInit(pod.Pod) != nil }) {
		return nil
	}
	isUnplaced := slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool { return pod.DeletionTimestamp == nil && facts.Unschedulable(pod) != "" })
	for _, line := range slices.Backward(launcher.Log.Lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		said := agentWaits.FindStringSubmatch(line)
		if said == nil || isUnplaced && strings.Contains(said[5], agentapi.NoAddress) {
			return nil
		}
		if seconds, err := strconv.Atoi(said[3]); err != nil || seconds < patience {
			return nil
		}
		if hosts := strings.Split(said[4], ", "); slices.ContainsFunc(hosts, p.namesForeignHost) {
			host := hosts[slices.IndexFunc(hosts, p.namesForeignHost)]
			figures := map[string]string{"host": host, "message": facts.Sentence(p.foreignHostText(host))}
			return []Finding{p.find(codes.UnknownHost, []facts.Pod{*launcher}, figures, facts.LogLine(*launcher, line))}
		}
		figures := map[string]string{"hosts": fmt.Sprintf("%s of its %s workers yet, such as %s", said[1], said[2], said[4]), "message": facts.Sentence(said[5])}
		f := p.findAs(p.withOwnDNS(codes.Lookup(codes.WorkerUnreachable), said[5], figures), []facts.Pod{*launcher}, figures)
		f.Evidence = []string{facts.LogLine(*launcher, line)}
		return []Finding{f}
	}
	return nil
}
