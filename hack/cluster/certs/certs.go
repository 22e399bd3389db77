// Package certs is the cluster's certificate authority: keys, certificates
// and kubeconfigs, made once per state folder.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lifetime is longer than any such cluster lives, so nothing is ever renewed.
const lifetime = 10 * 365 * 24 * time.Hour

// Store is a folder of keys and certificates: NAME.key and NAME.crt, in PEM.
type Store struct {
	Dir string
	// Now is the time certificates begin to be valid, less an hour for
	// clocks that were set back.
	Now func() time.Time
}

// Request is the certificate of one component.
type Request struct {
	// Name is the file name.
	Name string
	// CA is the authority's name.
	CA string
	// CommonName and Organizations are user and groups to the API server.
	CommonName    string
	Organizations []string
	// Hosts are the DNS names and addresses it serves; empty for a client.
	Hosts []string
}

// Key is the path of a private key.
func (s Store) Key(name string) string { return filepath.Join(s.Dir, name+".key") }

// Cert is the path of a certificate.
func (s Store) Cert(name string) string { return filepath.Join(s.Dir, name+".crt") }

// Public is the path of a bare public key.
func (s Store) Public(name string) string { return filepath.Join(s.Dir, name+".pub") }

// EnsureCA makes an authority unless it is there.
func (s Store) EnsureCA(name string) error {
	if _, _, err := s.load(name); err == nil {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	template, err := s.template(pkix.Name{CommonName: name})
	if err != nil {
		return err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return s.save(name, key, der)
}

// Ensure makes a certificate unless there is one that fits the request and
// its authority.
func (s Store) Ensure(r Request) error {
	ca, caKey, err := s.load(r.CA)
	if err != nil {
		return err
	}
	if now, _, err := s.load(r.Name); err == nil && r.fits(now, ca) {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	template, err := s.template(pkix.Name{CommonName: r.CommonName, Organization: r.Organizations})
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	// A server's certificate is also a client certificate: etcd and the API
	// server use it for both.
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	template.DNSNames, template.IPAddresses = splitHosts(r.Hosts)
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", r.Name, err)
	}
	return s.save(r.Name, key, der)
}

// EnsureKeyPair makes a bare key pair, NAME.key and NAME.pub, unless it is
// there: what service account tokens are signed with.
func (s Store) EnsureKeyPair(name string) error {
	_, keyErr := os.Stat(s.Key(name))
	_, pubErr := os.Stat(s.Public(name))
	if keyErr == nil && pubErr == nil {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	return errors.Join(
		s.write(s.Key(name), "EC PRIVATE KEY", private, 0o600),
		s.write(s.Public(name), "PUBLIC KEY", public, 0o644),
	)
}

func (r Request) fits(cert, ca *x509.Certificate) bool {
	names, addresses := splitHosts(r.Hosts)
	return cert.CheckSignatureFrom(ca) == nil &&
		cert.Subject.CommonName == r.CommonName &&
		slices.Equal(cert.Subject.Organization, r.Organizations) &&
		slices.Equal(cert.DNSNames, names) &&
		slices.EqualFunc(cert.IPAddresses, addresses, net.IP.Equal)
}

func splitHosts(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}

func (s Store) template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	now := s.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return key, nil
}

func (s Store) load(name string) (*x509.Certificate, crypto.Signer, error) {
	certDER, err := s.read(s.Cert(name))
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := s.read(s.Key(name))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("key %s: %w", name, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("key and certificate %s do not belong together", name)
	}
	return cert, key, nil
}

func (s Store) read(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("certificates: %s is not PEM", path)
	}
	return block.Bytes, nil
}

func (s Store) save(name string, key *ecdsa.PrivateKey, der []byte) error {
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	return errors.Join(
		s.write(s.Key(name), "EC PRIVATE KEY", private, 0o600),
		s.write(s.Cert(name), "CERTIFICATE", der, 0o644),
	)
}

func (s Store) write(path, kind string, der []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}
