package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestWhoDidIt: users with the role edit create, suspend, change, resume and delete jobs of both kinds. The reports name them, and never
// someone whom a user wrote into the job.
func TestWhoDidIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	editors := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "editors"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	people := map[string]client.Client{}
	for _, name := range []string{"ada", "bob", "carol"} {
		editors.Subjects = append(editors.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
		people[name] = clientWith(t, &warnings{}, func(config *rest.Config) {
			config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
		})
	}
	create(t, editors)
	t.Run(kubeflow.Kind, func(t *testing.T) {
		followed(t, people, openMPI(namespace, 1, "sleep", "600"), "runPolicy.suspend")
	})
	t.Run(trainjob.Kind, func(t *testing.T) {
		// Trainer's roles let its own users write jobs; here that is whoever may do everything.
		for name := range people {
			people[name] = clientWith(t, &warnings{}, func(config *rest.Config) {
				config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters", "system:authenticated"}}
			})
		}
		runtimeIn(t, namespace, "mpi-openmpi")
		followed(t, people, trainJob(t, namespace, "{numNodes: 2, command: [sleep, '600']}"), "suspend")
	})
}

// followed has people act on a job, whose suspension is at a path of its specification, and reads what its report says.
func followed(t *testing.T, people map[string]client.Client, job client.Object, path string) {
	kind, namespace, name := kubeflow.Kind, job.GetNamespace(), job.GetName()
	if job.GetObjectKind().GroupVersionKind().Kind == trainjob.Kind {
		kind = trainjob.Kind
	}
	job.SetAnnotations(map[string]string{mpi.AnnotationCreator: "mallory"})
	eventually(t, "ada may create a job", time.Minute, func() error { return submit(t, people["ada"], job) })
	says := func(event, detail string) {
		t.Helper()
		reported(t, kind, namespace, name, event+": "+detail, func(status v1alpha1.JobReportStatus) error {
			var said []string
			for _, entry := range status.Timeline {
				if entry.Event == event && strings.Contains(entry.Detail, detail) {
					return nil
				}
				said = append(said, entry.Event+": "+entry.Detail)
			}
			return fmt.Errorf("it says %q", said)
		})
	}
	field, by := append([]string{"spec"}, strings.Split(path, ".")...), mpi.AnnotationSuspendSetBy
	var isSuspended, isResumed any = true, false
	if isQueued() {
		// Kueue sets the field, and users an annotation.
		field, by = []string{"metadata", "annotations", mpi.AnnotationSuspendInQueue}, mpi.AnnotationQueueSuspendSetBy
		isSuspended, isResumed = "true", nil
	}
	patch := func(user string, fields map[string]any) {
		t.Helper()
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := people[user].Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", text)); err != nil {
			t.Fatalf("%s patches: %v", user, err)
		}
	}
	suspended := func(value any) map[string]any {
		fields := map[string]any{"metadata": map[string]any{"annotations": map[string]any{by: "2 mallory"}}}
		if err := unstructured.SetNestedField(fields, value, field...); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	says("Created", "By ada.")
	reported(t, kind, namespace, name, "it runs", inPhase(v1alpha1.PhaseRunning))
	patch("bob", suspended(isSuspended))
	says("Suspended", "By bob.")
	eventually(t, "its pods are gone", time.Minute, func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are there: %w", len(pods.Items), err)
		}
		return nil
	})
	patch("carol", suspended(isResumed))
	says("Resumed", "By carol.")
	if name := job.GetAnnotations()[by]; !strings.HasSuffix(name, " carol") {
		t.Errorf("the job says that %q resumed it", name)
	}
	reported(t, kind, namespace, name, "it runs again", inPhase(v1alpha1.PhaseRunning))
	if err := people["bob"].Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	says("DeletionRequested", "By bob.")
	report := reported(t, kind, namespace, name, "it has ended", inPhase(v1alpha1.PhaseFailed))
	if want := "The job was deleted by bob before it ended"; !strings.HasPrefix(report.Status.Message, want) {
		t.Errorf("the report says %q, want %q", report.Status.Message, want)
	}
	if isQueued() {
		// Kueue suspends each new job, and the events say so.
		return
	}
	wants := map[string]int32{"PodsStarting": 2, "DeletionRequested": 1, "JobDeleted": 1}
	steps := map[string]int32{"Created": 1, "Suspended": 1, "Resumed": 1, "Running": 2}
	for step, times := range steps {
		if kind == kubeflow.Kind {
			step = kind + step
		}
		wants[step] = times
	}
	eventually(t, "its events tell each step once", time.Minute, func() error {
		var events corev1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		got := map[string]int32{}
		for _, event := range events.Items {
			if _, wanted := wants[event.Reason]; wanted && event.InvolvedObject.UID == job.GetUID() {
				got[event.Reason] += max(event.Count, 1)
			}
		}
		if diff := cmp.Diff(wants, got); diff != "" {
			return fmt.Errorf("(-want +got)\n%s", diff)
		}
		return nil
	})
}
