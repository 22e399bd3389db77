package dashboard

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// descriptionNote is the annotation with a job's description, as the Open Data Hub dashboard writes it.
const descriptionNote = "openshift.io/description"

// detail returns a job with everything that its page shows.
func (s *Server) detail(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	now := s.now()
	status := job.Status()
	d := Detail{
		Row: rowOf(s.rows, job), Headline: job.Headline(now), Failure: jobs.FailureText(status), Findings: s.findings(job), Ranks: jobs.RanksText(status),
		Training: jobs.TrainingText(status.Training), Used: jobs.ConsumptionText(status.Consumption),
		Commands: s.jobCommands(job), Checklist: checklist(status), Terms: []Term{}, Outputs: outputsOf(job), Attempts: []Attempt{}, Now: now.UTC(),
	}
	if job.Report != nil {
		d.Status = &job.Report.Status
	}
	summary := job.Summary()
	d.Image, d.Command, d.Resources = summary.Image, job.CommandText(), jobs.ResourcesText(summary.Worker)
	d.Total = totalText(job)
	if job.Object != nil {
		clean := jobs.UserFields(job.Object)
		d.Labels, d.Notes = clean.GetLabels(), clean.GetAnnotations()
		// A job without prices, or whose prices cannot be read, has no cost: the page is about the job.
		if cost, err := c.jobs.HourlyCost(c.ctx, job.Object); err == nil && cost != nil {
			d.Cost = cost.Amount
		}
	}
	for _, finding := range d.Findings {
		for _, remedy := range finding.Remedies {
			d.Terms = append(d.Terms, termsIn(remedy.Text)...)
		}
		d.Terms = append(d.Terms, termsIn(append([]string{finding.Summary}, finding.Evidence...)...)...)
	}
	slices.SortFunc(d.Terms, func(a, b Term) int { return strings.Compare(a.Name, b.Name) })
	d.Terms = slices.Compact(d.Terms)
	if d.Can, err = c.can(job); err != nil {
		return nil, err
	}
	if d.Attempts, err = s.attempts(c, job); err != nil {
		return nil, err
	}
	return d, nil
}

// totalText returns what all pods of a job request together, such as "4 workers and the launcher: 32.1 CPUs, 256.1 GiB of
// memory, 8 GPUs"; empty if unknown. The launcher of a TrainJob, which its runtime defines, does not count.
func totalText(job jobs.Job) string {
	var worker, launcher corev1.ResourceList
	workers := job.Status().Workers.Wanted
	if run := job.Status().Run; run != nil {
		worker = podspec.FillIn(maps.Clone(run.Requests), run.Limits)
	}
	if job.Object != nil {
		if size, known := jobs.SizeOf(job.Object); known {
			workers, worker, launcher = size.Workers, podspec.Requests(size.Worker), podspec.Requests(size.Launcher)
		}
	}
	sum := corev1.ResourceList{}
	podspec.Add(sum, worker, int64(workers))
	podspec.Add(sum, launcher, 1)
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(sum), byImportance) {
		amount := sum[name]
		if amount.IsZero() {
			continue
		}
		text := amountText(name, amount)
		switch {
		case name == corev1.ResourceCPU:
			text += map[bool]string{true: " CPU", false: " CPUs"}[text == "1"]
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage:
			text += " of " + string(name)
		case podspec.IsGPU(name):
			text += map[bool]string{true: " GPU", false: " GPUs"}[text == "1"]
		default:
			text += " " + string(name)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 || workers == 0 && len(launcher) == 0 {
		return ""
	}
	who := phrase.Count(workers, "worker")
	if len(launcher) > 0 {
		who += " and the launcher"
	}
	return who + ": " + strings.Join(parts, ", ")
}

// byImportance sorts CPUs and memory before other resources.
func byImportance(a, b corev1.ResourceName) int {
	order := []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU}
	return cmp.Or(cmp.Compare(slices.Index(order, b), slices.Index(order, a)), strings.Compare(string(a), string(b)))
}

