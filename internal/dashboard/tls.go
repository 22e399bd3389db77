package dashboard

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// certificates are those that the server uses: of two files, which are read again when the certificate's file has changed, or
// one that it makes itself.
type certificates struct {
	certFile, keyFile string
	// selfSigned allows a certificate of the server's own while there is no file.
	selfSigned bool

	mu      sync.Mutex
	current *tls.Certificate
	read    time.Time
	own     *tls.Certificate
	made    time.Time
}

// renewAfter is the age at which the server replaces its own certificate, which is valid for a year.
const renewAfter = 300 * 24 * time.Hour

func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() }}
}

// get returns the certificate to use now.
func (c *certificates) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && (c.current == nil || info.ModTime().After(c.read)) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err == nil {
			c.current, c.read = &pair, info.ModTime()
		}
	}
	switch {
	case c.current != nil:
		return c.current, nil
	case c.selfSigned && (c.certFile == "" || errors.Is(err, fs.ErrNotExist)):
		return c.makeOwn()
	}
	return nil, fmt.Errorf("read certificate: %w", err)
}

func (c *certificates) makeOwn() (*tls.Certificate, error) {
	if c.own != nil && time.Since(c.made) < renewAfter {
		return c.own, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("mpijob-dashboard", nil, []string{"mpijob-dashboard.mpijob-system.svc", "localhost"})
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	c.own, c.made = &pair, time.Now()
	return c.own, nil
}
