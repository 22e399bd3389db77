package jobs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
)

// Fetch returns the object at a signed address, which has at most some bytes.
type Fetch func(ctx context.Context, address string, most int) ([]byte, error)

// fetcher reads objects over HTTP.
type fetcher struct {
	client *http.Client
	// timeout limits each try to read an object, and pause is the shortest pause before the second one.
	timeout, pause time.Duration
	// untrusted is what to do about a server whose certificate is from an unknown authority.
	untrusted string
}

// fetchTries is how often an object is asked for while the server does not answer, or answers that it cannot at the moment.
const fetchTries = 3

// NewFetch returns a Fetch over HTTP, which tries again a few times, and follows no redirects. Its errors do not contain the signature of an
// address. Servers are verified with some certificates; nil is those of the system. The error of a server that cannot be verified ends with
// what to do about that.
func NewFetch(roots *x509.CertPool, untrusted string) Fetch {
	const connect, begin, idle = 5 * time.Second, 15 * time.Second, 16
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connect}).DialContext
	transport.ResponseHeaderTimeout, transport.MaxIdleConnsPerHost = begin, idle
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f := &fetcher{client: client, timeout: time.Minute, pause: 500 * time.Millisecond, untrusted: untrusted}
	return f.fetch
}

// fetch is a Fetch.
func (f *fetcher) fetch(ctx context.Context, address string, most int) ([]byte, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("the address of the complete logs is invalid")
	}
	for try := 1; ; try++ {
		data, isFinal, err := f.try(ctx, at, most)
		if err == nil || isFinal || try == fetchTries {
			return data, err
		}
		// Many objects may fail at once, and are not asked for again at once.
		pause := f.pause << (2 * (try - 1))
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try asks for an object once. An error that is final stays when it is asked for again.
func (f *fetcher) try(ctx context.Context, at *url.URL, most int) (data []byte, isFinal bool, err error) {
	trying, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	fail := func(isFinal bool, format string, args ...any) ([]byte, bool, error) {
		switch {
		case ctx.Err() != nil:
			return nil, true, ctx.Err()
		case trying.Err() != nil:
			return nil, false, fmt.Errorf("%s does not send an object within %s", at.Host, f.timeout)
		}
		return nil, isFinal, fmt.Errorf("%s "+format, append([]any{at.Host}, args...)...)
	}
	request, err := http.NewRequestWithContext(trying, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, true, errors.New("the address of the complete logs is invalid")
	}
	response, err := f.client.Do(request)
	if err != nil {
		if failed, is := errors.AsType[*url.Error](err); is {
			err = failed.Err
		}
		if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
			return fail(true, "is not trusted: %w; %s", err, f.untrusted)
		}
		_, isFinal := errors.AsType[*tls.CertificateVerificationError](err)
		return fail(isFinal, "does not answer: %w", err)
	}
	defer response.Body.Close()
	if code := response.StatusCode; code != http.StatusOK {
		return fail(code < http.StatusInternalServerError && code != http.StatusTooManyRequests, "answers %s", response.Status)
	}
	data, err = io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return fail(false, "does not send all of an object: %w", err)
	case len(data) > most:
		return fail(true, "sends an object of more than %d bytes", most)
	}
	return data, false, nil
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
	data, err := fetch(ctx, j.Status().CompleteLogs.Index, logs.MaxIndex)
	if err != nil {
		return fail(err)
	}
	index, err := logs.ParseIndex(data)
	if err != nil {
		return fail(err)
	}
	return logstream.Stored{Index: index, Places: j.FailureLogs().Places, Fetch: fetch}, nil
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

// CompleteLogsNotice describes the complete logs above their lines: which there are, and what they lack or may lack.
func (j Job) CompleteLogsNotice() string {
	notice := j.CompleteLogsText()
	if j.Status().CompleteLogs.Pods > 1 {
		notice += "; a worker that printed more than 10 MiB itself may lack its first lines"
	}
	if note := j.CompleteLogsNote(); note != "" {
		notice += "; " + note
	}
	return notice
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
