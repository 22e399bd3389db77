package trace

import (
	"fmt"
	"regexp"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"opendatahub.io/mpijob/internal/agentapi"
)

// nameSession is the span of a session in which the launcher started ranks on a host.
const nameSession = "Session"

// maxSessions is how many sessions of a job have spans, of all runs of its launcher.
const maxSessions = 64

// Programs of the job can write what agents report. These are the names of hosts and codes that are believed.
var (
	isHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,61}[A-Za-z0-9])?$`)
	isCode = regexp.MustCompile(`^[A-Za-z]{1,40}$`)
)

// sessions returns a span for each of the sessions of the launcher's runs, within the time of the job.
func (b builder) sessions(runs []agentapi.Sessions) (spans []Span) {
	for number, run := range runs {
		for i, s := range run.List {
			if i == agentapi.MaxSessions || len(spans) == maxSessions {
				break
			}
			if !isHost.MatchString(s.Host) {
				continue
			}
			// at returns the time after a number of milliseconds of the session.
			at := func(after int64) time.Time {
				return b.within(time.UnixMilli(run.First).Add(milliseconds(s.At)).Add(milliseconds(after)))
			}
			part := fmt.Sprintf("session %d %d", number, i)
			span := b.span(part, b.root, nameSession, at(0), at(s.End), attribute.String(attributeHost, s.Host))
			if s.Connected > 0 {
				span.Events = append(span.Events, Event{Name: "Connected", At: at(s.Connected)})
			}
			if s.Ranks > 0 {
				span.Events = append(span.Events, Event{Name: "RanksStarted", At: at(s.Ranks)})
			}
			if isCode.MatchString(string(s.Code)) {
				span.Failed = true
				span.Attributes = append(span.Attributes, semconv.ErrorTypeKey.String(string(s.Code)))
			}
			spans = append(spans, span)
		}
	}
	return spans
}

// within returns a time within that of the job.
func (b builder) within(at time.Time) time.Time {
	if start := b.record.Status.StartTime; start != nil && at.Before(start.Time) {
		return start.Time
	}
	if end := b.record.Status.CompletionTime; end != nil && at.After(end.Time) {
		return end.Time
	}
	return at
}

// milliseconds returns a number of milliseconds, which is bounded.
func milliseconds(n int64) time.Duration {
	const most = 10 * 365 * 24 * time.Hour
	return time.Duration(min(max(n, 0), most.Milliseconds())) * time.Millisecond
}

// countSessions returns the number of all sessions, with those without a span.
func countSessions(runs []agentapi.Sessions) (all int64) {
	for _, run := range runs {
		all += max(0, int64(run.Count))
	}
	return all
}
