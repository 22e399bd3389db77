package offline

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
)

const job = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train, namespace: team, uid: u1, creationTimestamp: "2026-01-02T10:00:00Z", generation: 1}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: i, command: [mpirun, python, t.py]}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: i}]}}}
`

// pods is a list as oc adm inspect writes it: its items have no kind.
const pods = `apiVersion: v1
kind: PodList
items:
- metadata:
    name: train-launcher-x
    namespace: team
    uid: p1
    creationTimestamp: "2026-01-02T10:00:05Z"
    labels: {training.kubeflow.org/job-name: train, training.kubeflow.org/operator-name: mpi-operator, training.kubeflow.org/job-role: launcher}
    ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train-launcher, uid: j1, controller: true}]
  spec: {nodeName: n1, containers: [{name: main, image: i}]}
  status:
    phase: Running
    containerStatuses:
    - {name: main, image: i, imageID: "", ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, startedAt: "2026-01-02T10:00:10Z", finishedAt: "2026-01-02T10:00:20Z"}}}
`

const events = `apiVersion: v1
kind: EventList
items:
- {metadata: {name: e, namespace: team}, involvedObject: {kind: Pod, name: other}, reason: Started, lastTimestamp: "2026-01-02T10:00:30Z"}
`

const traceback = "2026-01-02T10:00:19.5Z Traceback (most recent call last):\n2026-01-02T10:00:19.6Z ValueError: no data\n"

// write writes files into a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// read reads a folder.
func read(t *testing.T, folder string) *Saved {
	t.Helper()
	saved, err := Read(Input{Paths: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// diagnoseOne diagnoses the only job of files.
func diagnoseOne(t *testing.T, saved *Saved) Diagnosis {
	t.Helper()
	jobs := saved.Jobs()
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	found, err := saved.Diagnose(t.Context(), jobs[0], saved.Time(), logs.Masker{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func summaryOf(report v1alpha1.JobReport) string {
	if len(report.Status.Findings) == 0 {
		return ""
	}
	return report.Status.Findings[0].Summary
}

// TestFiles: the same cause is found however objects and logs were saved, and what is missing is named.
func TestFiles(t *testing.T) {
	const cause = "The program failed with exit code 1: ValueError: no data."
	launcher := "The launcher's Job: whether Kubernetes would start the launcher again is unknown."
	tests := map[string]struct {
		files   map[string]string
		summary string
		missing []string
	}{
		"lists and a log by the name of its pod": {
			map[string]string{"a.yaml": job + "---\n" + pods, "events.yaml": events, "train-launcher-x-previous.log": traceback},
			cause,
			[]string{launcher},
		},
		"a pod that is not ready, and no nodes": {
			map[string]string{
				"a.yaml":      job + "---\n" + strings.Replace(pods, "phase: Running\n", "phase: Running\n    conditions: [{type: Ready, status: \"False\"}]\n", 1),
				"events.yaml": events, "train-launcher-x-previous.log": traceback,
			},
			cause,
			[]string{launcher},
		},
		"the log of a container that waits": {
			map[string]string{"a.yaml": job + "---\n" + pods, "events.yaml": events, "train-launcher-x.log": traceback},
			cause,
			[]string{launcher},
		},
		"a log with the name of its container": {
			map[string]string{"a.yaml": job + "---\n" + pods, "events.yaml": events, "train-launcher-x_main-previous.log": traceback},
			cause,
			[]string{launcher},
		},
		"oc adm inspect": {
			map[string]string{
				"namespaces/team/team.yaml":                                          "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n",
				"namespaces/team/kubeflow.org/mpijobs/train.yaml":                    "---\n" + job,
				"namespaces/team/core/pods.yaml":                                     "---\n" + pods,
				"namespaces/team/core/events.yaml":                                   "---\n" + events,
				"namespaces/team/apps/deployments.yaml":                              "---\napiVersion: apps/v1\nitems: []\nkind: DeploymentList\n",
				"namespaces/team/pods/train-launcher-x/main/main/logs/current.log":   "",
				"namespaces/team/pods/train-launcher-x/main/main/logs/previous.log":  traceback,
				"namespaces/other/pods/train-launcher-x/main/main/logs/previous.log": "ValueError: of another namespace\n",
			},
			cause,
			[]string{launcher},
		},
		"no logs and events": {
			map[string]string{"a.yaml": job + "---\n" + pods},
			"The program failed with exit code 1.",
			[]string{
				launcher, "Events of namespace team: why pods were not scheduled, started or stopped is only known as far as the pods' status shows it.",
				"Logs of train-launcher-x: errors that the program or MPI printed there are unknown. Use --log POD=FILE.",
			},
		},
		"the job alone": {
			map[string]string{"a.yaml": job, "events.yaml": events},
			"",
			[]string{
				"Pods of the job: either none was created, or they were not saved. A refusal by the API server is unknown.",
				"Nodes and the pods of all namespaces: whether the job waits until all of its pods fit is unknown.",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			saved := read(t, write(t, test.files))
			if len(saved.Problems) > 0 {
				t.Errorf("problems: %q", saved.Problems)
			}
			found := diagnoseOne(t, saved)
			if got := summaryOf(found.Report); got != test.summary {
				t.Errorf("the cause is %q, want %q", got, test.summary)
			}
			if diff := cmp.Diff(test.missing, found.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if at := found.Report.Status.StartTime.UTC().Format(time.RFC3339); at != "2026-01-02T10:00:00Z" {
				t.Errorf("the job began at %s", at)
			}
		})
	}
}

// TestInputErrors: all that is wrong with files is reported at once, with the line or the field. In a folder it is a note, and the
// rest is read.
func TestInputErrors(t *testing.T) {
	folder := write(t, map[string]string{
		"good.yaml":  job,
		"bad.yaml":   "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: 3}\n---\na: [\n",
		"items.yaml": "apiVersion: v1\nkind: List\nitems:\n- 3\n- {apiVersion: v1, kind: Node, metadata: {}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, status: {containerStatuses: [{restartCount: x}]}}\n- {apiVersion: v1, kind: Pod, metadata: {name: \"a\\e[31m\"}}\n",
		"text.yaml":  "words\n",
		"old.yaml":   "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: old}\n",
		"_.log":      "",
	})
	in := Input{Logs: map[string]string{"pi": filepath.Join(folder, "none.log")}}
	for _, name := range []string{"good.yaml", "bad.yaml", "items.yaml", "text.yaml", "old.yaml", "none.yaml", "_.log"} {
		in.Paths = append(in.Paths, filepath.Join(folder, name))
	}
	_, err := Read(in)
	wrong, is := errors.AsType[*InputError](err)
	if !is {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, problem := range wrong.Problems {
		got = append(got, strings.ReplaceAll(problem, folder+"/", ""))
	}
	want := []string{
		"bad.yaml: Pod a: spec.containers: is a number, which is not allowed there",
		"bad.yaml: line 6: did not find expected node content",
		"items.yaml: items[0]: is not an object",
		"items.yaml: items[1]: Node: metadata.name: is missing",
		"items.yaml: items[2]: Pod b: status.containerStatuses.restartCount: is a string, which is not allowed there",
		`items.yaml: items[3]: Pod: metadata.name: "a\x1b[31m" is not a name of an object of Kubernetes`,
		"text.yaml: line 1: is not an object of Kubernetes; for a log, use --log POD=FILE",
		"old.yaml: MPIJob old: apiVersion: kubeflow.org/v1 is not supported",
		"none.yaml: no such file or directory",
		"_.log: the name does not begin with that of a pod; use --log POD=_.log",
		"log of pi: open none.log: no such file or directory",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	saved := read(t, folder)
	if len(saved.Jobs()) != 1 || !slices.ContainsFunc(saved.Problems, func(p string) bool { return strings.HasSuffix(p, want[1]) }) {
		t.Errorf("of the folder: %d jobs, problems %q", len(saved.Jobs()), saved.Problems)
	}
}

// TestTime: the time is that of must-gather, else the latest in the files, but never one that a user wrote into a job.
func TestTime(t *testing.T) {
	files := map[string]string{"a.yaml": job + "---\n" + pods}
	for _, step := range []struct{ file, text, want string }{
		{"none.txt", "", "2026-01-02T10:00:20Z"},
		{"events.yaml", events, "2026-01-02T10:00:30Z"},
		{"train-launcher-x.log", "2026-01-02T10:01:00Z working\n", "2026-01-02T10:01:00Z"},
		{"timestamp", "2026-01-02 10:02:00.5 +0000 UTC m=+0.1\n2026-01-02 10:03:00 +0000 UTC m=+60.1\n", "2026-01-02T10:03:00Z"},
	} {
		files[step.file] = step.text
		folder := write(t, files)
		if got := read(t, folder).Time().UTC().Format(time.RFC3339); got != step.want {
			t.Errorf("with %s: %s, want %s", step.file, got, step.want)
		}
	}
	if at := latestIn(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "2030-01-01T00:00:00Z"}}, "spec": map[string]any{"a": "2030-01-01T00:00:00Z"}}, time.Time{}); !at.IsZero() {
		t.Errorf("a user's time counts: %s", at)
	}
}

// TestPredictionsAreNoTimes: what an object expects or plans was not seen when it was saved.
func TestPredictionsAreNoTimes(t *testing.T) {
	const seen = "2026-01-02T10:00:20Z"
	for name, object := range map[string]string{
		"an estimate of the start": `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: train-mpijob, namespace: team}, status: {scheduling: {observedAt: "` + seen + `", estimate: {from: "2030-01-01T00:00:00Z", by: "2030-01-02T00:00:00Z"}}}}`,
		"an estimate of the end":   `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: train-mpijob, namespace: team}, status: {runningTime: "` + seen + `", endEstimate: {by: "2030-01-02T00:00:00Z"}}}`,
		"the next attempt":         `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: train-mpijob, namespace: team}, status: {scheduling: {evictedAt: "` + seen + `", nextTry: "2030-01-01T00:00:00Z"}}}`,
		"the end of kept logs":     `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, metadata: {name: train-mpijob, namespace: team}, status: {completionTime: "` + seen + `", completeLogs: {expires: "2030-01-01T00:00:00Z"}}}`,
		"the end of a backoff":     `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: team}, status: {conditions: [{type: Evicted, status: "True", lastTransitionTime: "` + seen + `"}], requeueState: {count: 1, requeueAt: "2030-01-01T00:00:00Z"}}}`,
	} {
		if got := read(t, write(t, map[string]string{"a.yaml": job + "---\n" + object})).Time().UTC().Format(time.RFC3339); got != seen {
			t.Errorf("%s: the files are of %s, want %s", name, got, seen)
		}
	}
}

// TestQueuedWithoutWorkload: files without the Workload of a job do not tell that Kueue is not installed.
func TestQueuedWithoutWorkload(t *testing.T) {
	queued := strings.Replace(strings.Replace(job, "uid: u1,", "uid: u1, labels: {kueue.x-k8s.io/queue-name: big},", 1), "spec:\n", "spec:\n  runPolicy: {suspend: true}\n", 1)
	found := diagnoseOne(t, read(t, write(t, map[string]string{"a.yaml": queued})))
	const want = "Suspended. The job names queue big. Whether it waits there, and for what, is unknown: the files do not contain its Workload."
	if got := found.Report.Status.Message; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.ContainsFunc(found.Missing, func(text string) bool { return strings.HasPrefix(text, "The Workload of queue big") }) {
		t.Errorf("the files lack %q", found.Missing)
	}
}

func TestLogNames(t *testing.T) {
	tests := map[string]logKey{
		"pi-launcher-x.log":                            {pod: "pi-launcher-x"},
		"a/pi-worker-0_worker.log":                     {pod: "pi-worker-0", container: "worker"},
		"pi-worker-0_worker-previous.log":              {pod: "pi-worker-0", container: "worker", previous: true},
		"m/namespaces/ns/pods/p/c/c/logs/current.log":  {namespace: "ns", pod: "p", container: "c"},
		"m/namespaces/ns/pods/p/c/c/logs/previous.log": {namespace: "ns", pod: "p", container: "c", previous: true},
	}
	for path, want := range tests {
		if got := keyOf(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// TestVersions: of an object that was saved twice, the later version counts.
func TestVersions(t *testing.T) {
	older := strings.Replace(job, "generation: 1", "generation: 1, resourceVersion: \"999\"", 1)
	newer := strings.Replace(strings.Replace(job, "generation: 1", "generation: 2, resourceVersion: \"1000\"", 1), "replicas: 1", "replicas: 3", 1)
	for _, text := range []string{older + "---\n" + newer, newer + "---\n" + older} {
		found := diagnoseOne(t, read(t, write(t, map[string]string{"a.yaml": text})))
		if found.Report.Status.Workers.Wanted != 3 {
			t.Errorf("%d workers", found.Report.Status.Workers.Wanted)
		}
	}
}

// TestWaits: what a job without pods waits for follows from the nodes, if the pods of all namespaces are in the files, and from the
// quota of its namespace.
func TestWaits(t *testing.T) {
	large := strings.Replace(job, "{name: main, image: i}", "{name: main, image: i, resources: {requests: {cpu: 3}}}", 1)
	const nodes = `---
