package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestClone(t *testing.T) {
	t.Parallel()
	job := object(t, `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  labels: {team: x}
  annotations: {mpi.opendatahub.io/created-by: alice, kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
  resourceVersion: "7"
spec: {runPolicy: {suspend: true}, slotsPerWorker: 2, mpiReplicaSpecs: {Worker: {replicas: 2}}}
status: {conditions: [{type: Failed, status: "True"}]}
`)
	c, s := newServer(t, job, reportFor("MPIJob", "pi-2", "gone", v1alpha1.JobReportStatus{}))
	clone, err := c.Clone(t.Context(), FromObject(job), "", Change{Field: "workers", Value: "4"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
		"metadata": map[string]any{"name": "pi-3", "namespace": "ns", "labels": map[string]any{"team": "x"}, "annotations": map[string]any{"note": "kept"}},
		"spec":     map[string]any{"slotsPerWorker": int64(2), "mpiReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(4)}}},
	}
	if diff := cmp.Diff(want, clone.Job.Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if clone.Original.GetName() != "pi" || !FromObject(clone.Original).Suspended() {
		t.Errorf("the original is %v", clone.Original)
	}
	if clone, err := c.Clone(t.Context(), FromObject(job), "own"); err != nil || clone.Job.GetName() != "own" {
		t.Errorf("%v, %v", clone, err)
	}
	if _, err := c.Clone(t.Context(), FromObject(job), "own", Change{Field: "workers", Value: "many"}); err == nil {
		t.Error("a wrong change is ignored")
	}
	deleted := FromReport(reportFor("MPIJob", "gone", "g", v1alpha1.JobReportStatus{}))
	if _, is := errors.AsType[*DeletedError](second(c.Clone(t.Context(), deleted, ""))); !is {
		t.Error("a deleted job is cloned")
	}
	s.refuse = func(string, string) error { return errors.New("broken") }
	if _, err := c.Clone(t.Context(), FromObject(job), ""); err == nil {
		t.Error("a name is chosen without the list of jobs")
	}
}

// second returns the second of two values.
func second[A, B any](_ A, b B) B { return b }

func TestSuspendIsNotCloned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ job, want string }{
		"an empty policy":      {"{kind: MPIJob, spec: {runPolicy: {suspend: true}}}", "{kind: MPIJob, spec: {}}"},
		"a policy with more":   {"{kind: MPIJob, spec: {runPolicy: {suspend: true, backoffLimit: 1}}}", "{kind: MPIJob, spec: {runPolicy: {backoffLimit: 1}}}"},
		"not suspended":        {"{kind: MPIJob, spec: {runPolicy: {suspend: false}}}", "{kind: MPIJob, spec: {runPolicy: {suspend: false}}}"},
		"a TrainJob with more": {"{kind: TrainJob, spec: {suspend: true, runtimeRef: {name: r}}}", "{kind: TrainJob, spec: {runtimeRef: {name: r}}}"},
	} {
		job := parsed(t, test.job)
		removeSuspend(job)
		if diff := cmp.Diff(parsed(t, test.want).Object, job.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestCloneHasItsOwnFolder reads cases that the tests of the Python SDK read, too: a clone of train with the name copy.
func TestCloneHasItsOwnFolder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/clone_output.json")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Name, Kind string
		Spec, Want map[string]any
	}
	if err := json.Unmarshal(text, &tests); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"MPIJob": "kubeflow.org/v2beta1", "TrainJob": "trainer.kubeflow.org/v1alpha1"}
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": versions[test.Kind], "kind": test.Kind, "spec": test.Spec}}
			job.SetName("train")
			job.SetNamespace("ns")
			c, _ := newServer(t)
			clone, err := c.Clone(t.Context(), FromObject(job), "copy")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.Want, clone.Job.Object["spec"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestEditedCloneHasItsOwnFolder: so does a clone of which flags change other settings; a folder that a change names stays.
func TestEditedCloneHasItsOwnFolder(t *testing.T) {
	t.Parallel()
	runtime := parsed(t, runtimeText)
	runtime.SetNamespace("")
	c, _ := newServer(t, runtime)
	for name, of := range map[string]string{"an MPIJob": "", "a TrainJob": "mpi-openmpi"} {
		spec := Spec{Name: "train", Namespace: "ns", Image: "i", Command: []string{"train"}, Workers: 2, Runtime: of, Output: &Volume{Source: VolumeClaim, Name: "results", Path: "/results"}}
		built, err := c.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(built.Job.Object)
		if err != nil {
			t.Fatal(err)
		}
		job := FromObject(parsed(t, string(text)))
		clone, err := c.CloneEdited(t.Context(), job, "copy", func(s *Spec) { s.Image = "j" })
		if err != nil {
			t.Fatal(err)
		}
		if folders := subPaths(clone.Job); !slices.Equal(slices.Compact(folders), []string{"copy"}) {
			t.Errorf("%s: the folders are %q", name, folders)
		}
		clone, err = c.CloneEdited(t.Context(), job, "copy", func(s *Spec) { s.Output.SubPath = "train" })
		if err != nil {
			t.Fatal(err)
		}
		if folders := subPaths(clone.Job); !slices.Equal(slices.Compact(folders), []string{"train"}) {
			t.Errorf("%s: the folders are %q although one is named", name, folders)
		}
	}
}

func subPaths(job *unstructured.Unstructured) (all []string) {
	visitObjects(job.Object, func(fields map[string]any) {
		if folder, is := fields["subPath"].(string); is {
			all = append(all, folder)
		}
	})
	return all
}

// TestRanksFollow: the number of ranks in the command of a clone is that of its slots, if the original's was that of the original's.
func TestRanksFollow(t *testing.T) {
	t.Parallel()
	const mpiJob = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: i, command: %s}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: i}]}}}
