package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Wire is a slow network: hosts on it have a network namespace each, whose only way to the others is a TUN device. This program carries the
// packets from device to device, later than they came, and loses some.
type Wire struct {
	// delay is that of a packet in one direction, and loss the share of packets that are lost.
	delay time.Duration
	loss  float64

	mu    sync.RWMutex
	ports map[netip.Addr]*os.File
	ends  []chan struct{}
	nets  []*Network
}

// NewWire makes a network without hosts.
func NewWire(delay time.Duration, loss float64) *Wire {
	return &Wire{delay: delay, loss: loss, ports: map[netip.Addr]*os.File{}}
}

// Join makes the network of a host with an address, an IPv4 one.
func (w *Wire) Join(address netip.Addr) (*Network, error) {
	var port *os.File
	network, err := newNetwork(func() (err error) {
		if err := isolate(); err != nil {
			return err
		}
		port, err = openTUN(address)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	end := make(chan struct{})
	w.ports[address], w.nets, w.ends = port, append(w.nets, network), append(w.ends, end)
	go w.carry(port, end)
	return network, nil
}

// Close ends the network with all of its hosts.
func (w *Wire) Close() error {
	w.mu.Lock()
	ends := w.ends
	var errs []error
	for _, port := range w.ports {
		errs = append(errs, port.Close())
	}
	for _, network := range w.nets {
		network.Close()
	}
	w.mu.Unlock()
	for _, end := range ends {
		<-end
	}
	return errors.Join(errs...)
}

// packet is one on its way.
type packet struct {
	to   netip.Addr
	due  time.Time
	data []byte
}

// carry takes the packets of a host until its device is closed. As all take equally long, they arrive in their order.
func (w *Wire) carry(port *os.File, end chan<- struct{}) {
	// A switch drops what does not fit into its memory.
	const most = 8192
	way := make(chan packet, most)
	go func() {
		defer close(end)
		for p := range way {
			time.Sleep(time.Until(p.due))
			w.deliver(p)
		}
	}()
	defer close(way)
	buffer := make([]byte, 1<<16)
	for {
		n, err := port.Read(buffer)
		if err != nil {
			return
		}
		to, is := destination(buffer[:n])
		if !is || rand.Float64() < w.loss { //nolint:gosec // no secret
			continue
		}
		select {
		case way <- packet{to, time.Now().Add(w.delay), append([]byte(nil), buffer[:n]...)}:
		default:
		}
	}
}

func (w *Wire) deliver(p packet) {
	w.mu.RLock()
	port := w.ports[p.to]
	w.mu.RUnlock()
	if port != nil {
		_, _ = port.Write(p.data) // a host that has ended takes none
	}
}

// destination is that of an IPv4 packet (RFC 791, 3.1); false if it is none.
func destination(data []byte) (netip.Addr, bool) {
	const header, at = 20, 16
	if len(data) < header || data[0]>>4 != 4 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(data[at:])), true
}

// openTUN makes a TUN device with an address in this thread's network namespace. All addresses that share its first byte are behind it.
func openTUN(address netip.Addr) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	if err := setUp(fd, address); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// Go's poller may have it only now: a device that is none yet cannot be polled.
	return os.NewFile(uintptr(fd), "tun"), nil
}

func setUp(fd int, address netip.Addr) error {
	const name = "net0"
	device, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	device.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, device); err != nil {
		return fmt.Errorf("make a TUN device: %w", err)
	}
	return setInterface(name, func(socket int, device *unix.Ifreq) error {
		ip := address.As4()
		mask := binary.BigEndian.AppendUint32(nil, 0xff000000)
		for _, set := range []struct {
			request uint
			value   []byte
		}{{unix.SIOCSIFADDR, ip[:]}, {unix.SIOCSIFNETMASK, mask}} {
			if err := device.SetInet4Addr(set.value); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(socket, set.request, device); err != nil {
				return fmt.Errorf("set the address %s: %w", address, err)
			}
		}
		return nil
	})
}
