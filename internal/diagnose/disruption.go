package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// takenAway returns findings for pods that Kubernetes removed.
func takenAway(p *input) []Finding {
	var order []codes.Code
	pods, evidence, causes := map[codes.Code][]jobPod{}, map[codes.Code][]string{}, map[codes.Code]shortage{}
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
		of := causes[code]
		figures := map[string]string{"cause": of.cause, "advice": of.advice, "action": codes.FillAction(of.action, p.figures(pods[code])), "whoLower": lower(subject(pods[code]))}
		if node := pods[code][0].Spec.NodeName; node != "" {
			figures["onNode"] = " on " + node
		}
		f := p.find(code, pods[code], figures)
		f.Evidence = evidence[code]
		f.ExitCode = pods[code][0].exitCode()
		found = append(found, f)
	}
	return found
}

func (p *input) whyTaken(pod jobPod) (code codes.Code, cause shortage, line string) {
	reason, message := pod.disruption()
	switch {
	case reason == "PreemptionByScheduler" || pod.Status.Reason == "Preempting" || strings.HasPrefix(pod.Status.Reason, "Preempt"):
		code = codes.Preempted
	case reason == "DeletionByTaintManager" || reason == "DeletionByPodGC" || pod.Status.Reason == "NodeLost" || p.nodeDown(pod):
		code = codes.NodeLost
		missing := p.nodeMissing(pod)
		if name := p.template(pod.role).NodeName; name != "" && name == pod.Spec.NodeName && len(pod.Status.ContainerStatuses) == 0 && (missing || reason == "DeletionByPodGC") {
			// No kubelet ever reported the pod.
			code = codes.NodeMissing
		}
		if message == "" && missing {
			message = "node " + pod.Spec.NodeName + " does not exist"
		}
	case reason == "EvictionByEvictionAPI":
		return codes.Evicted, shortage{cause: "requested through the eviction API, for example by a node drain", advice: runsElsewhere}, fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
	case reason == "DeletionByDeviceTaintManager":
		return codes.Evicted, shortage{cause: "a device that it used was tainted, for example because it is not healthy", advice: "Start the job again. It gets other devices."}, fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
	case reason != "" && reason != corev1.PodReasonTerminationByKubelet:
		// Other controllers name their own reasons.
		return codes.Evicted, shortage{cause: fmt.Sprintf("its condition DisruptionTarget has the reason %s", reason), advice: runsElsewhere}, fmt.Sprintf("Pod %s: %s", pod.Name, sentence(cmp.Or(message, reason)))
	default:
		if reason != "" || pod.Status.Reason == "Evicted" {
			message = cmp.Or(pod.Status.Message, message)
		} else if message = p.evictionOf(pod); message == "" {
			return "", shortage{}, ""
		}
		return codes.Evicted, shortageOf(message), fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
	}
	if message == "" {
		message = pod.Status.Message
	}
	if message == "" {
		message = "node " + pod.Spec.NodeName + " is not ready"
	}
	return code, shortage{}, fmt.Sprintf("Pod %s: %s", pod.Name, sentence(message))
}

// evictionOf is the message of the kubelet's event about the eviction of a pod, "" if there is none. The pod's status shows it
// only when its containers have ended, and never if the pod is deleted before
// (k8s.io/kubernetes/pkg/kubelet/eviction/eviction_manager.go).
func (p *input) evictionOf(pod jobPod) string {
	found := p.events("Pod", func(e jobstate.Event) bool {
		return e.Reason == "Evicted" && e.Name == pod.Name && !e.Last.Before(pod.CreationTimestamp.Time)
	})
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1].Message
}

// nodeDown reports whether a pod that had not ended sits on a node that does not answer.
func (p *input) nodeDown(pod jobPod) bool {
	if pod.Spec.NodeName == "" || podstatus.HasEnded(pod.Pod) || p.ranksEnded() {
		return false
	}
	for _, node := range p.evidence.Nodes {
		if node.Name == pod.Spec.NodeName {
			return !node.Ready
		}
	}
	return false
}

// nodeMissing reports whether the node that a pod is to run on does not exist.
func (p *input) nodeMissing(pod jobPod) bool {
	return slices.ContainsFunc(p.evidence.Nodes, func(node jobstate.Node) bool { return node.Missing && node.Name == pod.Spec.NodeName })
}