apiVersion: v1
kind: NodeList
items:
- {metadata: {name: n1, creationTimestamp: "2026-01-02T10:10:00Z"}, status: {allocatable: {cpu: 4, pods: 110}, conditions: [{type: Ready, status: "True"}]}}
`
	const other = `---
apiVersion: v1
kind: Pod
metadata: {name: net, namespace: kube-system}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
`
	const quota = `---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: team, creationTimestamp: "2026-01-02T10:10:00Z"}
spec: {hard: {requests.cpu: 1}}
status: {hard: {requests.cpu: 1}, used: {requests.cpu: 0}}
`
	tests := map[string]struct {
		files   string
		phase   v1alpha1.Phase
		summary string
	}{
		"no room":            {large + nodes + other, v1alpha1.PhaseGangScheduling, "2 pods requested, 1 fit on 1 of 1 node"},
		"room is unknown":    {large + nodes, v1alpha1.PhasePending, ""},
		"the quota is small": {large + quota, v1alpha1.PhasePending, "quota"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := diagnoseOne(t, read(t, write(t, map[string]string{"a.yaml": test.files})))
			if status := found.Report.Status; status.Phase != test.phase || !strings.Contains(summaryOf(found.Report)+status.Message, test.summary) {
				t.Errorf("%s: %q, %q, want %s: %q", status.Phase, summaryOf(found.Report), status.Message, test.phase, test.summary)
			}
		})
	}
}

// TestReadEndOfFile: the end of a file that is read in part begins with a whole line.
func TestReadEndOfFile(t *testing.T) {
	path := filepath.Join(write(t, map[string]string{"log": "password=hunter2\nb\n"}), "log")
	for most, want := range map[int64]string{100: "password=hunter2\nb\n", 19: "password=hunter2\nb\n", 8: "b\n", 2: "b\n"} {
		if got, err := readEnd(path, most); err != nil || string(got) != want {
			t.Errorf("of %d bytes: %q, %v; want %q", most, got, err, want)
		}
	}
}
