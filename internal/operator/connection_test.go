package operator

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestOwnConnection: the lease is not renewed on the connection of all other requests.
func TestOwnConnection(t *testing.T) {
	t.Parallel()
	config := &rest.Config{Host: "https://192.0.2.1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	transport := func(config *rest.Config) any {
		transport, err := rest.TransportFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return transport
	}
	if transport(config) != transport(rest.CopyConfig(config)) {
		t.Error("configurations that are equal do not share a connection: ownConnection is not needed")
	}
	if transport(config) == transport(ownConnection(config)) {
		t.Error("ownConnection shares the connection of others")
	}
}
