package dashboard_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestConfigurationIsEdited creates jobs of both kinds by editing the YAML of others, whose secrets are not shown.
func TestConfigurationIsEdited(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "edit", "user", "viewer")
	user := caller{t, tokens["user"]}
	mpiJob(t, "edit", "train", func(job *kubeflow.MPIJob) {
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HF_TOKEN", Value: "hf_hidden"}}
	})
	var trainJob unstructured.Unstructured
	must(t, yaml.Unmarshal([]byte(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune, namespace: edit}, spec: {runtimeRef: {name: any}, trainer: {numNodes: 2, env: [{name: HF_TOKEN, value: hf_hidden}]}}}`), &trainJob.Object))
	must(t, api.Create(t.Context(), &trainJob))
	for path, test := range map[string]struct{ name, size, larger string }{
		"namespaces/edit/jobs/mpijob/train":  {"train-2", "replicas: 4", "replicas: 3"},
		"namespaces/edit/jobs/trainjob/tune": {"tune-2", "numNodes: 2", "numNodes: 3"},
	} {
		manifest := get[dashboard.Manifest](user, path+"/yaml")
		if manifest.Masked != 1 || strings.Contains(manifest.Clean+manifest.Full, "hf_hidden") {
			t.Errorf("%s is shown as %+v", path, manifest)
		}
		edit := get[dashboard.Edit](user, path+"/edit")
		for _, absent := range []string{"hf_hidden", "uid:", "resourceVersion:", "status:"} {
			if strings.Contains(edit.YAML, absent) {
				t.Errorf("%s is edited with %s:\n%s", path, absent, edit.YAML)
			}
		}
		request := dashboard.SpecRequest{Spec: jobs.Spec{Namespace: "edit"}, YAML: strings.Replace(edit.YAML, test.size, test.larger, 1), Original: edit.Original, OriginalUID: edit.OriginalUID, DryRun: true}
		draft := post[dashboard.Draft](user, "jobs", request)
		text, err := json.Marshal(draft)
		must(t, err)
		if draft.Problem != nil || draft.Created || edit.Name != test.name || draft.Name != test.name || !regexp.MustCompile(`(?m)^\+ +`+test.larger+"$").MatchString(draft.Diff) || strings.Contains(string(text), "hf_hidden") {
			t.Errorf("the draft is %s", text)
		}
		if len(draft.Commands) != 1 || !strings.Contains(draft.Commands[0].Text, " "+test.name+" -n edit --set ") {
			t.Errorf("the commands are %+v", draft.Commands)
		}
		request.DryRun = false
		if draft = post[dashboard.Draft](user, "jobs", request); !draft.Created {
			t.Fatalf("the job was not created: %+v", draft.Problem)
		}
		created := &unstructured.Unstructured{}
		created.SetAPIVersion(map[string]string{"train-2": "kubeflow.org/v2beta1", "tune-2": "trainer.kubeflow.org/v1alpha1"}[test.name])
		created.SetKind(draft.Kind)
		must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "edit", Name: test.name}, created))
		if text, err := created.MarshalJSON(); err != nil || !strings.Contains(string(text), `"value":"hf_hidden"`) {
			t.Errorf("the new job has lost its secret: %s, %v", text, err)
		}

		draft = post[dashboard.Draft](user, "jobs", request)
		if draft.Problem == nil || draft.Problem.Code != "Exists" || len(draft.Problem.Fields) != 1 || draft.Problem.Fields[0].Field != "metadata.name" || draft.Problem.Fields[0].Line == 0 {
			t.Errorf("under a name that is taken: %+v", draft.Problem)
		}
		// What the API server has written is removed.
		request.YAML = strings.Replace(manifest.Full, "name: "+strings.TrimSuffix(test.name, "-2")+"\n", "name: "+test.name+"-pasted\n", 1)
		if draft = post[dashboard.Draft](user, "jobs", request); !draft.Created {
			t.Errorf("with the fields of the cluster: %+v", draft.Problem)
		}
		request.YAML = strings.Replace(request.YAML, "-pasted", "-viewer", 1)
		if draft = post[dashboard.Draft](caller{t, tokens["viewer"]}, "jobs", request); draft.Problem == nil || draft.Problem.Code != "Forbidden" {
			t.Errorf("a viewer creates a job: %+v", draft)
		}
	}
}

// TestEditedProblemsHaveLines: what is wrong with an edited job names the field and its line.
func TestEditedProblemsHaveLines(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "edit-lines", "user")["user"]}
	gone := mpiJob(t, "edit-lines", "train", nil)
	edit := get[dashboard.Edit](user, "namespaces/edit-lines/jobs/mpijob/train/edit")
	lineOf := func(text, part string) int {
		before, _, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("%q is not in\n%s", part, text)
		}
		return strings.Count(before, "\n") + 1
	}
	for name, test := range map[string]struct{ from, to, field, at string }{
		"a number that is not allowed": {"replicas: 4", "replicas: -4", "spec.mpiReplicaSpecs", "replicas: -4"},
		"an unknown field":             {"replicas: 4", "replicsa: 4", "spec.mpiReplicaSpecs.Worker.replicsa", "replicsa: 4"},
		"a type that is not allowed":   {"replicas: 4", "replicas: two", "spec.mpiReplicaSpecs", "replicas: two"},
		"no name":                      {"name: train-2", "namespace: edit-lines", "metadata.name", "metadata:"},
		"a syntax error":               {"metadata:", "metadata: [", "yaml", ""},
		"a mask that stands for none":  {"replicas: 4", "replicas: '****'", "spec.mpiReplicaSpecs.Worker.replicas", "replicas: '****'"},
		"no job at all":                {edit.YAML, "kind: Pod", "yaml", ""},
		"a name that is not allowed":   {"name: train-2", "name: Not_Allowed", "metadata.name", "name: Not_Allowed"},
	} {
		text := strings.Replace(edit.YAML, test.from, test.to, 1)
		draft := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: jobs.Spec{Namespace: "edit-lines"}, YAML: text, Original: edit.Original, OriginalUID: edit.OriginalUID, DryRun: true})
		if draft.Problem == nil || len(draft.Problem.Fields) == 0 {
			t.Errorf("%s: %+v", name, draft.Problem)
			continue
		}
		got := draft.Problem.Fields[0]
		if !strings.HasPrefix(got.Field, test.field) || test.at != "" && got.Line != lineOf(text, test.at) || name == "a syntax error" && got.Line == 0 {
			t.Errorf("%s: the first field is %+v of %+v in\n%s", name, got, draft.Problem, text)
		}
	}

	const manifest = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: train}\nspec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: main, image: gone, env: [{name: HF_TOKEN, value: '****'}]}]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: gone}]}}}}}\n"
	report(t, gone, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseFailed, Specification: &v1alpha1.Specification{Version: "1", Masked: 1, Manifest: manifest}})
	must(t, api.Delete(t.Context(), gone))
	mpiJob(t, "edit-lines", "train", nil) // a namesake, which the page of the deleted job does not show
	edit = get[dashboard.Edit](user, "namespaces/edit-lines/jobs/mpijob/train/edit?uid="+string(gone.UID))
	if edit.Masked != 1 || !strings.Contains(edit.YAML, "image: gone") {
		t.Fatalf("the deleted job is edited as %+v", edit)
	}
	request := dashboard.SpecRequest{Spec: jobs.Spec{Namespace: "edit-lines"}, YAML: edit.YAML, Original: edit.Original, OriginalUID: edit.OriginalUID}
	draft := post[dashboard.Draft](user, "jobs", request)
	if draft.Problem == nil || draft.Problem.Code != "Masked" || len(draft.Problem.Fields) != 1 || draft.Problem.Fields[0].Line != lineOf(edit.YAML, "value: '****'") {
		t.Errorf("with a masked secret: %+v", draft.Problem)
	}
	request.YAML = strings.Replace(edit.YAML, "'****'", "new", 1)
	if draft = post[dashboard.Draft](user, "jobs", request); !draft.Created {
		t.Errorf("with the secret: %+v", draft.Problem)
	}
	if status, body := user.send(http.MethodGet, "namespaces/edit-lines/jobs/mpijob/none/edit", nil); status != http.StatusNotFound {
		t.Errorf("a job that does not exist: status %d: %s", status, body)
	}
}
