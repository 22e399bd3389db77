package diagnose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// unreached returns findings for workers that the launcher's agent could not reach or did not trust.
func unreached(p *input) []Finding {
	s := p.launcherSummary()
	if s == nil {
		return nil
	}
	var found []Finding
	for _, trouble := range s.Hosts {
		if trouble.Code == agentapi.ConnectionLost || p.stillWaiting(trouble, s) {
			continue
		}
		found = append(found, p.hostTrouble(trouble, s))
	}
	if len(s.Hosts) == 0 && (s.Code == agentapi.Unreachable || s.Code == agentapi.KeyRefused || s.Code == agentapi.HostKeyMismatch) {
		found = append(found, p.hostTrouble(agentapi.HostTrouble{Code: s.Code, Message: s.Message}, s))
	}
	return found
}

// stillWaiting reports whether a host was yet waited for when mpirun gave up, because of something else, or when the job's
// deadline was over.
func (p *input) stillWaiting(trouble agentapi.HostTrouble, s *agentapi.Summary) bool {
	return trouble.Code == agentapi.Unreachable && trouble.Seconds == 0 && (s.ExitCode != nil || p.deadlineExceeded())
}

func (p *input) hostTrouble(trouble agentapi.HostTrouble, s *agentapi.Summary) Finding {
	figures := map[string]string{"host": trouble.Host, "hosts": trouble.Host, "message": sentence(trouble.Message)}
	if p.known(trouble.Host) != nil {
		figures["hostPod"] = trouble.Host
	}
	if trouble.Seconds > 0 {
		figures["seconds"] = fmt.Sprintf(" after %d seconds", trouble.Seconds)
	}
	if missing := s.HostsExpected - s.HostsReached; missing > 1 && s.HostsExpected > 0 {
		figures["hosts"] = fmt.Sprintf("%d of its %d workers (such as %s)", missing, s.HostsExpected, trouble.Host)
	}
	code := string(trouble.Code)
	evidence := []string{fmt.Sprintf("Launcher's agent, %s: %s", trouble.Host, trouble.Message)}
	if pod := p.known(trouble.Host); pod != nil && podstatus.IsReady(pod.Pod) && strings.Contains(trouble.Message, "connection timed out") {
		// What runs, is ready and does not answer is not to blame: something stands between.
		code, figures["host"] = codes.ConnectionTimedOut, figures["hosts"]
		evidence = append(evidence, fmt.Sprintf("Pod %s is running and ready.", trouble.Host))
	}
	entry := codes.Lookup(code)
	if pod := p.known(trouble.Host); pod != nil && code == codes.WorkerUnreachable && !p.job.Launcher.AfterWorkers {
		if c := runningInit(*pod); c != nil {
			figures["message"] = fmt.Sprintf("its init container %s is still running.", c.Name)
			evidence = append(evidence, fmt.Sprintf("Pod %s: init container %s has been running since %s.", pod.Name, c.Name, clock(c.State.Running.StartedAt.Time)))
			// The launcher can wait: the last remedy.
			last := len(entry.Remedies) - 1
			entry.Remedies = slices.Concat(entry.Remedies[last:], entry.Remedies[:last])
		}
	}
	f := p.findAs(entry, nil, figures)
	f.Evidence = evidence
	if trouble.Host != "" {
		f.Affected, f.Pod = []string{trouble.Host}, trouble.Host
	}
	return f
}

