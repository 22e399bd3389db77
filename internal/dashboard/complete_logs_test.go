package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/logs"
)

// TestCompleteLogsAreShown shows and downloads the complete logs of a job that was deleted, and only from the server that the administrator has named.
func TestCompleteLogsAreShown(t *testing.T) {
	needsServer(t)
	token := namespace(t, "complete-logs", "user")["user"]
	gone := mpiJob(t, "complete-logs", "train", nil)
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	_, err := zip.Write(logs.AppendLine(logs.AppendLine(nil, logs.PodLine{Pod: "train-launcher-x", Time: at, Text: "start"}), logs.PodLine{Pod: "train-launcher-x", Time: at.Add(time.Second), Text: "[1,1]<stdout>:one"}))
	must(t, err)
	must(t, zip.Close())
	asked := 0
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/part" {
			_, _ = w.Write(data.Bytes())
			return
		}
		index := logs.Index{Pods: []logs.IndexedPod{{Name: "train-launcher-x", Parts: []logs.IndexedPart{{URL: "http://" + r.Host + "/part?signed", First: at, Last: at.Add(time.Second), Lines: 2}}}}}
		must(t, json.NewEncoder(w).Encode(index))
	}))
	defer bucket.Close()
	report(t, gone, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseSucceeded, CompletionTime: new(metav1.Now()), MPI: v1alpha1.MPIStatus{SlotsPerWorker: 1, Ranks: 2}, Workers: v1alpha1.WorkersStatus{Wanted: 2},
		Pods:         []v1alpha1.PodStatus{{Role: "launcher", Name: "train-launcher-x"}},
		Failure:      &v1alpha1.Failure{Code: "Unknown", LogTail: []string{"[train-launcher-x] the tail"}},
		CompleteLogs: &v1alpha1.CompleteLogs{Index: bucket.URL + "/index?signed", Expires: new(metav1.NewTime(time.Now().Add(time.Hour))), Lines: 2, Pods: 1, PodsCut: 1},
	})
	must(t, api.Delete(t.Context(), gone))
	send := func(server string, path string) string {
		t.Helper()
		pages, err := newServer(dashboard.Options{TrustProxy: true, LogBucket: server})
		must(t, err)
		request := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/complete-logs/jobs/mpijob/train"+path, nil).WithContext(t.Context())
		request.Header.Set("X-Forwarded-Access-Token", token)
		recorder := httptest.NewRecorder()
		pages.Handler().ServeHTTP(recorder, request)
		if recorder.Code != http.StatusOK || strings.Contains(recorder.Body.String(), "signed") {
			t.Errorf("%s: status %d: %s", path, recorder.Code, recorder.Body)
		}
		return recorder.Body.String()
	}
	if got, want := send(bucket.URL, "/logs?download=true"), "# lines of 1 pod may be missing.\n2026-11-21T10:00:00Z [launcher] start\n2026-11-21T10:00:01Z [worker-1 r1] one\n"; got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
	shown := send(bucket.URL, "/logs?ranks=1")
	if !strings.Contains(shown, `"x":"one"`) || strings.Contains(shown, `"x":"start"`) || !strings.Contains(shown, "These are the complete logs: 2 lines of 1 pod, until ") || !strings.Contains(shown, "lines of 1 pod may be missing") {
		t.Errorf("the page shows %s", shown)
	}
	send(bucket.URL, "")
	before := asked
	for _, other := range []string{"", "https://" + strings.TrimPrefix(bucket.URL, "http://"), "http://127.0.0.1:1"} {
		if shown := send(other, "/logs"); !strings.Contains(shown, "the tail") || strings.Contains(shown, `"x":"start"`) || other != "" && !strings.Contains(shown, "not that of the dashboard's --log-bucket") {
			t.Errorf("with the server %q, the page shows %s", other, shown)
		}
	}
	if asked != before {
		t.Error("a server was asked that the administrator has not named")
	}
	for _, wrong := range []dashboard.Options{{LogBucket: "s3.example.com"}, {LogBucket: "https://x", LogBucketCA: "/nothing"}} {
		if _, err := newServer(wrong); err == nil || !strings.Contains(err.Error(), "--log-bucket") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
