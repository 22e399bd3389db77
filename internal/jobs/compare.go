package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/logs"
)

// Comparison is two jobs side by side.
type Comparison struct {
	// Note says why the fields cannot be compared, or that secrets in them are masked; empty otherwise.
	Note string `json:"note,omitempty"`
	// Fields, Run, Usage and Findings are the parts, each with a row per property. A value is empty if a job does not have it. Fields
	// is nil if they cannot be compared.
	Fields   []ComparedValue `json:"fields"`
	Run      []ComparedValue `json:"run"`
	Usage    []ComparedValue `json:"usage"`
	Findings []ComparedValue `json:"findings"`
}

// ComparedValue is a property of two jobs.
type ComparedValue struct {
	Name string `json:"name"`
	A    string `json:"a,omitempty"`
	B    string `json:"b,omitempty"`
}

// Differences returns the values that differ.
func (c Comparison) Differences() Comparison {
	for _, part := range []*[]ComparedValue{&c.Fields, &c.Run, &c.Usage, &c.Findings} {
		*part = slices.DeleteFunc(slices.Clone(*part), func(row ComparedValue) bool { return row.A == row.B })
	}
	return c
}

// Compare compares the fields of two jobs, their runs, usage and findings. Without prices (nil) there is no cost.
func Compare(a, b Job, prices *cost.Prices, now time.Time) Comparison {
	fields, note := compareFields(a, b)
	run := compareRuns(a.Status(), b.Status(), now)
	if fields == nil {
		run = append(compareSummaries(a, b), run...)
	}
	return Comparison{Note: note, Fields: fields, Run: run, Usage: compareUsage(a.Status(), b.Status(), prices), Findings: compareFindings(a.Status(), b.Status())}
}

func compareFields(a, b Job) (rows []ComparedValue, note string) {
	writtenA, errA := a.Written()
	writtenB, errB := b.Written()
	switch {
	case errA != nil && errB != nil:
		return nil, "both jobs are deleted; their reports do not contain the jobs' fields"
	case errA != nil:
		return nil, errA.Error()
	case errB != nil:
		return nil, errB.Error()
	case a.Kind != b.Kind:
		return nil, "the fields of jobs of different kinds cannot be compared"
	}
	fieldsA, fieldsB := map[string]string{}, map[string]string{}
	flatten(writtenA.Object, "", fieldsA)
	flatten(writtenB.Object, "", fieldsB)
	all := maps.Clone(fieldsA)
	maps.Copy(all, fieldsB)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch name {
		case "metadata.name", "metadata.namespace", "apiVersion", "kind":
			continue
		}
		row := ComparedValue{name, fieldsA[name], fieldsB[name]}
		if a.Object == nil || b.Object == nil {
			if row.A, row.B = alignMasked(row.A, row.B); strings.Contains(row.A, logs.Masked) && row.A == row.B {
				note = "secrets are masked in the reports of deleted jobs; whether masked values differ is unknown"
			}
		}
		rows = append(rows, row)
	}
	return rows, note
}

// flatten writes every value of an object under its path. A list of plain values is one value. The path of a list entry
// contains its name if it has one.
func flatten(value any, path string, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, entry := range v {
			flatten(entry, joinPath(path, name), into)
		}
	case []any:
		flattenList(v, path, into)
	case nil:
	default:
		into[path] = fmt.Sprint(v)
	}
}

