package report

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// A LogsLink makes links to the logs of jobs in a log store, such as Loki. The zero value makes none.
type LogsLink struct{ template string }

// linkFields are the placeholders of a template.
var linkFields = []string{"namespace", "kind", "name", "uid", "start", "end", "startMs", "endMs"}

var linkField = regexp.MustCompile(`\{(\w*)\}`)

// ParseLogsLink reads a template of links: an http or https URL with the placeholders {namespace}, {kind}, {name} and {uid} of the job,
// {start} and {end} in RFC 3339, and {startMs} and {endMs} in milliseconds since 1970. The last four are those of the job, with
// "now" as the end of one that has not ended. Values are escaped for a query. Other braces are part of the URL, such as those of a
// selector {app="x"}. An empty template makes no links.
func ParseLogsLink(template string) (LogsLink, error) {
	link := LogsLink{template}
	if template == "" {
		return link, nil
	}
	for _, field := range linkField.FindAllStringSubmatch(template, -1) {
		if !slices.Contains(linkFields, field[1]) {
			return LogsLink{}, fmt.Errorf("%q has the unknown placeholder %s; use {%s}", template, field[0], strings.Join(linkFields, "}, {"))
		}
	}
	sample, err := url.Parse(linkField.ReplaceAllString(template, "x"))
	switch {
	case err != nil:
		return LogsLink{}, fmt.Errorf("%q is not a URL: %w", template, err)
	case sample.Scheme != "https" && sample.Scheme != "http" || sample.Host == "":
		return LogsLink{}, fmt.Errorf("%q is not a URL of a web page; start it with https://", template)
	case len(template) > maxLogsLink/2:
		return LogsLink{}, fmt.Errorf("the URL has %d characters; use at most %d", len(template), maxLogsLink/2)
	}
	return link, nil
}

// maxLogsLink is the longest link that the API allows.
const maxLogsLink = 4096

// Of returns the link to the logs of the job of a report; "" if there is none.
func (l LogsLink) Of(report *v1alpha1.JobReport) string {
	if l.template == "" {
		return ""
	}
	job, status := report.Spec.JobRef, report.Status
	start, startMs := stamps(status.StartTime, report.CreationTimestamp.Time)
	end, endMs := "now", "now"
	if status.CompletionTime != nil {
		// Log stores have the last lines a moment later.
		end, endMs = stamps(&metav1.Time{Time: status.CompletionTime.Add(time.Minute)}, time.Time{})
	}
	values := map[string]string{
		"namespace": report.Namespace, "kind": job.Kind, "name": job.Name, "uid": string(job.UID),
		"start": start, "end": end, "startMs": startMs, "endMs": endMs,
	}
	made := linkField.ReplaceAllStringFunc(l.template, func(field string) string { return url.QueryEscape(values[field[1:len(field)-1]]) })
	if len(made) > maxLogsLink {
		return ""
	}
	return made
}

// stamps returns a time in RFC 3339 and in milliseconds since 1970.
func stamps(at *metav1.Time, otherwise time.Time) (text, ms string) {
	if at != nil {
		otherwise = at.Time
	}
	if otherwise.IsZero() {
		return "now", "now"
	}
	return otherwise.UTC().Format(time.RFC3339), strconv.FormatInt(otherwise.UnixMilli(), 10)
}