// findOrUID returns the job that the URL names; with the parameter uid, a deleted job with that UID by its report.
func (c *call) findOrUID() (jobs.Job, error) {
	job, err := c.find()
	uid := c.URL.Query().Get("uid")
	if uid == "" || err == nil && string(job.UID) == uid {
		return job, err
	}
	var reports v1alpha1.JobReportList
	name := labels.SelectorFromSet(labels.Set{mpi.LabelReportJob: mpi.Job{Name: c.PathValue("name")}.ReportLabels()[mpi.LabelReportJob]})
	if listErr := c.api.List(c.ctx, &reports, client.InNamespace(c.namespace()), client.MatchingLabelsSelector{Selector: name}); listErr != nil {
		return jobs.Job{}, listErr
	}
	for i := range reports.Items {
		if string(reports.Items[i].Spec.JobRef.UID) == uid {
			return jobs.FromReport(&reports.Items[i]), nil
		}
	}
	return jobs.Job{}, &jobs.NotFoundError{What: "job with this UID, or its report,", Namespace: c.namespace(), Name: c.PathValue("name")}
}

// rowOf returns the row of a job as it was just read.
func rowOf(r *rows, job jobs.Job) Row {
	var fromJob, fromReport *Row
	if job.Object != nil {
		fromJob = jobRow(job.Object)
	}
	if job.Report != nil {
		fromReport = reportRow(job.Report)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	full, _ := r.merge(fromJob, fromReport)
	return *full
}

func (s *Server) findings(job jobs.Job) []Finding {
	all := []Finding{}
	for _, finding := range job.Status().Findings {
		f := Finding{Code: finding.Code, Severity: string(finding.Severity), Summary: finding.Summary, Evidence: orEmpty(finding.Evidence), Affected: orEmpty(finding.Affected), Remedies: []Remedy{}, Guide: codes.IsExplained(finding.Code)}
		for _, remedy := range finding.Remedies {
			shown := Remedy{Text: remedy.Text, Action: remedy.Action}
			if changes, can := jobs.RemedyChanges(job, remedy); can {
				shown.Applicable = true
				words := []string{"clone", job.Name, "-n", job.Namespace}
				for _, change := range changes {
					shown.Changes = append(shown.Changes, change.String())
					words = append(words, "--set", change.String())
				}
				shown.Command = s.options.Program + " " + phrase.QuoteCommand(words)
			} else if strings.HasPrefix(remedy.Action, "kubectl ") {
				shown.Command = remedy.Action
			}
			f.Remedies = append(f.Remedies, shown)
		}
		all = append(all, f)
	}
	return all
}

func orEmpty[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}

// can returns what the user may do with a job.
func (c *call) can(job jobs.Job) (Can, error) {
	gvk, _ := jobs.ParseKind(job.Kind)
	resource := resourceOf(gvk).GroupResource()
	allowed := map[string]bool{}
	for _, verb := range []string{"create", "update", "delete"} {
		ok, err := c.may(c.ctx, verb, resource, job.Namespace)
		if err != nil {
			return Can{}, err
		}
		allowed[verb] = ok
	}
	readLogs, err := c.may(c.ctx, "get", corev1.Resource("pods/log"), job.Namespace)
	exists, over := job.Object != nil, job.Ended()
	suspended := job.Suspended() || job.Phase() == v1alpha1.PhaseSuspended
	return Can{
		Suspend: exists && !over && !suspended && allowed["update"], Resume: exists && !over && suspended && allowed["update"],
		Cancel: exists && !over && allowed["delete"],
		Delete: exists && allowed["delete"], Clone: exists && allowed["create"], Logs: readLogs,
	}, err
}

// stem matches the number at the end of the name of a clone.
var stem = regexp.MustCompile(`-[1-9][0-9]{0,5}$`)

// attempts returns the jobs that have or had the same name up to its number, the latest first.
func (s *Server) attempts(c *call, job jobs.Job) ([]Attempt, error) {
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	all := []Attempt{}
	base := stem.ReplaceAllString(job.Name, "")
	for _, row := range visible {
		if row.Namespace == job.Namespace && stem.ReplaceAllString(row.Name, "") == base {
			all = append(all, Attempt{ID: row.ID, Kind: row.Kind, Name: row.Name, Phase: row.Phase, Reason: row.Reason, Created: row.Created, Ended: row.Ended, Deleted: row.Deleted})
		}
	}
	slices.SortFunc(all, func(a, b Attempt) int { return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name)) })
	return all[:min(len(all), 50)], nil
}

