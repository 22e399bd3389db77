package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// input is a job with all that is known of it.
type input struct {
	job      mpi.Job
	seen     jobstate.Observed
	evidence jobstate.Evidence
	outcome  jobstate.Outcome
	// pods are the launcher's tries, the latest first, then the workers by index.
	pods []jobPod
	// signs are what the logs show, in the order in which causes outrank each other.
	signs []sign
}

// jobPod is a pod of the job.
type jobPod struct {
	*corev1.Pod
	role  mpi.Role
	index int
	// main is the name of the container that runs MPI, as the pod template has it; "" if the template is unknown.
	main string
	// latest is set for workers, and for the launcher's last try.
	latest bool
	// stopped is set for a launcher that its batch Job stops: how its present run ends does not count.
	stopped bool
	// deleted is set for a launcher that something else deleted while it ran: how it ends does not count.
	deleted bool
	// summary is what the pod's agent has left; nil where there is none.
	summary *agentapi.Summary
	log     jobstate.Log
	// messages are the messages of Open MPI in the log.
	messages []message
}

// sign is a symptom that a log shows.
type sign struct {
	implementation.Symptom
	pods []jobPod
	// line is the line that shows it, or the first paragraph of a message of which whole is all of it.
	line, whole string
	figures     map[string]string
}

func newInput(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome) *input {
	p := &input{job: job, seen: seen, evidence: evidence, outcome: outcome}
	tries := seen.LauncherPods
	if len(tries) == 0 && p.failed() {
		tries = evidence.Gone
	}
	for i, try := range slices.Backward(tries) {
		p.pods = append(p.pods, p.pod(try, mpi.RoleLauncher, i, i == len(tries)-1))
	}
	if launcher := p.launcher(); launcher != nil && launcher.DeletionTimestamp != nil && p.stoppedByJob() {
		launcher.stopped = true
		launcher.summary = launcher.lastSummary()
	}
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) {
			p.pods = append(p.pods, p.pod(worker.Pod, mpi.RoleWorker, worker.Index, true))
		}
	}
	p.ignoreDeleted()
	p.forgetEarlierTries()
	p.signs = p.readLogs()
	return p
}

// forgetEarlierTries leaves out the launcher's earlier tries once its latest one has failed by itself: what ended an earlier try,
// even if it explains more, did not end this one.
func (p *input) forgetEarlierTries() {
	launcher := p.launcher()
	if launcher == nil || launcher.end() == nil || launcher.deleted || launcher.stopped {
		return
	}
	p.pods = slices.DeleteFunc(p.pods, func(pod jobPod) bool { return !pod.latest })
}

func (p *input) pod(object *corev1.Pod, role mpi.Role, index int, latest bool) jobPod {
	found := jobPod{Pod: object, role: role, index: index, latest: latest, log: p.evidence.Logs[object.Name]}
	found.messages = messagesIn(found.log.Lines)
	if containers := p.template(role).Containers; len(containers) > 0 {
		found.main = containers[0].Name
	}
	if summary, is := mpi.AgentSummary(object); is {
		found.summary = &summary
	}
	return found
}

// readLogs looks for symptoms in logs of pods in trouble: in a healthy program's output the same words mean nothing.
func (p *input) readLogs() []sign {
	var troubled []jobPod
	for _, pod := range p.pods {
		if len(pod.log.Lines) > 0 && (p.failed() || pod.end() != nil || p.quietSince(pod)) {
			troubled = append(troubled, pod)
		}
	}
	var signs []sign
	for _, symptom := range implementation.For(p.job.Implementation).Symptoms() {
		found := findSign(symptom, troubled)
		if code := crashPassedOn(found); code != "" {
			found.Code, found.Umbrella = code, false
		}
		if found.line != "" && (p.mpiCrashed(found) || p.killedAfterwards(found)) {
			p.leaveOut(symptom)
			continue
		}
		// A line shows one problem: the first symptom that matches it is the most specific.
		if found.line != "" && !slices.ContainsFunc(signs, func(s sign) bool { return s.explains(found) }) {
			signs = append(signs, found)
		}
	}
	return signs
}

// leaveOut removes the lines of a symptom from the logs: they are about a consequence, and no evidence of the cause.
func (p *input) leaveOut(symptom implementation.Symptom) {
	for i := range p.pods {
		log := &p.pods[i].log
		log.Lines = slices.DeleteFunc(slices.Clone(log.Lines), func(line string) bool {
			_, is := symptom.Match(line)
			return is
		})
	}
}

