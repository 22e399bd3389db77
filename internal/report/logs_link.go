package report

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// A LogsLink makes links to the logs of jobs in a log store, such as Loki. The zero value makes none.
type LogsLink struct{ template string }

// ParseLogsLink reads a template of links (see mpi.CheckLinkTemplate). An empty template makes no links.
func ParseLogsLink(template string) (LogsLink, error) {
	if template == "" {
		return LogsLink{}, nil
	}
	if err := mpi.CheckLinkTemplate(template, maxLogsLink/2); err != nil {
		return LogsLink{}, err
	}
	return LogsLink{template}, nil
}

// maxLogsLink is the longest link that the API allows.
const maxLogsLink = 4096

// Of returns the link to the logs of the job of a report; "" if there is none.
func (l LogsLink) Of(report *v1alpha1.JobReport) string {
	if l.template == "" {
		return ""
	}
	made := mpi.ExpandLink(l.template, linkValues(report))
	if len(made) > maxLogsLink {
		return ""
	}
	return made
}

// linkValues returns the values of the placeholders of links.
func linkValues(report *v1alpha1.JobReport) map[string]string {
	job, status := report.Spec.JobRef, report.Status
	start, startMs := stamps(status.StartTime, report.CreationTimestamp.Time)
	end, endMs := "now", "now"
	if status.CompletionTime != nil {
		// Log stores have the last lines a moment later.
		end, endMs = stamps(&metav1.Time{Time: status.CompletionTime.Add(time.Minute)}, time.Time{})
	}
	return map[string]string{
		"namespace": report.Namespace, "kind": job.Kind, "name": job.Name, "uid": string(job.UID),
		"start": start, "end": end, "startMs": startMs, "endMs": endMs,
	}
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
