package admission

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpitest"
)

// verifies reports whether a client that trusts an authority accepts a certificate for a host.
func verifies(t *testing.T, authority, chain []byte, host string) error {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(chain)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatalf("%q is no authority", authority)
	}
	_, err = certificates[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots})
	return err
}

// TestCertificates: Prometheus can verify /metrics, an operator of an earlier version leaves a certificate that is kept, and
// the webhooks' paths change with the certificate.
func TestCertificates(t *testing.T) {
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingWebhooks}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingWebhooks}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: deletionWebhook, ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "system", Name: webhookService}},
	}}}
	c := mpitest.FakeAPI().WithObjects(mutating, validating).Build()
	keeper := &certificateKeeper{certificate: &Certificate{}, client: c, live: c, namespace: "system"}
	if _, err := keeper.certificate.GetForMetrics(nil); err == nil {
		t.Error("there is a certificate before it was made")
	}
	secret := func() *corev1.Secret {
		t.Helper()
		if err := keeper.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var found corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "system", Name: webhookSecret}, &found); err != nil {
			t.Fatal(err)
		}
		return &found
	}
	path := func() string {
		t.Helper()
		var found admissionv1.ValidatingWebhookConfiguration
		if err := c.Get(t.Context(), client.ObjectKey{Name: validatingWebhooks}, &found); err != nil {
			t.Fatal(err)
		}
		return *found.Webhooks[0].ClientConfig.Service.Path
	}
	first, firstPath := secret(), ""
	if firstPath = path(); firstPath != secretPath(first.Data[callerKey], deletionWebhook) {
		t.Errorf("the webhook's path is %s", firstPath)
	}
	if err := verifies(t, first.Data[metricsAuthority], first.Data[metricsCertificate], "mpijob-operator-metrics.system.svc"); err != nil {
		t.Errorf("the certificate of metrics: %v", err)
	}
	if err := verifies(t, authorityOf(first.Data[corev1.TLSCertKey]), first.Data[corev1.TLSCertKey], "mpijob-webhook.system.svc"); err != nil {
		t.Errorf("the certificate of webhooks: %v", err)
	}
	for name, get := range map[string]bool{"webhooks": keeper.certificate.IsReady(), "metrics": keeper.certificate.metrics.Load() != nil} {
		if !get {
			t.Errorf("%s have no certificate", name)
		}
	}
	for name, expiry := range keeper.certificate.Expiries() {
		if left := time.Until(expiry); left < 360*24*time.Hour || left > 370*24*time.Hour {
			t.Errorf("the certificate of %s expires in %s, want a year", name, left)
		}
	}
	if n := len(keeper.certificate.Expiries()); n != 2 {
		t.Errorf("%d expiries are known, want those of webhooks and metrics", n)
	}
	if again := secret(); !maps.EqualFunc(again.Data, first.Data, bytes.Equal) {
		t.Error("a fresh certificate was renewed")
	}

	// An operator of an earlier version makes none for metrics.
	for _, key := range []string{metricsCertificate, metricsPrivateKey, metricsAuthority} {
		delete(first.Data, key)
	}
	if err := c.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	upgraded := secret()
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, callerKey} {
		if !bytes.Equal(upgraded.Data[key], first.Data[key]) {
			t.Errorf("%s was renewed although it is fresh", key)
		}
	}
	if len(upgraded.Data[metricsAuthority]) == 0 {
		t.Errorf("there is no certificate for metrics, only %q", slices.Sorted(maps.Keys(upgraded.Data)))
	}

	// A certificate that ends soon.
	if !isFresh(upgraded.Data[corev1.TLSCertKey], time.Now()) || isFresh(upgraded.Data[corev1.TLSCertKey], time.Now().Add(320*24*time.Hour)) {
		t.Error("a certificate is good for a year")
	}
	upgraded.Data[corev1.TLSCertKey] = nil
	if err := c.Update(t.Context(), upgraded); err != nil {
		t.Fatal(err)
	}
	renewed := secret()
	if bytes.Equal(renewed.Data[callerKey], upgraded.Data[callerKey]) || path() == firstPath {
		t.Error("the paths of the webhooks did not change with the certificate")
	}
	if !bytes.Equal(renewed.Data[metricsCertificate], upgraded.Data[metricsCertificate]) {
		t.Error("the certificate of metrics was renewed")
	}
}

// TestCertificateWithoutWebhooks: Prometheus can verify the metrics of an operator that serves no webhooks, and whose cluster has no
// webhook configurations.
func TestCertificateWithoutWebhooks(t *testing.T) {
	c := mpitest.FakeAPI().Build()
	keeper := &certificateKeeper{certificate: &Certificate{}, client: c, live: c, namespace: "system", withoutWebhooks: true}
	if err := keeper.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "system", Name: webhookSecret}, &secret); err != nil {
		t.Fatal(err)
	}
	served, err := keeper.certificate.GetForMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifies(t, secret.Data[metricsAuthority], secret.Data[metricsCertificate], "mpijob-operator-metrics.system.svc"); err != nil || !bytes.Equal(served.Leaf.Raw, leafOf(t, secret.Data[metricsCertificate])) {
		t.Errorf("the certificate of metrics: %v", err)
	}
}

func leafOf(t *testing.T, chain []byte) []byte {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(chain)
	if err != nil {
		t.Fatal(err)
	}
	return certificates[0].Raw
}
