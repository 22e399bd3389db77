// Package relay puts a distance between clients and a server on the same machine.
package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Relay passes connections on to a server, and what the server answers back after a delay. It does not limit
// how much is under way: this is latency, not bandwidth. It counts bytes, and can cut clients off.
type Relay struct {
	address, target string
	delay           time.Duration
	sent, received  atomic.Int64

	mu       sync.Mutex
	listener net.Listener
	closed   bool
	open     map[net.Conn]bool
	working  sync.WaitGroup
}

// Start relays from a free port of the loopback interface to the target, host:port.
func Start(target string, delay time.Duration) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	r := &Relay{listener: listener, address: listener.Addr().String(), target: target, delay: delay, open: map[net.Conn]bool{}}
	r.working.Go(func() { r.accept(listener) })
	return r, nil
}

// Address is where clients connect, host:port.
func (r *Relay) Address() string { return r.address }

// Traffic is how many bytes clients have sent and received so far, of TLS.
func (r *Relay) Traffic() (sent, received int64) { return r.sent.Load(), r.received.Load() }

// Stop ends all connections.
func (r *Relay) Stop() error {
	err := r.Cut()
	r.working.Wait()
	return err
}

// Cut ends all connections and refuses others, as if the server's process had ended.
func (r *Relay) Cut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for conn := range r.open {
		_ = conn.Close() // that it ends is all that is wanted
	}
	if err := r.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop relay: %w", err)
	}
	return nil
}

// Resume accepts connections again after Cut, at the same address.
func (r *Relay) Resume() error {
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		return fmt.Errorf("resume relay: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.closed = listener, false
	r.working.Go(func() { r.accept(listener) })
	return nil
}

func (r *Relay) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // stopped
		}
		r.working.Go(func() { r.connect(client) })
	}
}

// connect passes one connection on, until either side ends it. To the client that is as it would be if the
// server itself did.
func (r *Relay) connect(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !r.keep(client, server) {
		return
	}
	defer r.forget(client, server)
	var sides sync.WaitGroup
	sides.Go(func() {
		_, _ = io.Copy(io.MultiWriter(server, counter{&r.sent}), client)
		_ = server.Close()
	})
	sides.Go(func() {
		later(io.MultiWriter(client, counter{&r.received}), server, r.delay)
		_ = client.Close()
	})
	sides.Wait()
}

// counter counts the bytes that are written to it.
type counter struct{ bytes *atomic.Int64 }

// Write implements io.Writer.
func (c counter) Write(data []byte) (int, error) {
	c.bytes.Add(int64(len(data)))
	return len(data), nil
}

func (r *Relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for _, conn := range conns {
		r.open[conn] = true
	}
	return true
}

func (r *Relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		delete(r.open, conn)
	}
}

// later copies like io.Copy, every byte after a delay.
func later(to io.Writer, from io.Reader, delay time.Duration) {
	type chunk struct {
		data []byte
		due  time.Time
	}
	chunks := make(chan chunk, 4096)
	var writing sync.WaitGroup
	writing.Go(func() {
		var failed error
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if failed == nil {
				_, failed = to.Write(c.data)
			}
		}
	})
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 {
			chunks <- chunk{data[:n], time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writing.Wait()
}
