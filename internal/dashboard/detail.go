package dashboard

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Detail is a job with everything that its page shows.
type Detail struct {
	Row Row `json:"row"`
	// Headline is the phase and for how long the job has been in it.
	Headline string `json:"headline"`
	// Status is the status of the job's report; null without one.
	Status *v1alpha1.JobReportStatus `json:"status"`
	// Failure says where a failed job failed first.
	Failure   string    `json:"failure,omitempty"`
	Findings  []Finding `json:"findings"`
	Resources string    `json:"resources,omitempty"`
	// Total is what all pods request together.
	Total    string `json:"total,omitempty"`
	Ranks    string `json:"ranks,omitempty"`
	Training string `json:"training,omitempty"`
	// Reserved is what the pods have requested, multiplied by time, and Used what they used, as it was measured.
	Reserved string `json:"reserved,omitempty"`
	Used     string `json:"used,omitempty"`
	// Profile describes the communication profile in a line, and LateRank the rank that the others wait for.
	Profile  string `json:"profile,omitempty"`
	LateRank string `json:"lateRank,omitempty"`
	// OpenCalls is the time in milliseconds in calls of MPI that have not returned, which none of the profile's calls contains.
	OpenCalls int64 `json:"openCalls,omitempty"`
	// Runs is the number of runs of MPI's launcher, such as "3 runs", of which the profile is the latest; "" if there is only one.
	Runs string `json:"runs,omitempty"`
	// NoProfile is why a job that asks for a profile, or could, has none. ProfileChange is the change by which its clone has one.
	NoProfile     string `json:"noProfile,omitempty"`
	ProfileChange string `json:"profileChange,omitempty"`
	// NoUsage is why the report has no usage over time.
	NoUsage   string            `json:"noUsage,omitempty"`
	Cost      string            `json:"cost,omitempty"`
	Image     string            `json:"image,omitempty"`
	Command   string            `json:"command,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Notes     map[string]string `json:"annotations,omitempty"`
	Can       Can               `json:"can"`
	Commands  []Snippet         `json:"commands"`
	Attempts  []Attempt         `json:"attempts"`
	Checklist []Check           `json:"checklist"`
	Terms     []Term            `json:"terms"`
	Outputs   []Output          `json:"outputs"`
	Now       time.Time         `json:"now"`
}

// Finding is a problem of a job with what to do.
type Finding struct {
	Code     string   `json:"code"`
	Severity string   `json:"severity"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"`
	Affected []string `json:"affected"`
	Remedies []Remedy `json:"remedies"`
	// Guide is set if the help explains the code.
	Guide bool `json:"guide"`
}

// Remedy is a suggested fix.
type Remedy struct {
	Text   string `json:"text"`
	Action string `json:"action,omitempty"`
	// Applicable is set if a clone with Changes applies the remedy.
	Applicable bool     `json:"applicable"`
	Changes    []string `json:"changes,omitempty"`
	// Command applies the remedy on the command line.
	Command string `json:"command,omitempty"`
}

// Can says what the user may do with a job.
type Can struct {
	Suspend bool `json:"suspend"`
	Resume  bool `json:"resume"`
	Cancel  bool `json:"cancel"`
	Delete  bool `json:"delete"`
	Clone   bool `json:"clone"`
	Logs    bool `json:"logs"`
}

// Attempt is a job of the same name that was run before, or a clone.
type Attempt struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	Name    string     `json:"name"`
	Phase   string     `json:"phase,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Created time.Time  `json:"created"`
	Ended   *time.Time `json:"ended,omitempty"`
	Deleted bool       `json:"deleted,omitempty"`
}

// Check is a step of a job's start, and whether the job passed it.
type Check struct {
	Text string `json:"text"`
	// Result is pass, fail, pending or unknown.
	Result string `json:"result"`
}

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
		Training: jobs.TrainingText(status.Training), Reserved: jobs.ReservedText(status.Consumption), Used: jobs.UsageText(status.Usage), NoUsage: jobs.NoUsageText(status, now),
		Commands: s.jobCommands(job), Checklist: checklist(status), Terms: []Term{}, Outputs: outputsOf(job), Attempts: []Attempt{}, Now: now.UTC(),
	}
	if job.Report != nil {
		// The page reads logs on its own.
		status.Logs = nil
		d.Status = &status
	}
	d.addProfile(job)
	summary := job.PodSummary()
	d.Image, d.Command, d.Resources = summary.Image, job.CommandText(), jobs.ResourcesText(summary.Worker)
	d.Total = totalText(job)
	if written, err := job.Written(); err == nil {
		d.Labels, d.Notes = written.GetLabels(), written.GetAnnotations()
	}
	if job.Object != nil {
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

// addProfile adds where the time of the job's ranks went, or why that is unknown.
func (d *Detail) addProfile(job jobs.Job) {
	if profile := job.Status().Profile; profile != nil {
		d.Profile, d.LateRank = jobs.ProfileText(profile), phrase.Sentence(phrase.Capital(jobs.LateRankText(profile)))
		d.OpenCalls, d.Runs = jobs.OpenCalls(profile), jobs.RunsText(profile)
		return
	}
	asks, can := jobs.AsksForProfile(job), jobs.CanProfile(job)
	if asks || can {
		d.NoProfile = jobs.NoProfileText(job, d.Now)
	}
	if can && !asks {
		d.ProfileChange = jobs.Change{Field: "metadata.annotations[" + mpi.AnnotationProfile + "]", Value: "true"}.String()
	}
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
	_, noFields := job.Written()
	suspended := job.Suspended() || job.Phase() == v1alpha1.PhaseSuspended
	return Can{
		Suspend: exists && !over && !suspended && allowed["update"], Resume: exists && !over && suspended && allowed["update"],
		Cancel: exists && !over && allowed["delete"],
		Delete: exists && allowed["delete"], Clone: noFields == nil && allowed["create"], Logs: readLogs,
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
