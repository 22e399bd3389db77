package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Home is where the names of a job's destinations are resolved.
type Home struct {
	// Namespace is the job's namespace.
	Namespace string
	// ClusterDomain is the suffix of the DNS names of Services besides cluster.local, or "".
	ClusterDomain string
	// OperatorNamespace is the namespace of the operator, or "".
	OperatorNamespace string
}

// Destination is where an endpoint leads: a Service or pod of the cluster (Namespace), an Address, or a name outside of the
// cluster. It contains nothing else of the endpoint, such as a user or a path.
type Destination struct {
	// Host is a DNS name in lower case, or an address.
	Host string
	Port int32
	// Namespace and Service are those of a name in the cluster. Guessed is set for names of two parts, which may also be
	// outside of the cluster.
	Namespace, Service string
	Guessed            bool
	// Address is the address that Host is, if it is one.
	Address netip.Addr
}

// String returns the host and the port.
func (d Destination) String() string {
	if d.Address.Is6() {
		return fmt.Sprintf("[%s]:%d", d.Host, d.Port)
	}
	return fmt.Sprintf("%s:%d", d.Host, d.Port)
}

// maxEndpoint is the length of an endpoint that is read.
const maxEndpoint = 2048

// defaultPorts are the ports of schemes.
var defaultPorts = map[string]int32{
	"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990, "ssh": 22, "sftp": 22, "git": 9418, "git+ssh": 22, "rsync": 873, "svn": 3690,
	"postgres": 5432, "postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mongodb": 27017, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671,
	"ldap": 389, "ldaps": 636, "nats": 4222,
}

// errNoEndpoint is returned for texts that name no host and port, such as s3://bucket.
var errNoEndpoint = errors.New("names no host with a port")

// ParseDestination reads an endpoint: a URL, or a host with a port. Errors do not contain the text.
func ParseDestination(text string, home Home) (Destination, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxEndpoint {
		return Destination{}, fmt.Errorf("is longer than %d bytes", maxEndpoint)
	}
	scheme, _, isURL := strings.Cut(text, "://")
	if !isURL {
		text = "//" + text
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" {
		return Destination{}, errors.New("is no URL")
	}
	d := Destination{Host: strings.ToLower(parsed.Hostname()), Port: defaultPorts[strings.ToLower(scheme)]}
	if number := parsed.Port(); number != "" {
		n, ok := port(number)
		if !ok {
			return Destination{}, errors.New("has a port that is not from 1 to 65535")
		}
		d.Port = n
	}
	if d.Host == "" || d.Port == 0 {
		return Destination{}, errNoEndpoint
	}
	return d, d.resolve(home)
}

// resolve sets the fields that follow from the host.
func (d *Destination) resolve(home Home) error {
	if address, err := netip.ParseAddr(d.Host); err == nil {
		if address.Zone() != "" {
			return errors.New("has an address with a zone")
		}
		d.Address = address.Unmap()
		d.Host = d.Address.String()
		return nil
	}
	d.Host = strings.TrimSuffix(d.Host, ".")
	labels := strings.Split(d.Host, ".")
	if len(validation.IsDNS1123Subdomain(d.Host)) > 0 || endsInNumber(labels[len(labels)-1]) {
		// Such as 127.1 or 0x7f000001, which some programs take for addresses.
		return errors.New("has a host that is neither a DNS name nor an address")
	}
	if d.Host == "localhost" || strings.HasSuffix(d.Host, ".localhost") {
		d.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		return nil
	}
	short := d.Host
	for _, domain := range []string{home.ClusterDomain, "cluster.local"} {
		if before, found := strings.CutSuffix(short, ".svc."+domain); found && domain != "" {
			short = before + ".svc"
		}
	}
	parts := strings.Split(short, ".")
	last := len(parts) - 1
	switch {
	case last == 0:
		d.Service, d.Namespace = parts[0], home.Namespace
	case parts[last] == "svc" && last >= 2:
		d.Service, d.Namespace = parts[last-2], parts[last-1]
	case last == 1:
		d.Service, d.Namespace = parts[0], parts[1]
		d.Guessed = d.Namespace != home.Namespace
	}
	return nil
}

