package network

import (
	"net"
	"testing"
)

func TestOverlaps(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.2/24":   "",
		"10.0.0.5/24":    "",
		"10.0.0.5/8":     "", // a network that has all of 10
		"10.244.7.1/24":  "10.244.0.0/16",
		"10.96.0.200/20": "10.96.0.0/16",
		"fe80::1/64":     "",
	} {
		ip, network, err := net.ParseCIDR(address)
		if err != nil {
			t.Fatal(err)
		}
		network.IP = ip
		if got := overlaps(network); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
