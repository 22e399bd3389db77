package isolation

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"opendatahub.io/mpijob/internal/mpi"
)

// Mention is a destination in the text of a job.
type Mention struct {
	// Where is the place of the text, such as "variable MLFLOW_TRACKING_URI of the launcher".
	Where string
	Destination
	// Program is set if the text has no destination, but a program that connects to one unless the image configures it
	// otherwise. Only the port of Destination is then known.
	Program string
}

// Limits on texts of a job that are searched, since users write them.
const (
	maxSearched = 256 << 10
	maxMentions = 64
)

var (
	urlsIn  = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>,;)]+`)
	hostsIn = regexp.MustCompile(`[a-zA-Z0-9][a-zA-Z0-9.-]*:[0-9]+`)
	// packagesIn finds the package managers of Debian, Ubuntu, Fedora and its relatives, whose servers may be reached by HTTP.
	packagesIn = regexp.MustCompile(`(?:^|[\s;&|(/])(apt|apt-get|yum|dnf|microdnf)(?:\s+-\S+)*\s+(?:update|install|upgrade|dist-upgrade|makecache|groupinstall)(?:[\s;&|)]|$)`)
	// fetchesIn finds programs that use HTTP for names without a scheme, with their arguments.
	fetchesIn = regexp.MustCompile(`(?:^|[\s;&|(/])(curl|wget)\s+([^;&|)\n]+)`)
	// bareURL is a name of three or more parts with a path.
	bareURL = regexp.MustCompile(`^[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.[a-zA-Z0-9-]+\.[a-zA-Z]{2,}(?::[0-9]+)?/`)
)

// minBarePort is the lowest port that is searched without a scheme: lower numbers may be slots, as in "mpirun -H host:64".
const minBarePort = 256

// Mentions returns the destinations in the commands, arguments and variables of a job's containers, each once. Pods in the
// host network are left out, because no policy applies to them.
func Mentions(job mpi.Job, home Home) []Mention {
	s := search{home: home}
	for _, role := range []struct {
		name mpi.Role
		spec corev1.PodSpec
	}{{mpi.RoleLauncher, job.Launcher.Template.Spec}, {mpi.RoleWorker, job.Workers.Template.Spec}} {
		if role.spec.HostNetwork {
			continue
		}
		for _, container := range slices.Concat(role.spec.Containers, role.spec.InitContainers) {
			for _, variable := range container.Env {
				name := "a variable"
				if len(validation.IsCIdentifier(variable.Name)) == 0 && len(variable.Name) <= maxShownName {
					name = "variable " + variable.Name
				}
				s.add(fmt.Sprintf("%s of the %s", name, role.name), variable.Value)
			}
			where, command := fmt.Sprintf("the command of the %s", role.name), slices.Concat(container.Command, container.Args)
			for _, text := range command {
				s.add(where, text)
			}
			s.addPrograms(where, command)
		}
	}
	return s.found
}

// maxShownName is the length of a variable's name that is shown.
const maxShownName = 100

// search is a search of texts for destinations.
type search struct {
	home     Home
	found    []Mention
	searched int
}

// add searches one text. Without a scheme, only a name of three or more parts or an address is a destination, since
// "main.py:120" is none.
func (s *search) add(where, text string) {
	text = text[:min(len(text), maxSearched-s.searched)]
	s.searched += len(text)
	for _, match := range urlsIn.FindAllString(text, maxMentions) {
		s.keep(where, match, 0)
	}
	for _, at := range hostsIn.FindAllStringIndex(text, -1) {
		begins := at[0] == 0 || strings.IndexByte(" \t\r\n=\"',;(", text[at[0]-1]) >= 0
		ends := at[1] == len(text) || strings.IndexByte(" \t\r\n/?\"',;)", text[at[1]]) >= 0
		if match := text[at[0]:at[1]]; begins && ends && strings.Count(match, ".") >= 2 {
			s.keep(where, match, minBarePort)
		}
	}
}

// Options of curl and wget: the letters of those whose value is the next word, unless it follows in the same word, and the long names
// of those without a value.
var (
	valueLetters = map[string]string{"curl": "AbcCdDeEFHhKmoPQrtTuUwxXyYz", "wget": "oaeiBtOTwQPUlARDIX"}
	withoutValue = []string{
		"--silent", "--location", "--fail", "--show-error", "--remote-name", "--remote-header-name", "--insecure", "--compressed", "--create-dirs", "--globoff",
		"--fail-with-body", "--get", "--head", "--no-progress-meter", "--progress-bar", "--retry-all-errors", "--retry-connrefused", "--verbose", "--http1.1",
		"--quiet", "--no-verbose", "--show-progress", "--continue", "--recursive", "--no-parent", "--no-clobber", "--no-check-certificate", "--timestamping",
		"--content-disposition", "--no-host-directories", "--no-directories", "--mirror",
	}
)

// takesValue reports whether the word after an option of curl or wget may be its value, such as a file.
func takesValue(program, option string) bool {
	if strings.HasPrefix(option, "--") {
		return !strings.Contains(option, "=") && !slices.Contains(withoutValue, option)
	}
	// Letters may be combined: the first one that has a value is the last one.
	at := strings.IndexAny(option, valueLetters[program])
	return at >= 0 && at == len(option)-1
}

// addPrograms searches a command for programs that use HTTP although their arguments do not show it.
func (s *search) addPrograms(where string, command []string) {
	var text strings.Builder
	for _, word := range command {
		if text.Len()+len(word) > maxSearched {
			break
		}
		text.WriteString(word + " ")
	}
	for _, match := range fetchesIn.FindAllStringSubmatch(text.String(), maxMentions) {
		isValue := false
		for word := range strings.FieldsSeq(match[2]) {
			word = strings.Trim(word, `"'`)
			switch {
			case isValue:
				isValue = false
			case strings.HasPrefix(word, "-"):
				isValue = takesValue(match[1], word)
			case bareURL.MatchString(word):
				s.keep(where, "http://"+word, 0)
			}
		}
	}
	if match := packagesIn.FindStringSubmatch(text.String()); match != nil {
		program := Mention{Where: where, Program: match[1], Destination: Destination{Port: defaultPorts["http"]}}
		if !slices.ContainsFunc(s.found, func(m Mention) bool { return m.Program != "" }) && len(s.found) < maxMentions {
			s.found = append(s.found, program)
		}
	}
}

