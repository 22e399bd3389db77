package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

var (
	quotaMessage    = regexp.MustCompile(`exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)`)
	securityMessage = regexp.MustCompile(`violates PodSecurity "([a-z]+):[^"]*": (.*)`)
	inBrackets      = regexp.MustCompile(` \([^()]*\)`)
	webhookCall     = regexp.MustCompile(`failed calling webhook "([^"]+)": (?:failed to call webhook: )?(.*)`)
	webhookMessage  = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: )?(.*)`)
)

// refused returns findings for what the API server rejects.
func refused(p *input) []Finding {
	var found []Finding
	if p.Outcome.Reason == codes.ValidationError {
		found = append(found, p.find(codes.JobInvalid, nil, map[string]string{"message": p.Outcome.Message}))
	}
	// They come in the order of answers.
	refusals := slices.SortedStableFunc(slices.Values(p.Evidence.Refusals), func(a, b jobstate.Refusal) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	for _, r := range refusals {
		found = append(found, p.refusal(r))
	}
	if event, is := p.objectsRefused(); is {
		found = append(found, p.objectRefusal(event))
	}
	if event, is := p.podRefused(p.Seen.Launcher); is && p.Launcher() == nil {
		found = append(found, p.podRefusal(event, "launcher"))
	}
	// A TrainJob's workers are made by a Job, too.
	if event, is := p.podRefused(p.Seen.WorkerJob); is && len(p.Seen.Workers) < int(p.Job.Workers.Count) {
		found = append(found, p.podRefusal(event, "workers"))
	}
	return found
}

// creationFailed matches the reasons of JobSet's and Trainer's events about objects that they could not create
// (jobset/pkg/constants, trainer/pkg/controller): JobCreationFailed, HeadlessServiceCreationFailed, TrainJobResourcesCreationFailed.
var creationFailed = regexp.MustCompile(`CreationFailed$`)

// passingRefusal matches what these controllers repeat by themselves.
var passingRefusal = regexp.MustCompile(`the object has been modified|already exists|context deadline exceeded|connection refused|is being deleted`)

// refusedObject is the object that a message of the API server names.
var refusedObject = regexp.MustCompile(`\b(\w+)(?:\.[\w.-]+)? "([^"]+)" (?:is invalid|is forbidden|not found)`)

// imageRequired is how the API server refuses a container without an image.
var imageRequired = regexp.MustCompile(`ontainers\[\d+\]\.image: Required value`)

// uncreatedJob is the Job that JobSet's event says was not created.
var uncreatedJob = regexp.MustCompile(`^job "([^"]+)" creation failed`)

// objectsRefused returns the latest event of Trainer or JobSet about an object that the API server rejected; false if that is past,
// because all Jobs exist now, or have made pods since: JobSet removes the Jobs of a job that fails later.
func (p *input) objectsRefused() (last jobstate.Event, is bool) {
	if !p.Job.External || (p.Seen.Launcher != nil || p.Job.Launcher.None) && (p.Seen.WorkerJob != nil || p.Job.Workers.Count == 0) {
		return jobstate.Event{}, false
	}
	for _, kind := range []string{p.Job.Kind, "JobSet"} {
		told := p.Events(kind, func(e jobstate.Event) bool {
			return e.Warning && creationFailed.MatchString(e.Reason) && !passingRefusal.MatchString(e.Message)
		})
		// What JobSet cannot create comes after what Trainer creates.
		if n := len(told); n > 0 && (kind == "JobSet" || !p.anyJob()) {
			last, is = told[n-1], true
		}
	}
	return last, is && !p.jobMadePodSince(last)
}

// jobMadePodSince reports whether the Job that an event says was refused, or any if it names none, has made a pod since. The events of a Job
// are unknown when it is deleted; its pods still are.
func (p *input) jobMadePodSince(refusal jobstate.Event) bool {
	named := uncreatedJob.FindStringSubmatch(refusal.Message)
	if slices.ContainsFunc(p.Seen.AllPods(), func(pod *corev1.Pod) bool {
		return !pod.CreationTimestamp.Time.Before(refusal.Last) && (named == nil || strings.HasPrefix(pod.Name, named[1]+"-"))
	}) {
		return true
	}
	made := p.Events("Job", func(e jobstate.Event) bool {
		return e.Reason == "SuccessfulCreate" && !e.Last.Before(refusal.Last) && (named == nil || named[1] == e.Name)
	})
	return len(made) > 0
}

// anyJob reports whether JobSet has created one of the job's Jobs.
func (p *input) anyJob() bool { return p.Seen.Launcher != nil || p.Seen.WorkerJob != nil }

