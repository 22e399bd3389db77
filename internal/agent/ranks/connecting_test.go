package ranks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseConnecting(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0
   1: 0501F40A:9C40 0700000A:01BB 02 00000001:00000000 01:00000064 00000003  1000        0 2 2 0000000000000000 800 0 0 1 7
   2: 0501F40A:9C41 0700000A:08AE 02 00000001:00000000 01:00000064 00000003  1000        0 3 2 0000000000000000 800 0 0 1 7
   3: 0501F40A:9C42 0800000A:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4 2 0000000000000000 20 0 0 10 -1
   4: 0501F40A:9C43 nonsense:0050 02 00000000:00000000 00:00000000 00000000  1000        0 4 2 0000000000000000 20 0 0 10 -1
`
	if got, want := parseConnecting(table), []string{"10.0.0.7:443"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	table6 := `   0: 0000000000000000FFFF00000501F40A:9C40 0000000000000000FFFF00000700000A:0050 02 00000001:00000000 01:00000064 00000003 1000 0 2 2
   1: 000080FE00000000FF005450F6ABCDFE:9C40 B80D0120000000000000000001000000:01BB 02 00000001:00000000 01:00000064 00000003 1000 0 2 2
`
	if got, want := parseConnecting(table6), []string{"10.0.0.7:80", "[2001:db8::1]:443"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

const netstat = "TcpExt: SyncookiesSent TCPSynRetrans TCPOrigDataSent\nTcpExt: 1 %d 3\nIpExt: InNoRoutes InOctets\nIpExt: 5 6\n"

func TestParseRepeated(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		netstat string
		want    int64
		known   bool
	}{
		"counted":       {fmt.Sprintf(netstat, 7), 7, true},
		"another group": {"IpExt: TCPSynRetrans\nIpExt: 5\n", 0, false},
		"not counted":   {"TcpExt: SyncookiesSent\nTcpExt: 1\n", 0, false},
		"names only":    {"TcpExt: SyncookiesSent TCPSynRetrans\n", 0, false},
		"too short":     {"TcpExt: SyncookiesSent TCPSynRetrans\nTcpExt: 1\n", 0, false},
		"no number":     {"TcpExt: TCPSynRetrans\nTcpExt: x\n", 0, false},
		"no file":       {"", 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, known := parseRepeated(test.netstat); got != test.want || known != test.known {
				t.Errorf("got %d, %v, want %d, %v", got, known, test.want, test.known)
			}
		})
	}
}

// TestCallWatch: the tables of connections are read from when the kernel sends a SYN again until no connection waits any more.
func TestCallWatch(t *testing.T) {
	t.Parallel()
	const waits = "0: 0501F40A:9C40 0700000A:01BB 02\n"
	steps := []struct {
		what         string
		netstat, tcp string
		want         []string
	}{
		{"nothing was sent again", fmt.Sprintf(netstat, 3), waits, nil},
		{"a SYN was sent again", fmt.Sprintf(netstat, 4), waits, []string{"10.0.0.7:443"}},
		{"the connection still waits", fmt.Sprintf(netstat, 4), waits, []string{"10.0.0.7:443"}},
		{"it was given up", fmt.Sprintf(netstat, 4), "", nil},
		{"nothing was sent again since", fmt.Sprintf(netstat, 4), waits, nil},
		{"the kernel does not count", "", waits, []string{"10.0.0.7:443"}},
	}
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("netstat", fmt.Sprintf(netstat, 3))
	watch := newCallWatch(folder)
	for _, step := range steps {
		write("netstat", step.netstat)
		write("tcp", step.tcp)
		if got := watch.connecting(); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
	}
}

// TestCallWatchOfThisKernel: a connection that gets no answer is found.
func TestCallWatchOfThisKernel(t *testing.T) {
	t.Parallel()
	watch := newCallWatch("/proc/net")
	if _, known := parseRepeated(watch.read("netstat")); !known {
		t.Skip("the kernel does not count what it sends again")
	}
	// A queue of 0 takes one connection; the kernel drops what comes after it.
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if err := errors.Join(unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(server, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(server)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for range 3 {
		go func() {
			if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
				defer conn.Close()
				<-t.Context().Done()
			}
		}()
	}
	for deadline := time.Now().Add(20 * time.Second); !slices.Contains(watch.connecting(), address); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the connections to %s that wait are not found", address)
		}
	}
}
