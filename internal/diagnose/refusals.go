package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

var refusalTexts = map[mpi.Code]text{
	mpi.CodeInvalid: {
		summary:  "{message}",
		remedies: []Remedy{{Text: "Correct the fields named above and create the job again."}},
	},
	mpi.CodeNameTaken: {
		summary: "The job needs a {object} named {name}, and one is there that belongs to something else.",
		remedies: []Remedy{
			{Text: "Give the job another name."},
			{Text: "Or look whether the other one is still needed, and delete or rename it.", Action: "kubectl -n {namespace} get {object} {name} -o yaml"},
		},
	},
	mpi.CodeEarlierJob: {
		summary: "The job waits until what an earlier job of the same name has left is gone: {name}. Its pods would be mistaken for this job's.",
		remedies: []Remedy{
			{Text: "Wait; this takes seconds, unless the pod's machine does not answer."},
			{Text: "Look what keeps it.", Action: "kubectl -n {namespace} describe pod {name}"},
			{Text: "Or create the job under another name."},
		},
	},
	mpi.CodeQuotaExceeded: {
		summary: "The namespace's quota{quota} does not allow the pods that the job needs: {figures|it is used up}.",
		remedies: []Remedy{
			{Text: "Ask for less: fewer workers, or less for each of them.", Action: "{workersField}"},
			{Text: "Or wait until other jobs of the namespace have ended; the rest of the pods is then made by itself."},
			{Text: "Or ask whoever runs the cluster for more.", Action: "kubectl -n {namespace} describe resourcequota"},
		},
	},
	mpi.CodePodSecurity: {
		summary: "The namespace does not allow pods with the rights that this job's ask for (Pod Security level {level|of the namespace}): {violations|see the message}.",
		remedies: []Remedy{
			{Text: "Set what is named above in the pods' templates; the agent needs no rights at all.", Action: "securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"},
			{Text: "Or run the job in a namespace that allows more."},
		},
	},
	mpi.CodeSCCDenied: {
		summary: "OpenShift does not allow pods with the rights that this job's ask for (no security context constraint fits): {violations|see the message}.",
		remedies: []Remedy{
			{Text: "Take fixed users, root, host paths and extra capabilities out of the pods' templates; the agent runs as any user.", Action: "{field}.spec.securityContext"},
			{Text: "If the program needs them, ask whoever runs the cluster for a constraint for the job's service account."},
		},
	},
	mpi.CodeAdmissionDenied: {
		summary: "A rule of this cluster ({webhook|an admission webhook}) does not allow {object} {name}: {reason}",
		remedies: []Remedy{
			{Text: "Change the job as the message says."},
			{Text: "If the message does not help, ask whoever runs the cluster about that rule."},
		},
	},
	mpi.CodeRefused: {
		summary: "Kubernetes does not take {object} {name}, which the job needs: {reason}",
		remedies: []Remedy{
			{Text: "Change what the message names. The operator tries again every 15 seconds."},
		},
	},
	mpi.CodeKeysFailed: {
		summary: "The job's keys, by which its pods know each other, could not be made: {reason}",
		remedies: []Remedy{
			{Text: "Look at the operator's log; this is no fault of the job.", Action: "kubectl -n mpijob-system logs deployment/mpijob-operator"},
		},
	},
}