// ranksEnded reports whether the launcher's agent saw a rank fail and lost no worker: a node that does not answer for a
// while, since it is busy, then has nothing to do with it.
func (p *input) ranksEnded() bool {
	s := p.launcherSummary()
	return s != nil && len(s.Ranks) > 0 && len(s.Hosts) == 0
}

// shortage is what a pod or its node had too little of, and what to do about it. The cause may have groups of a pattern.
type shortage struct{ cause, advice, action string }

const (
	runsElsewhere = "Start the job again. It runs on other nodes."
	lessDisk      = "Increase the limit, or write less to local disk. Keep data and checkpoints on a volume."
	diskLimit     = "{field}.spec.containers[0].resources.limits.ephemeral-storage"
)

// shortages are the kubelet's words for why it evicts a pod (k8s.io/kubernetes/pkg/kubelet/eviction/helpers.go): first limits of the
// pod itself, for which it does so although the node has room.
var shortages = []struct {
	message *regexp.Regexp
	shortage
}{
	{
		regexp.MustCompile(`Usage of EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"`),
		shortage{"its emptyDir volume ${1} held more than its sizeLimit of ${2}", "Increase the volume's sizeLimit, or write less to it.", "{field}.spec.volumes[].emptyDir.sizeLimit"},
	},
	{
		regexp.MustCompile(`Container (\S+) exceeded its local ephemeral storage limit "([^"]+)"`),
		shortage{"container ${1} wrote more to local disk than its ephemeral-storage limit of ${2}", lessDisk, diskLimit},
	},
	{
		regexp.MustCompile(`Pod ephemeral local storage usage exceeds the total limit of containers (\S+?)\.?(?:\s|$)`),
		shortage{"its containers wrote more to local disk than their ephemeral-storage limit of ${1}", lessDisk, diskLimit},
	},
	{regexp.MustCompile(`node shutdown`), shortage{"the node was shut down", runsElsewhere, ""}},
	{
		regexp.MustCompile(`ephemeral-storage|ephemeral local storage|DiskPressure|emptyDir`),
		shortage{"the node's local disk was full", "Write less to local disk, or request ephemeral storage. Keep data and checkpoints on a volume.", "resources.requests.ephemeral-storage"},
	},
	{regexp.MustCompile(`memory|MemoryPressure`), shortage{"the node was out of memory", "Request as much memory as the pods use: pods above their request are evicted first.", "resources.requests.memory = resources.limits.memory"}},
	{regexp.MustCompile(`pids`), shortage{"the node had too many processes", runsElsewhere, ""}},
	{regexp.MustCompile(``), shortage{"the node was short of a resource", runsElsewhere, ""}},
}

// shortageOf reads why a kubelet evicted a pod.
func shortageOf(message string) shortage {
	for _, known := range shortages {
		if at := known.message.FindStringSubmatchIndex(message); at != nil {
			found := known.shortage
			found.cause = string(known.message.ExpandString(nil, found.cause, message, at))
			return found
		}
	}
	return shortage{}
}

// launcherDeleted reports that something else deleted a launcher's pod while its job was not to end. A pod that ends after it
// was deleted, well or by a crash, has ended because of that.
func launcherDeleted(p *input) []Finding {
	launcher := p.launcher()
	if launcher != nil && !launcher.deleted {
		launcher = nil
	}
	var gone []jobstate.Event
	switch {
	case p.stoppedByController():
		return nil
	case launcher == nil && p.failed() && jobstate.LauncherHasFinished(p.job, p.seen), p.job.Lifecycle.Deleting, p.putBack(), p.stoppedByJob():
	default:
		gone = p.launchersKilled()
	}
	if launcher == nil && len(gone) == 0 {
		return nil
	}
	f := p.find(codes.LauncherDeleted, nil, nil)
	for _, event := range gone {
		f.Evidence, f.Affected = append(f.Evidence, saying(event)), append(f.Affected, event.Name)
		f.Pod = event.Name
	}
	if launcher == nil {
		return []Finding{f}
	}
	line := fmt.Sprintf("Pod %s is being deleted.", launcher.Name)
	for _, c := range launcher.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			line = fmt.Sprintf("Pod %s was deleted at %s; its container then ended with exit code %d.", launcher.Name, clock(deletedAt(launcher.Pod)), end.ExitCode)
		}
	}
	if f.Evidence = append(f.Evidence, line); f.Pod != launcher.Name {
		f.Affected, f.Pod = append(f.Affected, launcher.Name), launcher.Name
	}
	return []Finding{f}
}