// signFinding makes a finding of what logs show.
func (p *input) signFinding(s sign) Finding {
	figures, pods := p.place(s)
	var words []string
	if s.Code == codes.ApplicationFailed {
		words = p.words(figures)
	}
	entry := codes.Lookup(s.Code)
	if s.As != nil {
		entry = *s.As
	}
	if p.enoughSlots(s) {
		entry = codes.HostfileNotRead
	}
	if s.Code == codes.PortInUse && !p.template(pods[0].role).HostNetwork {
		entry = codes.PortInUseInPod
	}
	if s.Code == codes.ConnectionLost && p.daemonEnded() {
		entry = codes.DaemonEnded
	}
	if reason := whyNotExecuted(s); reason != "" {
		entry, figures["reason"] = codes.RankNotStarted, reason
	}
	f := p.findAs(entry, pods, p.ended(pods[0], figures))
	for _, pod := range s.pods {
		if shown := look(pod, s.Symptom); shown != nil {
			f.Evidence = append(f.Evidence, quoted(pod, shown.line))
		}
	}
	if errno := figures["errno"]; errno != "" && !strings.Contains(s.line, errno) {
		f.Evidence = append(f.Evidence, quoted(s.pods[0], "Error: "+errno))
	}
	f.Evidence = append(f.Evidence, words...)
	return f
}

// whyNotExecuted returns why the kernel did not execute a rank's program that exists, by the error that MPI printed; "" if the
// program may not exist.
func whyNotExecuted(s sign) string {
	switch errno := s.figures["errno"]; {
	case s.Code != codes.ProgramMissing:
		return ""
	case strings.Contains(errno, "Exec format error"):
		return "it is a script whose first line names no interpreter, or a program for another CPU architecture"
	case strings.Contains(errno, "ermission denied"):
		return "the file is not executable"
	case strings.Contains(errno, "No such file") && strings.Contains(s.Text, "execve"):
		// Open MPI has found the file before.
		return "the interpreter that its first line names is not in the image, or the line ends with a carriage return"
	}
	return ""
}

// daemonEnded reports whether the launcher's agent reached all hosts, lost none of them and saw no rank, and whether all
// workers run: if MPI misses a daemon, that has ended by itself.
func (p *input) daemonEnded() bool {
	s := p.launcherSummary()
	if s == nil || !p.job.UsesAgent() || s.HostsExpected == 0 || s.HostsReached == 0 || s.HostsReached < s.HostsExpected || len(s.Hosts) > 0 || s.InitSeconds > 0 {
		return false
	}
	workers := 0
	for _, pod := range p.pods {
		if pod.role != mpi.RoleWorker {
			continue
		}
		if code, _, _ := p.whyTaken(pod); code != "" || !podstatus.IsReady(pod.Pod) || pod.DeletionTimestamp != nil || podstatus.Restarts(pod.Pod) > 0 {
			return false
		}
		workers++
	}
	return workers == int(p.job.Workers.Count)
}

// place returns the pods that a sign is about, or else those whose logs contain it, and its figures with those derived
// from them.
func (p *input) place(s sign) (map[string]string, []jobPod) {
	figures := map[string]string{}
	maps.Copy(figures, s.figures)
	if (codes.Has(s.Code, codes.EndsRank) || codes.Has(s.Code, codes.FromProgram)) && figures["rank"] == "" {
		p.copyRank(figures)
	}
	pods := s.pods[:1]
	if s.Code == codes.LauncherNameUnresolved && figures["host"] == "" {
		figures["host"] = p.job.LauncherName()
	}
	if host := figures["host"]; host != "" {
		figures["host"] = short(host)
		if p.known(short(host)) != nil {
			// Only pods of the job are named in commands: logs may contain any text.
			figures["hostPod"] = short(host)
		}
	}
	if port := figures["port"]; port != "" {
		figures["portText"] = " (port " + port + ")"
	}
	if rank, err := strconv.ParseInt(figures["rank"], 10, 32); err == nil {
		figures["rankText"], figures["rankWho"] = fmt.Sprintf(" in rank %d", rank), fmt.Sprintf("Rank %d", rank)
		if host := p.hostOf(int32(rank)); host != nil {
			pods = []jobPod{*host}
			if s.Code == codes.ProgramMissing {
				figures["where"], figures["hostPod"] = lower(host.title()), host.Name
			}
		}
	}
	if host := p.known(figures["host"]); host != nil {
		pods = []jobPod{*host}
		figures["where"] = lower(host.title())
	}
	if s.Code == codes.ProgramMissing && figures["where"] == "" && figures["rank"] == "" && p.ranNoRank(s) {
		figures["where"] = "the launcher"
	}
	figures["whoLower"] = lower(subject(pods))
	p.gpuFigures(pods, figures)
	return figures, pods
}

