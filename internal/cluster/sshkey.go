package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"opendatahub.io/mpijob/internal/mpi"
)

// newKeys makes the SSH keys of one job: ECDSA on P-521 (FIPS 186-5), in mpi-operator's encoding.
func newKeys() (*mpi.Keys, error) {
	private, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate SSH key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode private SSH key: %w", err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("encode public SSH key: %w", err)
	}
	return &mpi.Keys{
		Private: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		Public:  ssh.MarshalAuthorizedKey(public),
	}, nil
}
