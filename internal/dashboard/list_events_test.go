package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStreamFiltersByRights reads the streams of two users while jobs of both change.
func TestStreamFiltersByRights(t *testing.T) {
	needsServer(t)
	one, two := namespace(t, "stream-one", "user"), namespace(t, "stream-two", "user")
	events := openStream(t, one["user"], "jobs/stream", "")
	if first := events.next(); first.name != "reset" {
		t.Fatalf("the first event is %q", first.name)
	}
	mpiJob(t, "stream-two", "hidden", nil)
	mpiJob(t, "stream-one", "shown", nil)
	event := events.next()
	if event.name != "rows" || !strings.Contains(event.data, "shown") || strings.Contains(event.data, "hidden") {
		t.Fatalf("the event is %+v", event)
	}
	// A stream that is opened again continues after its last event.
	events.close()
	must(t, api.Delete(t.Context(), &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "stream-one", Name: "shown"}}))
	again := openStream(t, one["user"], "jobs/stream", event.id)
	if next := again.next(); !strings.Contains(next.data, `"removed":["`) || strings.Contains(next.data, "hidden") {
		t.Errorf("after a new connection the event is %+v", next)
	}
	again.close()
	if unknown := openStream(t, two["user"], "jobs/stream", "otherprocess.17").next(); unknown.name != "reset" {
		t.Errorf("a cursor of another process gets %+v", unknown)
	}
	if status, _ := (caller{t, "expired"}).send(http.MethodGet, "jobs/stream", nil); status != http.StatusUnauthorized {
		t.Errorf("a stream with an invalid token: status %d", status)
	}
}
