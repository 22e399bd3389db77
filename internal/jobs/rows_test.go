package jobs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// tables serves tables of reports as an API server does, and returns a client of it.
func tables(t *testing.T, respond func(w http.ResponseWriter, r *http.Request)) rest.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(respond))
	t.Cleanup(server.Close)
	api, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// tableOf returns a table with the cells of a report by the names of columns.
func tableOf(next string, rows ...map[string]any) map[string]any {
	var columns, all []any
	var names []string
	for name := range reportColumns {
		names, columns = append(names, name), append(columns, map[string]any{"name": name})
	}
	for _, row := range rows {
		cells := make([]any, len(names))
		for i, name := range names {
			cells[i] = row[name]
		}
		all = append(all, map[string]any{"cells": cells})
	}
	return map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"continue": next}, "columnDefinitions": columns, "rows": all}
}

func TestListRows(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, object(t, mpiJobText), object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: new, namespace: ns, uid: new-uid, labels: {team: a}}, spec: {slotsPerWorker: 2}}"))
	pages := 0
	c.WithREST(tables(t, func(w http.ResponseWriter, r *http.Request) {
		pages++
		query := r.URL.Query()
		if r.URL.Path != "/apis/mpi.opendatahub.io/v1alpha1/namespaces/ns/jobreports" || query.Get("includeObject") != "None" || !strings.HasPrefix(r.Header.Get("Accept"), "application/json;as=Table;") {
			t.Errorf("%s was requested, as %s", r.URL, r.Header.Get("Accept"))
		}
		page := tableOf("", map[string]any{"Name": "gone-1", "Job": "gone", "Kind": "MPIJob", "UID": "gone-uid", "Phase": "Failed"})
		if query.Get("continue") == "" {
			page = tableOf("more", map[string]any{
				"Name": "pi-1", "Job": "pi", "Kind": "MPIJob", "UID": "pi-uid", "Phase": "Queued", "Reason": "Waits", "Why": "QuotaExceeded", "Severity": "Error", "Workers": "0/2",
				"Message": "It waits.", "Queue": "q", "Position": "3", "MPI": "OpenMPI", "Ranks": "8", "Started": "2026-11-21T09:00:00Z", "Running": nil, "Ended": nil,
			})
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	list, err := c.List(t.Context(), Selection{Namespace: "ns", Rows: true, Deleted: true})
	if err != nil || len(list.Omitted) != 0 || pages != 2 {
		t.Fatalf("%v, omitted %v, %d pages", err, list.Omitted, pages)
	}
	var names []string
	for _, job := range list.Jobs {
		names = append(names, job.Name+" "+job.Reason()+" "+job.Age(now))
	}
	if diff := cmp.Diff([]string{"gone - -", "new NoReport " + Since(metav1.Time{}, now), "pi QuotaExceeded " + list.Jobs[2].Age(now)}, names); diff != "" {
		t.Fatalf("the jobs differ (-want +got):\n%s", diff)
	}
	if _, has := list.Jobs[1].Object.Object["spec"]; has || list.Jobs[1].Object.GetLabels()["team"] != "a" {
		t.Errorf("the job has %v", list.Jobs[1].Object.Object)
	}
	start := metav1.Time{Time: now.Add(-3600e9)}
	want := v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseQueued, Reason: "Waits", Message: "It waits.", StartTime: &start, Workers: v1alpha1.WorkersStatus{Summary: "0/2"}, MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI", Ranks: 8},
		Findings: []v1alpha1.Finding{{Code: "QuotaExceeded", Severity: v1alpha1.SeverityError}}, Scheduling: &v1alpha1.SchedulingStatus{Queue: "q", Position: new(int32(3))},
	}
	if diff := cmp.Diff(want, list.Jobs[2].Status()); diff != "" {
		t.Errorf("the report differs (-want +got):\n%s", diff)
	}
}

// TestListRowsFallsBack: an earlier CustomResourceDefinition has fewer columns, and a server without tables answers with objects.
// Then whole reports are read.
func TestListRowsFallsBack(t *testing.T) {
	t.Parallel()
	old := tableOf("", map[string]any{"Job": "pi"})
	old["columnDefinitions"] = []any{map[string]any{"name": "Name"}, map[string]any{"name": "Job"}}
	for name, answer := range map[string]any{"fewer columns": old, "no table": map[string]any{"kind": "JobReportList", "items": []any{}}} {
		c, _ := newServer(t, object(t, mpiJobText), reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning}))
		c.WithREST(tables(t, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer) }))
		list, err := c.List(t.Context(), Selection{Namespace: "ns", Rows: true})
		if err != nil || len(list.Jobs) != 1 || list.Jobs[0].Phase() != v1alpha1.PhaseRunning {
			t.Errorf("%s: %v, %+v", name, err, list.Jobs)
		}
	}
}

func TestListRowsErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		respond func(w http.ResponseWriter)
		omitted string
		err     string
	}{
		"may not be read": {omitted: "JobReport", respond: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("jobreports").GroupResource(), "", nil).Status())
		}},
		"not installed": {omitted: "JobReport", respond: func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }},
		"no JSON":       {err: "list JobReports: read the table: ", respond: func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }},
		"a wrong cell": {err: "read Ranks of JobReport pi-1: ", respond: func(w http.ResponseWriter) {
			_ = json.NewEncoder(w).Encode(tableOf("", map[string]any{"Name": "pi-1", "Ranks": "many"}))
		}},
	} {
		c, _ := newServer(t, object(t, mpiJobText))
		c.WithREST(tables(t, func(w http.ResponseWriter, _ *http.Request) { test.respond(w) }))
		list, err := c.List(t.Context(), Selection{Namespace: "ns", Rows: true})
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %s", name, err, test.err)
			}
			continue
		}
		if err != nil || len(list.Jobs) != 1 || len(list.Omitted) != 1 || list.Omitted[0].Kind != test.omitted {
			t.Errorf("%s: %v, %+v", name, err, list)
		}
	}
}