// checklist returns the steps of an MPI job's start and whether the job passed them.
func checklist(status v1alpha1.JobReportStatus) []Check {
	if status.MPI.Implementation == "" || status.Phase == "" {
		return []Check{}
	}
	over := status.CompletionTime != nil
	ran := status.RunningTime != nil
	result := func(passed bool) string {
		switch {
		case passed:
			return "pass"
		case over:
			return "fail"
		}
		return "pending"
	}
	scheduled := ran || len(status.Pods) > 0 && !slices.ContainsFunc(status.Pods, func(pod v1alpha1.PodStatus) bool { return pod.Node == "" })
	connected := status.MPI.ConnectMilliseconds > 0 || status.MPI.SlotsFound > 0
	started := status.MPI.SlotsFound > 0
	connections := func(passed bool) string {
		// The agent reports at the end of a run only.
		if !passed && ran && !over {
			return "unknown"
		}
		return result(passed)
	}
	checks := []Check{
		{"All pods are on a node", result(scheduled)},
		{"All pods have started", result(ran)},
		{"The launcher has connected to all workers", connections(connected)},
		{"MPI has started the ranks", connections(started)},
	}
	if started && status.MPI.SlotsExpected > 0 {
		checks[3].Text = "MPI has started the ranks (" + strconv.Itoa(int(status.MPI.SlotsFound)) + " of " + strconv.Itoa(int(status.MPI.SlotsExpected)) + " slots used)"
	}
	return append(checks, Check{"The program has ended without an error", result(status.Phase == v1alpha1.PhaseSucceeded)})
}

// jobCommands returns what shows a job on the command line and in Python.
func (s *Server) jobCommands(job jobs.Job) []Snippet {
	name, namespace := phrase.QuoteCommand([]string{job.Name}), phrase.QuoteCommand([]string{job.Namespace})
	all := []Snippet{
		{"Command line", "sh", s.options.Program + " describe " + name + " -n " + namespace + "\n" + s.options.Program + " logs " + name + " -n " + namespace + " -f"},
		{"Python", "python", "from openshift_ai_sdk.training import TrainingClient\n\njob = TrainingClient(namespace=" + pythonText(job.Namespace) + ").get_job(" + pythonText(job.Name) + ")\nprint(job.explain())\nfor line in job.get_logs(follow=True):\n    print(line)"},
	}
	if len(job.Status().Findings) > 0 {
		all[0].Text += "\n" + s.options.Program + " explain " + name + " -n " + namespace
	}
	return all
}

// manifest returns the YAML of a job.
func (s *Server) manifest(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if job.Object == nil {
		return nil, &jobs.DeletedError{Job: job}
	}
	clean, err := yaml.Marshal(jobs.UserFields(job.Object).Object)
	if err != nil {
		return nil, err
	}
	full := job.Object.DeepCopy()
	full.SetManagedFields(nil)
	all, err := yaml.Marshal(full.Object)
	return Manifest{string(clean), string(all)}, err
}

// pods returns the pods of a job, from its report and as they are now.
func (s *Server) pods(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	status := job.Status()
	found := Pods{Pods: []Pod{}, Omitted: status.PodsOmitted}
	byName := map[string]int{}
	for _, pod := range status.Pods {
		byName[pod.Name] = len(found.Pods)
		found.Pods = append(found.Pods, Pod{
			Role: pod.Role, Index: pod.Index, Name: pod.Name, Node: pod.Node, Phase: pod.Phase, Ready: pod.Ready, Reason: pod.Reason,
			Restarts: pod.Restarts, ExitCode: pod.ExitCode, Ranks: pod.Ranks,
		})
	}
	if job.Object != nil {
		var live corev1.PodList
		// Without the right to read pods, the report is shown alone.
		err = c.api.List(c.ctx, &live, client.InNamespace(job.Namespace), client.MatchingLabels(job.PodLabels()))
		own := c.jobs.OwnPlace(c.ctx, job)
		for i := range live.Items {
			addLivePod(&found, byName, own, &live.Items[i])
		}
		if err != nil {
			found.NoUsage = "You may not read pods in this namespace. The pods are those of the job's report."
		} else {
			found.NoUsage = c.addUsage(&found, job)
		}
	}
	slices.SortStableFunc(found.Pods, func(a, b Pod) int { return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index)) })
	return found, nil
}

