// Package isolation parses the destinations that the pods of a job may connect to. The NetworkPolicy of a job, with the ports
// that it opens, is in the package plan (network_policy.go).
package isolation

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// Egress is a destination that pods may connect to.
type Egress struct {
	// CIDR is a range of addresses, and Namespace the namespace of pods. If both are empty, all destinations are
	// allowed.
	CIDR, Namespace string
	// Port is the first port, and EndPort the last one, of one Protocol. Port 0 means all ports of all protocols.
	Port, EndPort int32
	Protocol      corev1.Protocol
}

// withoutMetadata begins a list of destinations that does not include the addresses of metadata services. No user can write
// it: it is no destination, so that admission refuses it.
const withoutMetadata = "!metadata"

// WithoutMetadata returns a list of destinations that does not include the addresses of metadata services. ParseEgress reads its
// entries unchanged; IsWithoutMetadata recognizes such a list, and ExceptionsIn returns what to leave out of its ranges.
func WithoutMetadata(list string) string {
	if list == "" {
		return ""
	}
	return withoutMetadata + "," + list
}

// IsWithoutMetadata reports whether a list is one of WithoutMetadata.
func IsWithoutMetadata(list string) bool { return strings.HasPrefix(list, withoutMetadata+",") }

// ExceptionsIn returns the addresses of metadata services in a range of addresses, and whether the range consists of them.
func ExceptionsIn(cidr string) (except []string, all bool) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, false
	}
	for _, closed := range metadataPrefixes {
		switch {
		case !closed.Overlaps(prefix):
		case closed.Bits() <= prefix.Bits():
			return nil, true
		default:
			except = append(except, closed.String())
		}
	}
	return except, false
}

// ParseEgress parses a list of destinations. Entries are separated by commas. Each is a place, a port, or both with a
// colon between them:
//
//	9000, 9000-9010, 514/udp      ports anywhere
//	10.0.0.7:2049, [fd00::/8]:443 ports of addresses
//	10.0.0.0/8, fd00::7           all ports of addresses
//	namespace/minio:9000          ports of the pods in a namespace; all ports if omitted
//
// It returns the valid entries in order, and an error for each invalid one.
func ParseEgress(text string) ([]Egress, []error) {
	var all []Egress
	var errs []error
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if one, err := parseEgress(entry); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", entry, err))
		} else {
			all = append(all, one)
		}
	}
	return all, errs
}

// CheckEgress validates AnnotationAllowEgress of an object, if it is set. It also refuses ambiguous entries, which ParseEgress
// accepts: what was admitted once keeps its meaning.
func CheckEgress(annotations map[string]string) field.ErrorList {
	text := annotations[mpi.AnnotationAllowEgress]
	_, wrong := ParseEgress(text)
	for entry := range strings.SplitSeq(text, ",") {
		if err := checkAmbiguous(strings.TrimSpace(entry)); err != nil {
			wrong = append(wrong, err)
		}
	}
	var errs field.ErrorList
	for _, err := range wrong {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(mpi.AnnotationAllowEgress), text, err.Error()))
	}
	return errs
}

// checkAmbiguous refuses IPv6 addresses whose last group may be meant as a port, such as fd00::1:2049.
func checkAmbiguous(entry string) error {
	at := strings.LastIndex(entry, ":")
	if at < 0 || strings.HasPrefix(entry, "[") || len(validation.IsValidIP(nil, entry)) > 0 {
		return nil
	}
	address, port := entry[:at], entry[at+1:]
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || !strings.Contains(address, ":") || len(validation.IsValidIP(nil, address)) > 0 {
		return nil
	}
	return fmt.Errorf("%q: is ambiguous: write [%s]:%s for port %s of %s, or [%s] for all ports of that address", entry, address, port, port, address, entry)
}

func parseEgress(entry string) (Egress, error) {
	var one Egress
	where, ports, both := cutPlace(entry)
	switch name, isNamespace := strings.CutPrefix(where, "namespace/"); {
	case isNamespace:
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			return one, fmt.Errorf("must name a namespace after namespace/: %s", wrong[0])
		}
		one.Namespace = name
	case where != "":
		var err error
		if one.CIDR, err = cidr(where); err != nil {
			return one, err
		}
	}
	if where != "" && !both {
		return one, nil
	}
	return one, one.setPorts(ports)
}

// cutPlace splits an entry into its place and its ports. IPv6 addresses also contain colons.
func cutPlace(entry string) (where, ports string, both bool) {
	if rest, bracket := strings.CutPrefix(entry, "["); bracket {
		where, rest, _ = strings.Cut(rest, "]")
		if ports, both = strings.CutPrefix(rest, ":"); both || rest == "" {
			return where, ports, both
		}
		return entry, "", false
	}
	switch {
	case strings.Count(entry, ":") == 1:
		where, ports, _ = strings.Cut(entry, ":")
		return where, ports, true
	case strings.ContainsAny(entry, ".:") || strings.HasPrefix(entry, "namespace/"):
		return entry, "", false
	}
	return "", entry, false
}

// cidr returns an address or a range in the form that the API server accepts.
func cidr(where string) (string, error) {
	if !strings.Contains(where, "/") {
		if wrong := validation.IsValidIP(nil, where); len(wrong) > 0 {
			return "", fmt.Errorf("must have an address such as 10.0.0.7 or fd00::7 before the port: %s", wrong[0].Detail)
		}
		if strings.Contains(where, ":") {
			return where + "/128", nil
		}
		return where + "/32", nil
	}
	if wrong := validation.IsValidCIDR(nil, where); len(wrong) > 0 {
		return "", fmt.Errorf("must have a range such as 10.0.0.0/8 or fd00::/8: %s", wrong[0].Detail)
	}
	return where, nil
}

func (e *Egress) setPorts(text string) error {
	numbers, protocol, named := strings.Cut(text, "/")
	e.Protocol = corev1.ProtocolTCP
	if named {
		e.Protocol = corev1.Protocol(strings.ToUpper(protocol))
	}
	switch e.Protocol {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		return fmt.Errorf("must have tcp, udp or sctp after the port, or nothing for tcp, not %q", protocol)
	}
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	var ok, also bool
	e.Port, ok = port(first)
	e.EndPort, also = port(last)
	if !ok || !also || e.EndPort < e.Port {
		return fmt.Errorf("must have a port from 1 to 65535 such as 2049, or ports such as 9000-9010, not %q", numbers)
	}
	return nil
}

func port(text string) (int32, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int32(n), err == nil && n > 0
}
