package protocol

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"

	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Identity holds the keys with which launcher and workers of a job authenticate: the private key in the job's Secret,
// and two keys derived from it. Without the Secret neither side can be impersonated.
//
// Agents authenticate with the derived keys, which take a tenth of a millisecond to create and use; a P-521 key takes
// several milliseconds to parse and sign with, for every host that a launcher connects to. An RSA key is used itself: the
// administrator chose it for a site that requires RSA (--ssh-key-type).
type Identity struct {
	// host is what a worker shows, client what a launcher does.
	host, client ssh.Signer
	// Token proves, without a connection of SSH, that a client of this pod has the job's key.
	Token string
	// Job is the key in the Secret itself, for peers that are no agents: OpenSSH on either side.
	Job func() (ssh.Signer, error)
}

// errHostKey is refused proof: something else than the job's worker answered.
var errHostKey = errors.New("it showed a host key that is not this job's")

// ReadIdentity reads a private key, PEM in any form that OpenSSH writes; "" is the file of the job's. The file's mode does not matter: a
// Secret's files belong to root, and who may read them depends on the cluster.
func ReadIdentity(path string) (Identity, error) {
	path = cmp.Or(path, os.Getenv(agentapi.EnvKey), agentapi.KeyFile)
	data, err := files.Read(path)
	if err != nil {
		return Identity{}, fmt.Errorf("read the job's key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return Identity{}, fmt.Errorf("read the job's key %s: it is not PEM", path)
	}
	id := Identity{Job: sync.OnceValues(func() (ssh.Signer, error) {
		signer, err := ssh.ParsePrivateKey(data)
		if err != nil {
			return nil, fmt.Errorf("read the job's key %s: %w", path, err)
		}
		return signer, nil
	})}
	token, err := hkdf.Key(sha256.New, block.Bytes, nil, "mpi.opendatahub.io status token 1", sha256.Size)
	if err != nil {
		return Identity{}, fmt.Errorf("derive the token: %w", err)
	}
	id.Token = hex.EncodeToString(token)
	if block.Type == rsaBlock {
		if id.host, err = id.Job(); err != nil {
			return Identity{}, err
		}
		id.client = id.host
		return id, nil
	}
	if id.host, err = derive(block.Bytes, "host"); err != nil {
		return Identity{}, err
	}
	id.client, err = derive(block.Bytes, "client")
	return id, err
}

// rsaBlock is the type of PEM in which the operator writes RSA keys.
const rsaBlock = "RSA PRIVATE KEY"

// derive makes a key of the job's secret, one for each purpose (RFC 5869). The texts of purposes must never change:
// agents of different versions can be part of one job.
func derive(secret []byte, purpose string) (ssh.Signer, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "mpi.opendatahub.io "+purpose+" key 1", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the %s key: %w", purpose, err)
	}
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return nil, fmt.Errorf("derive the %s key: %w", purpose, err)
	}
	return signer, nil
}

// checkHost accepts an agent of the job, and an sshd that was given the job's key as its host key.
func (id Identity) checkHost(_ string, _ net.Addr, key ssh.PublicKey) error {
	if id.has(key, id.host) {
		return nil
	}
	return errHostKey
}

// checkClient admits agents of the job, and others that have its key.
func (id Identity) checkClient(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if id.has(key, id.client) {
		return &ssh.Permissions{}, nil
	}
	return nil, errors.New("the key is not this job's")
}

// has reports whether a key is that of an agent of the job, or the job's own.
func (id Identity) has(key ssh.PublicKey, agent ssh.Signer) bool {
	if same(key, agent) {
		return true
	}
	job, err := id.Job()
	return err == nil && same(key, job)
}

func same(key ssh.PublicKey, signer ssh.Signer) bool {
	return bytes.Equal(key.Marshal(), signer.PublicKey().Marshal())
}

// signers are what a client offers, in this order. The job's own key is read when an agent's was refused.
func (id Identity) signers() ([]ssh.Signer, error) {
	if id.client == id.host {
		return []ssh.Signer{id.client}, nil
	}
	return []ssh.Signer{id.client, later{id.Job, id.client}}, nil
}

// later is a signer that is read when it is needed. One that cannot be read is another's, which was refused already.
type later struct {
	get       func() (ssh.Signer, error)
	otherwise ssh.Signer
}

func (l later) signer() ssh.Signer {
	if signer, err := l.get(); err == nil {
		return signer
	}
	return l.otherwise
}

// PublicKey implements ssh.Signer.
func (l later) PublicKey() ssh.PublicKey { return l.signer().PublicKey() }

// Sign implements ssh.Signer.
func (l later) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.signer().Sign(rand, data)
}

// SignWithAlgorithm implements ssh.AlgorithmSigner, which RSA needs for anything but SHA-1.
func (l later) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	signer, is := l.signer().(ssh.AlgorithmSigner)
	if !is {
		return l.Sign(rand, data)
	}
	return signer.SignWithAlgorithm(rand, data, algorithm)
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

// hostKeyAlgorithms are those of the keys that checkHost may accept, an agent's first.
var hostKeyAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA521, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}
