package relay_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/bench/relay"
)

// echo answers every line with itself, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// TestDelay asks twice without waiting for the first answer: both come after one delay, not two.
func TestDelay(t *testing.T) {
	const delay = 200 * time.Millisecond
	r, err := relay.Start(echo(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	start := time.Now()
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := conn.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	answers := bufio.NewReader(conn)
	for _, want := range []string{"one\n", "two\n"} {
		if got, err := answers.ReadString('\n'); got != want || err != nil {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	if took := time.Since(start); took < delay || took >= 2*delay {
		t.Errorf("the answers took %v, want %v and not twice that", took, delay)
	}
	if err := r.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := answers.ReadString('\n'); err == nil {
		t.Error("the connection lives on after Stop")
	}
}

// TestCut ends a connection, has the relay refuse others, and accept them again.
func TestCut(t *testing.T) {
	r, err := relay.Start(echo(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Stop() }()
	ask := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", r.Address())
		if err != nil {
			return nil, err
		}
		if _, err := conn.Write([]byte("one\n")); err != nil {
			return conn, err
		}
		_, err = bufio.NewReader(conn).ReadString('\n')
		return conn, err
	}
	open, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if err := r.Cut(); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on after Cut")
	}
	if conn, err := ask(); err == nil {
		_ = conn.Close()
		t.Error("a connection was accepted after Cut")
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	conn, err := ask()
	if err != nil {
		t.Fatalf("after Resume: %v", err)
	}
	_ = conn.Close()
	if sent, received := r.Traffic(); sent != 8 || received != 8 {
		t.Errorf("clients have sent %d bytes and received %d, want 8 and 8", sent, received)
	}
}
