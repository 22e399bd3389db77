package diagnose

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
)

// deadline reports that the job exceeded its deadline.
func deadline(p *input) []Finding {
	if !p.deadlineExceeded() {
		return nil
	}
	message, at := p.Outcome.Finish.Message, p.Outcome.Finish.At
	if failed := p.FailedCondition(); failed != nil && failed.Reason == batchv1.JobReasonDeadlineExceeded {
		message, at = failed.Message, failed.LastTransitionTime.Time
	}
	figures := map[string]string{}
	if d := p.Job.Lifecycle.Deadline; d != nil {
		figures["deadline"] = fmt.Sprintf("%d seconds", *d)
	}
	var pods []facts.Pod
	if launcher := p.Launcher(); launcher != nil {
		pods = []facts.Pod{*launcher}
	}
	entry := codes.Lookup(codes.DeadlineExceeded)
	if paced, isKnown := p.addPace(at, figures); isKnown {
		entry = paced
	}
	f := p.findAs(entry, pods, figures, "Kubernetes: "+message)
	if len(pods) > 0 && pods[0].Status.Phase == corev1.PodPending {
		f.Evidence = append(f.Evidence, "The launcher had not started.")
	}
	if s := p.LauncherSummary(); s != nil && len(s.Hosts) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Launcher's agent, %s: %s", s.Hosts[0].Host, s.Hosts[0].Message))
	}
	name := f.Pod
	if name == "" {
		// With the time being over its pod was removed. What it said may be known, or its name.
		if name = cmp.Or(p.launcherThatSpoke(), p.launcherMade()); name != "" {
			f.Pod, f.Affected = name, []string{name}
		}
	}
	log := p.Evidence.Logs[name]
	if !log.LastAt.IsZero() {
		silent := at.Sub(log.LastAt)
		f.Evidence = append(f.Evidence, fmt.Sprintf("Last output of the launcher: %d s before it was stopped.", max(0, int(silent.Seconds()))))
	}
	if n := len(log.Lines); n > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Log of %s: %s", name, strings.TrimSpace(log.Lines[n-1])))
	}
	return []Finding{f}
}

// addPace adds to the figures of a job that its deadline ended how far its program was, and how long all of it takes at its pace, and returns the
// definition for it. It returns false if that is unknown, the program had stopped to make progress, or the deadline would have been long enough.
func (p *input) addPace(end time.Time, figures map[string]string) (entry codes.Entry, isKnown bool) {
	seconds := p.Job.Lifecycle.Deadline
	training := p.Evidence.Training
	share, done, isPrinted := curves.ShareDone(training)
	if seconds == nil || !isPrinted || share < leastDone || share >= 1 {
		return entry, false
	}
	for _, log := range p.Evidence.Logs {
		if LastStall(log.Lines) != "" {
			return entry, false
		}
	}
	deadline := time.Duration(*seconds) * time.Second
	printed := training.At.Time
	if all := p.Evidence.Curves; all != nil && !all.Until.IsZero() && all.Until.Time.Before(printed) {
		// What follows in the log can be about its end.
		printed = all.Until.Time
	}
	elapsed := printed.Sub(end.Add(-deadline))
	if elapsed <= 0 || end.Sub(printed) > elapsed {
		return entry, false
	}
	// A program that went on from a checkpoint has done only a part of that in this time.
	before, isFirst := curves.ShareAtStart(p.Evidence.Curves, training)
	if jobstate.EarlierAttempts(p.Seen) > 0 {
		// The curves have those, too, and the deadline may count from a later one.
		before, isFirst = 0, false
	}
	if isFirst && share-before < leastDone {
		return entry, false
	}
	needed := time.Duration(float64(elapsed) / (share - before))
	if needed <= deadline || needed > longestNeed {
		return entry, false
	}
	const step = 30 * time.Second
	enough := (needed + needed/4 + step - 1).Truncate(step)
	figures["progress"], figures["time"] = done, fmt.Sprintf("about %.0f seconds", needed.Round(time.Second).Seconds())
	figures["enough"] = fmt.Sprintf("%.0f", enough.Seconds())
	if isFirst {
		return codes.DeadlineTooShort, true
	}
	figures["time"] = fmt.Sprintf("at least %.0f seconds", needed.Round(time.Second).Seconds())
	return codes.DeadlineTooShortFor, true
}

// longestNeed is the longest time that is estimated for a whole job.
const longestNeed = 365 * 24 * time.Hour

// launcherThatSpoke is the last of the launcher's pods, by name, of which there is a log; empty where there is none.
func (p *input) launcherThatSpoke() (name string) {
	for spoke := range p.Evidence.Logs {
		if strings.HasPrefix(spoke, p.Job.LauncherName()+"-") && spoke > name {
			name = spoke
		}
	}
	return name
}

// launcherMade is the pod that the launcher's Job has made last, as its events say; empty where none does.
func (p *input) launcherMade() (name string) {
	for _, event := range p.Events("Job", func(e jobstate.Event) bool { return e.Name == p.Job.LauncherName() && e.Reason == "SuccessfulCreate" }) {
		if _, made, found := strings.Cut(event.Message, "Created pod: "); found {
			name = strings.TrimSpace(made)
		}
	}
	return name
}

// podDeadlines returns a finding for pods that a kubelet stopped because of their own deadline.
func podDeadlines(p *input) []Finding {
	var pods []facts.Pod
	var evidence []string
	for _, pod := range p.Pods {
		if facts.IsPastDeadline(pod) {
			pods, evidence = append(pods, pod), append(evidence, fmt.Sprintf("Pod %s: DeadlineExceeded: %s", pod.Name, facts.Sentence(pod.Status.Message)))
		}
	}
	if len(pods) == 0 {
		return nil
	}
	figures := map[string]string{"onNode": nodesText(pods)}
	if seconds := p.Template(pods[0].Role).ActiveDeadlineSeconds; seconds != nil {
		figures["deadline"] = fmt.Sprintf(" (%d seconds)", *seconds)
	}
	f := p.find(codes.PodDeadlineExceeded, pods, figures, evidence...)
	f.ExitCode = pods[0].ExitCode()
	return []Finding{f}
}
