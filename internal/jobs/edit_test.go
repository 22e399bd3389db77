package jobs

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const jobWithSecrets = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: train
  namespace: ns
  uid: u
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-02T10:00:00Z"
  annotations: {mpi.opendatahub.io/created-by: ann, note: mine}
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, train, --password, hunter2, --key-password, hunter3, --show, "****"], env: [{name: MODE, value: fast}, {name: HF_TOKEN, value: hf_1}]}]}}}
    Worker: {replicas: 4, template: {spec: {containers: [{name: w, image: mine, env: [{name: URL, value: "postgres://me:hunter4@db/x"}]}]}}}
status: {conditions: [{type: Created, status: "True"}]}
`

func edited(t *testing.T, text string, replace ...string) *unstructured.Unstructured {
	t.Helper()
	changed := strings.NewReplacer(replace...).Replace(text)
	if changed == text && len(replace) > 0 {
		t.Fatalf("the text has none of %q:\n%s", replace, text)
	}
	return object(t, changed)
}

func TestEditedKeepsSecrets(t *testing.T) {
	t.Parallel()
	from := FromObject(object(t, jobWithSecrets))
	c, _ := newServer(t, from.Object)
	draft, masked, err := c.Editable(t.Context(), from)
	if err != nil || masked != 5 || draft.GetName() != "train-2" {
		t.Fatalf("%v with %d masked values: %v", draft, masked, err)
	}
	data, err := yaml.Marshal(draft.Object)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, absent := range []string{"hunter", "hf_1", "status:", "uid:", "created-by", "suspend"} {
		if strings.Contains(text, absent) {
			t.Errorf("the user sees %s:\n%s", absent, text)
		}
	}
	words := func(job *unstructured.Unstructured) string {
		return strings.Join(FromObject(job).Summary().Command, " ")
	}

	made, err := Edited(from, edited(t, text))
	if err != nil || words(made.Job) != "mpirun train --password hunter2 --key-password hunter3 --show ****" {
		t.Errorf("without changes: %q, %v", words(made.Job), err)
	}
	made, err = Edited(from, edited(t, text, "- train\n", "- train\n            - --epochs\n            - \"3\"\n", "- name: MODE\n              value: fast\n            ", "", "replicas: 4", "replicas: 8", "name: train-2", "name: mine\n  uid: other\n  resourceVersion: \"9\""))
	if err != nil || words(made.Job) != "mpirun train --epochs 3 --password hunter2 --key-password hunter3 --show ****" {
		t.Errorf("with more arguments: %q, %v", words(made.Job), err)
	}
	want := edited(t, jobWithSecrets, "train, --password", "train, --epochs, \"3\", --password", "{name: MODE, value: fast}, ", "", "replicas: 4", "replicas: 8", "name: train\n", "name: mine\n", "runPolicy: {suspend: true}", "x: y")
	unstructured.RemoveNestedField(want.Object, "spec", "x")
	if diff := cmp.Diff(UserFields(want).Object, made.Job.Object); diff != "" {
		t.Errorf("the new job (-want +got)\n%s", diff)
	}

	made, err = Edited(from, edited(t, text, "note: mine", "note: mine\n    mpi.opendatahub.io/suspend-in-queue: \"true\"\n    mpi.opendatahub.io/created-by: ann"))
	if want := map[string]string{"note": "mine", "mpi.opendatahub.io/suspend-in-queue": "true"}; err != nil || !maps.Equal(made.Job.GetAnnotations(), want) {
		t.Errorf("suspended in its queue: %v, %v", made.Job.GetAnnotations(), err)
	}

	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"a mask in another variable": {[]string{"value: fast", `value: "****"`}, "variable MODE at spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].env[0].value"},
		"another name":               {[]string{"name: HF_TOKEN", "name: OTHER"}, "variable OTHER at spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].env[1].value"},
		"a mask after another word":  {[]string{"--key-password", "--pin"}, "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command[5]"},
	} {
		_, err := Edited(from, edited(t, text, test.replace...))
		unknown, is := errors.AsType[*MaskedError](err)
		if !is || len(unknown.Fields) != 1 || err.Error() != "mpijob/train has no secret for 1 value masked with ****: "+test.want {
			t.Errorf("%s: %v", name, err)
		}
	}

	deleted := deletedJob("MPIJob", recordedJob)
	draft, _, err = c.Editable(t.Context(), deleted)
	if err != nil {
		t.Fatal(err)
	}
	if masked, is := errors.AsType[*MaskedError](second(Edited(deleted, draft))); !is || len(masked.Fields) != 4 {
		t.Errorf("masks of a deleted job: %+v", masked)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	at := Lines("apiVersion: x\nmetadata:\n  annotations:\n    mpi.opendatahub.io/rdma: no\nspec: &all\n  containers:\n  - name: a\n    image: b\n  - {name: c}\nother: *all\n")
	for path, want := range map[string]int{
		"metadata.annotations[mpi.opendatahub.io/rdma]": 4, "spec.containers[0].image": 8, "spec.containers[1].image": 9, "spec[containers][0]": 7,
		"spec.containers[7]": 6, "spec.absent": 5, "absent": 0, "": 0, "spec[": 0, "other.containers": 6,
	} {
		if got := at(path); got != want {
			t.Errorf("%s is in line %d, want %d", path, got, want)
		}
	}
	if got := Lines("a: [")("a"); got != 0 {
		t.Errorf("a text that is no YAML has the line %d", got)
	}
}