func (p *input) objectRefusal(event jobstate.Event) Finding {
	object, name, reason := "the objects of", event.Kind+" "+event.Name, event.Message
	if jobstate.IsUncalledWebhook(reason) {
		// The object that it names is the webhook's Service.
		object, name = "objects", ""
	} else if named := refusedObject.FindStringSubmatchIndex(reason); named != nil {
		object, name, reason = phrase.Capital(reason[named[2]:named[3]]), reason[named[4]:named[5]], reason[named[0]:]
	}
	f := p.refusal(jobstate.Refusal{Kind: object, Name: name, Message: event.Message})
	if f.Code == codes.ObjectRefused && ofPlugin(event.Message, map[string]string{}) == nil {
		entry := codes.RefusedToController
		if p.Job.Kind == mpi.KindTrainJob && imageRequired.MatchString(reason) {
			entry = codes.PatchOfNoJob
		}
		f = p.findAs(entry, nil, map[string]string{"object": object, "name": name, "reason": facts.Sentence(reason)})
		f.Affected = []string{object + " " + name}
	}
	f.Evidence = []string{facts.EventLine(event)}
	return f
}

// podRefused returns the latest event of a Job whose pod was rejected; false if that is past: the Job must have no pods
// now, was restarted since, or created a pod since.
func (p *input) podRefused(of *batchv1.Job) (last jobstate.Event, is bool) {
	if of == nil || ptr.Deref(of.Spec.Suspend, false) || !p.Failed() && !p.Outcome.PodsMayStart {
		return jobstate.Event{}, false
	}
	for _, event := range p.Events("Job", func(e jobstate.Event) bool { return e.Name == of.Name }) {
		switch event.Reason {
		case "FailedCreate":
			last, is = event, of.Status.StartTime == nil || !event.Last.Before(of.Status.StartTime.Time)
		case "SuccessfulCreate":
			// Events tell seconds. Of many pods some are made in the second in which others are refused; of one it is another
			// try that went well.
			if event.Last.After(last.Last) || of == p.Seen.Launcher {
				is = false
			}
		}
	}
	if isUnknownOwner(last.Message, of) && p.Seen.Now.Sub(of.CreationTimestamp.Time) < ownerKnownAfter {
		return jobstate.Event{}, false
	}
	return last, is
}

// ownerKnownAfter is how long a webhook may not know a new Job yet. The Job controller tries again within seconds.
const ownerKnownAfter = time.Minute

// isUnknownOwner reports whether a pod was rejected only because the webhook, such as that of Kueue, looked up the pod's Job and did not
// find it in its cache.
func isUnknownOwner(message string, of *batchv1.Job) bool {
	return webhookMessage.MatchString(message) && strings.Contains(message, fmt.Sprintf("Job.batch %q not found", of.Name))
}

func (p *input) podRefusal(event jobstate.Event, role string) Finding {
	f := p.refusal(jobstate.Refusal{Kind: "Pod", Name: "of the " + role, Message: event.Message})
	f.Evidence = []string{facts.EventLine(event)}
	return f
}

func (p *input) refusal(r jobstate.Refusal) Finding {
	code, figures := codes.ObjectRefused, map[string]string{"object": r.Kind, "name": r.Name, "reason": facts.Sentence(r.Message)}
	switch quota, security, webhook := quotaMessage.FindStringSubmatch(r.Message), securityMessage.FindStringSubmatch(r.Message), webhookMessage.FindStringSubmatch(r.Message); {
	case jobstate.IsUncalledWebhook(r.Message):
		code = codes.WebhookUnreachable
		if call := webhookCall.FindStringSubmatch(r.Message); call != nil {
			figures["webhook"], figures["reason"] = call[1], facts.Sentence(call[2])
		}
	case r.Taken && r.Leaving:
		code = codes.EarlierJobLeaving
	case r.Taken:
		code = codes.NameTaken
	case quota != nil:
		code = codes.QuotaExceeded
		figures["quota"], figures["figures"] = " "+quota[1], quotaText(quota[2], quota[3], quota[4])
	case strings.Contains(r.Message, "exceeded quota"):
		code = codes.QuotaExceeded
	case security != nil:
		code, figures["level"], figures["violations"] = codes.PodSecurityDenied, security[1], strings.TrimSuffix(inBrackets.ReplaceAllString(security[2], ""), ".")
	case strings.Contains(r.Message, "unable to validate against any security context constraint"):
		code = codes.SecurityContextDenied
		_, rest, _ := strings.Cut(r.Message, "constraint: ")
		figures["violations"] = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(rest), "["), "]")
	case webhook != nil:
		code, figures["webhook"], figures["reason"] = codes.AdmissionDenied, webhook[1], facts.Sentence(webhook[2])
	}
	entry := codes.Lookup(code)
	if code == codes.PodSecurityDenied && onlyVolumes(figures["violations"]) {
		entry = codes.VolumeDenied
		figures["violations"] = strings.TrimSuffix(securityMessage.FindStringSubmatch(r.Message)[2], ".")
	}
	if added := addedCapabilities(r.Message); code == codes.PodSecurityDenied && added != "" {
		figures["capabilities"] = added
		rest := entry.Remedies
		if !strings.Contains(figures["violations"], ", ") {
			rest = rest[1:]
		}
		entry.Remedies = slices.Concat(codes.CapabilityDenied, rest)
	}
	entry = p.secured(entry, r.Message, figures)
	if known := ofPlugin(r.Message, figures); known != nil && code == codes.ObjectRefused {
		entry = *known
	}
	f := p.findAs(entry, nil, figures)
	f.Affected = []string{strings.TrimSpace(r.Kind + " " + r.Name)}
	if r.Message != "" {
		f.Evidence = []string{"Kubernetes: " + r.Message}
	}
	if r.Taken {
		f.Evidence = []string{fmt.Sprintf("%s %s exists in namespace %s and does not belong to this job.", r.Kind, r.Name, p.Job.Namespace)}
	}
	if code == codes.QuotaExceeded {
		f.Evidence = append(f.Evidence, p.quotas()...)
	}
	return f
}

