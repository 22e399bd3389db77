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

	"opendatahub.io/mpijob/internal/mpi"
)

// KeyType is a kind of SSH key that jobs can have.
type KeyType string

// The types of keys.
const (
	// KeyP521 is ECDSA on P-521 (FIPS 186-5), as mpi-operator and Kubeflow Trainer make it: a few milliseconds each.
	KeyP521 KeyType = "p521"
	// KeyRSA4096 is for sites that demand it; each takes seconds to make, so that a stock is kept.
	KeyRSA4096 KeyType = "rsa-4096"
)

// stock is how many keys are kept ready of a type that is slow to make: as many as jobs that start at once
// without waiting for theirs.
const stock = 32

// Keys makes jobs' SSH keys.
type Keys struct {
	make  func() (*mpi.Keys, error)
	ready chan *mpi.Keys
}

// NewKeys returns a maker of keys of a type; an error tells of an unknown one.
func NewKeys(kind KeyType) (*Keys, error) {
	switch kind {
	case KeyP521:
		return &Keys{make: newP521}, nil
	case KeyRSA4096:
		return &Keys{make: newRSA, ready: make(chan *mpi.Keys, stock)}, nil
	}
	return nil, fmt.Errorf("unknown type of SSH key %q: use %s or %s", kind, KeyP521, KeyRSA4096)
}

// NeedLeaderElection is true: only the replica that works needs a stock.
func (k *Keys) NeedLeaderElection() bool { return true }

// Start keeps the stock filled until the context ends. Types that are quickly made have none.
func (k *Keys) Start(ctx context.Context) error {
	for k.ready != nil {
		keys, err := k.make()
		if err != nil {
			return err
		}
		select {
		case k.ready <- keys:
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// take returns keys that no other job has, from the stock if there are any.
func (k *Keys) take() (*mpi.Keys, error) {
	select {
	case keys := <-k.ready:
		return keys, nil
	default:
		return k.make()
	}
}

// newP521 encodes keys as mpi-operator does.
func newP521() (*mpi.Keys, error) {
	private, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate SSH key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode private SSH key: %w", err)
	}
	return encode("EC PRIVATE KEY", der, private)
}

func newRSA() (*mpi.Keys, error) {
	private, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		return nil, fmt.Errorf("generate SSH key: %w", err)
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private), private)
}

func encode(block string, der []byte, private crypto.Signer) (*mpi.Keys, error) {
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("encode public SSH key: %w", err)
	}
	return &mpi.Keys{
		Private: pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}),
		Public:  ssh.MarshalAuthorizedKey(public),
	}, nil
}