// killedAfterwards reports whether a rank was killed because another one had exited with an error before, as the agent observed:
// Intel MPI kills the others and only prints these.
func (p *input) killedAfterwards(s sign) bool {
	first, _ := p.firstRank()
	return s.Code == codes.Killed && first != nil && first.Signal == 0 && first.ExitCode > 0 && s.figures["rank"] != fmt.Sprint(first.Rank)
}

// mpiCrashed reports whether a segmentation fault was one of MPI while it ended the other ranks, after the first rank had
// ended with an exit code of its own: of mpirun, on whose host no ranks run (Open MPI), of the daemon of a host, which
// mpiexec then misses, or of another rank, whose peer is gone (MPICH).
func (p *input) mpiCrashed(s sign) bool {
	first, _ := p.firstRank()
	if s.Code != codes.SegmentationFault || first == nil || first.Signal != 0 || first.ExitCode <= 0 || codeOfCrash(first.ExitCode) != "" {
		return false
	}
	if !p.job.Launcher.RunsRanks && strings.HasPrefix(s.line, "["+p.job.LauncherName()+":") {
		return true
	}
	// An exception, which has code 1, and MPI's own codes can follow from the crash of a peer.
	if first.ExitCode > 1 && !first.LostPeer() {
		if rank := s.figures["rank"]; rank != "" && rank != fmt.Sprint(first.Rank) || rank == "" && p.crashedLater(*first) {
			return true
		}
	}
	return slices.ContainsFunc(s.pods, func(pod jobPod) bool {
		return slices.ContainsFunc(pod.log.Lines, func(line string) bool {
			return strings.HasPrefix(line, "[mpiexec@") && strings.HasSuffix(line, "assert (!closed) failed")
		})
	})
}

// crashedLater reports whether an agent saw another rank crash when a rank had ended.
func (p *input) crashedLater(first agentapi.RankEnd) bool {
	return slices.ContainsFunc(p.pods, func(pod jobPod) bool {
		return pod.summary != nil && slices.ContainsFunc(pod.summary.Ranks, func(end agentapi.RankEnd) bool {
			return end.Rank != first.Rank && (end.Signal == 11 || end.ExitCode == 128+11)
		})
	})
}

// findSign looks for a symptom in the logs of pods; the sign has no line if none shows it.
func findSign(symptom implementation.Symptom, pods []jobPod) sign {
	found := sign{Symptom: symptom}
	for _, pod := range pods {
		if pod.deleted && codes.Has(symptom.Code, codes.EndsRank) {
			// mpirun may crash while it cleans up, and reports ranks that it killed.
			continue
		}
		shown := look(pod, symptom)
		if shown == nil {
			continue
		}
		if found.line == "" {
			found.line, found.whole, found.figures = shown.line, shown.whole, shown.figures
		}
		found.pods = append(found.pods, pod)
	}
	return found
}

// explains reports whether a later sign is the same line with another code, or a part of the same message.
func (s sign) explains(later sign) bool {
	if s.whole == "" {
		return s.line == later.line && s.Code != later.Code
	}
	return strings.Contains(s.whole, cmp.Or(later.whole, oneLine(later.line)))
}

// look returns where the log of a pod shows a symptom first, with its figures; nil if it does not.
func look(pod jobPod, symptom implementation.Symptom) *sign {
	const following, preceding = 12, 4
	if symptom.Whole {
		return lookAtMessages(pod, symptom)
	}
	for i, line := range pod.log.Lines {
		figures, found := matchTagged(symptom, line)
		if !found {
			continue
		}
		for _, before := range slices.Backward(pod.log.Lines[max(0, i-preceding):i]) {
			if symptom.AddBefore(figures, before) {
				break
			}
		}
		for _, next := range pod.log.Lines[i+1 : min(len(pod.log.Lines), i+1+following)] {
			symptom.Add(figures, next)
		}
		return &sign{line: line, figures: figures}
	}
	return nil
}

