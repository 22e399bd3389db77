package operator_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWebhooksAnswerOnlyTheAPIServer: a pod that reaches the webhooks' port cannot forge who deletes a job, nor ask about
// other namespaces.
func TestWebhooksAnswerOnlyTheAPIServer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	paths := map[string]string{}
	var port int32
	eventually(t, "the operator sets the path of every webhook", func() error {
		var validating admissionv1.ValidatingWebhookConfiguration
		var mutating admissionv1.MutatingWebhookConfiguration
		if err := api.Get(t.Context(), client.ObjectKey{Name: "mpijob-validating"}, &validating); err != nil {
			return err
		}
		if err := api.Get(t.Context(), client.ObjectKey{Name: "mpijob-mutating"}, &mutating); err != nil {
			return err
		}
		configs := map[string]admissionv1.WebhookClientConfig{}
		for _, w := range validating.Webhooks {
			configs[w.Name] = w.ClientConfig
		}
		for _, w := range mutating.Webhooks {
			configs[w.Name] = w.ClientConfig
		}
		for name, config := range configs {
			if config.Service.Path == nil {
				return fmt.Errorf("%s has no path", name)
			}
			paths[name], port = *config.Service.Path, *config.Service.Port
		}
		return nil
	})
	job := mpitest.MPIJob(namespace, 1)
	create(t, job)
	var report v1alpha1.JobReport
	key := client.ObjectKey{Namespace: namespace, Name: mpi.Job{Kind: "MPIJob", Name: job.Name, UID: job.UID}.ReportName()}
	eventually(t, "the job has a report", func() error { return api.Get(t.Context(), key, &report) })

	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	review, err := json.Marshal(admissionreview.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionreview.AdmissionRequest{
			UID: types.UID("forged"), Operation: admissionreview.Delete, Namespace: namespace, Name: job.Name,
			Kind:      metav1.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"},
			UserInfo:  authenticationv1.UserInfo{Username: "innocent"},
			OldObject: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	caller := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the attacker does not care
	}}
	post := func(path string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://localhost:%d%s", port, path), bytes.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := caller.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	known := paths["deletion.mpi.opendatahub.io"]
	other := paths["jobset.mpi.opendatahub.io"]
	for name, path := range map[string]string{
		"the path of before":           "/validate-deletion",
		"no token":                     "/deletion.mpi.opendatahub.io/",
		"a wrong token":                "/deletion.mpi.opendatahub.io/" + strings.Repeat("0", 64),
		"a part of the token":          known[:len(known)-1],
		"the token of another webhook": "/deletion.mpi.opendatahub.io/" + other[strings.LastIndex(other, "/")+1:],
		"MPIJobs":                      "/validate-kubeflow-org-v2beta1-mpijob",
	} {
		if code := post(path); code != http.StatusNotFound {
			t.Errorf("%s: the webhook answers with %d, want 404", name, code)
		}
	}
	if err := api.Get(t.Context(), key, &report); err != nil {
		t.Fatal(err)
	}
	for _, entry := range report.Status.Timeline {
		if entry.Event == codes.DeletionRequested || strings.Contains(entry.Detail, "innocent") {
			t.Errorf("a forged deletion is recorded: %+v", entry)
		}
	}
	// The request itself is a good one: the API server's path takes it.
	if code := post(known); code != http.StatusOK {
		t.Errorf("the webhook answers the API server's path with %d", code)
	}
}

// TestOperatorTokenIsLimited: the rights of the operator's service account suffice to create what its jobs need, and
// nothing that belongs to no job.
func TestOperatorTokenIsLimited(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	namespace := newNamespace(t)
	stolen, err := client.New(restConfig, client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "x"}}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "planted"}
	deployment := meta
	deployment.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "x", UID: "x", Controller: new(true)}}
	trainJobs := meta
	trainJobs.OwnerReferences = []metav1.OwnerReference{{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind, Name: "x", UID: "x", Controller: new(true)}}
	for name, object := range map[string]client.Object{
		"secret that Trainer makes": &corev1.Secret{ObjectMeta: trainJobs, Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{corev1.SSHAuthPrivateKey: []byte("x")}},
		"pod":                       &corev1.Pod{ObjectMeta: meta, Spec: pod},
		"pod of another":            &corev1.Pod{ObjectMeta: deployment, Spec: pod},
		"job":                       &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}},
		"secret":                    &corev1.Secret{ObjectMeta: meta},
		"config map":                &corev1.ConfigMap{ObjectMeta: meta},
		"certificate's name":        &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mpijob-webhook-certificate"}},
	} {
		eventually(t, "the API server enforces the policy for a "+name, func() error {
			copied := object.DeepCopyObject().(client.Object)
			err := stolen.Create(t.Context(), copied)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'mpijob-operator'") {
				_ = api.Delete(context.Background(), copied)
				return fmt.Errorf("creating it gives %w", cmp.Or(err, errors.New("no error")))
			}
			return nil
		})
	}
	dry := &corev1.Pod{ObjectMeta: meta, Spec: pod}
	if err := stolen.Create(t.Context(), dry, client.DryRunAll); err != nil {
		t.Errorf("a dry run is refused: %v", err)
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}, Data: map[string][]byte{"password": []byte("x")}}
	create(t, theirs)
	if err := stolen.Patch(t.Context(), theirs, client.RawPatch(types.MergePatchType, []byte(`{"data":{"password":null}}`))); !apierrors.IsForbidden(err) {
		t.Errorf("changing a user's Secret gives %v", err)
	}
}
