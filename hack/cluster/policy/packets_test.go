package policy

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/knftables"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/network"
)

// numbers are the ports that every pod listens on.
var numbers = []int32{53, 80, 443, 9000}

// namespace is a network namespace. Functions run in it one after the other.
type namespace struct {
	calls chan func()
	tid   int
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{calls: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.tid = unix.Gettid()
		ready <- err
		for call := range n.calls {
			call()
		}
	}()
	t.Cleanup(func() { close(n.calls) })
	if err := <-ready; err != nil {
		t.Skipf("SKIPPED: this machine allows no network namespaces: %v", err)
	}
	return n
}

func (n *namespace) do(t *testing.T, call func() error) {
	t.Helper()
	done := make(chan error)
	n.calls <- func() { done <- call() }
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func (n *namespace) ip(t *testing.T, lines ...string) {
	t.Helper()
	n.do(t, func() error {
		command := exec.CommandContext(t.Context(), "ip", "-batch", "-")
		command.Stdin = strings.NewReader(strings.Join(lines, "\n"))
		output, err := command.CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip: %w: %s", err, output)
		}
		return nil
	})
}

// host is what has an address in the test: a pod, a machine outside of the cluster, or the cluster's machine.
type host struct {
	*namespace
	address netip.Addr
}

// machine is a machine with the cluster's bridges and pods.
type machine struct {
	host
	pods   []host
	world  host
	filter knftables.Interface
}

// services translates the addresses of Services as kube-proxy does: the DNS server is a process of the machine on an unusual
// port, and 10.96.0.20:80 is a pod's port 9000.
const services = `table ip services {
	chain prerouting {
		type nat hook prerouting priority dstnat
		ip daddr 10.96.0.10 udp dport 53 dnat to 10.244.0.1:26053
		ip daddr 10.96.0.10 tcp dport 53 dnat to 10.244.0.1:26053
		ip daddr 10.96.0.20 tcp dport 80 dnat to 10.244.1.2:9000
	}
	chain postrouting {
		type nat hook postrouting priority srcnat
		ip saddr 10.244.1.2 ip daddr 10.244.1.2 masquerade
	}
}`

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("SKIPPED: nft is not installed")
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		t.Skip("SKIPPED: this kernel has no br_netfilter: packets within a bridge are not filtered")
	}
	m := &machine{host: host{newNamespace(t), netip.MustParseAddr(layout.ControlPlaneIP)}}
	m.do(t, func() error {
		return errors.Join(
			os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644),
			os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644),
		)
	})
	m.ip(t, "link set lo up",
		"link add mpijob-0 type bridge", "address add 10.244.0.1/32 dev mpijob-0", "link set mpijob-0 up",
		"link add mpijob-1 type bridge", "address add 10.244.1.1/24 dev mpijob-1", "link set mpijob-1 up",
		"link add mpijob-2 type bridge", "address add 10.244.2.1/24 dev mpijob-2", "link set mpijob-2 up")
	plug := func(name, address, gateway, bridge string) host {
		h := host{newNamespace(t), netip.MustParseAddr(address)}
		m.ip(t, fmt.Sprintf("link add %s type veth peer name eth0 netns %d", name, h.tid), "link set "+name+" up")
		if bridge != "" {
			m.ip(t, "link set "+name+" master "+bridge, "link set "+name+" type bridge_slave hairpin on")
		} else {
			m.ip(t, "address add "+gateway+"/24 dev "+name)
		}
		h.ip(t, "link set lo up", "address add "+address+"/24 dev eth0", "link set eth0 up", "route add default via "+gateway)
		return h
	}
	for node := 1; node <= 2; node++ {
		for pod := 2; pod <= 4; pod++ {
			m.pods = append(m.pods, plug(fmt.Sprintf("pod%d-%d", node, pod), fmt.Sprintf("10.244.%d.%d", node, pod), fmt.Sprintf("10.244.%d.1", node), fmt.Sprintf("mpijob-%d", node)))
		}
	}
	m.world = plug("world", "192.0.2.2", "192.0.2.1", "")
	m.do(t, func() (err error) {
		command := exec.CommandContext(t.Context(), "nft", "-f", "-")
		command.Stdin = strings.NewReader(services)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, output)
		}
		m.filter, err = knftables.New(knftables.IPv4Family, layout.PolicyTable)
		return err
	})
	return m
}

func (m *machine) enforce(t *testing.T, state State) {
	t.Helper()
	m.do(t, func() error {
		tx := m.filter.NewTransaction()
		Compile(state).write(tx)
		return m.filter.Run(t.Context(), tx)
	})
}

func socketAddress(address netip.Addr, port int32) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Addr: address.As4(), Port: int(port)}
}

func (h host) socket(t *testing.T, kind, protocol int) (fd int) {
	t.Helper()
	h.do(t, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
		return err
	})
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// server receives what is sent to a host.
type server struct {
	raw int
	udp []int
}

