package dashboard_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestDeletedJobIsCloned clones a deleted job by its report, also while a new job has its name.
func TestDeletedJobIsCloned(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "deleted", "user", "viewer")
	user := caller{t, tokens["user"]}
	gone := mpiJob(t, "deleted", "train", nil)
	const manifest = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: gone, command: [mpirun, train], env: [{name: HF_TOKEN, value: "****"}]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: gone}]}}}
`
	report(t, gone, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseFailed, Specification: &v1alpha1.Specification{Version: "1", Masked: 1, Manifest: manifest}})
	must(t, api.Delete(t.Context(), gone))
	check := func(query string) {
		t.Helper()
		path := "namespaces/deleted/jobs/mpijob/train"
		if detail := get[dashboard.Detail](user, path+query); !detail.Can.Clone || detail.Can.Delete {
			t.Errorf("allowed are %+v", detail.Can)
		}
		if detail := get[dashboard.Detail](caller{t, tokens["viewer"]}, path+query); detail.Can.Clone {
			t.Error("a viewer may clone")
		}
		if yaml := get[dashboard.Manifest](user, path+"/yaml"+query); !strings.Contains(yaml.Clean, "image: gone") || yaml.Full != "" {
			t.Errorf("the YAML is %+v", yaml)
		}
		request := dashboard.CloneRequest{Changes: []string{}, DryRun: true}
		status, body := user.send(http.MethodPost, path+"/clone"+query, request)
		var problem dashboard.Problem
		must(t, json.Unmarshal(body, &problem))
		if status != http.StatusUnprocessableEntity || problem.Code != "Masked" || len(problem.Fields) != 1 || problem.Fields[0].Field != "env.HF_TOKEN" {
			t.Errorf("status %d: %+v", status, problem)
		}
		request.Changes = []string{"env.HF_TOKEN=new"}
		if draft := post[dashboard.Draft](user, path+"/clone"+query, request); draft.Problem != nil || !strings.Contains(draft.YAML, "image: gone") || !strings.Contains(draft.Diff, "+              value: new") {
			t.Errorf("the draft is %+v", draft)
		}
	}
	check("")
	form := get[dashboard.CloneForm](user, "namespaces/deleted/jobs/mpijob/train/form")
	if form.Request.Spec.Image != "gone" || form.Request.Original != "mpijob/train" {
		t.Errorf("the form is %+v", form.Request)
	}
	again := mpiJob(t, "deleted", "train", nil)
	check("?uid=" + string(gone.UID))
	mpiJob(t, "deleted", "other", nil)
	compared := get[dashboard.Comparison](user, "namespaces/deleted/compare?job=mpijob/train&job=mpijob/other")
	if !slices.ContainsFunc(compared.Sections, func(section dashboard.ComparisonSection) bool { return section.Title == "Fields" }) {
		t.Errorf("the comparison is %+v", compared)
	}

	// A deleted job and the one that has its name now are two jobs.
	uids := "&uid=" + string(gone.UID) + "&uid=" + string(again.UID)
	namesakes := get[dashboard.Comparison](user, "namespaces/deleted/compare?job=mpijob/train&job=mpijob/train"+uids)
	if !slices.ContainsFunc(namesakes.Sections, func(section dashboard.ComparisonSection) bool {
		return slices.ContainsFunc(section.Rows, func(row jobs.ComparedValue) bool { return row.A == "gone" && row.B != "gone" })
	}) || len(namesakes.Commands) > 0 {
		t.Errorf("the comparison of namesakes is %+v", namesakes)
	}

	old := mpiJob(t, "deleted", "old", nil)
	report(t, old, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseFailed})
	must(t, api.Delete(t.Context(), old))
	if detail := get[dashboard.Detail](user, "namespaces/deleted/jobs/mpijob/old"); detail.Can.Clone {
		t.Error("a job without fields in its report can be cloned")
	}
}
