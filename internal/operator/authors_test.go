package operator_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// guards is held by the test for which config/webhook is installed: its objects have fixed names.
var guards sync.Mutex

// guarded installs config/webhook for one namespace, other tests going on without, and runs an operator that answers;
// the returned function stops it.
func guarded(t *testing.T, namespace string, change ...func(*operator.Options)) (stop func()) {
	t.Helper()
	guards.Lock()
	t.Cleanup(guards.Unlock)
	port := freePort(t)
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	for _, object := range webhookObjects(t) {
		switch of := object.(type) {
		case *corev1.Service:
			// A Service without pods: the API server is led to the operator of this process, under the Service's name.
			of.Namespace, of.Spec = "mpijob-system", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
		case *admissionv1.MutatingWebhookConfiguration:
			for i := range of.Webhooks {
				of.Webhooks[i].NamespaceSelector, of.Webhooks[i].ClientConfig.Service.Port = own, new(int32(port))
			}
		case *admissionv1.ValidatingWebhookConfiguration:
			for i := range of.Webhooks {
				of.Webhooks[i].NamespaceSelector, of.Webhooks[i].ClientConfig.Service.Port = own, new(int32(port))
			}
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			of.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: own}
		}
		if strings.HasPrefix(object.GetObjectKind().GroupVersionKind().Kind, "ValidatingAdmissionPolicy") && !servesPolicies(t) {
			continue
		}
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
	options := operator.Options{WatchNamespaces: []string{namespace}, WebhookPort: port}
	for _, c := range change {
		c(&options)
	}
	return operate(t, rest.CopyConfig(restConfig), options)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// webhookObjects are those of config/webhook.
func webhookObjects(t *testing.T) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, file := range []string{"webhook.yaml", "mutating.yaml"} {
		trees, err := manifests("webhook", file)
		if err != nil {
			t.Fatal(err)
		}
		for _, tree := range trees {
			object, err := api.Scheme().New(tree.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			data, err := tree.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := utilyaml.UnmarshalStrict(data, object); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object.(client.Object))
		}
	}
	return objects
}

// as is the API as a user sees it who may do everything.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters", "system:authenticated"}}
	theirs, err := client.New(config, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return theirs
}

// patched changes the job "pi" as a user does.
func patched(t *testing.T, user, namespace, patch string) error {
	t.Helper()
	job := &kubeflow.MPIJob{}
	job.Namespace, job.Name = namespace, "pi"
	return as(t, user).Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// authors are the annotations of the job "pi" that name users.
func authors(t *testing.T, namespace string) map[string]string {
	t.Helper()
	found := map[string]string{}
	job := get(t, namespace, "pi", &kubeflow.MPIJob{})
	for _, name := range mpi.AuthorAnnotations {
		if value, has := job.Annotations[name]; has {
			found[strings.TrimPrefix(name, mpi.Group+"/")] = value
		}
	}
	return found
}

// timelineSays waits until the one report of a namespace has an entry.
func timelineSays(t *testing.T, namespace, event, detail string) {
	t.Helper()
	eventually(t, "the timeline says "+event+" "+detail, func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var said []string
		for _, report := range list.Items {
			for _, entry := range report.Status.Timeline {
				if entry.Event == event && strings.Contains(entry.Detail, detail) {
					return nil
				}
				said = append(said, entry.Event+" "+entry.Detail)
			}
		}
		return fmt.Errorf("it says %q", said)
	})
}

const (
	suspend = `{"spec":{"runPolicy":{"suspend":true}}}`
	resume  = `{"spec":{"runPolicy":{"suspend":false}}}`
	forgery = `"mpi.opendatahub.io/created-by":"mallory","mpi.opendatahub.io/suspend-set-by":"2 mallory","mpi.opendatahub.io/changed-by":"2 mallory"`
)

