package report_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/report"
)

// TestLogsLink: links have the job and its times, whose values cannot change the query; a wrong template is refused with what to write.
func TestLogsLink(t *testing.T) {
	at := func(hour int) *metav1.Time { return &metav1.Time{Time: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)} }
	made := func(end *metav1.Time) *v1alpha1.JobReport {
		r := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
		r.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", Name: "pi&x=1", UID: "u-1"}
		r.Status.StartTime, r.Status.CompletionTime = at(3), end
		return r
	}
	for name, test := range map[string]struct {
		template string
		report   *v1alpha1.JobReport
		want     string
	}{
		"none":               {"", made(nil), ""},
		"runs":               {"https://grafana/explore?ns={namespace}&from={startMs}&to={endMs}", made(nil), "https://grafana/explore?ns=team-a&from=1767322800000&to=now"},
		"has ended":          {"https://logs/?start={start}&end={end}", made(at(4)), "https://logs/?start=2026-01-02T03%3A00%3A00Z&end=2026-01-02T04%3A01%3A00Z"},
		"has a strange name": {"https://logs/?q={kind}/{name}/{uid}", made(nil), "https://logs/?q=MPIJob/pi%26x%3D1/u-1"},
		"a selector":         {`https://console/logs?q={kubernetes_namespace_name="{namespace}"}`, made(nil), `https://console/logs?q={kubernetes_namespace_name="team-a"}`},
		"not started":        {"https://logs/?start={start}", &v1alpha1.JobReport{}, "https://logs/?start=now"},
	} {
		t.Run(name, func(t *testing.T) {
			link, err := report.ParseLogsLink(test.template)
			if err != nil {
				t.Fatal(err)
			}
			if got := link.Of(test.report); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
	for template, want := range map[string]string{
		"https://logs/?pod={pod}":               "unknown placeholder {pod}; use {namespace}",
		"logs/{name}":                           "start it with https://",
		"javascript:alert(1)":                   "start it with https://",
		"https://logs/%zz":                      "is not a URL",
		"https://" + strings.Repeat("x", 5_000): "use at most",
	} {
		if _, err := report.ParseLogsLink(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: %v, want %q", template, err, want)
		}
	}
}
