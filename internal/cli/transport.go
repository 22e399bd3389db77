package cli

import (
	"net/http"
	"net/http/httptrace"
	"sync"

	"k8s.io/client-go/rest"
)

// firstConnection lets the first request open a connection before others are sent, so that they share it over HTTP/2. Without
// it, each of the requests with which a command starts opens a connection, and all but one are closed.
type firstConnection struct {
	inner http.RoundTripper
	first sync.Once
	open  chan struct{}
}

// shareConnection makes the clients of a configuration share one connection.
func shareConnection(config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return &firstConnection{inner: inner, open: make(chan struct{})}
	})
}

// RoundTrip implements http.RoundTripper.
func (c *firstConnection) RoundTrip(request *http.Request) (*http.Response, error) {
	isFirst := false
	c.first.Do(func() { isFirst = true })
	if isFirst {
		release := sync.OnceFunc(func() { close(c.open) })
		defer release() // the request failed without a connection
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { release() }}
		return c.inner.RoundTrip(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	}
	select {
	case <-c.open:
		return c.inner.RoundTrip(request)
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}

// WrappedRoundTripper implements the interface of k8s.io/apimachinery/pkg/util/net for its helpers.
func (c *firstConnection) WrappedRoundTripper() http.RoundTripper { return c.inner }
