package jobs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const mpiJobText = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: a, image: old, command: [mpirun], args: [x]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: b, image: old, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}, {name: c, image: other}]}}}
`

const trainJobText = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: pi, labels: {a: b}}
spec:
  runtimeRef: {name: mpi-openmpi}
  trainer: {numNodes: 2, command: [mpirun], args: [x], env: [{name: A, value: one}, {name: B, value: two}]}
`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := Decode([]byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	return &unstructured.Unstructured{Object: objects[0]}
}

// applyText applies a change that is written as FIELD=VALUE.
func applyText(job *unstructured.Unstructured, text string) error {
	change, err := ParseChange(text)
	if err != nil {
		return err
	}
	return Apply(job, change)
}

// TestChanges: each change alters its own lines and no others.
func TestChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job, change string
		want        []string
	}{
		"workers of an MPIJob":       {mpiJobText, "workers=8", []string{"-      replicas: 2", "+      replicas: 8"}},
		"workers of a TrainJob":      {trainJobText, "workers=8", []string{"-    numNodes: 2", "+    numNodes: 8"}},
		"slots":                      {mpiJobText, "slots=4", []string{"+  slotsPerWorker: 4"}},
		"slots of a TrainJob":        {trainJobText, "slots=4", []string{"+    numProcPerNode: 4"}},
		"image, but of no sidecar":   {mpiJobText, "image=new", []string{"-            image: old", "+            image: new", "-          - image: old", "+          - image: new"}},
		"image of a TrainJob":        {trainJobText, "image=new", []string{"+    image: new"}},
		"command":                    {mpiJobText, "command=mpirun -n 2 'a b'", []string{"-          - args:", "-            - x", "-            command:", "+          - command:", "+            - -n", `+            - "2"`, "+            - a b"}},
		"command of a TrainJob":      {trainJobText, "command=mpirun b", []string{"-    args:", "-    - x", "+    - b"}},
		"a list at a path":           {mpiJobText, `spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].command=["mpirun", "-n", "2"]`, []string{"+            - -n", `+            - "2"`}},
		"a field that is removed":    {mpiJobText, "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].args=null", []string{"-          - args:", "-            - x", "-            command:", "+          - command:"}},
		"no field to remove":         {mpiJobText, "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].args=null", nil},
		"cpu where it was requested": {mpiJobText, "cpu=3", []string{"-                cpu: 1", `+                cpu: "3"`}},
		"a gpu where there was none": {mpiJobText, "gpu=2", []string{`+                nvidia.com/gpu: "2"`}},
		"memory of a TrainJob":       {trainJobText, "memory=4Gi", []string{"+    resourcesPerNode:", "+      limits:", "+        memory: 4Gi", "+      requests:", "+        memory: 4Gi"}},
		"a queue":                    {trainJobText, "queue=team", []string{"+    kueue.x-k8s.io/queue-name: team"}},
		"a label away":               {trainJobText, "label.a=", []string{"-  labels:", "-    a: b"}},
		"a variable":                 {trainJobText, "env.B=x=y", []string{"-      value: two", "+      value: x=y"}},
		"a variable away":            {trainJobText, "env.A=", []string{"-    - name: A", "-      value: one"}},
		"a variable of an MPIJob":    {mpiJobText, "env.A=1", []string{"+            env:", "+            - name: A", `+              value: "1"`, "-          - image: old", "+          - env:", "+            - name: A", `+              value: "1"`, "+            image: old"}},
		"a deadline":                 {trainJobText, "deadline=60", []string{"+  activeDeadlineSeconds: 60"}},
		"another runtime":            {trainJobText, "runtime=own", []string{"-    name: mpi-openmpi", "+    name: own"}},
		"suspended":                  {mpiJobText, "suspend=true", []string{"+  annotations:", `+    mpi.opendatahub.io/suspend-in-queue: "true"`, "+  runPolicy:", "+    suspend: true"}},
		"any field":                  {mpiJobText, "spec.mpiReplicaSpecs.Worker.template.spec.containers[1].image=new", []string{"-          - image: other", "+          - image: new"}},
		"an annotation":              {trainJobText, "metadata.annotations[example.com/a]=true", []string{"+  annotations:", `+    example.com/a: "true"`}},
		"a field with dots":          {trainJobText, "metadata.annotations[example.com/a.b]=c", []string{"+  annotations:", "+    example.com/a.b: c"}},
		"a field with a list":        {trainJobText, "spec.trainer.args=[a, 2]", []string{"-    - x", "+    - a", "+    - 2"}},
		"a field away":               {trainJobText, "spec.trainer.args=", []string{"-    args:", "-    - x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := parsed(t, test.job)
			after := before.DeepCopy()
			if err := applyText(after, test.change); err != nil {
				t.Fatal(err)
			}
			text, err := Diff("a", before, "b", after)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---") {
					lines = append(lines, strings.TrimRight(line, "\n"))
				}
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSharedChanges: the SDK makes the same changes, and is tested with the same file.
func TestSharedChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name    string
		Job     map[string]any
		Changes []map[string]any
		Want    map[string]any
		Error   string
	}
	if err := yaml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, test := range cases {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			job := &unstructured.Unstructured{Object: test.Job}
			job.SetAPIVersion(map[string]string{"MPIJob": "kubeflow.org/v2beta1", "TrainJob": "trainer.kubeflow.org/v1alpha1"}[job.GetKind()])
			var changes []Change
			for _, change := range test.Changes {
				for field, value := range change {
					changes = append(changes, Change{Field: field, Value: fmt.Sprint(value)})
				}
			}
			switch err := Apply(job, changes...); {
			case test.Error != "":
				if err == nil || !strings.Contains(err.Error(), test.Error) {
					t.Errorf("%v, want %s", err, test.Error)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			for path, want := range test.Want {
				if diff := cmp.Diff(want, valueAt(job.Object, path)); diff != "" {
					t.Errorf("%s (-want +got)\n%s", path, diff)
				}
			}
		})
	}
}

