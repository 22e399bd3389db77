package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
)

func TestCancelEndsJobsThatHaveNotEnded(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "cancel", "user", "viewer")
	user := caller{t, tokens["user"]}
	running := mpiJob(t, "cancel", "running", nil)
	ended := mpiJob(t, "cancel", "ended", nil)
	report(t, ended, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseSucceeded, CompletionTime: &metav1.Time{Time: time.Now()}})

	can := get[dashboard.Detail](user, "namespaces/cancel/jobs/mpijob/running").Can
	if !can.Cancel || !can.Delete {
		t.Errorf("of a running job: %+v", can)
	}
	if can = get[dashboard.Detail](user, "namespaces/cancel/jobs/mpijob/ended").Can; can.Cancel || !can.Delete {
		t.Errorf("of a job that has ended: %+v", can)
	}
	for name, test := range map[string]struct {
		who    caller
		job    string
		body   any
		status int
	}{
		"by a viewer":                  {caller{t, tokens["viewer"]}, "running", dashboard.CancelRequest{}, http.StatusForbidden},
		"of a job that has ended":      {user, "ended", dashboard.CancelRequest{}, http.StatusConflict},
		"of another UID":               {user, "running", dashboard.CancelRequest{UID: "other"}, http.StatusNotFound},
		"with a wrong grace period":    {user, "running", dashboard.CancelRequest{GraceSeconds: new(int64(-1))}, http.StatusUnprocessableEntity},
		"of a job that does not exist": {user, "none", dashboard.CancelRequest{}, http.StatusNotFound},
	} {
		if status, body := test.who.send(http.MethodPost, "namespaces/cancel/jobs/mpijob/"+test.job+"/cancel", test.body); status != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	result := post[dashboard.ActionResult](user, "namespaces/cancel/jobs/mpijob/running/cancel", dashboard.CancelRequest{UID: string(running.UID)})
	if result.Result != "Cancelled" {
		t.Errorf("the result is %+v", result)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(running), &kubeflow.MPIJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cancelled job: %v", err)
	}
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(ended), &kubeflow.MPIJob{}))
}
