package resolve

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

const podResolvConf = `search ns.svc.cluster.local svc.cluster.local cluster.local example.com
nameserver 10.96.0.10
options ndots:5
`

func TestAbsoluteNames(t *testing.T) {
	tests := map[string]struct{ resolvConf, host, want string }{
		"a pod of a Service":         {podResolvConf, "pi-worker-0.pi.ns.svc", "pi-worker-0.pi.ns.svc.cluster.local."},
		"with the cluster's domain":  {podResolvConf, "pi-worker-0.pi.ns.svc.cluster.local", "pi-worker-0.pi.ns.svc.cluster.local."},
		"with another domain":        {podResolvConf, "pi-worker-0.pi.ns.svc.other.domain", ""},
		"a short name":               {podResolvConf, "pi-worker-0", ""},
		"an address":                 {podResolvConf, "10.1.2.3", ""},
		"no DNS server":              {"search svc.cluster.local\n", "pi-worker-0.pi.ns.svc", ""},
		"a pod on the node's DNS":    {"nameserver 10.0.0.1\nsearch example.com\n", "pi-worker-0.pi.ns.svc", ""},
		"no resolver configuration":  {"", "pi-worker-0.pi.ns.svc", ""},
		"a domain of one's own":      {"nameserver fd00::a\nsearch svc.my.domain\n", "pi-worker-0.pi.ns.svc", "pi-worker-0.pi.ns.svc.my.domain."},
		"search in more than a line": {"search a b\nsearch ns.svc.k8s svc.k8s\nnameserver 10.0.0.1\n", "w.pi.ns.svc", "w.pi.ns.svc.k8s."},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(path, []byte(test.resolvConf), 0o600); err != nil {
				t.Fatal(err)
			}
			got, is := New(path).absolute(test.host)
			if got != test.want || is != (test.want != "") {
				t.Errorf("absolute(%q) = %q, %t, want %q", test.host, got, is, test.want)
			}
		})
	}
}

// cachingDNS is a DNS server that knows some names, and whose cache answers by name and record type for ever, as
// CoreDNS does for some seconds.
type cachingDNS struct {
	mu    sync.Mutex
	known map[string]bool
	cache map[dnsmessage.Question]dnsmessage.RCode
	// refuse is the answer to types that it does not know, if not 0.
	refuse dnsmessage.RCode
}

// serve starts the server and returns its address.
func (d *cachingDNS) serve(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for packet := make([]byte, 512); ; {
			length, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if message.Unpack(packet[:length]) != nil {
				continue
			}
			message.Response, message.RCode = true, d.answer(message.Questions[0])
			answer, err := message.Pack()
			if err != nil {
				continue
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	return conn.LocalAddr().String()
}

func (d *cachingDNS) answer(asked dnsmessage.Question) dnsmessage.RCode {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != 0 {
		return d.refuse
	}
	if cached, is := d.cache[asked]; is {
		return cached
	}
	code := dnsmessage.RCodeNameError
	if d.known[asked.Name.String()] {
		code = dnsmessage.RCodeSuccess
	}
	d.cache[asked] = code
	return code
}

// TestNamesAreFoundDespiteACache: a name that did not exist when it was first asked for is found as soon as it does.
func TestNamesAreFoundDespiteACache(t *testing.T) {
	const host, absolute = "pi-worker-0.pi.ns.svc", "pi-worker-0.pi.ns.svc.cluster.local."
	server := &cachingDNS{known: map[string]bool{}, cache: map[dnsmessage.Question]dnsmessage.RCode{}}
	n := &Names{server: server.serve(t), domain: "cluster.local"}
	for range 3 {
		_, err := n.Check(t.Context(), host)
		if dns, is := errors.AsType[*net.DNSError](err); !is || !dns.IsNotFound {
			t.Fatalf("a name that does not exist: %v, want a DNSError that says so", err)
		}
	}
	server.mu.Lock()
	server.known[absolute] = true
	server.mu.Unlock()
	if name, err := n.Check(t.Context(), host); err != nil || name != absolute {
		t.Errorf("a name that has appeared: %q, %v, want %q", name, err, absolute)
	}
	for question := range server.cache {
		if question.Type == dnsmessage.TypeA || question.Type == dnsmessage.TypeAAAA {
			t.Errorf("%s was asked for its address while it did not exist", question.Name)
		}
	}
}

// TestNamesAreLookedUpUsually: what a DNS server makes nothing of is left to the usual lookup.
func TestNamesAreLookedUpUsually(t *testing.T) {
	for _, refuse := range []dnsmessage.RCode{dnsmessage.RCodeNotImplemented, dnsmessage.RCodeRefused, dnsmessage.RCodeServerFailure} {
		server := &cachingDNS{refuse: refuse}
		n := &Names{server: server.serve(t), domain: "cluster.local"}
		if name, err := n.Check(t.Context(), "pi-worker-0.pi.ns.svc"); err != nil || name != "pi-worker-0.pi.ns.svc" {
			t.Errorf("%v: %q, %v", refuse, name, err)
		}
	}
}