func TestWrongChanges(t *testing.T) {
	t.Parallel()
	const alone = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {}}}}`
	for text, test := range map[string]struct{ job, want string }{
		"workers":                       {mpiJobText, "must be NAME=VALUE"},
		"workers=many":                  {mpiJobText, "workers=many must be a whole number"},
		"workers=2":                     {alone, "only a launcher"},
		"worker=2":                      {mpiJobText, `unknown field "worker"; did you mean workers?`},
		"gpu=two":                       {mpiJobText, "must be a quantity"},
		"image=":                        {mpiJobText, "must name an image"},
		"runtime=x":                     {mpiJobText, "MPIJobs have no runtime"},
		"suspend=perhaps":               {mpiJobText, "must be true or false"},
		"command='a":                    {mpiJobText, "open quote"},
		"spec..x=1":                     {mpiJobText, "empty path element"},
		"spec.a[x=1":                    {mpiJobText, "open or empty bracket"},
		"spec.trainer.env[7].value=1":   {trainJobText, "has no entry 7 at spec.trainer.env: the list has 2"},
		"spec.runtimeRef.name.x=1":      {trainJobText, "spec.runtimeRef.name is a value, not an object"},
		"spec.trainer.args=[a":          {trainJobText, "not a YAML value"},
		"spec.trainer.env.first.name=1": {trainJobText, "has no entry first"},
	} {
		err := applyText(parsed(t, test.job), text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", text, err, test.want)
		}
	}
}

func TestNextName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		taken      []string
	}{
		{"pi", "pi-2", nil},
		{"pi", "pi-4", []string{"pi", "pi-3", "pie-7", "pi-x"}},
		{"pi-3", "pi-6", []string{"pi-3", "pi-5"}},
		{"resnet-50", "resnet-51", []string{"resnet-50"}},
	} {
		if got := nextNumber(test.name, test.taken); got != test.want {
			t.Errorf("after %s of %v comes %s, want %s", test.name, test.taken, got, test.want)
		}
	}
}

// TestUserFields: what others than the user have added to a job is not part of its clone.
func TestUserFields(t *testing.T) {
	t.Parallel()
	object := parsed(t, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: pi
  namespace: ns
  uid: "1"
  resourceVersion: "2"
  generation: 3
  finalizers: [x]
  managedFields: []
  labels: {a: b}
  annotations: {mine: x, mpi.opendatahub.io/created-by: ann, mpi.opendatahub.io/changed-by: 2 ben}
spec:
  suspend: false
  runtimePatches:
  - {manager: me.example.com/x, time: "2026-01-01T00:00:00Z", trainingRuntimeSpec: {}}
  - {manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {}}
status: {conditions: []}
`)
	before := object.DeepCopy()
	got, err := yaml.Marshal(UserFields(object).Object)
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  annotations:
    mine: x
  labels:
    a: b
  name: pi
  namespace: ns
spec:
  runtimePatches:
  - manager: me.example.com/x
    trainingRuntimeSpec: {}
  suspend: false
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, object.Object); diff != "" {
		t.Errorf("the job itself was changed: %s", diff)
	}
}
