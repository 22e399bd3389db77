package jobs

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func withCompleteLogs(kept *v1alpha1.CompleteLogs) Job {
	report := &v1alpha1.JobReport{}
	report.Spec.JobRef.Kind, report.Spec.JobRef.Name, report.Status.CompleteLogs = "MPIJob", "pi", kept
	return FromReport(report)
}

func TestCompleteLogsOfReport(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	later := new(metav1.NewTime(now.Add(time.Hour)))
	for name, test := range map[string]struct {
		kept       *v1alpha1.CompleteLogs
		has        bool
		text, note string
	}{
		"none":     {nil, false, "", ""},
		"complete": {&v1alpha1.CompleteLogs{Index: "https://x", Expires: later, Lines: 1200, Pods: 1}, true, "1200 lines of 1 pod, until 2026-11-21T11:00:00Z", ""},
		"expired":  {&v1alpha1.CompleteLogs{Index: "https://x", Expires: new(metav1.NewTime(now)), Lines: 1, Pods: 2}, false, "1 line of 2 pods, until 2026-11-21T10:00:00Z", ""},
		"late":     {&v1alpha1.CompleteLogs{Message: "not kept yet"}, false, "not kept yet", "not kept yet"},
		"cut": {
			&v1alpha1.CompleteLogs{Index: "https://x", Expires: later, Lines: 2, Pods: 3, PodsCut: 1, PodsUnread: 2, Message: "it was deleted"}, true,
			"2 lines of 3 pods, until 2026-11-21T11:00:00Z", "lines of 1 pod may be missing; the logs of 2 pods could not be read; it was deleted",
		},
	} {
		job := withCompleteLogs(test.kept)
		if has, text, note := job.HasCompleteLogs(now), job.CompleteLogsText(), job.CompleteLogsNote(); has != test.has || text != test.text || note != test.note {
			t.Errorf("%s: %v, %q, %q", name, has, text, note)
		}
	}
}

// TestFetch: errors do not contain the signature, and no redirect is followed.
func TestFetch(t *testing.T) {
	t.Parallel()
	const signature = "X-Amz-Signature=5ec2e7"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index":
			_, _ = io.WriteString(w, `{"pods":[{"name":"w"}]}`)
		case "/damaged":
			_, _ = io.WriteString(w, `no JSON`)
		case "/elsewhere":
			http.Redirect(w, r, "/index?"+signature, http.StatusFound)
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer server.Close()
	for path, wrong := range map[string]string{
		server.URL + "/index": "", server.URL + "/damaged": "the index of the complete logs is damaged", server.URL + "/elsewhere": "answers 302 Found",
		server.URL + "/other": "answers 403 Forbidden", "http://127.0.0.1:1/index": "127.0.0.1:1 does not answer", "file:///etc/passwd": "address of the complete logs is invalid",
		"://": "address of the complete logs is invalid",
	} {
		stored, err := withCompleteLogs(&v1alpha1.CompleteLogs{Index: path + "?" + signature}).CompleteLogs(context.WithoutCancel(t.Context()), NewFetch(nil, ""))
		switch {
		case wrong == "" && (err != nil || len(stored.Index.Pods) != 1):
			t.Errorf("%s: %+v, %v", path, stored.Index, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), signature)):
			t.Errorf("%s: %v, want %q", path, err, wrong)
		}
	}
}
