package protocol

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"opendatahub.io/mpijob/internal/mpitest"
)

// writeRSAKey makes a job's key as the operator does with --ssh-key-type=rsa-4096.
func writeRSAKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return mpitest.WritePEM(t, rsaBlock, x509.MarshalPKCS1PrivateKey(key))
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
		"p521":     {mpitest.WriteKey(t), ssh.KeyAlgoED25519, []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA521}},
		"rsa-4096": {writeRSAKey(t), ssh.KeyAlgoRSA, []string{ssh.KeyAlgoRSA}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			identity, err := ReadIdentity(test.key)
			if err != nil {
				t.Fatal(err)
			}
			if offered := offeredBy(t, identity); !slices.Equal(offered, test.offered) {
				t.Errorf("a launcher offers keys of the types %v, want %v", offered, test.offered)
			}
			listener := listen(t)
			worker := &Server{Log: slog.New(slog.DiscardHandler), Identity: identity}
			go func() { _ = worker.Serve(t.Context(), t.Context(), listener) }()
			host := ""
			client, err := ssh.Dial("tcp", listener.Addr().String(), &ssh.ClientConfig{
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

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// offeredBy returns the types of the keys that a launcher offers to a server that has the job's key and takes no other.
func offeredBy(t *testing.T, identity Identity) []string {
	t.Helper()
	job, err := identity.Job()
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
	listener := listen(t)
	address := listener.Addr().(*net.TCPAddr)
	go func() {
		d := Dialer{Identity: identity, LookUp: func(_ context.Context, host string) (string, error) { return host, nil }, Waiting: func(*Trouble, time.Time) {}}
		_, _ = d.Dial(t.Context(), address.IP.String(), address.Port, false, time.Minute)
	}()
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, _, _, err := ssh.NewServerConn(connection, config)
	if err != nil {
		t.Fatalf("offered %v: %v", offered, err)
	}
	_ = server.Close()
	return offered
}
