package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// flooded is a server with 8 connections, 2 for each address. It counts those that are open, and the most that were.
type flooded struct {
	net.Listener
	address string
	mu      sync.Mutex
	open    int
	most    int
}

func flood(t *testing.T, config *tls.Config) *flooded {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flooded{Listener: inner, address: inner.Addr().String()}
	if config.GetCertificate, err = selfSigned(); err != nil {
		t.Fatal(err)
	}
	server := serverOn(f, "test", 8, config, http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) { fmt.Fprint(response, "answer") }))
	server.Server.ErrorLog = log.New(io.Discard, "", 0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return f
}

// Accept counts the connection until it is closed.
func (f *flooded) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	f.count(1)
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { f.count(-1) })}, nil
}

func (f *flooded) count(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += more
	f.most = max(f.most, f.open)
}

// atMost returns how many connections were open at a time.
func (f *flooded) atMost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

// dialer connects from an address of this machine.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// handshakes opens connections that never send anything.
func (f *flooded) handshakes(t *testing.T, from string, connections int) {
	t.Helper()
	for range connections {
		conn, err := dialer(from).DialContext(t.Context(), "tcp", f.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

// get asks the server from an address.
func (f *flooded) get(t *testing.T, from string, patience time.Duration, config *tls.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+f.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	config.InsecureSkipVerify = true // nobody signed it
	transport := &http.Transport{TLSClientConfig: config, DialContext: dialer(from).DialContext, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// TestIdleHandshakes: who opens any number of connections takes few of them, no memory for the others, and keeps nobody else
// from asking for long.
func TestIdleHandshakes(t *testing.T) {
	t.Parallel()
	f := flood(t, &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
	f.handshakes(t, "127.0.0.1", 300)
	if err := f.get(t, "127.0.0.2", 3*time.Second, &tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("while one address floods the port, another one gets %v", err)
	}
	if most := f.atMost(); most > 3 {
		t.Errorf("one address has %d connections", most)
	}
	for i := range 10 {
		f.handshakes(t, fmt.Sprintf("127.0.0.%d", 3+i), 5)
	}
	// The first ones are cut when their handshakes take too long.
	if err := f.get(t, "127.0.0.20", 4*headerTimeout, &tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("while many addresses flood the port, another one gets %v", err)
	}
	if most := f.atMost(); most > 8 {
		t.Errorf("%d connections were open at a time", most)
	}
}

func TestTLSConfig(t *testing.T) {
	t.Parallel()
	config, err := tlsConfig(Options{TLSMinVersion: "VersionTLS13"})
	if err != nil {
		t.Fatal(err)
	}
	f := flood(t, config)
	if err := f.get(t, "127.0.0.1", 5*time.Second, &tls.Config{MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is served with --tls-min-version=VersionTLS13")
	}
	config, err = tlsConfig(Options{TLSCipherSuites: []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}})
	if err != nil {
		t.Fatal(err)
	}
	f = flood(t, config)
	for suite, want := range map[uint16]bool{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: true, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: false} {
		err := f.get(t, "127.0.0.1", 5*time.Second, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		if (err == nil) != want {
			t.Errorf("cipher suite %s: %v", tls.CipherSuiteName(suite), err)
		}
	}
	for _, options := range []Options{{TLSMinVersion: "1.2"}, {TLSCipherSuites: []string{"AES"}}} {
		if _, err := tlsConfig(options); err == nil {
			t.Errorf("%+v is accepted", options)
		}
	}
}
