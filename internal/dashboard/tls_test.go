package dashboard

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// TestCertificates starts the server without a certificate, and then writes one: it serves with TLS from the first moment.
func TestCertificates(t *testing.T) {
	b := newBackend(t)
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	server := newServerFor(t, b, Options{Listen: "127.0.0.1:0", CertFile: certFile, KeyFile: keyFile, SelfSigned: true})
	ctx, stop := context.WithCancel(t.Context())
	address, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func(bound net.Addr) { address <- bound }) }()
	var at string
	select {
	case bound := <-address:
		at = bound.String()
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	subject := func() string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the server's own certificate is not trusted
		response, err := client.Get("https://" + at + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		client.CloseIdleConnections()
		return response.TLS.PeerCertificates[0].DNSNames[0]
	}
	if first := subject(); first != "mpijob-dashboard" {
		t.Errorf("without files, the certificate is for %s", first)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("given", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{keyFile: key, certFile: certificate} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for subject() != "given" && time.Now().Before(deadline) {
	}
	if second := subject(); second != "given" {
		t.Errorf("with files, the certificate is for %s", second)
	}
	strict := &certificates{certFile: filepath.Join(folder, "none"), keyFile: keyFile}
	if _, err := strict.get(); err == nil {
		t.Error("a missing file is no error without --tls-self-signed")
	}
}
