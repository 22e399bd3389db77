package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Every pod of the cluster can connect to the ports of webhooks and metrics. These limits bound what connections cost before a
// request is authenticated. An API server uses a few connections for all webhooks.
const (
	maxWebhookConnections = 1000
	maxMetricsConnections = 100
	// headerTimeout also limits the TLS handshake.
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 64 << 10
	// shutdownTimeout is less than the manager's.
	shutdownTimeout = 5 * time.Second
)

// newServer returns a server with limits on the time and the headers of requests.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}

// limitedListener accepts a limited number of connections at a time, a quarter of them from the same address. Others from the
// address are closed, and those from other addresses wait, so that one pod does not lock out the API server.
type limitedListener struct {
	net.Listener
	slots      chan struct{}
	perAddress int
	closed     chan struct{}
	close      func()

	mu   sync.Mutex
	open map[netip.Addr]int
}

func newLimitedListener(inner net.Listener, most int) *limitedListener {
	l := &limitedListener{
		Listener: inner, slots: make(chan struct{}, most), perAddress: max(1, most/4), closed: make(chan struct{}), open: map[netip.Addr]int{},
	}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept waits for the next connection within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err //nolint:wrapcheck // http.Server compares it
		}
		address := addressOf(conn)
		if l.enter(address) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		_ = conn.Close()
		<-l.slots
	}
}

// Close stops accepting connections.
func (l *limitedListener) Close() error {
	l.close()
	return l.Listener.Close() //nolint:wrapcheck // it is the error of the listener
}

// enter counts a connection; false if its address has too many.
func (l *limitedListener) enter(address netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] >= l.perAddress {
		return false
	}
	l.open[address]++
	return true
}

func (l *limitedListener) leave(address netip.Addr) {
	l.mu.Lock()
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
	l.mu.Unlock()
	<-l.slots
}

func addressOf(conn net.Conn) netip.Addr {
	address, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return address.AddrPort().Addr().Unmap()
}

// limitedConn frees its place when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close() //nolint:wrapcheck // it is the error of the connection
}

// serverAt returns a server that listens on an address with TLS.
func serverAt(ctx context.Context, name, address string, connections int, config *tls.Config, handler http.Handler) (*manager.Server, error) {
	inner, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", name, err)
	}
	return serverOn(inner, name, connections, config, handler), nil
}

// serverOn is serverAt with a listener.
func serverOn(inner net.Listener, name string, connections int, config *tls.Config, handler http.Handler) *manager.Server {
	return &manager.Server{
		Name: name, Server: newServer(handler), Listener: tls.NewListener(newLimitedListener(inner, connections), config),
		ShutdownTimeout: ptr.To(shutdownTimeout),
	}
}

// webhookServer serves the webhooks that are registered with controller-runtime's server, which itself does not listen: it has
// no limit of connections.
type webhookServer struct {
	webhook.Server
	port int
	tls  *tls.Config

	mu      sync.Mutex
	started bool
}

func newWebhookServer(port int, config *tls.Config) *webhookServer {
	return &webhookServer{Server: webhook.NewServer(webhook.Options{Port: -1}), port: port, tls: config}
}

// Start serves until the context ends.
func (s *webhookServer) Start(ctx context.Context) error {
	server, err := serverAt(ctx, "webhooks", net.JoinHostPort("", strconv.Itoa(s.port)), maxWebhookConnections, s.tls, s.WebhookMux())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	return server.Start(ctx) //nolint:wrapcheck // it names the server
}

// StartedChecker reports whether the server listens.
func (s *webhookServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.started {
			return errors.New("webhooks are not served yet")
		}
		return nil
	}
}