// ignoreDeleted marks the latest launcher if something else deleted it while it ran. What happens in it afterwards, such as
// a crash of mpirun while it cleans up, is a consequence: only ranks that had ended before count.
func (p *input) ignoreDeleted() {
	launcher := p.launcher()
	if launcher == nil || launcher.DeletionTimestamp == nil || p.job.Lifecycle.Deleting || p.putBack() || p.stoppedByJob() {
		return
	}
	at := deletedAt(launcher.Pod)
	if end := podstatus.EndedAt(launcher.Pod); podstatus.HasEnded(launcher.Pod) && end.IsZero() || !end.IsZero() && end.Before(at) {
		return
	}
	if code, _, _ := p.whyTaken(*launcher); code != "" || p.job.Workers.Count > 0 && !p.workersSince(at) {
		return
	}
	launcher.deleted = true
	if launcher.summary == nil {
		return
	}
	before := *launcher.summary
	before.Code, before.Message, before.Hosts = "", "", nil
	before.Ranks = slices.DeleteFunc(slices.Clone(before.Ranks), func(end agentapi.RankEnd) bool { return end.At == 0 || end.At >= at.UnixMilli() })
	launcher.summary = &before
}

// stoppedByJob reports whether the Job controller deletes the launcher's pod, as it does when the Job has ended
// (k8s.io/kubernetes/pkg/controller/job): of its own accord, or because the pod's containers were restarted too often.
// The conditions are written after the pod is deleted.
func (p *input) stoppedByJob() bool {
	job := p.seen.Launcher
	if job == nil {
		return false
	}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete || c.Type == batchv1.JobSuccessCriteriaMet:
			return true
		case c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget:
			// A pod that was deleted counts as failed: then it was not the Job that deleted it.
			launcher := p.launcher()
			return c.Reason != batchv1.JobReasonBackoffLimitExceeded || launcher == nil || podstatus.Restarts(launcher.Pod) > 0
		}
	}
	launcher := p.launcher()
	return launcher != nil && podstatus.Restarts(launcher.Pod) > 0 && jobstate.CountAttempts(p.job, p.seen).Exhausted()
}

// stoppedByController reports whether the operator, the Job controller or JobSet stops the launcher, because a worker failed, the
// time of the job is over, or the job has ended because of something else than its launcher. Conditions that state it are written
// later, or not at all.
func (p *input) stoppedByController() bool {
	if finish := p.outcome.Finish; finish != nil && slices.Contains([]string{codes.WorkerFailed, codes.MPIJobEvicted, codes.GangTimeout, codes.DeadlineExceeded}, finish.Reason) {
		return true
	}
	return p.timeIsOver() || p.job.External && p.workerFailedFirst()
}

// timeIsOver reports whether the launcher's Job was active for as long as the job's deadline allows. Its pod is then deleted before
// the Job has a condition (k8s.io/kubernetes/pkg/controller/job).
func (p *input) timeIsOver() bool {
	job, deadline := p.seen.Launcher, p.job.Lifecycle.Deadline
	return job != nil && deadline != nil && job.Status.StartTime != nil && p.seen.Now.Sub(job.Status.StartTime.Time) >= time.Duration(*deadline)*time.Second
}

// workerFailedFirst reports whether a worker failed before the launcher was deleted. JobSet deletes the launcher's Job when that of
// the workers has failed.
func (p *input) workerFailedFirst() bool {
	if job := p.seen.WorkerJob; job != nil && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget) && c.Status == corev1.ConditionTrue
	}) {
		return true
	}
	launcher := p.launcher()
	return slices.ContainsFunc(p.pods, func(pod jobPod) bool {
		if pod.role != mpi.RoleWorker || pod.Status.Phase != corev1.PodFailed {
			return false
		}
		return launcher == nil || launcher.DeletionTimestamp == nil || !podstatus.EndedAt(pod.Pod).After(deletedAt(launcher.Pod).Add(time.Second))
	})
}

