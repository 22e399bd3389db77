package agent

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
)

// identity is what the pods of a job prove themselves with, launcher and workers alike: the key pair in the job's
// Secret. A launcher shows the key itself; a worker shows a host key that is derived from it, so that who does not
// have the Secret can stand in for neither.
type identity struct {
	client ssh.Signer
	host   ssh.Signer
}

// errHostKey is refused proof: something else than the job's worker answered.
var errHostKey = errors.New("it showed a host key that is not this job's")

// readIdentity reads the job's private key, PEM in any form that OpenSSH writes. The file's mode does not matter: a
// Secret's files belong to root, and who may read them depends on the cluster.
func readIdentity(path string) (identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return identity{}, fmt.Errorf("read the job's key: %w", err)
	}
	client, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return identity{}, fmt.Errorf("read the job's key %s: %w", path, err)
	}
	block, _ := pem.Decode(data)
	// What stands in the label never changes: agents of different versions meet in one job.
	seed, err := hkdf.Key(sha256.New, block.Bytes, nil, "mpi.opendatahub.io host key 1", ed25519.SeedSize)
	if err != nil {
		return identity{}, fmt.Errorf("derive the host key: %w", err)
	}
	host, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return identity{}, fmt.Errorf("derive the host key: %w", err)
	}
	return identity{client: client, host: host}, nil
}

// checkHost accepts an agent of the job, and an sshd that was given the job's key as its host key.
func (id identity) checkHost(_ string, _ net.Addr, key ssh.PublicKey) error {
	shown := key.Marshal()
	if bytes.Equal(shown, id.host.PublicKey().Marshal()) || bytes.Equal(shown, id.client.PublicKey().Marshal()) {
		return nil
	}
	return errHostKey
}

// checkClient admits the job's key.
func (id identity) checkClient(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if bytes.Equal(key.Marshal(), id.client.PublicKey().Marshal()) {
		return &ssh.Permissions{}, nil
	}
	return nil, errors.New("the key is not this job's")
}

// algorithms are those that FIPS 140-3 approves and that OpenSSH has too. The first of each kind is what two agents
// agree on: the fastest where the processor helps.
func algorithms() ssh.Config {
	return ssh.Config{
		KeyExchanges: []string{ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521},
		Ciphers:      []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES256CTR},
		MACs:         []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
	}
}

// hostKeyAlgorithms are those of the keys that checkHost accepts.
func (id identity) hostKeyAlgorithms() []string {
	names := []string{ssh.KeyAlgoED25519}
	if kind := id.client.PublicKey().Type(); kind == ssh.KeyAlgoRSA {
		return append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
	} else if kind != ssh.KeyAlgoED25519 {
		names = append(names, kind)
	}
	return names
}