func addLivePod(found *Pods, byName map[string]int, own func(*corev1.Pod) (logstream.Place, bool), live *corev1.Pod) {
	place, is := own(live)
	if !is {
		return
	}
	at, known := byName[live.Name]
	if !known {
		at = len(found.Pods)
		found.Pods = append(found.Pods, Pod{Role: string(place.Role), Index: int32(place.Index), Name: live.Name, Phase: string(live.Status.Phase), Ready: podstatus.IsReady(live)}) //nolint:gosec // an index of pods
	}
	pod := &found.Pods[at]
	created := live.CreationTimestamp.UTC()
	pod.Created, pod.IP, pod.Node = &created, live.Status.PodIP, cmp.Or(live.Spec.NodeName, pod.Node)
	pod.Message = podMessage(live)
	if len(live.Spec.Containers) > 0 {
		pod.Image = live.Spec.Containers[0].Image
		pod.Requests = jobs.ResourcesText(live.Spec.Containers[0].Resources)
	}
	requests := podspec.Requests(live.Spec)
	limits := live.Spec.Containers[0].Resources.Limits
	pod.CPULimit, pod.MemoryLimit = requests.Cpu().AsApproximateFloat64(), requests.Memory().Value()
	if cpu, set := limits[corev1.ResourceCPU]; set {
		pod.CPULimit = cpu.AsApproximateFloat64()
	}
	if memory, set := limits[corev1.ResourceMemory]; set {
		pod.MemoryLimit = memory.Value()
	}
}

// maxPodMessage is the maximum length of what a pod's status reports about a problem, in bytes.
const maxPodMessage = 600

// podMessage returns what the status of a pod reports about its problem; empty if it has none. A program can write the message
// with which its container ended, so that secrets are masked.
func podMessage(pod *corev1.Pod) string {
	message := pod.Status.Message
	if unschedulable, is := podstatus.Unschedulable(pod); is {
		message = cmp.Or(message, unschedulable)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		text := ""
		switch state := status.State; {
		case state.Waiting != nil:
			text = state.Waiting.Message
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			text = state.Terminated.Message
		}
		if last := status.LastTerminationState.Terminated; text == "" && last != nil && last.ExitCode != 0 {
			text = "The run before ended with exit code " + strconv.Itoa(int(last.ExitCode)) + " (" + last.Reason + "). " + last.Message
		}
		message = cmp.Or(message, strings.TrimSpace(text))
	}
	return phrase.Cut(logs.Masker{}.Text(phrase.Limit(message, 4*maxPodMessage)), maxPodMessage)
}

// addUsage adds the current usage of pods from the metrics API. It returns why there is none.
func (c *call) addUsage(found *Pods, job jobs.Job) string {
	usage, err := c.jobs.PodUsage(c.ctx, job)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return "You may not read the metrics of pods in this namespace."
		}
		return "The cluster has no metrics API (metrics.k8s.io), so the usage of pods is unknown."
	}
	for i := range found.Pods {
		pod := &found.Pods[i]
		if load, measured := usage[pod.Name]; measured {
			pod.CPU, pod.Memory = new(load.CPU.AsApproximateFloat64()), new(load.Memory.Value())
		}
	}
	return ""
}

// events returns the Kubernetes events of a job and its objects, oldest first.
func (s *Server) events(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	found := Events{Events: []Event{}}
	var page corev1.EventList
	err = jobs.EachPage(c.ctx, c.api, &page, job.Namespace, nil, func() {
		for i := range page.Items {
			event := &page.Items[i]
			if !job.HasEvent(event) {
				continue
			}
			found.Events = append(found.Events, Event{
				Time: jobs.LastSeen(event).UTC(), Warning: event.Type == corev1.EventTypeWarning, Reason: event.Reason, Count: max(1, event.Count),
				Object: strings.ToLower(event.InvolvedObject.Kind) + "/" + event.InvolvedObject.Name, Message: event.Message,
			})
		}
	})
	slices.SortStableFunc(found.Events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return found, err
}
