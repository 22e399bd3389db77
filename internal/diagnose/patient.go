package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/flavor"
	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

// patient is a job with all that is known of it.
type patient struct {
	job      mpi.Job
	seen     mpi.Observed
	evidence mpi.Evidence
	outcome  mpi.Outcome
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
	// latest is set for workers, and for the launcher's last try.
	latest bool
	// summary is what the pod's agent has left; nil where there is none.
	summary *launch.Summary
	log     mpi.Log
}

// sign is a symptom that a log shows.
type sign struct {
	flavor.Symptom
	pods    []jobPod
	line    string
	figures map[string]string
}

func newPatient(job mpi.Job, seen mpi.Observed, evidence mpi.Evidence, outcome mpi.Outcome) *patient {
	p := &patient{job: job, seen: seen, evidence: evidence, outcome: outcome}
	for i, try := range slices.Backward(seen.LauncherPods) {
		p.pods = append(p.pods, p.pod(try, mpi.RoleLauncher, i, i == len(seen.LauncherPods)-1))
	}
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) {
			p.pods = append(p.pods, p.pod(worker.Pod, mpi.RoleWorker, worker.Index, true))
		}
	}
	p.signs = p.readLogs()
	return p
}

func (p *patient) pod(object *corev1.Pod, role mpi.Role, index int, latest bool) jobPod {
	found := jobPod{Pod: object, role: role, index: index, latest: latest, log: p.evidence.Logs[object.Name]}
	if summary, is := mpi.SummaryOf(object); is {
		found.summary = &summary
	}
	return found
}

// readLogs looks for symptoms in logs of pods in trouble: in a healthy program's output the same words mean nothing.
func (p *patient) readLogs() []sign {
	var troubled []jobPod
	for _, pod := range p.pods {
		if len(pod.log.Lines) > 0 && (p.failed() || pod.end() != nil || p.quietSince(pod)) {
			troubled = append(troubled, pod)
		}
	}
	var signs []sign
	for _, symptom := range flavor.For(p.job.Implementation).Symptoms() {
		found := sign{Symptom: symptom}
		for _, pod := range troubled {
			line, figures, is := look(pod.log.Lines, symptom)
			if !is {
				continue
			}
			if found.line == "" {
				found.line, found.figures = line, figures
			}
			found.pods = append(found.pods, pod)
		}
		if found.line != "" {
			signs = append(signs, found)
		}
	}
	return signs
}

func look(lines []string, symptom flavor.Symptom) (line string, figures map[string]string, found bool) {
	const following = 12
	for i, line := range lines {
		figures, found := symptom.Match(line)
		if !found {
			continue
		}
		if figures == nil {
			figures = map[string]string{}
		}
		for _, next := range lines[i+1 : min(len(lines), i+1+following)] {
			symptom.Add(figures, next)
		}
		return line, figures, true
	}
	return "", nil, false
}

func (p *patient) failed() bool    { return p.outcome.Finish != nil && !p.outcome.Finish.Succeeded }
func (p *patient) succeeded() bool { return p.outcome.Finish != nil && p.outcome.Finish.Succeeded }

// severity of what keeps a job from going on.
func (p *patient) severity() Severity {
	if p.failed() || p.outcome.Trouble {
		return Error
	}
	return Warning
}

// launcher is the launcher's latest try, nil where there is none.
func (p *patient) launcher() *jobPod {
	if len(p.pods) > 0 && p.pods[0].role == mpi.RoleLauncher {
		return &p.pods[0]
	}
	return nil
}

// failedLauncher is the latest try of the launcher that ended badly, nil where there is none.
func (p *patient) failedLauncher() *jobPod {
	for i := range p.pods {
		if pod := &p.pods[i]; pod.role == mpi.RoleLauncher && pod.end() != nil {
			return pod
		}
	}
	return nil
}

// launcherSummary is what the agent of the launcher says of its latest run that ended.
func (p *patient) launcherSummary() *launch.Summary {
	for i := range p.pods {
		if s := p.pods[i].summary; s != nil && p.pods[i].role == mpi.RoleLauncher {
			return s
		}
	}
	return nil
}

// condition is why the launcher's Job failed, nil where it has not.
func (p *patient) condition() *batchv1.JobCondition {
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

// hostOf is the pod that a rank has its slot in, as MPI fills hosts one after another; nil where that cannot be told.
func (p *patient) hostOf(rank int32) *jobPod {
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

// events are some of those about a kind of object.
func (p *patient) events(kind string, match func(mpi.Event) bool) []mpi.Event {
	var found []mpi.Event
	for _, event := range p.evidence.Events {
		if event.Kind == kind && match(event) {
			found = append(found, event)
		}
	}
	return found
}

// startingPod is a pod that has not got beyond starting; nil where the name is another's.
func (p *patient) startingPod(name string) *jobPod {
	for i := range p.pods {
		if p.pods[i].Name == name && p.pods[i].Status.Phase == corev1.PodPending {
			return &p.pods[i]
		}
	}
	return nil
}

// template is the pod template of a role.
func (p *patient) template(role mpi.Role) corev1.PodSpec {
	if role == mpi.RoleLauncher {
		return p.job.Launcher.Template.Spec
	}
	return p.job.Workers.Template.Spec
}

// field is how users find a pod's container in the job that they wrote.
func (p *patient) field(role mpi.Role) string {
	at := p.job.Fields.WorkerTemplate
	if role == mpi.RoleLauncher {
		at = p.job.Fields.LauncherTemplate
	}
	if at == nil {
		return "the " + string(role) + "'s template"
	}
	return at.String()
}

// end is how the first container that ended badly has ended, in its present run or the one before; nil where none did.
func (p jobPod) end() *corev1.ContainerStateTerminated {
	for _, previous := range []bool{false, true} {
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				ended := c.State.Terminated
				if previous {
					ended = c.LastTerminationState.Terminated
				}
				if ended != nil && ended.ExitCode != 0 {
					return ended
				}
			}
		}
	}
	return nil
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
func saying(e mpi.Event) string {
	text := fmt.Sprintf("Event %s of %s %s: %s", e.Reason, strings.ToLower(e.Kind), e.Name, strings.TrimSpace(e.Message))
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}

// quoted is a line of a pod's log as evidence.
func quoted(p jobPod, line string) string {
	return fmt.Sprintf("Log of %s: %s", p.Name, strings.TrimSpace(line))
}

// placeholder is {name} or {name|what stands for it}.
var placeholder = regexp.MustCompile(`\{([a-zA-Z]+)(?:\|([^{}]*))?\}`)

// fill puts figures into a text.
func fill(text string, figures map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(hole string) string {
		parts := placeholder.FindStringSubmatch(hole)
		if figures[parts[1]] != "" {
			return figures[parts[1]]
		}
		return parts[2]
	})
}
