package protocol

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// FuzzServer gives the server whatever a stranger may send. It must come to an end of it, and let nobody in.
func FuzzServer(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14"))
	f.Add([]byte(strings.Repeat("a", 300)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	identity, err := ReadIdentity(writeKey(f))
	if err != nil {
		f.Fatal(err)
	}
	config := (&Server{Identity: identity}).config()
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		s := &Server{Log: slog.New(slog.DiscardHandler), Identity: identity}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.connection(t.Context(), ours, config)
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_ = theirs.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = theirs.Write(data)
		_ = theirs.Close()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection does not end")
		}
		if s.Accepted.Load() > 0 {
			t.Fatal("it was let in")
		}
	})
}
