package ranks

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// connecting returns the addresses to which this pod opens connections now, such as "10.0.0.7:443", in order. Those to agents and SSH
// servers are left out: the launcher reports by itself which workers it waits for.
func connecting() []string {
	var all []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		all = append(all, parseConnecting(string(text))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
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
