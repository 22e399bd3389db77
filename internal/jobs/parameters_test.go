package jobs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"image": "${REGISTRY:-quay.io/me}/train:${TAG}", "workers": "${WORKERS:-4}", "name": "${NAME:-}", "plain": "no $parameter here", "script": "echo $${HOME} $(X)",
		"list": []any{"${TAG}", int64(3), map[string]any{"x": "${TAG}"}},
	}
	found, err := FindParameters(object)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.String(); got != "NAME=,REGISTRY=quay.io/me,TAG,WORKERS=4" {
		t.Errorf("the parameters are %s", got)
	}
	filled, err := FillIn(object, map[string]string{"TAG": "8", "NAME": "{a: b}"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"image": "quay.io/me/train:8", "workers": int64(4), "name": "{a: b}", "plain": "no $parameter here", "script": "echo ${HOME} $(X)",
		"list": []any{int64(8), int64(3), map[string]any{"x": int64(8)}},
	}
	if diff := cmp.Diff(want, filled); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = FillIn(object, map[string]string{"TAGS": "8", "X": "1"})
	for _, want := range []string{"TAG: is required", "TAGS: is not a parameter of the template; did you mean TAG?", "X: is not a parameter"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := FindParameters(map[string]any{"a": "${A:-1}", "b": "${A:-2}"}); err == nil || !strings.Contains(err.Error(), `two defaults, "1" and "2"`) {
		t.Errorf("two defaults: %v", err)
	}
}

func TestEscaped(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "${A}", "$${A}", "$$${A:-x}", "${A:0:3} ${B%.x} $(C) $D ${}", "${A:-${B}}"} {
		filled, err := FillIn(map[string]any{"a": Escape(text)}, nil)
		if err != nil || filled["a"] != text {
			t.Errorf("%q comes back as %q: %v", text, filled["a"], err)
		}
	}
}

// TestFillByField: a parameter becomes what its field is: numbers stay texts in commands, variables and labels.
func TestFillByField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ job, want string }{
		"an MPIJob": {`
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {labels: {run: "${N}"}, annotations: {note: "${YES}"}}
spec:
  slotsPerWorker: "${N}"
  runLauncherAsWorker: "${YES}"
  mpiReplicaSpecs:
    Worker:
      replicas: "${N}"
      template:
        metadata: {labels: {pods: "${N}"}}
        spec:
          nodeSelector: {zone: "${N}"}
          securityContext: {runAsUser: "${N}", supplementalGroups: ["${N}"]}
          containers:
          - name: "${N}"
            image: "${N}"
            command: [train, --epochs, "${N}", "${YES}", "--n=${N}"]
            env: [{name: A, value: "${N}"}]
            resources: {limits: {cpu: "${N}"}}
            livenessProbe: {tcpSocket: {port: "${N}"}}
`, `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {labels: {run: "010"}, annotations: {note: "true"}}
spec:
  slotsPerWorker: 10
  runLauncherAsWorker: true
  mpiReplicaSpecs:
    Worker:
      replicas: 10
      template:
        metadata: {labels: {pods: "010"}}
        spec:
          nodeSelector: {zone: "010"}
          securityContext: {runAsUser: 10, supplementalGroups: [10]}
          containers:
          - name: "010"
            image: "010"
            command: [train, --epochs, "010", "true", "--n=010"]
            env: [{name: A, value: "010"}]
            resources: {limits: {cpu: "010"}}
            livenessProbe: {tcpSocket: {port: 10}}
`},
		"a TrainJob": {`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {labels: {run: "${YES}"}}
spec:
  suspend: "${YES}"
  trainer: {numNodes: "${N}", numProcPerNode: "${N}", args: ["${N}"], env: [{name: A, value: "${YES}"}], resourcesPerNode: {limits: {memory: "${N}"}}}
  unknown: {field: "${YES}"}
`, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {labels: {run: "true"}}
spec:
  suspend: true
  trainer: {numNodes: 10, numProcPerNode: 10, args: ["010"], env: [{name: A, value: "true"}], resourcesPerNode: {limits: {memory: "010"}}}
  unknown: {field: true}
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filled, err := FillIn(parsed(t, test.job).Object, map[string]string{"N": "010", "YES": "true"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, test.want).Object, filled); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	filled, err := FillIn(parsed(t, `{kind: TrainJob, spec: {suspend: "${A}", trainer: {numNodes: "${B}"}}}`).Object, map[string]string{"A": "perhaps", "B": "many"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, `{kind: TrainJob, spec: {suspend: perhaps, trainer: {numNodes: many}}}`).Object, filled); diff != "" {
		t.Errorf("wrong values (-want +got)\n%s", diff)
	}
}
