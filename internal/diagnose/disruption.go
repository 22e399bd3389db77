package diagnose

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

var disruptionTexts = map[mpi.Code]text{
	mpi.CodeEvicted: {
		summary: "{who} had to leave its machine{atNode}: {cause}. An MPI program does not survive the loss of a worker.",
		remedies: []Remedy{
			{Text: "{advice|Start the job again.}", Action: "{action}"},
			{Text: "Let the program save checkpoints, so that the next start goes on from there."},
		},
	},
	mpi.CodePreempted: {
		summary: "{who} had to make room for pods of higher priority{onNode}.",
		remedies: []Remedy{
			{Text: "Start the job again when there is more room; let it save checkpoints, so that it goes on from there."},
			{Text: "Or give the job a higher priority, if you may.", Action: "spec.runPolicy.schedulingPolicy.priorityClass"},
		},
	},
	mpi.CodeNodeLost: {
		summary: "The machine of {whoLower} was lost: {node|its node} does not answer or is being taken out of service. This is no fault of the job.",
		remedies: []Remedy{
			{Text: "Start the job again; it is placed on other machines."},
			{Text: "Tell whoever runs the cluster about the node.", Action: "kubectl describe node {node}"},
		},
	},
	mpi.CodeLauncherDeleted: {
		summary: "The launcher, the pod that runs mpirun, was deleted while the job ran; nothing of the job did that. Another try, if the job allows one, begins from the start.",
		remedies: []Remedy{
			{Text: "Ask who has deleted it; to stop a job, suspend or delete the job itself.", Action: "kubectl -n {namespace} patch {kindLower} {job} --type merge -p '{\"spec\":{\"runPolicy\":{\"suspend\":true}}}'"},
			{Text: "If nobody has, look at the events: a node may have been emptied for maintenance.", Action: "kubectl -n {namespace} get events --sort-by=.lastTimestamp"},
		},
	},
	mpi.CodeDeadline: {
		summary: "The job was stopped since it was not done in time: it may take {deadline|a limited time}.",
		remedies: []Remedy{
			{Text: "If the program was still getting on, give the job more time.", Action: "{deadlineField}"},
			{Text: "If it hung, look at the last lines of its log, which this report has if they could still be read: a rank that waits for another says nothing more.", Action: "kubectl -n {namespace} get jobreport {report} -o jsonpath='{.status.failure.logTail}'"},
		},
	},
}

// takenAway tells which pods Kubernetes has taken away, and why.
func takenAway(p *patient) []Finding {
	var order []mpi.Code
	pods, evidence, causes := map[mpi.Code][]jobPod{}, map[mpi.Code][]string{}, map[mpi.Code]string{}
	for _, pod := range p.pods {
		code, cause, line := p.whyTaken(pod)
		if code == "" {
			continue
		}
		if pods[code] == nil {
			order = append(order, code)
			causes[code] = cause
		}
		pods[code], evidence[code] = append(pods[code], pod), append(evidence[code], line)
	}
	var found []Finding
	for _, code := range order {
		figures := map[string]string{"cause": causes[code], "whoLower": lower(subject(pods[code]))}
		if node := pods[code][0].Spec.NodeName; node != "" {
			figures["onNode"] = " on " + node
		}
		figures["atNode"] = strings.Replace(figures["onNode"], " on ", ", ", 1)
		figures["advice"], figures["action"] = evictionAdvice(causes[code])
		f := p.find(code, Error, pods[code], figures)
		f.Evidence = evidence[code]
		f.ExitCode = pods[code][0].exitCode()
		found = append(found, f)
	}
	return found
}

