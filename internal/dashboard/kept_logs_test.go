package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/logs"
)

// TestLogsOfADeletedJob shows and downloads the lines in the report of a job that succeeded and was deleted.
func TestLogsOfADeletedJob(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "kept-logs", "user")["user"]}
	gone := mpiJob(t, "kept-logs", "train", nil)
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	packed := logs.Pack([]logs.PodLog{
		{Lines: []logs.PodLine{{Pod: "train-launcher-x", Time: at, Text: "start"}, {Pod: "train-launcher-x", Time: at.Add(2 * time.Second), Text: "[1,1]<stdout>:one"}}},
		{Lines: []logs.PodLine{{Pod: "train-worker-0", Time: at.Add(time.Second), Text: "zero"}}, Cut: true},
	}, 1<<20)
	report(t, gone, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseSucceeded, MPI: v1alpha1.MPIStatus{SlotsPerWorker: 1, Ranks: 2}, Workers: v1alpha1.WorkersStatus{Wanted: 2},
		Pods: []v1alpha1.PodStatus{{Role: "launcher", Name: "train-launcher-x"}, {Role: "worker", Name: "train-worker-0"}},
		Logs: &v1alpha1.Logs{Data: packed.Data, Size: int32(len(packed.Data)), Lines: 3, Pods: 2, PodsCut: 1},
	})
	must(t, api.Delete(t.Context(), gone))
	const path = "namespaces/kept-logs/jobs/mpijob/train"
	const note = "The pods are deleted. These are the last log lines in the job's report: only the last log lines of 1 pod are kept."
	for query, want := range map[string]string{
		"?download=true":                         "# " + note + "\n2026-11-21T10:00:00Z [launcher] start\n2026-11-21T10:00:01Z [worker-0 r0] zero\n2026-11-21T10:00:02Z [worker-1 r1] one\n",
		"?download=true&ranks=1":                 "# " + note + "\n2026-11-21T10:00:02Z [worker-1 r1] one\n",
		"?download=json&to=2026-11-21T10:00:00Z": `{"note":"` + note + `"}` + "\n" + `{"time":"2026-11-21T10:00:00.000000Z","pod":"train-launcher-x","role":"launcher","index":0,"text":"start"}` + "\n",
	} {
		if status, body := user.send(http.MethodGet, path+"/logs"+query, nil); status != http.StatusOK || string(body) != want {
			t.Errorf("%s: status %d: %s, want %s", query, status, body, want)
		}
	}
	if status, body := user.send(http.MethodGet, path+"/logs", nil); status != http.StatusOK || !strings.Contains(string(body), `"x":"zero"`) || !strings.Contains(string(body), "in the job's report: only the last log lines of 1 pod are kept.") {
		t.Errorf("status %d: %s", status, body)
	}
	if detail := get[dashboard.Detail](user, path); detail.Status == nil || detail.Status.Logs != nil {
		t.Errorf("the page of the job has the status %+v", detail.Status)
	}
}
