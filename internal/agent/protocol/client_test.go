package protocol

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestMissingNameIsExplained: a pod that has no DNS record yet is a host that cannot be reached.
func TestMissingNameIsExplained(t *testing.T) {
	found := explain(&net.DNSError{Err: "no such host", Name: "pi-worker-0.pi.ns.svc", IsNotFound: true}, "pi-worker-0.pi.ns.svc:2222")
	if found.Why == "" || found.Code != agentapi.Unreachable {
		t.Errorf("explained as %+v", found)
	}
}

// TestUnknownHostIsNotAwaited: a host that is none of the job's and has no name is given up at once, with the job's hosts.
func TestUnknownHostIsNotAwaited(t *testing.T) {
	d := Dialer{
		LookUp: func(_ context.Context, host string) (string, error) {
			return "", &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		Waiting: func(found *Trouble, _ time.Time) {
			if found.Code != agentapi.Unreachable {
				t.Errorf("it waits because of %+v", found)
			}
		},
		Job: hostfile.Hosts{Names: []string{"pi-worker-0", "pi-worker-1", "pi-worker-2", "pi-worker-3"}},
	}
	_, err := d.Dial(t.Context(), "node01", 0, false, time.Hour)
	found, is := errors.AsType[*Trouble](err)
	if !is || found.Code != agentapi.UnknownHost || !strings.Contains(found.Why, "pi-worker-0, pi-worker-1 to pi-worker-3") {
		t.Errorf("another host: %v", err)
	}
	if _, err = d.Dial(t.Context(), "pi-worker-4", 0, false, 100*time.Millisecond); !errors.As(err, &found) || found.Code != agentapi.Unreachable {
		t.Errorf("a host that the job may get: %v", err)
	}
}

// TestHostWithoutAddressIsAwaitedForLonger: a pod without a node has no address and is waited for until the operator may have put the
// job back. From when it has an address, it has the usual time.
func TestHostWithoutAddressIsAwaitedForLonger(t *testing.T) {
	const wait, addressWait = 200 * time.Millisecond, 800 * time.Millisecond
	const host = "127.0.0.1"
	tests := map[string]struct {
		// nameless is how long the host has no address, and addressWait how long that may last.
		nameless, addressWait time.Duration
		// removedAfter is when the host is no longer one of the job's; zero: it stays one.
		removedAfter time.Duration
		least, most  time.Duration
		why          string
	}{
		"it is removed from the job":         {nameless: time.Hour, addressWait: time.Minute, removedAfter: 2 * wait, least: 2 * wait, most: 6 * wait, why: "its pod has no address yet"},
		"it refuses":                         {addressWait: addressWait, least: wait / 2, most: addressWait, why: "connection refused"},
		"it never has an address":            {nameless: time.Hour, addressWait: addressWait, least: addressWait * 3 / 4, most: 2 * addressWait, why: "its pod has no address yet"},
		"its address is late":                {nameless: addressWait / 2, addressWait: addressWait, least: addressWait/2 + wait/2, most: 2 * addressWait, why: "connection refused"},
		"no address, and no time of its own": {nameless: time.Hour, least: wait / 2, most: addressWait, why: "its pod has no address yet"},
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			d := Dialer{
				AddressWait:   test.addressWait,
				MayGetAddress: func(string) bool { return test.removedAfter == 0 || time.Since(start) < test.removedAfter },
				LookUp: func(_ context.Context, host string) (string, error) {
					if time.Since(start) < test.nameless {
						return "", &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
					}
					return host, nil
				},
				Waiting: func(*Trouble, time.Time) {},
			}
			_, err := d.Dial(t.Context(), host, port, false, wait)
			if took := time.Since(start); took < test.least || took > test.most {
				t.Errorf("given up after %s, want %s to %s", took, test.least, test.most)
			}
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("given up because of %v, want %q", err, test.why)
			}
		})
	}
}
