package dashboard

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
)

// fetchFrom returns what reads complete logs from the server at a URL; nil without a URL. Reports contain addresses, and users may be able to
// write reports: the dashboard asks no other server.
func fetchFrom(server, ca string) (jobs.Fetch, error) {
	if server == "" {
		return nil, nil
	}
	allowed, err := url.Parse(server)
	if err != nil || allowed.Host == "" || allowed.Scheme != "https" && allowed.Scheme != "http" {
		return nil, fmt.Errorf("--log-bucket: %q is not the URL of a server; use a value such as https://s3.example.com", server)
	}
	var roots *x509.CertPool
	if ca != "" {
		certificates, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("--log-bucket-ca: %w", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("--log-bucket-ca: %s contains no certificate in PEM", ca)
		}
	}
	fetch := jobs.NewFetch(roots)
	return func(ctx context.Context, address string) (io.ReadCloser, error) {
		if asked, err := url.Parse(address); err != nil || asked.Scheme != allowed.Scheme || asked.Host != allowed.Host {
			return nil, errors.New("their address is not that of the dashboard's --log-bucket")
		}
		return fetch(ctx, address)
	}, nil
}

// stored returns the complete logs of a job that has ended; false if there are none, or the dashboard has no log bucket.
func (s *Server) stored(ctx context.Context, job jobs.Job) (logstream.Stored, bool, error) {
	if s.completeLogs == nil || !job.Ended() || !job.HasCompleteLogs(s.now()) {
		return logstream.Stored{}, false, nil
	}
	logs, err := job.CompleteLogs(ctx, s.completeLogs)
	return logs, err == nil, err
}

// after returns a text with what separates it from the text before; empty if the text is empty.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