var (
	quotaMessage    = regexp.MustCompile(`exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)`)
	securityMessage = regexp.MustCompile(`violates PodSecurity "([a-z]+):[^"]*": (.*)`)
	inBrackets      = regexp.MustCompile(` \([^()]*\)`)
	webhookMessage  = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: )?(.*)`)
)

// refused tells what the API server does not take.
func refused(p *patient) []Finding {
	var found []Finding
	if p.outcome.Reason == mpi.ReasonInvalid {
		found = append(found, p.find(mpi.CodeInvalid, Error, nil, map[string]string{"message": p.outcome.Message}))
	}
	// They come in the order of answers.
	refusals := slices.SortedStableFunc(slices.Values(p.evidence.Refusals), func(a, b mpi.Refusal) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	for _, r := range refusals {
		found = append(found, p.refusal(r))
	}
	if event, is := p.podRefused(p.seen.Launcher); is && p.launcher() == nil {
		found = append(found, p.podRefusal(event, "launcher"))
	}
	// A TrainJob's workers are made by a Job, too.
	if event, is := p.podRefused(p.seen.WorkerJob); is && len(p.seen.Workers) < int(p.job.Workers.Count) {
		found = append(found, p.podRefusal(event, "workers"))
	}
	return found
}

// podRefused is the latest event of a Job whose pod was refused; false where that is past: it is to have no pods now, was
// started anew since, or has made one since.
func (p *patient) podRefused(of *batchv1.Job) (last mpi.Event, is bool) {
	if of == nil || ptr.Deref(of.Spec.Suspend, false) || !p.failed() && !p.outcome.PodsMayStart {
		return mpi.Event{}, false
	}
	for _, event := range p.events("Job", func(e mpi.Event) bool { return e.Name == of.Name }) {
		switch event.Reason {
		case "FailedCreate":
			last, is = event, of.Status.StartTime == nil || !event.Last.Before(of.Status.StartTime.Time)
		case "SuccessfulCreate":
			// Events tell seconds. Of many pods some are made in the second in which others are refused; of one it is another
			// try that went well.
			if event.Last.After(last.Last) || of == p.seen.Launcher {
				is = false
			}
		}
	}
	return last, is
}

func (p *patient) podRefusal(event mpi.Event, role string) Finding {
	f := p.refusal(mpi.Refusal{Kind: "Pod", Name: "of the " + role, Message: event.Message})
	f.Evidence = []string{saying(event)}
	return f
}

func (p *patient) refusal(r mpi.Refusal) Finding {
	code, severity, figures := mpi.CodeRefused, p.severity(), map[string]string{"object": r.Kind, "name": r.Name, "reason": sentence(r.Message)}
	switch quota, security, webhook := quotaMessage.FindStringSubmatch(r.Message), securityMessage.FindStringSubmatch(r.Message), webhookMessage.FindStringSubmatch(r.Message); {
	case r.Taken && r.Leaving:
		code, severity = mpi.CodeEarlierJob, Warning
		figures["name"] = r.Kind + " " + r.Name
	case r.Taken:
		code = mpi.CodeNameTaken
	case quota != nil:
		code = mpi.CodeQuotaExceeded
		figures["quota"], figures["figures"] = " "+quota[1], quotaText(quota[2], quota[3], quota[4])
	case strings.Contains(r.Message, "exceeded quota"):
		code = mpi.CodeQuotaExceeded
	case security != nil:
		code, figures["level"], figures["violations"] = mpi.CodePodSecurity, security[1], strings.TrimSuffix(inBrackets.ReplaceAllString(security[2], ""), ".")
	case strings.Contains(r.Message, "unable to validate against any security context constraint"):
		code = mpi.CodeSCCDenied
		_, rest, _ := strings.Cut(r.Message, "constraint: ")
		figures["violations"] = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(rest), "["), "]")
	case webhook != nil:
		code, figures["webhook"], figures["reason"] = mpi.CodeAdmissionDenied, webhook[1], sentence(webhook[2])
	}
	f := p.find(code, severity, nil, figures)
	f.Affected = []string{r.Kind + " " + r.Name}
	if r.Message != "" {
		f.Evidence = []string{"Kubernetes says: " + r.Message}
	}
	if r.Taken {
		f.Evidence = []string{fmt.Sprintf("There is a %s %s in namespace %s that does not belong to this job.", r.Kind, r.Name, p.job.Namespace)}
	}
	if code == mpi.CodeQuotaExceeded {
		f.Evidence = append(f.Evidence, p.quotas()...)
	}
	return f
}

// quotaText turns the lists of a quota's message, such as pods=1,requests.cpu=2, into words.
func quotaText(requested, used, hard string) string {
	usedOf, hardOf := pairs(used), pairs(hard)
	var parts []string
	for name := range strings.SplitSeq(requested, ",") {
		name, value, _ := strings.Cut(name, "=")
		if name == "pods" {
			parts = append(parts, fmt.Sprintf("it may have %s pods, and %s of %s are in use", hardOf[name], usedOf[name], hardOf[name]))
			continue
		}
		parts = append(parts, fmt.Sprintf("one more pod asks for %s %s, %s of %s are in use", value, strings.TrimPrefix(name, "requests."), usedOf[name], hardOf[name]))
	}
	return strings.Join(parts, "; ")
}

func pairs(list string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(pair, "=")
		pairs[name] = value
	}
	return pairs
}

// quotas say what of the namespace's quotas is used up.
func (p *patient) quotas() []string {
	var lines []string
	for _, quota := range p.evidence.Quotas {
		for _, name := range sortedNames(quota.Hard) {
			hard, used := quota.Hard[name], quota.Used[name]
			if hard.Sign() > 0 && float64(used.MilliValue()) >= 0.8*float64(hard.MilliValue()) {
				lines = append(lines, fmt.Sprintf("Quota %s: %s of %s %s used", quota.Name, used.String(), hard.String(), name))
			}
		}
	}
	return lines
}

// keys tells that the job has no keys because making them failed.
func keys(p *patient) []Finding {
	failed := p.events(p.job.Kind, func(e mpi.Event) bool {
		return strings.Contains(e.Message, "generate SSH key") || strings.Contains(e.Reason, "KeyGeneration")
	})
	if len(failed) == 0 || p.seen.Secret != nil {
		return nil
	}
	last := failed[len(failed)-1]
	f := p.find(mpi.CodeKeysFailed, p.severity(), nil, map[string]string{"reason": sentence(last.Message)})
	f.Evidence, f.Affected = []string{saying(last)}, []string{"Secret " + p.job.SecretName()}
	return []Finding{f}
}

// earlierJob tells that pods of an earlier job of the same name are in the way.
func earlierJob(p *patient) []Finding {
	if p.outcome.Reason != mpi.ReasonEarlierJob || len(p.seen.Earlier) == 0 {
		return nil
	}
	first := p.seen.Earlier[0]
	f := p.find(mpi.CodeEarlierJob, Warning, nil, map[string]string{"name": first.Name})
	for _, pod := range p.seen.Earlier {
		f.Affected = append(f.Affected, pod.Name)
	}
	if first.Spec.NodeName != "" {
		f.Evidence = []string{fmt.Sprintf("Pod %s is on node %s.", first.Name, first.Spec.NodeName)}
	}
	f.Pod = first.Name
	return []Finding{f}
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "Kubernetes gives no reason."
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