// endsInNumber reports whether the last part of a host is a number, in any base (URL Standard, section 3.5).
func endsInNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return true
	}
	_, err := strconv.ParseUint(label, 10, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// alwaysOpen are the ports that every job may connect to over TCP.
var alwaysOpen = []int32{53, 443, 5353, 6443}

// IsAlwaysOpen reports whether every job may connect to a port over TCP, at any address; port 443 is closed at those of metadata
// services.
func IsAlwaysOpen(port int32) bool { return slices.Contains(alwaysOpen, port) }

// metadataPrefixes are the addresses at which nodes and clouds answer pods with credentials.
var metadataPrefixes = prefixes(
	"169.254.0.0/16", "fe80::/10", // link-local: the metadata service of most clouds
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", // of Alibaba Cloud, Azure and Oracle Cloud
	"fd00:ec2::/32", "fd20:ce::254/128", // of AWS and Google Cloud
)

// embeddingPrefixes are the IPv6 addresses that contain an IPv4 address: compatible, mapped, translated, NAT64, 6to4 and
// Teredo.
var embeddingPrefixes = prefixes("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// AnyAddress are the addresses that an endpoint outside of the cluster may have: two ranges, and what is left out of each.
func AnyAddress() map[string][]string {
	ranges := map[string][]string{}
	for _, prefix := range metadataPrefixes {
		all := "0.0.0.0/0"
		if prefix.Addr().Is6() {
			all = "::/0"
		}
		ranges[all] = append(ranges[all], prefix.String())
	}
	return ranges
}

// isMetadata reports whether nodes or clouds answer at an address with credentials.
func isMetadata(address netip.Addr) bool {
	return slices.ContainsFunc(metadataPrefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// isClosedAddress reports whether endpoints never open an address, however it is written.
func isClosedAddress(address netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(address) }
	thisNetwork := address.Is4() && address.As4()[0] == 0
	return !address.IsGlobalUnicast() || thisNetwork || isMetadata(address) || slices.ContainsFunc(embeddingPrefixes, contains)
}

// isControlPlanePort reports whether programs of the control plane and of nodes listen on a port: etcd, kubelet,
// kube-proxy, controllers and schedulers, and OpenShift's machine configuration.
func isControlPlanePort(port int32) bool {
	return port == 2379 || port == 2380 || port >= 10248 && port <= 10259 || port == 22623 || port == 22624
}

// isControlPlane reports whether the pods of a namespace run the cluster or the operator.
func (h Home) isControlPlane(namespace string) bool {
	return namespace != "" && namespace != h.Namespace && (namespace == h.OperatorNamespace || namespace == "openshift" ||
		strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-"))
}

// Service is what decides where connections to a Service arrive.
type Service struct {
	// ExternalName is the name that it stands for, or "".
	ExternalName string
	// Selects is whether it selects pods; otherwise its addresses can be anywhere.
	Selects bool
	// TargetPort is the port of its pods behind the destination's port, or 0 if it is unknown.
	TargetPort int32
}

// Behind returns the destination to which connections arrive, as policies compare it: the pods behind a Service, at their
// port. service is that of a destination in the cluster; nil if it does not exist, or may not be read
// (docs/decisions/0051-services-of-other-namespaces.md). A result without a namespace or address can be anywhere.
func (d Destination) Behind(service *Service, home Home) Destination {
	switch {
	case d.Namespace == "":
	case service == nil && home.isControlPlane(d.Namespace):
	case service == nil && d.Guessed:
		d.Namespace, d.Service, d.Guessed = "", "", false
	case service == nil:
	case service.ExternalName != "":
		other := Destination{Host: strings.ToLower(service.ExternalName), Port: d.Port}
		if other.resolve(home) != nil {
			return Destination{Host: d.Host, Port: d.Port}
		}
		return other.Behind(nil, home)
	case !service.Selects:
		d = Destination{Host: d.Host, Port: cmp.Or(service.TargetPort, d.Port)}
	default:
		d.Guessed, d.Port = false, cmp.Or(service.TargetPort, d.Port)
	}
	return d
}

// EgressFor returns what the policy of a job must allow for an endpoint of a data connection: nothing if all jobs may
// connect there. It returns an error if tenants may not open the destination. service is as in Behind. A name of two parts whose
// Service was not read is allowed as both, so that the policy does not show whether the Service exists.
func (d Destination) EgressFor(service *Service, home Home) ([]Egress, error) {
	to := d.Behind(service, home)
	var inside []Egress
	if service == nil && d.Guessed && !home.isControlPlane(d.Namespace) && !to.isAllowedToAll(home) {
		inside = []Egress{d.egress()}
	}
	switch {
	case to.isAllowedToAll(home):
		return nil, nil
	case home.isControlPlane(d.Namespace):
		return nil, fmt.Errorf("the namespace %s belongs to the cluster", d.Namespace)
	case home.isControlPlane(to.Namespace):
		return nil, fmt.Errorf("the namespace %s belongs to the cluster", to.Namespace)
	case to.isClosed():
		return nil, errors.New("the address is one of the node, the network or the cloud itself")
	case to.Namespace == "" && isControlPlanePort(to.Port) && inside != nil:
		return inside, nil
	case to.Namespace == "" && isControlPlanePort(to.Port):
		return nil, fmt.Errorf("port %d is one of the cluster's control plane", to.Port)
	}
	return append(inside, to.egress()), nil
}

// isAllowedToAll reports whether every job of a namespace may connect to a destination, as Behind returns it.
func (d Destination) isAllowedToAll(home Home) bool {
	return IsAlwaysOpen(d.Port) && (d.Port != 443 || !isMetadata(d.Address)) || d.Namespace != "" && d.Namespace == home.Namespace
}

// isClosed reports whether a destination is an address that endpoints never open.
func (d Destination) isClosed() bool { return d.Address.IsValid() && isClosedAddress(d.Address) }

// egress returns the entry that allows a destination, as Behind returns it.
func (d Destination) egress() Egress {
	to := Egress{Namespace: d.Namespace, Port: d.Port, EndPort: d.Port, Protocol: corev1.ProtocolTCP}
	if d.Address.IsValid() {
		to.CIDR = netip.PrefixFrom(d.Address, d.Address.BitLen()).String()
	}
	return to
}

// endpointKeys are the keys of connections that contain an endpoint: those of S3, AWS's own, and of URI connections.
var endpointKeys = []string{"AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "URI"}

// ConnectionEndpoint is an endpoint of a data connection.
type ConnectionEndpoint struct {
	// Secret is the connection, and Key that of its keys which contains the endpoint.
	Secret, Key string
	Destination
	// Err is set if the endpoint is not valid. It does not contain the value.
	Err error
}

// EndpointsOf returns the endpoints in the Secret of a data connection. Values that name no host and port are left out.
func EndpointsOf(secret string, data map[string][]byte, home Home) []ConnectionEndpoint {
	var found []ConnectionEndpoint
	for _, key := range endpointKeys {
		value := data[key]
		if len(value) == 0 {
			continue
		}
		// Longer values are not copied.
		d, err := ParseDestination(string(value[:min(len(value), maxEndpoint+1)]), home)
		if !errors.Is(err, errNoEndpoint) {
			found = append(found, ConnectionEndpoint{Secret: secret, Key: key, Destination: d, Err: err})
		}
	}
	return found
}

// Endpoints are the destinations that a job's policy allows for its data connections, by the names of their Secrets. A
// connection whose endpoint needs no rule is there without destinations.
type Endpoints map[string][]Egress

// ParseEndpoints reads what String has written. Users can write annotations of policies: entries that no endpoint results
// in are left out.
func ParseEndpoints(text string, home Home) Endpoints {
	found := Endpoints{}
	for part := range strings.SplitSeq(text, ";") {
		name, list, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		entries, _ := ParseEgress(list)
		found[name] = slices.DeleteFunc(entries, func(e Egress) bool { return !e.isEndpoint(home) })
	}
	return found
}

// isEndpoint reports whether an endpoint of a data connection can result in a rule.
func (e Egress) isEndpoint(home Home) bool {
	if e.Port == 0 || e.EndPort != e.Port || e.Protocol != corev1.ProtocolTCP || home.isControlPlane(e.Namespace) {
		return false
	}
	if e.Namespace != "" {
		return true
	}
	prefix, err := netip.ParsePrefix(e.CIDR)
	return !isControlPlanePort(e.Port) && (e.CIDR == "" || err == nil && prefix.IsSingleIP() && !isClosedAddress(prefix.Addr()))
}

// String returns the endpoints as text for an annotation, sorted by name.
func (e Endpoints) String() string {
	var parts []string
	for name, entries := range e {
		var texts []string
		for _, entry := range entries {
			if text := entry.String(); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		parts = append(parts, name+"="+strings.Join(texts, ","))
	}
	slices.Sort(parts)
	return strings.Join(parts, ";")
}

// All returns the destinations in the order of String, without duplicates.
func (e Endpoints) All() []Egress {
	var all []Egress
	for _, name := range slices.Sorted(maps.Keys(e)) {
		for _, entry := range e[name] {
			if !slices.Contains(all, entry) {
				all = append(all, entry)
			}
		}
	}
	return all
}

// String returns the entry that ParseEgress reads.
func (e Egress) String() string {
	var place string
	switch {
	case e.Namespace != "":
		place = "namespace/" + e.Namespace
	case e.CIDR != "":
		place = e.CIDR
	}
	if e.Port == 0 {
		return place
	}
	ports := strconv.Itoa(int(e.Port))
	if e.EndPort > e.Port {
		ports += "-" + strconv.Itoa(int(e.EndPort))
	}
	if e.Protocol != corev1.ProtocolTCP {
		ports += "/" + strings.ToLower(string(e.Protocol))
	}
	switch {
	case place == "":
		return ports
	case strings.Contains(place, ":"):
		return "[" + place + "]:" + ports
	}
	return place + ":" + ports
}
