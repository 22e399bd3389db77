package cluster

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// KeyType is a type of SSH key.
type KeyType string

// The types of keys.
const (
	// KeyP521 is ECDSA on P-521 (FIPS 186-5), as in mpi-operator and Kubeflow Trainer. Generating one takes about a
	// millisecond.
	KeyP521 KeyType = "p521"
	// KeyRSA4096 is for sites that require RSA. Generating one takes seconds.
	KeyRSA4096 KeyType = "rsa-4096"
)

// stockSize is the number of keys generated in advance: as many jobs can start at once without waiting.
const stockSize = 32

// Keys generates the SSH keys of jobs.
type Keys struct {
	make  func() (keyPair, error)
	ready chan keyPair
}

// keyPair is the SSH keys of one job.
type keyPair struct {
	// private is PEM; public is a line of an authorized_keys file.
	private, public []byte
}

// NewKeys returns a generator of keys of a type, or an error for an unknown type.
func NewKeys(kind KeyType) (*Keys, error) {
	switch kind {
	case KeyP521:
		return &Keys{make: newP521, ready: make(chan keyPair, stockSize)}, nil
	case KeyRSA4096:
		return &Keys{make: newRSA, ready: make(chan keyPair, stockSize)}, nil
	}
	return nil, fmt.Errorf("unknown type of SSH key %q: use %s or %s", kind, KeyP521, KeyRSA4096)
}

// NeedLeaderElection returns true: only the leader needs keys.
func (k *Keys) NeedLeaderElection() bool { return true }

// Start generates keys in advance until the context ends. It does not wait for a key that is being made: RSA takes seconds, and
// much longer on a busy machine.
func (k *Keys) Start(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			keys, err := k.make()
			if err != nil {
				failed <- err
				return
			}
			select {
			case k.ready <- keys:
			case <-ctx.Done():
			}
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// fill sets new keys in the Secret of a job.
func (k *Keys) fill(secret *corev1.Secret) error {
	pair, err := k.take()
	if err != nil {
		return err
	}
	secret.Data[corev1.SSHAuthPrivateKey], secret.Data[mpi.SSHPublicKey] = pair.private, pair.public
	return nil
}

// take returns new keys, generated in advance if available.
func (k *Keys) take() (keyPair, error) {
	select {
	case keys := <-k.ready:
		return keys, nil
	default:
		return k.make()
	}
}

// newP521 encodes keys as mpi-operator does.
func newP521() (keyPair, error) {
	private, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate SSH key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode private SSH key: %w", err)
	}
	return encode("EC PRIVATE KEY", der, private)
}

func newRSA() (keyPair, error) {
	private, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate SSH key: %w", err)
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private), private)
}

func encode(block string, der []byte, private crypto.Signer) (keyPair, error) {
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return keyPair{}, fmt.Errorf("encode public SSH key: %w", err)
	}
	return keyPair{
		private: pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}),
		public:  ssh.MarshalAuthorizedKey(public),
	}, nil
}
