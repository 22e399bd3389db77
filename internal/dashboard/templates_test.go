package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestTemplatesAreSharedInAProject(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "templates", "user", "viewer")
	user, viewer := caller{t, tokens["user"]}, caller{t, tokens["viewer"]}
	spec := dashboard.SpecRequest{Spec: jobs.Spec{Name: "train", Namespace: "templates", Image: "quay.io/me/train", Workers: 2}, CommandLine: "python train.py"}
	save := dashboard.TemplateRequest{Name: "nightly", Description: "Each night", Job: spec}
	if status, _ := viewer.send(http.MethodPost, "namespaces/templates/templates", save); status != http.StatusForbidden {
		t.Errorf("a viewer saves a template: status %d", status)
	}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem != nil || result.Message == "" {
		t.Fatalf("saved: %+v", result)
	}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem == nil || result.Problem.Code != "Exists" {
		t.Errorf("saved again: %+v", result)
	}
	save.Replace = true
	save.Job = dashboard.SpecRequest{YAML: "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x, namespace: templates}\nspec:\n  mpiReplicaSpecs:\n    Launcher: {template: {spec: {containers: [{name: main, image: '${IMAGE}', command: [mpirun, -n, '2', pi]}]}}}\n    Worker: {replicas: '${WORKERS:-2}', template: {spec: {containers: [{name: worker, image: '${IMAGE}'}]}}}\n"}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem != nil {
		t.Fatalf("replaced: %+v", result.Problem)
	}
	list := get[dashboard.Templates](viewer, "namespaces/templates/templates").Templates
	if len(list) != 1 || list[0].Name != "nightly" || list[0].Description != "Each night" || len(list[0].Parameters) != 2 || !list[0].Parameters[0].Required {
		t.Fatalf("the list is %+v", list)
	}
	use := dashboard.SpecRequest{Spec: jobs.Spec{Name: "tonight", Namespace: "templates"}, Template: "nightly", DryRun: true}
	if draft := post[dashboard.Draft](user, "jobs", use); draft.Problem == nil || len(draft.Problem.Fields) != 1 || draft.Problem.Fields[0].Field != "IMAGE" {
		t.Errorf("without the required parameter: %+v", draft.Problem)
	}
	use.Values, use.DryRun, use.Description = map[string]string{"IMAGE": "quay.io/me/train:2", "WORKERS": "3"}, false, "The run of tonight"
	draft := post[dashboard.Draft](user, "jobs", use)
	if draft.Problem != nil || !draft.Created || !strings.Contains(draft.Commands[0].Text, "templates apply nightly tonight -n templates --param IMAGE=quay.io/me/train:2 --param WORKERS=3") {
		t.Fatalf("created: %+v", draft)
	}
	var job kubeflow.MPIJob
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "templates", Name: "tonight"}, &job))
	if description := job.Annotations["openshift.io/description"]; description != use.Description {
		t.Errorf("the description is %q", description)
	}
	if n := *job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas; n != 3 {
		t.Errorf("the job has %d workers", n)
	}
	if status, body := user.send(http.MethodDelete, "namespaces/templates/templates/nightly", nil); status != http.StatusOK {
		t.Errorf("deleted: status %d: %s", status, body)
	}
	if list := get[dashboard.Templates](user, "namespaces/templates/templates"); len(list.Templates) != 0 {
		t.Errorf("after that: %+v", list)
	}
}
