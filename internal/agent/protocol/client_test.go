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