func joinPath(path, name string) string {
	switch {
	case strings.Contains(name, "."):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func flattenList(list []any, path string, into map[string]string) {
	var words []string
	for i, entry := range list {
		fields, is := entry.(map[string]any)
		if !is {
			words = append(words, fmt.Sprint(entry))
			continue
		}
		key := strconv.Itoa(i)
		if name, is := fields["name"].(string); is && len(fields) > 1 {
			key, fields = name, maps.Clone(fields)
			delete(fields, "name")
		}
		flatten(fields, path+"["+key+"]", into)
	}
	if len(words) > 0 {
		into[path] = strings.Join(words, " ")
	}
}

// compareSummaries compares what the reports contain of jobs whose fields cannot be compared.
func compareSummaries(a, b Job) []ComparedValue {
	ofA, ofB := a.Summary(), b.Summary()
	return []ComparedValue{
		{"image", ofA.Image, ofB.Image},
		{"command", a.CommandText(), b.CommandText()},
		{"per worker", ResourcesText(ofA.Worker), ResourcesText(ofB.Worker)},
		{"runtime", ofA.Runtime, ofB.Runtime},
		{"creator", a.Creator(), b.Creator()},
	}
}

func compareRuns(a, b v1alpha1.JobReportStatus, now time.Time) []ComparedValue {
	var rows []ComparedValue
	add := func(name string, value func(v1alpha1.JobReportStatus) string) {
		rows = append(rows, ComparedValue{name, value(a), value(b)})
	}
	add("phase", func(s v1alpha1.JobReportStatus) string { return string(s.Phase) })
	add("reason", func(s v1alpha1.JobReportStatus) string { return s.Reason })
	add("MPI", MPIText)
	add("ranks", func(s v1alpha1.JobReportStatus) string { return numberText(s.MPI.Ranks) })
	add("workers", func(s v1alpha1.JobReportStatus) string { return numberText(int64(s.Workers.Wanted)) })
	for _, phase := range Phases() {
		add("time "+string(phase), func(s v1alpha1.JobReportStatus) string { return timeIn(s, phase, now) })
	}
	add("until all pods ran", func(s v1alpha1.JobReportStatus) string { return timeBetween(s.StartTime, s.RunningTime) })
	add("total", func(s v1alpha1.JobReportStatus) string { return timeBetween(s.StartTime, s.CompletionTime) })
	add("connect", func(s v1alpha1.JobReportStatus) string { return MillisecondsText(s.MPI.ConnectMilliseconds) })
	add("MPI init", func(s v1alpha1.JobReportStatus) string { return MillisecondsText(s.MPI.InitMilliseconds) })
	add("training", func(s v1alpha1.JobReportStatus) string { return TrainingText(s.Training) })
	return rows
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// MillisecondsText returns a duration; empty for 0.
func MillisecondsText(n int64) string {
	if n == 0 {
		return ""
	}
	return (time.Duration(n) * time.Millisecond).String()
}

// timeIn returns how long a job has been in a phase; empty if it never was, and for the phase in which it ended.
func timeIn(s v1alpha1.JobReportStatus, phase v1alpha1.Phase, now time.Time) string {
	for _, t := range s.PhaseTimes {
		if t.Phase != phase {
			continue
		}
		spent := time.Duration(t.Seconds) * time.Second
		if s.Phase == phase {
			if s.CompletionTime != nil {
				return ""
			}
			spent += now.Sub(t.Since.Time)
		}
		return duration.HumanDuration(max(0, spent))
	}
	return ""
}

// timeBetween returns the time from one moment to another; empty if one of them is unknown.
func timeBetween(from, to *metav1.Time) string {
	if from == nil || to == nil {
		return ""
	}
	return Since(*from, to.Time)
}

func compareUsage(a, b v1alpha1.JobReportStatus, prices *cost.Prices) []ComparedValue {
	useA, useB := cost.Consumed(a.Consumption), cost.Consumed(b.Consumption)
	rows := []ComparedValue{
		{"core hours", HoursText(useA.CoreHours), HoursText(useB.CoreHours)},
		{"GiB hours", HoursText(useA.GiBHours), HoursText(useB.GiBHours)},
	}
	both := useA.Plus(useB)
	for _, name := range slices.Sorted(maps.Keys(both.DeviceHours)) {
		rows = append(rows, ComparedValue{name + " hours", HoursText(useA.DeviceHours[name]), HoursText(useB.DeviceHours[name])})
	}
	if prices != nil {
		rates := prices.On(nil)
		rows = append(rows, ComparedValue{"cost", prices.Amount(rates.Of(useA)), prices.Amount(rates.Of(useB))})
	}
	return rows
}

// HoursText returns hours with enough digits to tell small jobs apart.
func HoursText(hours float64) string {
	if hours < 10 {
		return strconv.FormatFloat(hours, 'f', 2, 64)
	}
	return strconv.FormatFloat(hours, 'f', 1, 64)
}

// compareFindings has a row for each code, those of the first job first.
func compareFindings(a, b v1alpha1.JobReportStatus) []ComparedValue {
	summary := func(all []v1alpha1.Finding, code string) string {
		for _, finding := range all {
			if finding.Code == code {
				return finding.Summary
			}
		}
		return ""
	}
	var rows []ComparedValue
	for _, finding := range append(slices.Clone(a.Findings), b.Findings...) {
		if !slices.ContainsFunc(rows, func(row ComparedValue) bool { return row.Name == finding.Code }) {
			rows = append(rows, ComparedValue{finding.Code, summary(a.Findings, finding.Code), summary(b.Findings, finding.Code)})
		}
	}
	return rows
}