// lookAtMessages is look for a symptom that whole messages of Open MPI show.
func lookAtMessages(pod jobPod, symptom implementation.Symptom) *sign {
	for _, m := range pod.messages {
		figures, found := symptom.Match(m.whole)
		if !found {
			continue
		}
		if symptom.Also != nil && !slices.ContainsFunc(pod.messages, func(other message) bool { return symptom.AddAlso(figures, other.whole) }) {
			continue
		}
		return &sign{line: m.first, whole: m.whole, figures: figures}
	}
	return nil
}

// matchTagged matches a line without the tag of its rank, which is a figure then.
func matchTagged(symptom implementation.Symptom, line string) (figures map[string]string, found bool) {
	if figures, found = symptom.Match(line); found {
		return figures, true
	}
	tag := tagged.FindStringSubmatch(line)
	if tag == nil {
		return nil, false
	}
	if figures, found = symptom.Match(line[len(tag[0]):]); found && figures["rank"] == "" {
		figures["rank"] = tag[1]
	}
	return figures, found
}

func (p *input) failed() bool    { return p.outcome.Finish != nil && !p.outcome.Finish.Succeeded }
func (p *input) succeeded() bool { return p.outcome.Finish != nil && p.outcome.Finish.Succeeded }

// severityOf returns the severity of a code's findings: the code's own, if it has one and the job has not failed.
func (p *input) severityOf(entry codes.Entry) v1alpha1.Severity {
	switch {
	case p.failed():
		return v1alpha1.SeverityError
	case entry.Severity != "":
		return entry.Severity
	case p.outcome.NeedsAction:
		return v1alpha1.SeverityError
	}
	return v1alpha1.SeverityWarning
}

// launcher is the launcher's latest try, nil where there is none.
func (p *input) launcher() *jobPod {
	if len(p.pods) > 0 && p.pods[0].role == mpi.RoleLauncher {
		return &p.pods[0]
	}
	return nil
}

// failedLauncher is the latest try of the launcher that ended badly, nil where there is none.
func (p *input) failedLauncher() *jobPod {
	for i := range p.pods {
		if pod := &p.pods[i]; pod.role == mpi.RoleLauncher && pod.end() != nil {
			return pod
		}
	}
	return nil
}

// launcherSummary returns the summary of the launcher's agent for its latest run that ended.
func (p *input) launcherSummary() *agentapi.Summary {
	for i := range p.pods {
		if s := p.pods[i].summary; s != nil && p.pods[i].role == mpi.RoleLauncher {
			return s
		}
	}
	return nil
}

// condition is why the launcher's Job failed, nil where it has not.
func (p *input) condition() *batchv1.JobCondition {
	if p.seen.Launcher == nil {
		return nil
	}
	for i := range p.seen.Launcher.Status.Conditions {
		c := &p.seen.Launcher.Status.Conditions[i]
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// hostOf returns the pod with the slot of a rank: MPI fills hosts one after another. It returns nil if the pod is
// unknown.
func (p *input) hostOf(rank int32) *jobPod {
	if p.job.SlotsPerWorker <= 0 || rank < 0 {
		return nil
	}
	host := int(rank / p.job.SlotsPerWorker)
	if p.job.Launcher.RunsRanks {
		if host == 0 {
			return p.failedLauncher()
		}
		host--
	}
	for i := range p.pods {
		if p.pods[i].role == mpi.RoleWorker && p.pods[i].index == host {
			return &p.pods[i]
		}
	}
	return nil
}

// hostOfText is hostOf for a rank that was read from a text.
func (p *input) hostOfText(rank string) *jobPod {
	number, err := strconv.ParseInt(rank, 10, 32)
	if err != nil {
		return nil
	}
	return p.hostOf(int32(number))
}

// events are some of those about a kind of object.
func (p *input) events(kind string, match func(jobstate.Event) bool) []jobstate.Event {
	var found []jobstate.Event
	for _, event := range p.evidence.Events {
		if event.Kind == kind && match(event) {
			found = append(found, event)
		}
	}
	return found
}

// startingPod is a pod that has not got beyond starting; nil where the name is another's.
func (p *input) startingPod(name string) *jobPod {
	for i := range p.pods {
		if p.pods[i].Name == name && p.pods[i].Status.Phase == corev1.PodPending {
			return &p.pods[i]
		}
	}
	return nil
}

// template is the pod template of a role.
func (p *input) template(role mpi.Role) corev1.PodSpec {
	if role == mpi.RoleLauncher {
		return p.job.Launcher.Template.Spec
	}
	return p.job.Workers.Template.Spec
}

// field is how users find a pod's container in the job that they wrote.
func (p *input) field(role mpi.Role) string {
	at := p.job.Fields.WorkerTemplate
	if role == mpi.RoleLauncher {
		at = p.job.Fields.LauncherTemplate
	}
	if at == nil {
		return "the " + string(role) + "'s template"
	}
	return at.String()
}

// mainStatus is the status of the container that runs MPI; nil if it has none, or the container is unknown.
func (p jobPod) mainStatus() *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == p.main && p.main != "" {
			return c
		}
	}
	return nil
}