// onlyVolumes reports whether all violations of a Pod Security level are types of volumes.
func onlyVolumes(violations string) bool {
	return !slices.ContainsFunc(strings.Split(violations, ", "), func(violation string) bool {
		return violation != "hostPath volumes" && violation != "restricted volume types"
	})
}

// forbiddenCapabilities are those that a container adds and must not (k8s.io/pod-security-admission/policy/check_capabilities_*.go).
var forbiddenCapabilities = regexp.MustCompile(`must not include ((?:"[A-Z_]+"(?:, )?)+) in securityContext\.capabilities\.add`)

// addedCapabilities lists the capabilities that the containers of a refused pod add and must not; "" if there are none.
func addedCapabilities(message string) string {
	var all []string
	for _, found := range forbiddenCapabilities.FindAllStringSubmatch(message, -1) {
		for name := range strings.SplitSeq(found[1], ", ") {
			if name = strings.Trim(name, `"`); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return strings.Join(all, ", ")
}

// quotaText turns the lists of a quota's message, such as pods=1,requests.cpu=2, into words.
func quotaText(requested, used, hard string) string {
	usedOf, hardOf := pairs(used), pairs(hard)
	var parts []string
	for name := range strings.SplitSeq(requested, ",") {
		name, value, _ := strings.Cut(name, "=")
		if name == "pods" {
			parts = append(parts, fmt.Sprintf("%s of %s pods used", usedOf[name], hardOf[name]))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s requested by the next pod, %s of %s used", value, strings.TrimPrefix(name, "requests."), usedOf[name], hardOf[name]))
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
func (p *input) quotas() []string {
	var lines []string
	for _, quota := range p.Evidence.Quotas {
		for _, name := range slices.Sorted(maps.Keys(quota.Hard)) {
			hard, used := quota.Hard[name], quota.Used[name]
			if hard.Sign() > 0 && float64(used.MilliValue()) >= 0.8*float64(hard.MilliValue()) {
				lines = append(lines, fmt.Sprintf("Quota %s: %s of %s %s used", quota.Name, used.String(), hard.String(), name))
			}
		}
	}
	return lines
}

// keys reports that the job's keys could not be created.
func keys(p *input) []Finding {
	failed := p.Events(p.Job.Kind, func(e jobstate.Event) bool {
		return strings.Contains(e.Message, "generate SSH key") || strings.Contains(e.Reason, "KeyGeneration")
	})
	if len(failed) == 0 || p.Seen.Secret != nil {
		return nil
	}
	last := failed[len(failed)-1]
	f := p.find(codes.KeyGenerationFailed, nil, map[string]string{"reason": facts.Sentence(last.Message)})
	f.Evidence, f.Affected = []string{facts.EventLine(last)}, []string{"Secret " + p.Job.SecretName()}
	return []Finding{f}
}

// earlierJob reports that pods of an earlier job with the same name still exist.
func earlierJob(p *input) []Finding {
	if p.Outcome.Reason != codes.WaitingForEarlierJob || len(p.Seen.Earlier) == 0 {
		return nil
	}
	first := p.Seen.Earlier[0]
	figures := map[string]string{"object": "pod", "name": first.Name}
	if p.Seen.EarlierIsOwn(p.Job) {
		figures["of"], figures["both"] = "an earlier attempt of the job", "attempts"
	}
	f := p.find(codes.EarlierJobLeaving, nil, figures)
	for _, pod := range p.Seen.Earlier {
		f.Affected = append(f.Affected, pod.Name)
		if len(pod.Finalizers) > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s is kept by finalizers of other programs: %s.", pod.Name, strings.Join(pod.Finalizers, ", ")))
		}
	}
	if first.Spec.NodeName != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s is on node %s.", first.Name, first.Spec.NodeName))
	}
	f.Pod = first.Name
	return []Finding{f}
}
