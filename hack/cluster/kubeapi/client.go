// Package kubeapi is the little of a Kubernetes client that this program
// needs. client-go would be most of what it compiles.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Client talks to an API server with a client certificate.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client for server, a URL, from PEM files.
func New(server, caFile, certFile, keyFile string) (*Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", server, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("client of %s: %s has no certificate", server, caFile)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", server, err)
	}
	return &Client{server: server, http: &http.Client{
		Timeout: 10 * time.Second,
		// One connection per request is cheap here, and none stays open.
		// No proxy: the server is this machine.
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair},
		}},
	}}, nil
}

// StatusError is an answer of the API server that is no success.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// NotFound reports whether err says that there is no such object.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Denied reports whether err says that an admission webhook has answered, and
// its answer is no.
func Denied(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && strings.HasPrefix(status.Message, "admission webhook ") &&
		strings.Contains(status.Message, " denied the request")
}

// Ready returns nil when the server says that it is ready to serve.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Get reads the object or list at an API path into value.
func (c *Client) Get(ctx context.Context, path string, value any) error {
	body, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, value); err != nil {
		return fmt.Errorf("answer to %s: %w", path, err)
	}
	return nil
}

// Apply creates or updates the object at an API path by server-side apply.
func (c *Client) Apply(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	_, err = c.do(ctx, http.MethodPatch, path+"?fieldManager=mpijob-cluster&force=true", "application/apply-patch+yaml", body)
	return err
}

// DryRun asks whether an object could be created at the API path of its
// kind. Nothing is stored.
func (c *Client) DryRun(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("create at %s: %w", path, err)
	}
	_, err = c.do(ctx, http.MethodPost, path+"?dryRun=All", "application/json", body)
	return err
}

// Delete deletes the object at an API path. It is no error if there is none.
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.do(ctx, http.MethodDelete, path, "", nil)
	if NotFound(err) {
		return nil
	}
	return err
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.server, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %w", method, path, &StatusError{Code: response.StatusCode, Message: message(answer)})
	}
	return answer, nil
}

// message takes the text out of a Status object; other answers are text.
func message(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(answer))
}

// Object is an API object and its path.
type Object struct {
	Path   string
	Object map[string]any
}
