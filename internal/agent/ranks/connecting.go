package ranks

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// callWatch finds connections that this pod opens and that get no answer. To list the connections of a pod, the kernel searches those of
// all pods of its node, which takes several milliseconds. The tables are only read if a connection may wait in them: a second after a SYN
// without an answer, the kernel sends it again, and counts this for each pod. Attempts that a program gives up within that second are not
// seen.
type callWatch struct {
	// folder is /proc/net.
	folder string
	// repeated is how often the kernel had sent a SYN again when the tables were read, or the watch was created.
	repeated int64
	// waiting is whether a connection waited for an answer then.
	waiting bool
}

func newCallWatch(folder string) callWatch {
	w := callWatch{folder: folder}
	w.repeated, _ = parseRepeated(w.read("netstat"))
	return w
}

func (w *callWatch) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.folder, name))
	return string(text)
}

// connecting returns the addresses to which this pod opens connections now, such as "10.0.0.7:443", in order. Those to agents and SSH
// servers are left out: the launcher reports by itself which workers it waits for.
func (w *callWatch) connecting() []string {
	repeated, known := parseRepeated(w.read("netstat"))
	if known && repeated == w.repeated && !w.waiting {
		return nil
	}
	var all []string
	for _, table := range []string{"tcp", "tcp6"} {
		all = append(all, parseConnecting(w.read(table))...)
	}
	slices.Sort(all)
	w.repeated, w.waiting = repeated, len(all) > 0
	return slices.Compact(all)
}

// parseRepeated returns how often the kernel sent a SYN again, by the text of /proc/net/netstat; false if it does not count that. There,
// a line of names is followed by one of numbers (proc_pid_net(5)).
func parseRepeated(netstat string) (count int64, known bool) {
	const group, name = "TcpExt:", "TCPSynRetrans"
	var names []string
	for line := range strings.Lines(netstat) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != group {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		at := slices.Index(names, name)
		if at < 0 || at >= len(fields) {
			return 0, false
		}
		count, err := strconv.ParseInt(fields[at], 10, 64)
		return count, err == nil
	}
	return 0, false
}

// parseConnecting reads the remote addresses of the connections in /proc/net/tcp or tcp6 that have sent SYN and got no answer
// (proc_pid_net(5)).
func parseConnecting(table string) (remotes []string) {
	const (
		synSent = "02"
		ssh     = 22
	)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != synSent {
			continue
		}
		remote, ok := parseAddress(fields[2])
		if ok && remote.Port() != agentapi.Port && remote.Port() != ssh {
			remotes = append(remotes, remote.String())
		}
	}
	return remotes
}

// parseAddress reads an address as the kernel writes it: words of 32 bits in the order of the machine's bytes, and the port, in
// hexadecimal.
func parseAddress(text string) (netip.AddrPort, bool) {
	const word = 4
	digits, portDigits, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(digits)
	port, portErr := strconv.ParseUint(portDigits, 16, 16)
	if err != nil || portErr != nil || len(bytes)%word != 0 {
		return netip.AddrPort{}, false
	}
	for at := 0; at < len(bytes); at += word {
		binary.NativeEndian.PutUint32(bytes[at:], binary.BigEndian.Uint32(bytes[at:]))
	}
	address, ok := netip.AddrFromSlice(bytes)
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), ok
}