func (h host) serve(t *testing.T, ports ...int32) server {
	t.Helper()
	s := server{raw: h.socket(t, unix.SOCK_RAW, unix.IPPROTO_SCTP)}
	for _, port := range ports {
		tcp, udp := h.socket(t, unix.SOCK_STREAM, 0), h.socket(t, unix.SOCK_DGRAM, 0)
		s.udp = append(s.udp, udp)
		if err := errors.Join(unix.Bind(tcp, socketAddress(h.address, port)), unix.Listen(tcp, 4096), unix.Bind(udp, socketAddress(h.address, port))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// received adds the numbers of the probes that arrived.
func (s server) received(arrived map[uint32]bool) {
	buffer := make([]byte, 1500)
	for _, fd := range append([]int{s.raw}, s.udp...) {
		for {
			n, _, err := unix.Recvfrom(fd, buffer, 0)
			if err != nil {
				break
			}
			if n >= 4 {
				arrived[binary.BigEndian.Uint32(buffer[n-4:n])] = true
			}
		}
	}
}

// probe is a connection that is tried.
type probe struct {
	from, to end
	source   host
	// address and target are what is connected to. For a Service, to and port are what policies judge.
	address  netip.Addr
	target   int32
	protocol corev1.Protocol
	port     int32
	fd       int
}

func (p probe) String() string {
	return fmt.Sprintf("from %s to %s:%d/%s", p.from.address, p.address, p.target, p.protocol)
}

// start sends the first packet.
func (p *probe) start(number uint32) error {
	kind, protocol := unix.SOCK_STREAM, 0
	switch p.protocol {
	case corev1.ProtocolUDP:
		kind = unix.SOCK_DGRAM
	case corev1.ProtocolSCTP:
		kind, protocol = unix.SOCK_RAW, unix.IPPROTO_SCTP
	}
	var err error
	if p.fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, socketAddress(p.source.address, 0)); err != nil {
		return err
	}
	if p.protocol == corev1.ProtocolTCP {
		if err := unix.Connect(p.fd, socketAddress(p.address, p.target)); !errors.Is(err, unix.EINPROGRESS) {
			return fmt.Errorf("connect: %w", err)
		}
		return nil
	}
	packet := binary.BigEndian.AppendUint32(nil, number)
	if p.protocol == corev1.ProtocolSCTP { // ports, no tag, no checksum, a chunk INIT
		header := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(number)), uint16(p.target))
		packet = append(append(header, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 8), packet...)
	}
	return unix.Sendto(p.fd, packet, 0, socketAddress(p.address, p.target))
}

func (p *probe) connected() bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) == 0
}

