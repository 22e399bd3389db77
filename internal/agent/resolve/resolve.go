// Package resolve finds out whether the cluster's DNS has a pod's name.
package resolve

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// Conf is where a pod has its resolver configuration.
	Conf = "/etc/resolv.conf"
	// probeTimeout is how long a DNS server may take to answer a probe.
	probeTimeout = time.Second
	// privateTypes are the DNS record types from firstPrivateType on that RFC 6895 reserves for private use.
	firstPrivateType = 0xFF00
	privateTypes     = 0xFF
)

// Names finds out whether the cluster's DNS has a pod's name, without filling the negative cache of the DNS.
//
// A pod's record appears a moment after the pod. An earlier query gets NXDOMAIN, and CoreDNS, as most clusters run it,
// gives the same answer for the next 5 s. Its cache is by name and record type, and a name that exists has an answer, an
// empty one, for any type. So Names queries a type that was not queried before, and the address only once the name
// exists.
type Names struct {
	// server is the address of the DNS server; empty: nothing is probed.
	server string
	// domain is the cluster's, "cluster.local".
	domain string
	probes atomic.Uint32
}

// New reads the pod's resolver configuration, at Conf. Without a usable one nothing is probed.
func New(path string) *Names {
	n := &Names{}
	n.probes.Store(rand.Uint32N(privateTypes))
	content, err := os.ReadFile(path)
	if err != nil {
		return n
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "nameserver" && n.server == "":
			n.server = net.JoinHostPort(fields[1], "53")
		case fields[0] == "search":
			for _, domain := range fields[1:] {
				if rest, is := strings.CutPrefix(domain, "svc."); is {
					n.domain = strings.TrimSuffix(rest, ".")
				}
			}
		}
	}
	return n
}

// Check returns the name to look a host up by. For a name of the cluster's that exists this is the absolute one, which
// needs no search through the pod's domains. The error is a *net.DNSError if the name does not exist yet. A name that
// Names cannot judge is returned as it is.
func (n *Names) Check(ctx context.Context, host string) (string, error) {
	absolute, is := n.absolute(host)
	if !is || inHostsFile(ctx, host) {
		return host, nil
	}
	switch code, err := n.probe(ctx, absolute); {
	case err != nil:
		return host, nil
	case code == dnsmessage.RCodeSuccess:
		return absolute, nil
	case code == dnsmessage.RCodeNameError:
		return "", &net.DNSError{Err: "no such host", Name: host, Server: n.server, IsNotFound: true}
	}
	return host, nil
}

// Lookup returns a host's addresses.
func (n *Names) Lookup(ctx context.Context, host string) ([]string, error) {
	name, err := n.Check(ctx, host)
	if err != nil {
		return nil, err
	}
	return net.DefaultResolver.LookupHost(ctx, name)
}

// absolute returns the absolute name of a host that is named by a Service, such as pi-worker-0.pi.ns.svc.
func (n *Names) absolute(host string) (string, bool) {
	host = strings.TrimSuffix(host, ".")
	switch {
	case n.server == "" || n.domain == "":
		return "", false
	case strings.HasSuffix(host, ".svc"):
		return host + "." + n.domain + ".", true
	case strings.HasSuffix(host, ".svc."+n.domain):
		return host + ".", true
	}
	return "", false
}

// probe asks for a record of a type of its own.
func (n *Names) probe(ctx context.Context, name string) (dnsmessage.RCode, error) {
	parsed, err := dnsmessage.NewName(name)
	if err != nil {
		return 0, err
	}
	question := dnsmessage.Question{
		Name: parsed, Class: dnsmessage.ClassINET, Type: dnsmessage.Type(firstPrivateType + n.probes.Add(1)%privateTypes),
	}
	id := uint16(rand.Uint32()) //nolint:gosec // wraps on purpose
	query, err := (&dnsmessage.Message{
		Header: dnsmessage.Header{ID: id, RecursionDesired: true}, Questions: []dnsmessage.Question{question},
	}).Pack()
	if err != nil {
		return 0, err
	}
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "udp", n.server)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(probeTimeout))
	if _, err := conn.Write(query); err != nil {
		return 0, err
	}
	for answer := make([]byte, 1232); ; {
		length, err := conn.Read(answer)
		if err != nil {
			return 0, err
		}
		var parser dnsmessage.Parser
		header, err := parser.Start(answer[:length])
		if err != nil || !header.Response || header.ID != id {
			continue // of an earlier query, or not an answer
		}
		if asked, err := parser.Question(); err == nil && asked.Type == question.Type && strings.EqualFold(asked.Name.String(), name) {
			return header.RCode, nil
		}
	}
}

// inHostsFile reports whether the pod's /etc/hosts has a host.
func inHostsFile(ctx context.Context, host string) bool {
	errNoDNS := errors.New("the hosts file alone")
	resolver := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoDNS }}
	_, err := resolver.LookupHost(ctx, host)
	return err == nil
}
