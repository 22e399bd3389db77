package contestant

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestATakenPortIsTold(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := free(port); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is taken", port)) {
		t.Errorf("got %v for a port that is taken", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := free(port); err != nil {
		t.Errorf("got %v for a port that is free", err)
	}
}