// TestEnforcesAsTheAPIDocuments sends packets between pods on the same and on different bridges, the machine and the world,
// under random policies, and compares what arrives with what the evaluator allows.
func TestEnforcesAsTheAPIDocuments(t *testing.T) {
	m := newMachine(t)
	servers := []server{m.serve(t, 26053), m.world.serve(t, numbers...)}
	addresses := []netip.Addr{}
	for _, pod := range m.pods {
		servers = append(servers, pod.serve(t, numbers...))
		addresses = append(addresses, pod.address)
	}
	trials := 100
	if testing.Short() {
		trials = 20
	}
	passed, refused := 0, 0
	for trial := range trials {
		r := random{rand.New(rand.NewPCG(18, uint64(trial)))}
		state := r.state(addresses)
		m.enforce(t, state)
		probes := m.probes(state)
		allowed := map[uint32]bool{}
		for number, p := range probes {
			allowed[uint32(number)] = allows(state, p.from, p.to, p.protocol, p.port)
		}
		arrived := m.try(t, probes, servers, allowed)
		for number, p := range probes {
			if got, want := arrived[uint32(number)], allowed[uint32(number)]; got != want {
				policies, _ := json.Marshal(state.Policies)
				t.Fatalf("trial %d, %s: arrived %v, and the API says %v\npods %+v\nnamespaces %v\npolicies %s", trial, p, got, want, state.Pods, state.Namespaces, policies)
			} else if got {
				passed++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d connections arrived and %d did not, as documented", passed, refused)
	if passed < 100*trials || refused < 100*trials {
		t.Error("the policies decide too little")
	}
}

// probes returns all connections from pods and from the world.
func (m *machine) probes(state State) []*probe {
	known := func(h host) end {
		for i, pod := range state.Pods {
			if pod.Address == h.address {
				return end{h.address, &state.Pods[i]}
			}
		}
		return end{address: h.address}
	}
	var probes []*probe
	hosts := append([]host{m.world}, m.pods...)
	for _, source := range hosts {
		from := known(source)
		for _, target := range hosts {
			if target == source {
				continue
			}
			for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
				for _, port := range numbers {
					probes = append(probes, &probe{from: from, to: known(target), source: source, address: target.address, target: port, protocol: protocol, port: port})
				}
			}
		}
		if source == m.world {
			continue
		}
		service := netip.MustParseAddr("10.96.0.10")
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			probes = append(probes, &probe{from: from, to: end{address: service}, source: source, address: service, target: 53, protocol: protocol, port: 53})
		}
		probes = append(probes, &probe{from: from, to: known(m.pods[0]), source: source, address: netip.MustParseAddr("10.96.0.20"), target: 80, protocol: corev1.ProtocolTCP, port: 9000})
	}
	return probes
}

// try makes connections and returns which arrived. It waits for those that are allowed.
func (m *machine) try(t *testing.T, probes []*probe, servers []server, allowed map[uint32]bool) map[uint32]bool {
	t.Helper()
	for number, p := range probes {
		p.source.do(t, func() error { return p.start(uint32(number)) })
	}
	arrived := map[uint32]bool{}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		missing := false
		for _, s := range servers {
			s.received(arrived)
		}
		for number, p := range probes {
			if p.protocol == corev1.ProtocolTCP && p.connected() {
				arrived[uint32(number)] = true
			}
			missing = missing || allowed[uint32(number)] && !arrived[uint32(number)]
		}
		if !missing || time.Now().After(deadline) {
			break
		}
	}
	for _, p := range probes {
		_ = unix.SetsockoptLinger(p.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		_ = unix.Close(p.fd)
	}
	return arrived
}

// TestOutsideIsKeptOut: another machine that routes the cluster's networks to this one reaches nothing in them. Pods still reach
// each other, their Services, the machine and the world, and the machine reaches its pods.
func TestOutsideIsKeptOut(t *testing.T) {
	m := newMachine(t)
	gateway := host{m.namespace, netip.MustParseAddr("192.0.2.1")}
	servers := []server{m.serve(t, 26053), gateway.serve(t, 8080), m.world.serve(t, numbers...), m.pods[0].serve(t, numbers...), m.pods[4].serve(t, numbers...)}
	var probes []*probe
	connect := func(source host, address string, port int32, protocols ...corev1.Protocol) {
		for _, protocol := range protocols {
			probes = append(probes, &probe{source: source, address: netip.MustParseAddr(address), target: port, protocol: protocol})
		}
	}
	connect(m.world, "10.244.1.2", 80, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	connect(m.world, "10.244.2.3", 9000, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.world, layout.ControlPlaneIP, 26053, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.world, "10.96.0.10", 53, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.world, "10.96.0.20", 80, corev1.ProtocolTCP)
	fromOutside := len(probes)
	connect(m.world, "192.0.2.1", 8080, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.pods[0], "10.244.2.3", 80, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	connect(m.pods[0], "192.0.2.2", 443, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.pods[4], "10.96.0.10", 53, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.pods[4], "10.96.0.20", 80, corev1.ProtocolTCP)
	connect(m.pods[4], layout.ControlPlaneIP, 26053, corev1.ProtocolTCP)
	connect(m.host, "10.244.1.2", 80, corev1.ProtocolTCP, corev1.ProtocolUDP)
	connect(m.host, layout.ControlPlaneIP, 26053, corev1.ProtocolTCP)
	try := func(reachable bool) {
		t.Helper()
		allowed := map[uint32]bool{}
		for number := range probes {
			allowed[uint32(number)] = number >= fromOutside || reachable
		}
		arrived := m.try(t, probes, servers, allowed)
		for number, p := range probes {
			if got, want := arrived[uint32(number)], allowed[uint32(number)]; got != want {
				t.Errorf("%s from %s to %s:%d: arrived %v, want %v", p.protocol, p.source.address, p.address, p.target, got, want)
			}
		}
	}
	try(true) // the machine forwards: without the rules everything arrives
	m.do(t, func() error { return network.ApplyRules(t.Context()) })
	try(false)
}

// TestEstablishedConnectionsGoOn: a policy that isolates a pod does not cut its connections, and allows no new ones.
func TestEstablishedConnectionsGoOn(t *testing.T) {
	m := newMachine(t)
	client, server := m.pods[0], m.pods[1]
	state := State{Namespaces: map[string]labels.Set{"a": {}}, Pods: []Pod{{Namespace: "a", Address: client.address}, {Namespace: "a", Address: server.address}}}
	m.enforce(t, state)
	listener, first, second := server.socket(t, unix.SOCK_STREAM, 0), client.socket(t, unix.SOCK_STREAM, 0), client.socket(t, unix.SOCK_STREAM, 0)
	if err := errors.Join(unix.Bind(listener, socketAddress(server.address, 80)), unix.Listen(listener, 2)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(first, socketAddress(server.address, 80)); !errors.Is(err, unix.EINPROGRESS) {
		t.Fatal(err)
	}
	arrives(t, "the first connection", func() bool { return (&probe{fd: first}).connected() })
	accepted, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(accepted) }()
	state.Policies = []*networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "deny"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}}}
	m.enforce(t, state)
	if _, err := unix.Write(first, []byte("request")); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 16)
	arrives(t, "the request", func() bool { n, _ := unix.Read(accepted, buffer); return n == len("request") })
	if _, err := unix.Write(accepted, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	arrives(t, "the answer", func() bool { n, _ := unix.Read(first, buffer); return n == len("answer") })
	if err := unix.Connect(second, socketAddress(server.address, 80)); !errors.Is(err, unix.EINPROGRESS) {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if (&probe{fd: second}).connected() {
		t.Error("a new connection passed")
	}
}

func arrives(t *testing.T, what string, arrived func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Second); !arrived(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not arrive", what)
		}
	}
}