`
	const trainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: pi}
spec: {runtimeRef: {name: %s}, trainer: {numNodes: 4, command: %s}}
`
	runtimes := object(t, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi}
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
      - {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}
      - {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}
`)
	runtimes.SetNamespace("")
	workers := []Change{{Field: "workers", Value: "8"}}
	for name, test := range map[string]struct {
		job     string
		changes []Change
		want    []string
		note    string
	}{
		"of create":            {fmt.Sprintf(mpiJob, `[mpirun, --tag-output, -n, "4", train, -n, "4"]`), workers, []string{"mpirun", "--tag-output", "-n", "16", "train", "-n", "4"}, ""},
		"of a user":            {fmt.Sprintf(mpiJob, `[/usr/bin/mpiexec, --mca, btl, tcp, --bind-to, core, -np, "4", train]`), workers, []string{"/usr/bin/mpiexec", "--mca", "btl", "tcp", "--bind-to", "core", "-np", "16", "train"}, ""},
		"with other slots":     {fmt.Sprintf(mpiJob, `[mpirun, -n, "4", train]`), []Change{{Field: "slots", Value: "3"}}, []string{"mpirun", "-n", "6", "train"}, ""},
		"by paths":             {fmt.Sprintf(mpiJob, `[mpirun, -n, "4", train]`), []Change{{Field: "spec.slotsPerWorker", Value: "1"}}, []string{"mpirun", "-n", "2", "train"}, ""},
		"another number":       {fmt.Sprintf(mpiJob, `[mpirun, -n, "3", train]`), workers, []string{"mpirun", "-n", "3", "train"}, "the command still starts 3 ranks, and the job now has 16 slots instead of 4"},
		"in a script":          {fmt.Sprintf(mpiJob, `[sh, -c, "mpirun -np 4 train && x"]`), workers, []string{"sh", "-c", "mpirun -np 4 train && x"}, "the command still starts 4 ranks"},
		"of two programs":      {fmt.Sprintf(mpiJob, `[mpirun, -n, "1", a, ":", -n, "3", b]`), workers, []string{"mpirun", "-n", "1", "a", ":", "-n", "3", "b"}, "the command still starts 4 ranks, and"},
		"one rank":             {fmt.Sprintf(mpiJob, `[mpirun, -n, "1", train]`), workers, []string{"mpirun", "-n", "1", "train"}, "the command still starts 1 rank, and"},
		"none":                 {fmt.Sprintf(mpiJob, `[mpirun, --oversubscribe, train, -n, "4"]`), workers, []string{"mpirun", "--oversubscribe", "train", "-n", "4"}, ""},
		"nothing to follow":    {fmt.Sprintf(mpiJob, `[mpirun, -n, "3", train]`), []Change{{Field: "image", Value: "new"}}, []string{"mpirun", "-n", "3", "train"}, ""},
		"another command":      {fmt.Sprintf(mpiJob, `[mpirun, -n, "4", train]`), append([]Change{{Field: "command", Value: "mpirun -n 5 other"}}, workers...), []string{"mpirun", "-n", "5", "other"}, ""},
		"of a TrainJob":        {fmt.Sprintf(trainJob, "mpi", `[mpirun, --tag-output, -n, "4", train]`), workers, []string{"mpirun", "--tag-output", "-n", "8", "train"}, ""},
		"by a TrainJob's GPUs": {fmt.Sprintf(trainJob, "mpi", `[mpirun, -n, "4", train]`), []Change{{Field: "gpu", Value: "2"}}, []string{"mpirun", "-n", "8", "train"}, ""},
		"an unknown runtime":   {fmt.Sprintf(trainJob, "gone", `[mpirun, -n, "4", train]`), workers, []string{"mpirun", "-n", "4", "train"}, "the runtime gone does not exist"},
		"its image":            {fmt.Sprintf(trainJob, "gone", `[mpirun, -n, "4", train]`), []Change{{Field: "image", Value: "new"}}, []string{"mpirun", "-n", "4", "train"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := object(t, test.job)
			c, _ := newServer(t, job, runtimes.DeepCopy())
			clone, err := c.Clone(t.Context(), FromObject(job), "next", test.changes...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, FromObject(clone.Job).Summary().Command); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if (clone.Note == "") != (test.note == "") || !strings.Contains(clone.Note, test.note) {
				t.Errorf("the note is %q, want %q", clone.Note, test.note)
			}
		})
	}
}

// TestCloneWithRuntime: a clone with another runtime has the kind of that one, which is of the namespace or of the cluster.
func TestCloneWithRuntime(t *testing.T) {
	t.Parallel()
	const spec = "\nspec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}}"
	ofNamespace := object(t, "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: own}"+spec)
	ofCluster := object(t, "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: all}"+spec)
	ofCluster.SetNamespace("")
	own := Change{Field: "runtime", Value: "own"}
	for name, test := range map[string]struct {
		kind, name string
		changes    []Change
		want       map[string]any
		err        string
	}{
		"of the namespace":  {"ClusterTrainingRuntime", "all", []Change{own}, map[string]any{"kind": "TrainingRuntime", "name": "own"}, ""},
		"of the cluster":    {"TrainingRuntime", "own", []Change{{Field: "runtime", Value: "all"}}, map[string]any{"kind": "ClusterTrainingRuntime", "name": "all"}, ""},
		"its kind is given": {"TrainingRuntime", "own", []Change{own, {Field: "spec.runtimeRef.kind", Value: "ClusterTrainingRuntime"}}, map[string]any{"kind": "ClusterTrainingRuntime", "name": "own"}, ""},
		"unknown":           {"TrainingRuntime", "own", []Change{{Field: "runtime", Value: "owm"}}, nil, `runtime "owm" not found; did you mean own?`},
		"the same job":      {"TrainingRuntime", "own", []Change{{Field: "workers", Value: "3"}}, map[string]any{"kind": "TrainingRuntime", "name": "own"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := object(t, fmt.Sprintf("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: train}\nspec: {runtimeRef: {kind: %s, name: %s}, trainer: {numNodes: 2, command: [train]}}", test.kind, test.name))
			c, _ := newServer(t, job, ofNamespace.DeepCopy(), ofCluster.DeepCopy())
			for way, clone := range map[string]func() (Clone, error){
				"by changes": func() (Clone, error) { return c.Clone(t.Context(), FromObject(job), "next", test.changes...) },
				"by a specification": func() (Clone, error) {
					return c.CloneEdited(t.Context(), FromObject(job), "next", func(*Spec) {}, test.changes...)
				},
			} {
				made, err := clone()
				if test.err != "" {
					if err == nil || err.Error() != test.err {
						t.Errorf("%s: %v, want %s", way, err, test.err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, valueAt(made.Job.Object, "spec.runtimeRef")); diff != "" {
					t.Errorf("%s (-want +got)\n%s", way, diff)
				}
			}
		})
	}
}