func (s *search) keep(where, text string, minPort int32) {
	d, err := ParseDestination(text, s.home)
	if err != nil || d.Port < minPort || len(s.found) >= maxMentions {
		return
	}
	same := func(m Mention) bool { return m.Destination == d }
	if !slices.ContainsFunc(s.found, same) {
		s.found = append(s.found, Mention{Where: where, Destination: d})
	}
}

// Warning returns the warning about a destination that the policy of a job denies. entry is that of AnnotationAllowEgress
// which would allow it. It is the same whether the destination exists or not.
func (m Mention) Warning(home Home, entry Egress) string {
	if m.Program != "" {
		return fmt.Sprintf("%s: the job's NetworkPolicy denies HTTP (port %d), which %s uses unless the image's sources are https", m.Where, m.Port, m.Program) + howToAllow(home, entry.String())
	}
	denied := fmt.Sprintf("%s: the job's NetworkPolicy denies connections to %s", m.Where, m.Destination)
	switch {
	case m.isClosed():
		return denied + ", an address of the node, the network or the cloud itself"
	case entry.Namespace != "":
		return denied + ", which is in another project, whether it exists or not" + howToAllow(home, entry.String()+withPodPort)
	}
	return denied + howToAllow(home, entry.String())
}

// withPodPort follows an entry whose port is that of a Service which was not read.
const withPodPort = ", with the port of its pods,"

func howToAllow(home Home, entry string) string {
	return fmt.Sprintf("; to use it, ask an administrator to add %s to the annotation %s of Namespace %s", entry, mpi.AnnotationAllowEgress, home.Namespace)
}

