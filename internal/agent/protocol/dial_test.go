package protocol

import (
	"net"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestMissingNameIsExplained: a pod that has no DNS record yet is a host that cannot be reached.
func TestMissingNameIsExplained(t *testing.T) {
	found := explain(&net.DNSError{Err: "no such host", Name: "pi-worker-0.pi.ns.svc", IsNotFound: true}, "pi-worker-0.pi.ns.svc:2222")
	if found.Why == "" || found.Code != agentapi.Unreachable {
		t.Errorf("explained as %+v", found)
	}
}
