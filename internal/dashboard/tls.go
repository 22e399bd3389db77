package dashboard

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificateFrom returns a TLS configuration with the certificate of two files. They are read again when the certificate's
// file has changed.
func certificateFrom(certFile, keyFile string) *tls.Config {
	var mu sync.Mutex
	var current *tls.Certificate
	var read time.Time
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			info, err := os.Stat(certFile)
			if err == nil && (current == nil || info.ModTime().After(read)) {
				pair, err := tls.LoadX509KeyPair(certFile, keyFile)
				if err == nil {
					current, read = &pair, info.ModTime()
				} else if current == nil {
					return nil, fmt.Errorf("read certificate: %w", err)
				}
			}
			if current == nil {
				return nil, fmt.Errorf("read certificate: %w", err)
			}
			return current, nil
		},
	}
}
