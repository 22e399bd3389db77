package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestCreateCloneSuspendDelete(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "create", "user", "viewer")
	user := caller{t, tokens["user"]}
	request := dashboard.SpecRequest{Spec: jobs.Spec{Name: "train", Namespace: "create", Image: "quay.io/me/train", Workers: 2, CPU: "1", Memory: "1Gi"}, CommandLine: "python train.py", Description: "A *first* job", DryRun: true}
	draft := post[dashboard.Draft](user, "jobs", request)
	if draft.Problem != nil || draft.Created || len(draft.Words) == 0 || !strings.Contains(draft.Commands[0].Text, "create train --namespace create --workers 2 --image quay.io/me/train --cpu 1 --memory 1Gi --command 'python train.py'") {
		t.Fatalf("the draft is %+v", draft)
	}
	if list := get[jobList](user, "jobs?namespace=create"); list.Total != 0 {
		t.Fatal("a dry run has created a job")
	}
	request.DryRun = false
	if draft = post[dashboard.Draft](user, "jobs", request); !draft.Created {
		t.Fatalf("the job was not created: %+v", draft)
	}
	if draft = post[dashboard.Draft](user, "jobs", request); draft.Problem == nil || draft.Problem.Code != "Exists" {
		t.Errorf("a second job of the name: %+v", draft.Problem)
	}
	clone := post[dashboard.Draft](user, "namespaces/create/jobs/mpijob/train/clone", dashboard.CloneRequest{Changes: []string{"workers=3"}, DryRun: true})
	if clone.Name != "train-2" || !strings.Contains(clone.Diff, "+      replicas: 3") {
		t.Errorf("the clone is %s with the diff\n%s", clone.Name, clone.Diff)
	}
	if clone = post[dashboard.Draft](user, "namespaces/create/jobs/mpijob/train/clone", dashboard.CloneRequest{Changes: []string{"workers=3"}}); !clone.Created {
		t.Fatalf("the clone was not created: %+v", clone)
	}
	if result := post[dashboard.ActionResult](user, "namespaces/create/jobs/mpijob/train/suspend", struct{}{}); result.Result != "Suspended" {
		t.Errorf("suspend: %+v", result)
	}
	detail := get[dashboard.Detail](user, "namespaces/create/jobs/mpijob/train")
	if !detail.Can.Resume || detail.Can.Suspend || detail.Notes["openshift.io/description"] != "A *first* job" {
		t.Errorf("the suspended job is %+v", detail)
	}
	if result := post[dashboard.ActionResult](user, "namespaces/create/jobs/mpijob/train/resume", struct{}{}); result.Result != "Resumed" {
		t.Errorf("resume: %+v", result)
	}
	if status, body := user.send(http.MethodDelete, "namespaces/create/jobs/mpijob/train", nil); status != http.StatusOK {
		t.Errorf("delete: status %d: %s", status, body)
	}
	if status, body := user.send(http.MethodGet, "namespaces/create/jobs/mpijob/trian-2", nil); status != http.StatusNotFound || !strings.Contains(string(body), `"similar":["train-2"]`) {
		t.Errorf("a name with a typing error: status %d: %s", status, body)
	}
	viewer := post[dashboard.Draft](caller{t, tokens["viewer"]}, "jobs", request)
	if viewer.Created || viewer.Problem == nil || viewer.Problem.Code != "Forbidden" {
		t.Errorf("a viewer creates: %+v", viewer.Problem)
	}
}
