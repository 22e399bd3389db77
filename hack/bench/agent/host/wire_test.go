package host

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

func TestDestination(t *testing.T) {
	packet := make([]byte, 40)
	packet[0] = 0x45
	copy(packet[12:], []byte{10, 0, 1, 1, 10, 0, 2, 7})
	if got, is := destination(packet); !is || got != netip.MustParseAddr("10.0.2.7") {
		t.Errorf("got %v, %v", got, is)
	}
	packet[0] = 0x60
	for name, data := range map[string][]byte{"IPv6": packet, "short": {0x45, 0}, "empty": nil} {
		if got, is := destination(data); is {
			t.Errorf("%s: taken for a packet to %v", name, got)
		}
	}
}

// TestWire: a message between two hosts of a slow network, there and back, takes a round trip.
func TestWire(t *testing.T) {
	if _, err := os.Stat("/dev/net/tun"); err != nil || os.Geteuid() != 0 {
		t.Skip("only root can make TUN devices, where the kernel has them")
	}
	const delay = 20 * time.Millisecond
	w := NewWire(delay, 0)
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	addresses := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	var sockets []*net.UDPConn
	for _, address := range addresses {
		network, err := w.Join(address)
		if err != nil {
			t.Fatal(err)
		}
		made := make(chan error)
		network.calls <- func() {
			socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 7)))
			sockets = append(sockets, socket)
			made <- err
		}
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		defer sockets[len(sockets)-1].Close()
	}
	start := time.Now()
	buffer := make([]byte, 8)
	for i, from := range sockets {
		if _, err := from.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(addresses[1-i], 7)); err != nil {
			t.Fatal(err)
		}
		to := sockets[1-i]
		_ = to.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := to.Read(buffer); err != nil || string(buffer[:n]) != "hello" {
			t.Fatalf("host %d got %q: %v", 1-i, buffer[:n], err)
		}
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("a round trip took %s, and the delay is %s in each direction", took, delay)
	}
}

// TestWireLoses: a network that loses everything delivers nothing.
func TestWireLoses(t *testing.T) {
	if _, err := os.Stat("/dev/net/tun"); err != nil || os.Geteuid() != 0 {
		t.Skip("only root can make TUN devices, where the kernel has them")
	}
	w := NewWire(0, 1)
	defer w.Close()
	address := netip.MustParseAddr("10.0.0.1")
	network, err := w.Join(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Join(netip.MustParseAddr("10.0.0.2")); err != nil {
		t.Fatal(err)
	}
	dialed := make(chan error)
	network.calls <- func() {
		conn, err := net.DialTimeout("tcp4", "10.0.0.2:7", 200*time.Millisecond)
		if err == nil {
			conn.Close()
		}
		dialed <- err
	}
	failure := <-dialed
	if err, is := errors.AsType[net.Error](failure); !is || !err.Timeout() {
		t.Errorf("the connection did not time out: %v", failure)
	}
}
