package dashboard

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
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
	fetch := jobs.NewFetch(roots, "set the dashboard's --log-bucket-ca to a file with its CA")
	return func(ctx context.Context, address string, most int) ([]byte, error) {
		if asked, err := url.Parse(address); err != nil || asked.Scheme != allowed.Scheme || asked.Host != allowed.Host {
			return nil, errors.New("their address is not that of the dashboard's --log-bucket")
		}
		return fetch(ctx, address, most)
	}, nil
}

// openStored returns the complete logs of a job that has ended; nil if there are none, or the dashboard has no log bucket. Until close is
// called, they count as some of the user's logs: the index is large, and objects are read in advance. It returns busyError if these are too
// many, and another error if the logs cannot be read.
func (s *Server) openStored(ctx context.Context, user string, job jobs.Job) (stored *logstream.Stored, closed func(), err error) {
	if s.completeLogs == nil || !job.Ended() || !job.HasCompleteLogs(s.now()) {
		return nil, nil, nil
	}
	closed, err = s.logs.acquire(user, completeLogsWeight)
	if err != nil {
		return nil, nil, err
	}
	read, err := job.CompleteLogs(ctx, s.completeLogs)
	if err != nil {
		closed()
		return nil, nil, err
	}
	return &read, closed, nil
}

// unreadNote describes the lines that are shown because the complete logs cannot be read.
func unreadNote(err error) string {
	return "These are the lines that the pods and the report of the job have, not its complete logs: " + err.Error()
}

func isBusy(err error) bool {
	_, is := errors.AsType[*busyError](err)
	return is
}

// after returns a text with what separates it from the text before; empty if the text is empty.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
