// Package relay puts a distance between clients and a server on the same machine.
package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Relay passes connections on to a server, and what the server answers back after a delay. It does not limit
// how much is under way: this is latency, not bandwidth.
type Relay struct {
	listener net.Listener
	target   string
	delay    time.Duration

	mu      sync.Mutex
	closed  bool
	open    map[net.Conn]bool
	working sync.WaitGroup
}

// Start relays from a free port of the loopback interface to the target, host:port.
func Start(target string, delay time.Duration) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	r := &Relay{listener: listener, target: target, delay: delay, open: map[net.Conn]bool{}}
	r.working.Go(r.accept)
	return r, nil
}

// Address is where clients connect, host:port.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Stop ends all connections.
func (r *Relay) Stop() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for conn := range r.open {
		_ = conn.Close() // that it ends is all that is wanted
	}
	r.mu.Unlock()
	r.working.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop relay: %w", err)
	}
	return nil
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
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
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	sides.Go(func() {
		later(client, server, r.delay)
		_ = client.Close()
	})
	sides.Wait()
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
