package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

// jobInBucket returns a job that was deleted, with the last line in its report, and complete logs at the address of an index.
func jobInBucket(index string) jobs.Job {
	report := &v1alpha1.JobReport{}
	report.Namespace, report.Spec.JobRef.Kind, report.Spec.JobRef.Name = "team", "MPIJob", "train"
	report.Status = v1alpha1.JobReportStatus{
		CompletionTime: new(metav1.Now()), Pods: []v1alpha1.PodStatus{{Role: "launcher", Name: "l"}},
		Failure:      &v1alpha1.Failure{Code: "Unknown", LogTail: []string{"[l] the tail"}},
		CompleteLogs: &v1alpha1.CompleteLogs{Index: index, Expires: new(metav1.NewTime(time.Now().Add(time.Hour))), Lines: 1, Pods: 1},
	}
	return jobs.FromReport(report)
}

// TestFileWithoutCompleteLogs: the first line of a file states that the complete logs cannot be read.
func TestFileWithoutCompleteLogs(t *testing.T) {
	t.Parallel()
	bucket := httptest.NewServer(http.NotFoundHandler())
	defer bucket.Close()
	server := newServerFor(t, newBackend(t), Options{LogBucket: bucket.URL})
	const note = "These are the lines that the pods and the report of the job have, not its complete logs: read the complete logs of mpijob/train: 127.0.0.1"
	for asJSON, want := range map[bool]string{false: "# " + note, true: `{"note":"` + note} {
		w := httptest.NewRecorder()
		c := &call{user: &user{}, ctx: t.Context()}
		err := server.downloadLogs(c, jobInBucket(bucket.URL+"/index?signed"), logstream.Options{}, asJSON, w)
		if file := w.Body.String(); err != nil || !strings.HasPrefix(file, want) || !strings.Contains(file, "the tail") || strings.Contains(file, "signed") {
			t.Errorf("the file has %s: %v", file, err)
		}
	}
}

// TestCompleteLogsAreBounded: a user who reads too many is refused before anything is read, and what was read makes room.
func TestCompleteLogsAreBounded(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(logs.Index{})
	}))
	defer bucket.Close()
	server := newServerFor(t, newBackend(t), Options{LogBucket: bucket.URL})
	read := func() (*httptest.ResponseRecorder, error) {
		w := httptest.NewRecorder()
		return w, server.downloadLogs(&call{user: &user{name: "ada"}, ctx: t.Context()}, jobInBucket(bucket.URL+"/index"), logstream.Options{}, false, w)
	}
	for range 2 * maxUserLogs / completeLogsWeight {
		if _, err := read(); err != nil {
			t.Fatal(err)
		}
	}
	release, err := server.logs.acquire("ada", maxUserLogs-completeLogsWeight+1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	before := asked.Load()
	if w, err := read(); !isBusy(err) || asked.Load() != before || len(w.Header()) > 0 {
		t.Errorf("%v, after %d requests, with %v", err, asked.Load()-before, w.Header())
	}
}