// isSidecar reports whether a container is another than the one that runs MPI, once this has started: how it ends is another matter.
// Init containers have ended well by then, unless they are sidecars.
func (p jobPod) isSidecar(name string) bool {
	main := p.mainStatus()
	if main == nil || name == p.main {
		return false
	}
	if isInit(p, name) {
		return main.State.Waiting == nil || main.LastTerminationState.Terminated != nil
	}
	return true
}

// end is how the first container that ended badly has ended, in its present run or the one before; nil where none did. Sidecars
// of the container that runs MPI do not count, nor does the end of a run whose pod was deleted before.
func (p jobPod) end() *corev1.ContainerStateTerminated {
	for _, previous := range []bool{false, true} {
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				ended := c.State.Terminated
				if previous {
					ended = c.LastTerminationState.Terminated
				}
				if ended != nil && ended.ExitCode != 0 && (previous || p.counts(c)) && !p.isSidecar(c.Name) {
					return ended
				}
			}
		}
	}
	return nil
}

// failedInit is the name of the init container that failed, so that the pod's other containers did not start; "" if none did.
func (p jobPod) failedInit() string {
	for _, c := range p.Status.InitContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended != nil && ended.ExitCode != 0 && !c.Ready {
				return c.Name
			}
		}
	}
	return ""
}

// counts reports whether it matters how the present run of a container ends.
func (p jobPod) counts(c corev1.ContainerStatus) bool {
	return !p.deleted && (!p.stopped || c.LastTerminationState.Terminated == nil)
}

// lastSummary is what the agent of the pod's previous run has left, or of its present one where that is the first.
func (p jobPod) lastSummary() *agentapi.Summary {
	for _, c := range p.Status.ContainerStatuses {
		if last := c.LastTerminationState.Terminated; last != nil {
			if summary, is := agentapi.ParseSummary(last.Message); is {
				return &summary
			}
		}
	}
	return p.summary
}

// exitCode is that of end; nil where there is none.
func (p jobPod) exitCode() *int32 {
	if end := p.end(); end != nil {
		return &end.ExitCode
	}
	return nil
}

// disruption is the reason for which Kubernetes takes a pod away; empty where it does not.
func (p jobPod) disruption() (reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

func (p jobPod) title() string {
	if p.role == mpi.RoleLauncher {
		return "The launcher"
	}
	return fmt.Sprintf("Worker %d", p.index)
}

// subject names pods at the beginning of a sentence.
func subject(pods []jobPod) string {
	const most = 4
	var workers []string
	launcher := false
	for _, p := range pods {
		if p.role == mpi.RoleLauncher {
			launcher = true
			continue
		}
		workers = append(workers, fmt.Sprint(p.index))
	}
	var text string
	switch n := len(workers); {
	case n == 0:
		return "The launcher"
	case n == 1:
		text = "worker " + workers[0]
	case n <= most:
		text = "workers " + strings.Join(workers[:n-1], ", ") + " and " + workers[n-1]
	default:
		text = fmt.Sprintf("%d workers (%s and %d more)", n, strings.Join(workers[:most-1], ", "), n-most+1)
	}
	if launcher {
		return "The launcher and " + text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func names(pods []jobPod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// saying is an event as evidence.
func saying(e jobstate.Event) string {
	text := fmt.Sprintf("Event %s of %s %s: %s", e.Reason, strings.ToLower(e.Kind), e.Name, strings.TrimSpace(e.Message))
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}

// quoted is a line of a pod's log as evidence.
func quoted(p jobPod, line string) string {
	name := p.Name
	if tag := tagged.FindStringSubmatch(line); tag != nil {
		name, line = name+", rank "+tag[1], line[len(tag[0]):]
	}
	return fmt.Sprintf("Log of %s: %s", name, strings.TrimSpace(line))
}