// putBack reports whether the operator itself takes the job's pods away, since not all of them found a place.
func (p *input) putBack() bool {
	gang := p.seen.Gang
	return gang != nil && (gang.Hold || gang.Evict)
}

// launchersKilled are the events of launchers' pods that were ended while the workers stayed.
func (p *input) launchersKilled() []jobstate.Event {
	var gone []jobstate.Event
	for _, event := range p.events("Pod", func(e jobstate.Event) bool { return e.Reason == "Killing" }) {
		if !strings.HasPrefix(event.Name, p.job.LauncherName()+"-") || !p.workersSince(event.Last) {
			continue
		}
		if at := p.known(event.Name); at == nil || at.DeletionTimestamp != nil && at.end() == nil {
			gone = append(gone, event)
		}
	}
	return gone
}

// workersSince reports whether a worker was there already at a time, and stays: one that was made later belongs to a new
// start, as after a suspension, which ends launchers and workers alike.
func (p *input) workersSince(at time.Time) bool {
	for _, pod := range p.pods {
		if pod.role == mpi.RoleWorker && pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(at) {
			return true
		}
	}
	return false
}

// deletedAt returns when the deletion of a pod was requested. Its deletion timestamp is when its grace period is over.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

func (p *input) known(name string) *jobPod {
	for i := range p.pods {
		if p.pods[i].Name == name {
			return &p.pods[i]
		}
	}
	return nil
}

// deadlineExceeded reports whether the job failed because of its deadline.
func (p *input) deadlineExceeded() bool {
	if !p.failed() {
		return false
	}
	// Kubeflow Trainer states the reason in the TrainJob, and deletes the launcher's Job. This may fail before because its pod ends.
	failed := p.condition()
	return failed != nil && failed.Reason == batchv1.JobReasonDeadlineExceeded || p.outcome.Finish.Reason == codes.DeadlineExceeded
}

// deadline reports that the job exceeded its deadline.
func deadline(p *input) []Finding {
	if !p.deadlineExceeded() {
		return nil
	}
	message, at := p.outcome.Finish.Message, p.outcome.Finish.At
	if failed := p.condition(); failed != nil && failed.Reason == batchv1.JobReasonDeadlineExceeded {
		message, at = failed.Message, failed.LastTransitionTime.Time
	}
	figures := map[string]string{}
	if d := p.job.Lifecycle.Deadline; d != nil {
		figures["deadline"] = fmt.Sprintf("%d seconds", *d)
	}
	var pods []jobPod
	if launcher := p.launcher(); launcher != nil {
		pods = []jobPod{*launcher}
	}
	f := p.find(codes.DeadlineExceeded, pods, figures)
	f.Evidence = []string{"Kubernetes: " + message}
	if len(pods) > 0 && pods[0].Status.Phase == corev1.PodPending {
		f.Evidence = append(f.Evidence, "The launcher had not started.")
	}
	if s := p.launcherSummary(); s != nil && len(s.Hosts) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Launcher's agent, %s: %s", s.Hosts[0].Host, s.Hosts[0].Message))
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
		silent := at.Sub(log.LastAt)
		f.Evidence = append(f.Evidence, fmt.Sprintf("Last output of the launcher: %d s before it was stopped.", max(0, int(silent.Seconds()))))
	}
	if n := len(log.Lines); n > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Log of %s: %s", name, strings.TrimSpace(log.Lines[n-1])))
	}
	return []Finding{f}
}

// launcherThatSpoke is the last of the launcher's pods, by name, of which there is a log; empty where there is none.
func (p *input) launcherThatSpoke() (name string) {
	for spoke := range p.evidence.Logs {
		if strings.HasPrefix(spoke, p.job.LauncherName()+"-") && spoke > name {
			name = spoke
		}
	}
	return name
}

// launcherMade is the pod that the launcher's Job has made last, as its events say; empty where none does.
func (p *input) launcherMade() (name string) {
	for _, event := range p.events("Job", func(e jobstate.Event) bool { return e.Name == p.job.LauncherName() && e.Reason == "SuccessfulCreate" }) {
		if _, made, found := strings.Cut(event.Message, "Created pod: "); found {
			name = strings.TrimSpace(made)
		}
	}
	return name
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }
