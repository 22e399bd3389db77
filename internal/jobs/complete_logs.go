package jobs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
)

// Fetch returns the object at a signed address.
type Fetch func(ctx context.Context, address string) (io.ReadCloser, error)

// FetchTimeout limits how long the server of complete logs may take to begin its answer.
const FetchTimeout = 15 * time.Second

// NewFetch returns a Fetch over HTTP, which follows no redirects. Its errors do not contain the signature of an address. Servers are
// verified with some certificates; nil is those of the system.
func NewFetch(roots *x509.CertPool) Fetch {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = FetchTimeout
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, address string) (io.ReadCloser, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil || request.URL.Scheme != "https" && request.URL.Scheme != "http" {
			return nil, errors.New("the address of the complete logs is invalid")
		}
		response, err := client.Do(request)
		if err != nil {
			if failed, is := errors.AsType[*url.Error](err); is {
				err = failed.Err
			}
			return nil, fmt.Errorf("%s does not answer: %w", request.URL.Host, err)
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			return nil, fmt.Errorf("%s answers %s", request.URL.Host, response.Status)
		}
		return response.Body, nil
	}
}

// PrintableReport returns a copy of the job's report for files and screens, with its kind. It lacks the address of the complete logs, since
// anyone who has that can read them.
func (j Job) PrintableReport() *v1alpha1.JobReport {
	report := j.Report.DeepCopy()
	report.APIVersion, report.Kind = v1alpha1.GroupVersion.String(), "JobReport"
	if report.Status.CompleteLogs != nil {
		report.Status.CompleteLogs.Index = ""
	}
	return report
}

// HasCompleteLogs reports whether the complete logs of the job can be read from a bucket.
func (j Job) HasCompleteLogs(now time.Time) bool {
	kept := j.Status().CompleteLogs
	return kept != nil && kept.Index != "" && kept.Expires != nil && now.Before(kept.Expires.Time)
}

// CompleteLogs reads the index of the complete logs of a job that has them.
func (j Job) CompleteLogs(ctx context.Context, fetch Fetch) (logstream.Stored, error) {
	fail := func(err error) (logstream.Stored, error) {
		return logstream.Stored{}, fmt.Errorf("read the complete logs of %s: %w", j, err)
	}
	body, err := fetch(ctx, j.Status().CompleteLogs.Index)
	if err != nil {
		return fail(err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, logs.MaxIndex))
	if err != nil {
		return fail(err)
	}
	index, err := logs.ParseIndex(data)
	if err != nil {
		return fail(err)
	}
	return logstream.Stored{Index: index, Places: j.podPlaces(), Fetch: fetch}, nil
}

// CompleteLogsText describes which complete logs there are, and until when; empty if there are none.
func (j Job) CompleteLogsText() string {
	kept := j.Status().CompleteLogs
	switch {
	case kept == nil:
		return ""
	case kept.Index == "" || kept.Expires == nil:
		return kept.Message
	}
	return fmt.Sprintf("%s of %s, until %s", phrase.Count(int(kept.Lines), "line"), phrase.Count(int(kept.Pods), "pod"), kept.Expires.UTC().Format(time.RFC3339))
}

// CompleteLogsNote describes what the complete logs lack; empty if nothing is missing.
func (j Job) CompleteLogsNote() (note string) {
	kept := j.Status().CompleteLogs
	if kept == nil {
		return ""
	}
	join := func(text string) {
		if note != "" {
			note += "; "
		}
		note += text
	}
	if kept.PodsCut > 0 {
		join("lines of " + phrase.Count(int(kept.PodsCut), "pod") + " may be missing")
	}
	if kept.PodsUnread > 0 {
		join("the logs of " + phrase.Count(int(kept.PodsUnread), "pod") + " could not be read")
	}
	if kept.Message != "" {
		join(kept.Message)
	}
	return note
}
