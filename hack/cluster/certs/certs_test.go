package certs

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func newStore(t *testing.T) Store {
	t.Helper()
	s := Store{Dir: filepath.Join(t.TempDir(), "certs"), Now: time.Now}
	if err := s.EnsureCA("ca"); err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestEnsureMakesWhatTheAuthorityVouchesFor(t *testing.T) {
	s := newStore(t)
	request := Request{
		Name: "node-1", CA: "ca", CommonName: "system:node:node-1",
		Organizations: []string{"system:nodes"}, Hosts: []string{"node-1", "10.244.1.1"},
	}
	if err := s.Ensure(request); err != nil {
		t.Fatal(err)
	}
	cert, _, err := s.load("node-1")
	if err != nil {
		t.Fatal(err)
	}
	ca, _, err := s.load("ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, host := range request.Hosts {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			options := x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}
			if _, err := cert.Verify(options); err != nil {
				t.Errorf("%s, usage %v: %v", host, usage, err)
			}
		}
	}
	if info, err := os.Stat(s.Key("node-1")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, error %v; want 0600", info.Mode(), err)
	}
}

func TestEnsureKeepsWhatFits(t *testing.T) {
	base := Request{Name: "server", CA: "ca", CommonName: "server", Hosts: []string{"localhost"}}
	more := base
	more.Hosts = []string{"localhost", "10.96.0.1"}
	group := base
	group.Organizations = []string{"system:masters"}
	tests := map[string]struct {
		change  func(t *testing.T, s Store)
		request Request
		kept    bool
	}{
		"the same":           {request: base, kept: true},
		"one more address":   {request: more},
		"another group":      {request: group},
		"a lost key":         {request: base, change: func(t *testing.T, s Store) { remove(t, s.Key("server")) }},
		"another authority":  {request: base, change: func(t *testing.T, s Store) { remove(t, s.Key("ca")); mustCA(t, s) }},
		"an empty cert file": {request: base, change: func(t *testing.T, s Store) { truncate(t, s.Cert("server")) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if err := s.Ensure(base); err != nil {
				t.Fatal(err)
			}
			before := read(t, s.Cert("server"))
			if test.change != nil {
				test.change(t, s)
			}
			if err := s.Ensure(test.request); err != nil {
				t.Fatal(err)
			}
			if kept := read(t, s.Cert("server")) == before; kept != test.kept {
				t.Errorf("kept is %v, want %v", kept, test.kept)
			}
		})
	}
}

func TestWriteKubeconfigLeavesWhatIsRight(t *testing.T) {
	s := newStore(t)
	if err := s.Ensure(Request{Name: "admin", CA: "ca", CommonName: "admin"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for range 2 {
		if err := s.WriteKubeconfig(path, "https://10.244.0.1:26443", "ca", "admin"); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, error %v; want 0600", info.Mode(), err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

func mustCA(t *testing.T, s Store) {
	t.Helper()
	if err := s.EnsureCA("ca"); err != nil {
		t.Fatal(err)
	}
}
