package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/startup"
)

// describePrinter prints a job's report: its state, the cause, what to do, then the figures.
type describePrinter struct {
	linePrinter
	// program is how users call the command line, for the next command.
	program string
	now     time.Time
}

func newDescribePrinter(f *Factory, to io.Writer) *describePrinter {
	return &describePrinter{linePrinter: linePrinter{to: to}, program: f.name, now: f.Now()}
}

// findings prints the first finding in full with its remedies, and the summaries of the others.
func (p *describePrinter) findings(status v1alpha1.JobReportStatus) {
	well := status.Phase == v1alpha1.PhaseRunning || status.Phase == v1alpha1.PhaseSucceeded
	switch {
	case len(status.Findings) > 0:
	case well || status.Message == "":
		return
	default:
		p.heading("WHY")
		p.text("  ", status.Message)
		return
	}
	first := status.Findings[0]
	p.heading("WHY")
	p.finding(first)
	p.remedies(first.Remedies)
	p.documentation(first)
	if len(status.Findings) > 1 {
		p.heading("OTHER FINDINGS")
		for _, finding := range status.Findings[1:] {
			p.text("  ", fmt.Sprintf("%s: %s", finding.Code, finding.Summary))
		}
	}
}

// finding prints a finding with its evidence.
func (p *describePrinter) finding(finding v1alpha1.Finding) {
	p.cells("  ", cell{finding.Code, severityColour(finding.Severity)}, cell{text: ": " + finding.Summary})
	for _, evidence := range finding.Evidence {
		p.text("    - ", evidence)
	}
	if len(finding.Affected) > 0 {
		p.text("    ", "Affected: "+strings.Join(finding.Affected, ", "))
	}
}

// remedies prints remedies, the most promising first.
func (p *describePrinter) remedies(remedies []v1alpha1.Remedy) {
	if len(remedies) == 0 {
		return
	}
	p.heading("WHAT TO DO")
	for i, remedy := range remedies {
		p.text(fmt.Sprintf("  %d. ", i+1), remedy.Text)
		if remedy.Action != "" {
			p.line("     %s", paintOn(p.to, cyan, oneLine(remedy.Action)))
		}
	}
}

// documentation prints where the finding is explained.
func (p *describePrinter) documentation(finding v1alpha1.Finding) {
	if page := docsPage(finding); page != "" {
		p.line("")
		p.line("  More: %s", oneLine(page))
	}
}

func severityColour(severity v1alpha1.Severity) colour {
	switch severity {
	case v1alpha1.SeverityError:
		return red
	case v1alpha1.SeverityWarning:
		return yellow
	}
	return dim
}

// isHealthy reports whether a job runs or has succeeded, and nothing about it needs attention.
func isHealthy(status v1alpha1.JobReportStatus) bool {
	isWell := status.Phase == v1alpha1.PhaseRunning || status.Phase == v1alpha1.PhaseSucceeded
	return isWell && !slices.ContainsFunc(status.Findings, func(f v1alpha1.Finding) bool { return f.Severity != v1alpha1.SeverityInfo })
}

// tail prints the last lines of the log of a failed job, at most a number of them, as the command logs does.
func (p *describePrinter) tail(job jobs.Job, most int) {
	lines := job.FailureLogs().Recall(withHosts(logstream.Options{}, job))
	if len(lines) == 0 {
		return
	}
	title := "LAST LOG LINES"
	if more := len(lines) - most; more > 0 {
		title += fmt.Sprintf(" (%d more; run %s logs %s)", more, p.program, job.Name)
		lines = lines[more:]
	}
	p.heading(title)
	for _, line := range lines {
		p.line("  %s %s", appendOrigin(nil, line), phrase.Printable(line.Text))
	}
}

// pods prints a table of the job's pods, or of the first ones if most is not 0.
func (p *describePrinter) pods(status v1alpha1.JobReportStatus, most int) {
	if len(status.Pods) == 0 {
		return
	}
	p.heading("PODS")
	shown := status.Pods
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	t := table{header: []string{"NAME", "RANKS", "PHASE", "READY", "REASON", "RESTARTS", "EXIT", "NODE"}}
	for _, pod := range shown {
		ready, exit := "no", "-"
		switch {
		case pod.Ready:
			ready = "yes"
		case status.CompletionTime != nil || pod.Phase == string(corev1.PodSucceeded) || pod.Phase == string(corev1.PodFailed):
			// Containers that have ended are not ready, which is no problem.
			ready = "-"
		}
		if pod.ExitCode != nil {
			exit = strconv.Itoa(int(*pod.ExitCode))
		}
		row := plain(pod.Name, cmp.Or(pod.Ranks, "-"), cmp.Or(pod.Phase, "-"), ready, cmp.Or(pod.Reason, "-"), strconv.Itoa(int(pod.Restarts)), exit, cmp.Or(pod.Node, "-"))
		if pod.Phase == "Failed" || pod.Reason != "" {
			row[2].colour = red
		}
		t.rows = append(t.rows, row)
	}
	if p.err == nil {
		p.err = t.withoutEmptyColumns().write(p.to, "  ", true)
	}
	if more := len(status.Pods) - len(shown) + int(status.PodsOmitted); more > 0 {
		p.line("  and %d more healthy pods", more)
	}
}

// timeline prints events with their ages, or the last ones if most is not 0.
func (p *describePrinter) timeline(status v1alpha1.JobReportStatus, most int) {
	if len(status.Timeline) == 0 {
		return
	}
	shown, title := status.Timeline, "TIMELINE"
	if earlier := len(shown) - most; most > 0 && earlier > 0 {
		shown = shown[earlier:]
		title += fmt.Sprintf(" (%d earlier; --all shows them)", earlier)
	}
	p.heading(title)
	t := table{header: []string{"TIME", "AGE", "EVENT", "DETAIL"}, wraps: true}
	for _, entry := range shown {
		t.rows = append(t.rows, plain(clock(entry.Time.Time, p.now), jobs.Since(entry.Time, p.now), entry.Event, entry.Detail))
	}
	if p.err == nil {
		p.err = t.write(p.to, "  ", true)
	}
}

// clock returns a time of day, with the date unless it is today.
func clock(at, now time.Time) string {
	if at.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Local().Format(time.TimeOnly)
	}
	return at.Local().Format("Jan _2 " + time.TimeOnly)
}

// drawStartup returns the lines of the waterfall of a job's start; none if there is no room for it.
func (p *describePrinter) drawStartup(job jobs.Job) []string {
	const usual = 100
	return startup.Waterfall(job.Status().Startup, cmp.Or(p.width(), usual)-len("  "))
}

// lines prints lines below a title.
func (p *describePrinter) lines(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.heading(title)
	for _, line := range lines {
		p.line("  %s", line)
	}
}

// fields prints named values that are not empty.
func (p *describePrinter) fields(title string, values [][2]string) {
	values = slices.DeleteFunc(values, func(v [2]string) bool { return v[1] == "" })
	if len(values) == 0 {
		return
	}
	p.heading(title)
	for _, v := range values {
		p.wrapped(fmt.Sprintf("  %-14s", v[0]), v[1])
	}
}