// ranNoRank reports whether the log of a launcher shows a symptom, and its agent saw no rank: the line is not the output of one.
func (p *input) ranNoRank(s sign) bool {
	summary := s.pods[0].summary
	return s.pods[0].role == mpi.RoleLauncher && !tagged.MatchString(s.line) && !launcherWords.MatchString(s.line) && summary != nil &&
		summary.RanksSeen == 0 && summary.HostsReached == 0 && len(summary.Ranks) == 0
}

// copyRank adds the rank that ended first: the one that crashed as an agent observed it, the one in a log, or else the one that an
// agent observed.
func (p *input) copyRank(figures map[string]string) {
	if first, _ := p.firstRank(); first != nil && first.Signal != 0 && first.Signal != 9 && first.Signal != 15 {
		figures["rank"] = fmt.Sprint(first.Rank)
		return
	}
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

// symptoms returns findings for the symptoms in logs, without those that only sum up others.
func symptoms(p *input) []Finding {
	var found []Finding
	for _, s := range p.signs {
		if !s.Umbrella && !p.endedAfterwards(s) {
			found = append(found, p.signFinding(s))
		}
	}
	return found
}

// aboutPeers matches exceptions that can follow from a connection that another rank lacks.
var aboutPeers = regexp.MustCompile(`(?i)mpi|nccl|gloo|connect|socket|time[d ]*out|broken pipe|network|distributed|horovod`)

// endedAfterwards reports whether a log shows a lost connection to a rank that had ended before: it had called MPI_Abort, or an
// exception of the program's own ended it. The connection of the other rank may have been tried only then.
func (p *input) endedAfterwards(s sign) bool {
	if s.Code != codes.WrongInterface {
		return false
	}
	if first, _ := p.firstRank(); first != nil && first.Signal == 0 && first.ExitCode > 0 {
		for _, pod := range s.pods {
			if afterTraceback(pod.log.Lines, aboutPeers.MatchString) != nil {
				return true
			}
		}
	}
	for _, pod := range s.pods {
		for _, line := range pod.log.Lines {
			if line == s.line {
				break
			}
			if strings.Contains(line, "MPI_ABORT was invoked on rank") {
				return true
			}
		}
	}
	return false
}

// summings returns findings for symptoms that sum up others, and for workers that the agent lost: consequences,
// usually.
func summings(p *input) []Finding {
	var found []Finding
	if s := p.launcherSummary(); s != nil {
		for _, trouble := range s.Hosts {
			if trouble.Code == agentapi.ConnectionLost || p.stillWaiting(trouble, s) {
				found = append(found, p.hostTrouble(trouble, s))
			}
		}
	}
	var after []Finding
	for _, s := range p.signs {
		switch {
		case p.endedAfterwards(s):
			after = append(after, p.signFinding(s))
		case s.Umbrella:
			found = append(found, p.signFinding(s))
		}
	}
	return append(found, after...)
}

var agentWaits = regexp.MustCompile(`^mpi-agent: waiting for (\d+) of (\d+) hosts for (\d+) s; ([^:]+): (.+)$`)

// waitingForHosts reports that the launcher's agent still waits for workers, according to its log.
func waitingForHosts(p *input) []Finding {
	const patience = 60
	launcher := p.launcher()
	if launcher == nil || p.failed() || !podstatus.IsRunning(launcher.Pod) {
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
		f := p.find(codes.WorkerUnreachable, []jobPod{*launcher}, map[string]string{
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
