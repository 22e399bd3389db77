package reporting

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logstore"
	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestReceiveWindow: of a log whose lines are not taken, the client receives little in advance.
func TestReceiveWindow(t *testing.T) {
	t.Parallel()
	server := podserver.New(t)
	pod := mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodRunning)
	server.Put(pod)
	var sent atomic.Int64
	server.Log(pod.Name, false).Source = func(<-chan struct{}) []byte {
		sent.Add(1 << 10)
		return bytes.Repeat([]byte("x"), 1<<10)
	}
	config := server.Config()
	// The connections of other clients are not changed, nor used.
	before, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := corev1client.NewForConfig(logConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := pods.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := io.ReadFull(stream, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	last := int64(-1)
	for now := sent.Load(); now != last; now = sent.Load() {
		last = now
		time.Sleep(200 * time.Millisecond)
	}
	if most := int64(2 * logstore.ReceiveWindow); last > most {
		t.Errorf("%d bytes were sent, want %d at most", last, most)
	}
}

// TestKeptReports: the end of a job is found by its UID in its namespace, and what is published replaces what was before.
func TestKeptReports(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	report := func(namespace, name, uid string, end *metav1.Time) *v1alpha1.JobReport {
		r := &v1alpha1.JobReport{}
		r.Namespace, r.Name, r.Spec.JobRef.UID = namespace, name, types.UID("uid-"+uid)
		r.Status.CompletionTime = end
		return r
	}
	at := metav1.NewTime(mpitest.Now)
	objects := []client.Object{report("a", "ended", "1", &at), report("a", "runs", "2", nil), report("b", "forged", "1", nil)}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&v1alpha1.JobReport{}, reportsByUID, uidOfReport).Build()
	reports := keptReports{api}
	for uid, want := range map[string]struct {
		end       time.Time
		hasReport bool
	}{"uid-1": {at.Time, true}, "uid-2": {time.Time{}, true}, "uid-3": {}} {
		end, hasReport, err := reports.End(t.Context(), "a", types.UID(uid))
		if err != nil || !end.Equal(want.end) || hasReport != want.hasReport {
			t.Errorf("%s has ended at %s, has a report: %t: %v", uid, end, hasReport, err)
		}
	}
	get := func() *v1alpha1.CompleteLogs {
		found := &v1alpha1.JobReport{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "ended"}, found); err != nil {
			t.Fatal(err)
		}
		return found.Status.CompleteLogs
	}
	for _, kept := range []v1alpha1.CompleteLogs{{Message: "not yet"}, {Index: "address", Lines: 3}} {
		if err := reports.Publish(t.Context(), "a", "ended", "uid-1", kept); err != nil {
			t.Fatal(err)
		}
		if got := get(); got == nil || *got != kept {
			t.Errorf("the report has %+v, want %+v", got, kept)
		}
	}
	if err := reports.Publish(t.Context(), "a", "ended", "uid-1", v1alpha1.CompleteLogs{}); err != nil || get() != nil {
		t.Errorf("the report has %+v: %v", get(), err)
	}
	if err := reports.Publish(t.Context(), "a", "deleted", "uid-1", v1alpha1.CompleteLogs{}); err != nil {
		t.Errorf("a report that does not exist is an error: %v", err)
	}
}
