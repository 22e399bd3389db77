package dashboard_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestLogOfARunningJobEndsWithTheJob(t *testing.T) {
	needsServer(t)
	token := namespace(t, "follow", "user")["user"]
	job := mpiJob(t, "follow", "running", nil)
	report(t, job, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning})
	events := openStream(t, token, "namespaces/follow/jobs/mpijob/running/logs?follow=true", "")
	var found v1alpha1.JobReport
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "follow", Name: "mpijob-running"}, &found))
	found.Status.Phase, found.Status.CompletionTime = v1alpha1.PhaseSucceeded, new(metav1.Now())
	must(t, api.Update(t.Context(), &found))
	for event := events.next(); !strings.Contains(event.data, `"done":true`); event = events.next() {
		t.Logf("%s: %s", event.name, event.data)
	}
}
