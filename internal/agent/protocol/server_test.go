package protocol

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/mpitest"
)

// FuzzServer gives the server whatever a stranger may send. It must end the connection and accept no client.
func FuzzServer(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14"))
	f.Add([]byte(strings.Repeat("a", 300)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	identity, err := ReadIdentity(mpitest.WriteKey(f))
	if err != nil {
		f.Fatal(err)
	}
	config := (&Server{Identity: identity}).config()
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, peer := net.Pipe()
		s := &Server{Log: slog.New(slog.DiscardHandler), Identity: identity}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.connection(t.Context(), ours, config)
		}()
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		_ = peer.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = peer.Write(data)
		_ = peer.Close()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection does not end")
		}
		if s.Accepted.Load() > 0 {
			t.Fatal("the client was accepted")
		}
	})
}
