package agent

import (
	"fmt"
	"io"
	"testing"
	"time"
)

// TestSlowReader: a client that reads slowly slows its own program down, and loses nothing.
func TestSlowReader(t *testing.T) {
	w := newWorld(t).serve()
	const lines = 60000
	cmd := w.ssh(fmt.Sprintf("seq -f '%%063.0f' %d", lines))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than pipes, windows and sockets hold together is still to come.
	time.Sleep(time.Second)
	data, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || len(data) != 64*lines {
		t.Errorf("%d bytes arrived, want %d; %v", len(data), 64*lines, err)
	}
}