func (p *patient) whyTaken(pod jobPod) (code mpi.Code, cause, line string) {
	reason, message := pod.disruption()
	switch {
	case reason == "PreemptionByScheduler" || pod.Status.Reason == "Preempting" || strings.HasPrefix(pod.Status.Reason, "Preempt"):
		code = mpi.CodePreempted
	case reason == "DeletionByTaintManager" || reason == "DeletionByPodGC" || pod.Status.Reason == "NodeLost" || p.nodeDown(pod):
		code = mpi.CodeNodeLost
	case reason == "EvictionByEvictionAPI":
		return mpi.CodeEvicted, "it was asked to go, as when a node is emptied for maintenance", fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
	case reason == "TerminationByKubelet" || pod.Status.Reason == "Evicted":
		if message = pod.Status.Message; message == "" {
			_, message = pod.disruption()
		}
		return mpi.CodeEvicted, strings.TrimSuffix(shortage(message), "."), fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
	default:
		return "", "", ""
	}
	if message == "" {
		message = pod.Status.Message
	}
	if message == "" {
		message = "node " + pod.Spec.NodeName + " is not ready"
	}
	return code, "", fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
}

// nodeDown tells whether a pod that had not ended sits on a node that does not answer.
func (p *patient) nodeDown(pod jobPod) bool {
	if pod.Spec.NodeName == "" || mpi.HasEnded(pod.Pod) || p.ranksEnded() {
		return false
	}
	for _, node := range p.evidence.Nodes {
		if node.Name == pod.Spec.NodeName {
			return !node.Ready
		}
	}
	return false
}

// ranksEnded tells whether the launcher's agent saw a rank fail and lost no worker: a node that does not answer for a
// while, since it is busy, then has nothing to do with it.
func (p *patient) ranksEnded() bool {
	s := p.launcherSummary()
	return s != nil && len(s.Ranks) > 0 && len(s.Hosts) == 0
}

// shortage says what a node had too little of (k8s.io/kubernetes/pkg/kubelet/eviction/helpers.go).
func shortage(message string) string {
	switch {
	case strings.Contains(message, "ephemeral-storage"), strings.Contains(message, "ephemeral local storage"), strings.Contains(message, "DiskPressure"), strings.Contains(message, "emptyDir"):
		return "it or its neighbours had filled the local disk"
	case strings.Contains(message, "memory"), strings.Contains(message, "MemoryPressure"):
		return "the machine had run out of memory"
	case strings.Contains(message, "pids"):
		return "the machine had too many processes"
	}
	return "the machine had run short of something"
}

func evictionAdvice(cause string) (text, action string) {
	switch {
	case strings.Contains(cause, "disk"):
		return "Write less to local disk, or ask for the space that the pods need; keep data and checkpoints on a volume.", "resources.requests.ephemeral-storage"
	case strings.Contains(cause, "memory"):
		return "Request as much memory as the pods really use: those that use more than they requested have to go first.", "resources.requests.memory = resources.limits.memory"
	}
	return "Start the job again; it is placed on other machines.", ""
}

// launcherDeleted tells that a launcher's pod was ended from outside, while the job was not to end.
func launcherDeleted(p *patient) []Finding {
	if p.failed() && p.condition() != nil || p.job.Lifecycle.Deleting || p.putBack() {
		return nil
	}
	gone := p.launchersKilled()
	if len(gone) == 0 {
		launcher := p.launcher()
		if launcher == nil || launcher.DeletionTimestamp == nil || mpi.HasEnded(launcher.Pod) || p.job.Workers.Count > 0 && !p.workersSince(askedToGo(launcher.Pod)) {
			return nil
		} else if code, _, _ := p.whyTaken(*launcher); code != "" {
			return nil
		}
	}
	f := p.find(mpi.CodeLauncherDeleted, Warning, nil, nil)
	for _, event := range gone {
		f.Evidence, f.Affected = append(f.Evidence, saying(event)), append(f.Affected, event.Name)
		f.Pod = event.Name
	}
	if launcher := p.launcher(); len(gone) == 0 && launcher != nil {
		f.Affected, f.Pod = []string{launcher.Name}, launcher.Name
		f.Evidence = []string{fmt.Sprintf("Pod %s is being deleted.", launcher.Name)}
	}
	return []Finding{f}
}

