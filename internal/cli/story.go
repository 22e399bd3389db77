package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// story writes what a job's record says, in the order in which a reader asks: how it is, why, what to do, and then the
// figures.
type story struct {
	*Factory
	to  io.Writer
	err error
}

// line writes a line; an empty format an empty one.
func (s *story) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.to, format+"\n", args...)
	}
}

// heading begins a part.
func (s *story) heading(title string) {
	s.line("")
	s.line("%s", s.paintOn(s.to, bold, title))
}

// text writes a text that may be long, as wide as the terminal is.
func (s *story) text(indent, text string) {
	text = oneLine(text)
	if width := s.width(); width > 0 {
		text = wordwrap.WrapString(text, uint(max(20, width-len(indent))))
	}
	for part := range strings.SplitSeq(text, "\n") {
		s.line("%s%s", indent, part)
	}
}

// width is the terminal's, 120 at most; 0 where output goes elsewhere.
func (s *story) width() int {
	const most = 120
	file, is := s.to.(interface{ Fd() uintptr })
	if !is {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return min(width, most)
}

// headline says how a job is, in a line.
func headline(job Job, now time.Time) string {
	if job.Report == nil {
		return "No record of it yet: the operator writes one within seconds, if it runs"
	}
	status := job.Report.Status
	text := string(status.Phase)
	switch ran := ranFor(status, now); {
	case status.CompletionTime != nil && ran != "":
		text += fmt.Sprintf(" %s ago, after running for %s", since(*status.CompletionTime, now), ran)
	case status.CompletionTime != nil:
		text += fmt.Sprintf(" %s ago, without having run", since(*status.CompletionTime, now))
	default:
		if long := inPhase(status, now); long != "" {
			text += " for " + long
		}
	}
	if job.Object == nil {
		text += "; the job is deleted, and this is its record"
	}
	return text
}

// inPhase is how long a job has been in its phase; empty where that is not known.
func inPhase(status v1alpha1.JobReportStatus, now time.Time) string {
	for _, t := range status.PhaseTimes {
		if t.Phase == status.Phase {
			return duration.HumanDuration(max(0, now.Sub(t.Since.Time)))
		}
	}
	return ""
}

// findings writes what is wrong and what to do about it: the first finding in full, the others in brief.
func (s *story) findings(status v1alpha1.JobReportStatus) {
	well := status.Phase == v1alpha1.Phase(mpi.PhaseRunning) || status.Phase == v1alpha1.Phase(mpi.PhaseSucceeded)
	switch {
	case len(status.Findings) > 0:
	case well || status.Message == "":
		return
	default:
		s.heading("WHY")
		s.text("  ", status.Message)
		return
	}
	first := status.Findings[0]
	s.heading("WHY")
	s.finding(first)
	s.remedies(first.Remedies)
	if len(status.Findings) > 1 {
		s.heading("ALSO SEEN")
		for _, finding := range status.Findings[1:] {
			s.text("  ", fmt.Sprintf("%s: %s", finding.Code, finding.Summary))
		}
	}
}

// finding writes one finding with what it rests on.
func (s *story) finding(finding v1alpha1.Finding) {
	s.text("  ", s.paintOn(s.to, severityColour(finding.Severity), finding.Code)+": "+finding.Summary)
	for _, evidence := range finding.Evidence {
		s.text("    - ", evidence)
	}
	if len(finding.Affected) > 0 {
		s.text("    ", "It is about "+strings.Join(finding.Affected, ", ")+".")
	}
}

// remedies writes what to do, the most promising first.
func (s *story) remedies(remedies []v1alpha1.Remedy) {
	if len(remedies) == 0 {
		return
	}
	s.heading("WHAT TO DO")
	for i, remedy := range remedies {
		s.text(fmt.Sprintf("  %d. ", i+1), remedy.Text)
		if remedy.Action != "" {
			s.line("     %s", s.paintOn(s.to, cyan, oneLine(remedy.Action)))
		}
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

// tail writes the last lines of the log of a job that failed, so many at most.
func (s *story) tail(job Job, most int) {
	failure := job.Report.Status.Failure
	if failure == nil || len(failure.LogTail) == 0 {
		return
	}
	lines := failure.LogTail[max(0, len(failure.LogTail)-most):]
	title := "THE LOG'S LAST LINES"
	if more := len(failure.LogTail) - len(lines); more > 0 {
		title += fmt.Sprintf(" (%d more: %s logs %s)", more, s.name, job.Name)
	}
	s.heading(title)
	for _, line := range lines {
		s.line("  %s", mpi.Printable(line))
	}
}

// pods writes a table of the job's pods.
func (s *story) pods(status v1alpha1.JobReportStatus) {
	if len(status.Pods) == 0 {
		return
	}
	s.heading("PODS")
	t := table{header: []string{"NAME", "ROLE", "RANKS", "PHASE", "READY", "WHY", "RESTARTS", "EXIT", "NODE"}}
	for _, pod := range status.Pods {
		ready, exit := "no", "-"
		if pod.Ready {
			ready = "yes"
		}
		if pod.ExitCode != nil {
			exit = strconv.Itoa(int(*pod.ExitCode))
		}
		row := plain(pod.Name, pod.Role, cmp.Or(pod.Ranks, "-"), cmp.Or(pod.Phase, "-"), ready, cmp.Or(pod.Reason, "-"), strconv.Itoa(int(pod.Restarts)), exit, cmp.Or(pod.Node, "-"))
		if pod.Phase == "Failed" || pod.Reason != "" {
			row[3].colour = red
		}
		t.rows = append(t.rows, row)
	}
	if s.err == nil {
		s.err = t.write(s.Factory, s.to, "  ", true)
	}
	if status.PodsOmitted > 0 {
		s.line("  and %d more pods, which are well", status.PodsOmitted)
	}
}

// timeline writes what has happened, with how long after the beginning it did.
func (s *story) timeline(status v1alpha1.JobReportStatus) {
	if len(status.Timeline) == 0 {
		return
	}
	s.heading("TIMELINE")
	begin := status.Timeline[0].Time
	t := table{header: []string{"TIME", "AFTER", "EVENT", "DETAIL"}}
	for _, entry := range status.Timeline {
		t.rows = append(t.rows, plain(clock(entry.Time.Time, s.Now()), duration.HumanDuration(entry.Time.Sub(begin.Time)), entry.Event, entry.Detail))
	}
	if s.err == nil {
		s.err = t.write(s.Factory, s.to, "  ", true)
	}
}

// clock is a time of day, with the day where that is another one.
func clock(at, now time.Time) string {
	if at.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Local().Format(time.TimeOnly)
	}
	return at.Local().Format("Jan _2 " + time.TimeOnly)
}

// fields writes those of some named values that there are.
func (s *story) fields(title string, values [][2]string) {
	values = slices.DeleteFunc(values, func(v [2]string) bool { return v[1] == "" })
	if len(values) == 0 {
		return
	}
	s.heading(title)
	for _, v := range values {
		s.text(fmt.Sprintf("  %-14s", v[0]), v[1])
	}
}

// consumption says in hours what a job's pods have held; empty where that is nothing.
func consumption(used *v1alpha1.Consumption) string {
	if used == nil {
		return ""
	}
	parts := []string{hours(used.CPUCoreSeconds) + " core hours", hours(used.MemoryGiBSeconds) + " GiB hours of memory"}
	for _, name := range slices.Sorted(maps.Keys(used.GPUSeconds)) {
		parts = append(parts, hours(used.GPUSeconds[name])+" hours of "+name)
	}
	return strings.Join(parts, ", ")
}

func hours(seconds int64) string { return strconv.FormatFloat(float64(seconds)/3600, 'f', 2, 64) }

// progress is what the program tells of its training.
func progressOf(t *v1alpha1.Training) string {
	if t == nil {
		return ""
	}
	var parts []string
	for _, value := range []struct{ name, text string }{{"epoch", t.Epoch}, {"step", t.Step}, {"loss", t.Loss}, {"accuracy", t.Accuracy}, {"progress", t.Progress}} {
		if value.text != "" {
			parts = append(parts, value.name+" "+value.text)
		}
	}
	return strings.Join(parts, ", ")
}
