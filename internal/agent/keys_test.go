package agent

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// writeRSAKey makes a job's key as the operator does with --ssh-key-type=rsa-4096.
func writeRSAKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, t.TempDir(), rsaBlock, x509.MarshalPKCS1PrivateKey(key))
}

// TestKeysOnTheWire: which keys agents show and prove, for each type of the job's key. With RSA no other key is used.
func TestKeysOnTheWire(t *testing.T) {
	tests := map[string]struct {
		key string
		// host is the type of a worker's host key, and offered are those that a launcher offers to a server that takes none
		// but the job's own key.
		host    string
		offered []string
	}{
		"p521":     {writeKey(t), ssh.KeyAlgoED25519, []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA521}},
		"rsa-4096": {writeRSAKey(t), ssh.KeyAlgoRSA, []string{ssh.KeyAlgoRSA}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.key = test.key
			if offered := offeredTo(t, w); !slices.Equal(offered, test.offered) {
				t.Errorf("a launcher offers keys of the types %v, want %v", offered, test.offered)
			}
			w = newWorld(t)
			w.key = test.key
			w.serve()
			identity, err := readIdentity(w.key)
			if err != nil {
				t.Fatal(err)
			}
			host := ""
			client, err := ssh.Dial("tcp", w.address, &ssh.ClientConfig{
				User: "mpi", Config: algorithms(), Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(identity.signers)}, HostKeyAlgorithms: hostKeyAlgorithms, Timeout: time.Minute,
				HostKeyCallback: func(name string, address net.Addr, key ssh.PublicKey) error {
					host = key.Type()
					return identity.checkHost(name, address, key)
				},
			})
			if err != nil || host != test.host {
				t.Fatalf("a worker shows a host key of the type %q, want %q: %v", host, test.host, err)
			}
			_ = client.Close()
		})
	}
}

// offeredTo returns the types of the keys that a launcher offers to a server that has the job's key and takes no other.
func offeredTo(t *testing.T, w *world) []string {
	t.Helper()
	identity, err := readIdentity(w.key)
	if err != nil {
		t.Fatal(err)
	}
	job, err := identity.job()
	if err != nil {
		t.Fatal(err)
	}
	var offered []string
	config := &ssh.ServerConfig{Config: algorithms(), PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !slices.Contains(offered, key.Type()) {
			offered = append(offered, key.Type())
		}
		if !same(key, job) {
			return nil, errHostKey
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(job)
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cmd := w.ssh("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, _, _, err := ssh.NewServerConn(connection, config)
	if err != nil {
		t.Fatalf("offered %v: %v", offered, err)
	}
	_ = server.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return offered
}