// TestWhoDidIt: a job and its report name who created, suspended, changed, resumed and deleted it, whatever users write.
func TestWhoDidIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := guarded(t, namespace)
	named := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, authors(t, namespace)); diff != "" {
			t.Fatalf("the job names (-want +got):\n%s", diff)
		}
	}
	do := func(user, patch string) {
		t.Helper()
		if err := patched(t, user, namespace, patch); err != nil {
			t.Fatal(err)
		}
	}
	// The API server takes a webhook up within a second or so. Until then nothing may be left that tells of mallory.
	created := func(options ...client.CreateOption) error {
		job := mpitest.MPIJob(namespace, 1)
		job.Annotations = map[string]string{mpi.AnnotationCreator: "mallory", mpi.AnnotationSuspendSetBy: "1 mallory", mpi.AnnotationChangedBy: "1 mallory"}
		if err := as(t, "ada").Create(t.Context(), job, options...); err != nil {
			return err
		}
		if creator := job.Annotations[mpi.AnnotationCreator]; creator != "ada" {
			return fmt.Errorf("it records %q", creator)
		}
		return nil
	}
	eventually(t, "the webhook records who creates a job", func() error { return created(client.DryRunAll) })
	if err := created(); err != nil {
		t.Fatal(err)
	}
	named(map[string]string{"created-by": "ada"})
	timelineSays(t, namespace, "Created", "By ada.")

	do("bob", `{"metadata":{"annotations":{`+forgery+`}},"spec":{"runPolicy":{"suspend":true}}}`)
	named(map[string]string{"created-by": "ada", "suspend-set-by": "2 bob"})
	timelineSays(t, namespace, "Suspended", "By bob.")
	if err := patched(t, "carol", namespace, `{"spec":{"slotsPerWorker":3000000000}}`); err == nil || !strings.Contains(err.Error(), "spec.slotsPerWorker: Invalid value: 3000000000: use 2147483647 or less") {
		t.Errorf("a number that the field cannot hold is refused with: %v", err)
	}
	do("carol", `{"spec":{"slotsPerWorker":3}}`)
	timelineSays(t, namespace, "Changed", "By carol.")
	for _, patch := range []string{`{"metadata":{"annotations":{` + forgery + `}}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"labels":{"a":"b"}}}`, suspend} {
		do("mallory", patch)
		named(map[string]string{"created-by": "ada", "suspend-set-by": "2 bob", "changed-by": "3 carol"})
	}
	do("ada", resume)
	named(map[string]string{"created-by": "ada", "suspend-set-by": "4 ada", "changed-by": "3 carol"})
	timelineSays(t, namespace, "Resumed", "By ada.")
	do("erin", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-in-queue":"true","mpi.opendatahub.io/suspend-in-queue-set-by":"true mallory"}}}`)
	named(map[string]string{"created-by": "ada", "suspend-set-by": "4 ada", "changed-by": "3 carol", "suspend-in-queue-set-by": "true erin"})

	if err := as(t, "mallory").Delete(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{}), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := as(t, "dave").DeleteAllOf(t.Context(), &kubeflow.MPIJob{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	timelineSays(t, namespace, "DeletionRequested", "By dave.")
	timelineSays(t, namespace, "JobDeleted", "The job was deleted by dave before it ended (phase ")
	reasons := told(t, namespace)
	if reasons["DeletionRequested"] != 1 || reasons["Changed"] != 1 || reasons["Suspended"] != 0 || reasons["MPIJobSuspended"] != 1 {
		t.Errorf("events are told so often: %v", reasons)
	}

	stop()
	t.Run("while no operator answers", func(t *testing.T) { unanswered(t, namespace) })
}

// unanswered tries to write down others while no operator answers.
func unanswered(t *testing.T, namespace string) {
	needsPolicies(t)
	tries := []struct {
		name, patch string
		taken       bool
	}{
		{"another creator", `{"metadata":{"annotations":{"mpi.opendatahub.io/created-by":"bob"}}}`, false},
		{"no creator", `{"metadata":{"annotations":{"mpi.opendatahub.io/created-by":null}}}`, false},
		{"another one suspended it", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":"2 bob"}},"spec":{"runPolicy":{"suspend":true}}}`, false},
		{"I suspended it, but not now", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":"2 mallory"}},"spec":{"slotsPerWorker":5}}`, false},
		{"I suspended it, and change nothing", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":"1 mallory"}}}`, false},
		{"another one changes it", `{"metadata":{"annotations":{"mpi.opendatahub.io/changed-by":"2 bob"}},"spec":{"slotsPerWorker":5}}`, false},
		{"I change it some time", `{"metadata":{"annotations":{"mpi.opendatahub.io/changed-by":"7 mallory"}},"spec":{"slotsPerWorker":5}}`, false},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, true},
		{"I suspend it", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":"2 mallory"}},"spec":{"runPolicy":{"suspend":true}}}`, true},
		{"another one resumed it", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":"3 bob"}},"spec":{"runPolicy":{"suspend":false}}}`, false},
		{"nobody", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-set-by":null}},"spec":{"runPolicy":{"suspend":false}}}`, false},
		{"it is resumed, and nobody named", resume, true},
		{"another one suspended it in its queue", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-in-queue":"true","mpi.opendatahub.io/suspend-in-queue-set-by":"true bob"}}}`, false},
		{"I suspend it in its queue", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-in-queue":"true","mpi.opendatahub.io/suspend-in-queue-set-by":"true mallory"}}}`, true},
		{"it is resumed in its queue, and nobody named", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-in-queue":"false"}}}`, true},
		{"I resumed it in its queue, but not now", `{"metadata":{"annotations":{"mpi.opendatahub.io/suspend-in-queue-set-by":"false mallory"}}}`, false},
	}
	forged := mpitest.MPIJob(namespace, 1)
	forged.Annotations = map[string]string{mpi.AnnotationCreator: "ada"}
	// It takes as long until the webhook is asked no more.
	eventually(t, "a job that names another creator is refused", func() error {
		err := as(t, "mallory").Create(t.Context(), forged.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "created-by]: Forbidden: filled in by the operator") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	forged.Annotations = map[string]string{mpi.AnnotationChangedBy: "1 mallory"}
	if err := as(t, "mallory").Create(t.Context(), forged); !apierrors.IsInvalid(err) {
		t.Errorf("a new job that was changed already is answered with: %v", err)
	}
	forged.Annotations = map[string]string{mpi.AnnotationCreator: "mallory"}
	if err := as(t, "mallory").Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	for _, try := range tries {
		err := patched(t, "mallory", namespace, try.patch)
		if taken := err == nil; taken != try.taken || !taken && !strings.Contains(err.Error(), "filled in by the operator") {
			t.Errorf("%s: the answer is %v", try.name, err)
		}
	}
}

// told counts the events of a namespace's MPIJobs by reason.
func told(t *testing.T, namespace string) map[string]int32 {
	t.Helper()
	var list corev1.EventList
	if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int32{}
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == kubeflow.Kind {
			reasons[event.Reason] += max(event.Count, 1)
		}
	}
	return reasons
}

// TestTransitionsAreToldOnce: each step of a job is an event, by whichever operator sees it, and none twice.
func TestTransitionsAreToldOnce(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	want := map[string]int32{"MPIJobCreated": 1, "PodsStarting": 1, "WorkersReady": 1, "LauncherStarted": 1, "MPIJobRunning": 1}
	allTold := func() error {
		if diff := cmp.Diff(want, told(t, namespace)); diff != "" {
			return fmt.Errorf("(-want +got)\n%s", diff)
		}
		return nil
	}
	launcher, _ := runs(t, namespace)
	reported(t, namespace, "Running")
	// Events are on their way when the record is written: an operator that ends takes them along.
	eventually(t, "all events of the first operator are there", allTold)
	stop()
	start(t, namespace)
	finish(t, get(t, namespace, "pi-launcher", launcher))
	reported(t, namespace, "Succeeded")
	want["MPIJobSucceeded"] = 1
	eventually(t, "all events are there", allTold)
}