// putBack tells whether the operator itself takes the job's pods away, since not all of them found a place.
func (p *patient) putBack() bool {
	gang := p.seen.Gang
	return gang != nil && (gang.Hold || gang.Evict)
}

// launchersKilled are the events of launchers' pods that were ended while the workers stayed.
func (p *patient) launchersKilled() []mpi.Event {
	var gone []mpi.Event
	for _, event := range p.events("Pod", func(e mpi.Event) bool { return e.Reason == "Killing" }) {
		if !strings.HasPrefix(event.Name, p.job.LauncherName()+"-") || !p.workersSince(event.Last) {
			continue
		}
		if at := p.known(event.Name); at == nil || at.DeletionTimestamp != nil && at.end() == nil {
			gone = append(gone, event)
		}
	}
	return gone
}

// workersSince tells whether a worker was there already at a time, and stays: one that was made later belongs to a new
// start, as after a suspension, which ends launchers and workers alike.
func (p *patient) workersSince(at time.Time) bool {
	for _, pod := range p.pods {
		if pod.role == mpi.RoleWorker && pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(at) {
			return true
		}
	}
	return false
}

// askedToGo is when a pod that is on its way out was asked to go: its deletion is due when its time for that is over.
func askedToGo(pod *corev1.Pod) time.Time {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

func (p *patient) known(name string) *jobPod {
	for i := range p.pods {
		if p.pods[i].Name == name {
			return &p.pods[i]
		}
	}
	return nil
}

// deadline tells that the job had its time.
func deadline(p *patient) []Finding {
	failed := p.condition()
	if !p.failed() || failed == nil || failed.Reason != batchv1.JobReasonDeadlineExceeded {
		return nil
	}
	figures := map[string]string{}
	if d := p.job.Lifecycle.Deadline; d != nil {
		figures["deadline"] = fmt.Sprintf("%d seconds", *d)
	}
	var pods []jobPod
	if launcher := p.launcher(); launcher != nil {
		pods = []jobPod{*launcher}
	}
	f := p.find(mpi.CodeDeadline, Error, pods, figures)
	f.Evidence = []string{"Kubernetes says: " + failed.Message}
	if len(pods) > 0 && pods[0].Status.Phase == corev1.PodPending {
		f.Evidence = append(f.Evidence, "The launcher had not started by then.")
	}
	name := f.Pod
	if name == "" {
		// With the time being over its pod was removed. What it said may be known, or its name.
		if name = cmp.Or(p.launcherThatSpoke(), p.launcherMade()); name != "" {
			f.Pod, f.Affected = name, []string{name}
		}
	}
	log := p.evidence.Logs[name]
	if !log.LastAt.IsZero() {
		silent := failed.LastTransitionTime.Sub(log.LastAt)
		f.Evidence = append(f.Evidence, fmt.Sprintf("The launcher's last line of output was written %d s before it was stopped.", max(0, int(silent.Seconds()))))
	}
	if n := len(log.Lines); n > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Log of %s: %s", name, strings.TrimSpace(log.Lines[n-1])))
	}
	return []Finding{f}
}

// launcherThatSpoke is the last of the launcher's pods, by name, of which there is a log; empty where there is none.
func (p *patient) launcherThatSpoke() (name string) {
	for spoke := range p.evidence.Logs {
		if strings.HasPrefix(spoke, p.job.LauncherName()+"-") && spoke > name {
			name = spoke
		}
	}
	return name
}

// launcherMade is the pod that the launcher's Job has made last, as its events say; empty where none does.
func (p *patient) launcherMade() (name string) {
	for _, event := range p.events("Job", func(e mpi.Event) bool { return e.Name == p.job.LauncherName() && e.Reason == "SuccessfulCreate" }) {
		if _, made, found := strings.Cut(event.Message, "Created pod: "); found {
			name = strings.TrimSpace(made)
		}
	}
	return name
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }
