package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestInvalidRequestsListEveryError(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "invalid", "user")["user"]}
	draft := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: jobs.Spec{Name: "Not_DNS", CPU: "many", Memory: "-1Gi"}, DryRun: true})
	if draft.Problem == nil {
		t.Fatal("there is no problem")
	}
	var fields []string
	for _, field := range draft.Problem.Fields {
		fields = append(fields, field.Field)
	}
	if got := strings.Join(fields, " "); got != "name namespace image command workers cpu memory" {
		t.Errorf("errors of the fields %s", got)
	}
	for name, yaml := range map[string]string{
		"not YAML": "\tx: [", "no job": "kind: Pod\napiVersion: v1\nmetadata: {name: x}", "two jobs": "kind: List\nitems: [{kind: MPIJob}, {kind: MPIJob}]", "no name": "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob",
	} {
		if draft := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: jobs.Spec{Namespace: "invalid"}, YAML: yaml}); draft.Problem == nil || draft.Problem.Code != "Invalid" {
			t.Errorf("%s: %+v", name, draft)
		}
	}
	for _, path := range []string{
		"jobs?sort=color", "jobs?page=0", "jobs?size=100000", "jobs?phase=Happy", "usage?since=yesterday", "usage?since=1d&until=2d", "usage?by=color", "namespaces/invalid/jobs/pod/x", "namespaces/invalid/compare?job=x", "namespaces/invalid/jobs/mpijob/x/logs?to=noon",
		"namespaces/invalid/jobs/mpijob/x/logs?from=2026-11-21T13:00:00Z&to=2026-11-21T12:00:00Z",
	} {
		if status, body := user.send(http.MethodGet, path, nil); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	if status, body := user.send(http.MethodGet, "nothing", nil); status != http.StatusNotFound || !strings.Contains(string(body), "openapi.json") {
		t.Errorf("an unknown path: status %d: %s", status, body)
	}
	if status, body := user.send(http.MethodPost, "jobs", map[string]any{"spec": map[string]any{"name": "x", "wrokers": 2}}); status != http.StatusUnprocessableEntity || !strings.Contains(string(body), "wrokers") {
		t.Errorf("an unknown field: status %d: %s", status, body)
	}
}
