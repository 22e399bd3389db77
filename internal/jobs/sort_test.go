package jobs

import (
	"slices"
	"strings"
	"testing"
)

func TestSort(t *testing.T) {
	t.Parallel()
	job := func(namespace, name, kind, status string) Job {
		return Job{Namespace: namespace, Name: name, Kind: kind, Report: reportFor(kind, name, namespace+name, statusOf(t, status))}
	}
	running := job("b", "run", "MPIJob", "{phase: Running, startTime: 2026-11-21T07:00:00Z, runningTime: 2026-11-21T09:00:00Z}")
	ended := job("a", "end", "TrainJob", "{phase: Succeeded, startTime: 2026-11-21T06:00:00Z, runningTime: 2026-11-21T06:00:00Z, completionTime: 2026-11-21T08:00:00Z}")
	queued := job("a", "queue", "MPIJob", "{phase: Queued, startTime: 2026-11-21T09:00:00Z}")
	unreported := FromObject(object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: new}}"))
	unreported.Object.SetCreationTimestamp(*ago(0))
	for by, want := range map[string]string{
		"":         "end queue run new",
		"name":     "end new queue run",
		"kind":     "queue run new end",
		"phase":    "new queue run end",
		"age":      "new queue run end",
		"duration": "end run queue new",
	} {
		all := []Job{unreported, running, queued, ended}
		Sort(all, by, now)
		if got := strings.Join(namesOf(all), " "); got != want {
			t.Errorf("by %q: %s, want %s", by, got, want)
		}
		if by != "" && !slices.Contains(ListSorts(), by) {
			t.Errorf("%s is not offered", by)
		}
	}
	if len(ListSorts()) != 5 {
		t.Errorf("of %v only some are tested", ListSorts())
	}
	same := []Job{{Namespace: "a", Name: "x", Kind: "TrainJob"}, {Namespace: "a", Name: "x", Kind: "MPIJob", UID: "2"}, {Namespace: "a", Name: "x", Kind: "MPIJob", UID: "1"}}
	Sort(same, "age", now)
	if same[0].UID != "1" || same[1].UID != "2" || same[2].Kind != "TrainJob" {
		t.Errorf("jobs of one name are in the order %v", same)
	}
}
