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