// RefusalWarning returns the warning about an endpoint of a data connection that a job's policy does not allow, or "".
// service is as in Behind, for endpoints in the job's namespace. Those in other namespaces are judged by their names alone, so
// that the warning does not show what exists there.
func (e ConnectionEndpoint) RefusalWarning(service *Service, home Home, allowed []Egress) string {
	where := fmt.Sprintf("%s: Secret %q, key %s", mpi.ConnectionsPath, e.Secret, e.Key)
	if e.Err != nil {
		return fmt.Sprintf("%s: the endpoint %v; the job's NetworkPolicy is not changed for it", where, e.Err)
	}
	if home.isForeign(e.Namespace) {
		service = nil
	}
	to := e.Behind(service, home)
	if to.Address.IsLoopback() {
		return fmt.Sprintf("%s: the endpoint %s is a loopback address, which only reaches the pod itself", where, e.Destination)
	}
	_, refusal := e.EgressFor(service, home)
	if refusal == nil || e.isUnknown(home) || slices.ContainsFunc(allowed, func(a Egress) bool { return a.mayCover(to, home) }) {
		return ""
	}
	denied := fmt.Sprintf("%s: the job's NetworkPolicy denies connections to %s, because %v", where, e.Destination, refusal)
	switch {
	case to.isClosed():
		return denied
	case home.isForeign(to.Namespace):
		return denied + howToAllow(home, to.egress().String()+withPodPort)
	}
	return denied + howToAllow(home, to.egress().String())
}

// PortWarning returns the warning about an endpoint in another namespace whose Service was not read, because account, a service
// account of the job's pods, may not read it; "" if an entry is about that namespace, or the name may be outside of the cluster. It is
// the same whether the Service exists or not.
func (e ConnectionEndpoint) PortWarning(account string, home Home, allowed []Egress) string {
	covered := func(a Egress) bool { return (a.Namespace != "" || a.Port == 0) && a.mayCover(e.Destination, home) }
	if e.Err != nil || e.Guessed || !home.isForeign(e.Namespace) || home.isControlPlane(e.Namespace) || slices.ContainsFunc(allowed, covered) {
		return ""
	}
	return fmt.Sprintf("%s: Secret %q, key %s: the job's NetworkPolicy allows port %d of the pods in Namespace %s; if the targetPort of Service %s is another one, "+
		"ask an administrator to add namespace/%[5]s:TARGETPORT to the annotation %[7]s of Namespace %[8]s, or let ServiceAccount %[9]s of this Namespace get services and list pods there",
		mpi.ConnectionsPath, e.Secret, e.Key, e.Port, e.Namespace, e.Service, mpi.AnnotationAllowEgress, home.Namespace, account)
}

// sharedAddresses are private addresses as well (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// CertainlyDenied reports whether a policy that allows certain destinations denies connections to one, and the entry that
// would allow it. It is false if this depends on facts that are unknown: the address behind a name, or the pod behind an
// address. Services of other namespaces are not read, so that the answer does not show what exists there.
func (d Destination) CertainlyDenied(home Home, allowed []Egress) (entry Egress, denied bool) {
	if d.isUnknown(home) {
		return Egress{}, false
	}
	to := d.Behind(nil, home)
	switch {
	case to.isAllowedToAll(home):
		return Egress{}, false
	case to.Address.IsLoopback(), to.Address.IsUnspecified(), to.Address.IsPrivate(), sharedAddresses.Contains(to.Address):
		// A private address may be that of a pod or Service of the project.
		return Egress{}, false
	}
	return to.egress(), !slices.ContainsFunc(allowed, func(e Egress) bool { return e.mayCover(to, home) })
}

// isUnknown reports whether a name of two parts may be a Service of another namespace, a pod behind a Service of the job's
// namespace, or a name outside of the cluster.
func (d Destination) isUnknown(home Home) bool { return d.Guessed && !home.isControlPlane(d.Namespace) }

// isForeign reports whether a namespace is not the job's.
func (h Home) isForeign(namespace string) bool { return namespace != "" && namespace != h.Namespace }

// mayCover reports whether an entry allows a destination, or may do so. The port behind a Service of another namespace is
// unknown.
func (e Egress) mayCover(d Destination, home Home) bool {
	if e.Namespace != "" && e.Namespace == d.Namespace && home.isForeign(d.Namespace) {
		return true
	}
	if e.Port != 0 && (e.Protocol != corev1.ProtocolTCP || d.Port < e.Port || d.Port > e.EndPort) {
		return false
	}
	if e.CIDR == "" {
		return e.Namespace == "" || e.Namespace == d.Namespace
	}
	prefix, err := netip.ParsePrefix(e.CIDR)
	return !d.Address.IsValid() || err != nil || prefix.Contains(d.Address)
}
