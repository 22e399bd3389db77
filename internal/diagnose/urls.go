package diagnose

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

var (
	writtenURL = regexp.MustCompile(`https?://(?:\[[\da-fA-F:.]+\][^\s'"<>()\[\]{},]*|[^\s'"<>()\[\]{},]+)`)
	// urllib3's pools of connections name host, port and path apart (urllib3.exceptions.MaxRetryError).
	connectionPool = regexp.MustCompile(`HTTP(S?)ConnectionPool\(host='([^'\s]+)', port=(\d+)\)(?:.*? with url: ([^\s'"]+))?`)
)

// maxURL is the longest URL that a remedy has, in bytes, and urlLines how many last lines of a log are searched for it.
const (
	maxURL   = 120
	urlLines = 50
)

// urlIn returns the last URL in the lines of a log, without credentials and query, of the server and port of the address if that is
// known; "" if there is none. The name of a server may belong to an address, but another address does not.
func urlIn(lines []string, address string) string {
	host, port := "", ""
	if at := strings.LastIndex(address, ":"); at >= 0 {
		host, port = strings.Trim(address[:at], "[]"), address[at+1:]
	}
	for _, line := range slices.Backward(lines[max(0, len(lines)-urlLines):]) {
		found := urlOfLine(line)
		if found == nil || port != "" && cmp.Or(found.Port(), usualPorts[found.Scheme]) != port || host != "" && !mayBe(host, found.Hostname()) {
			continue
		}
		found.User, found.RawQuery, found.Fragment = nil, "", ""
		if shown := found.String(); len(shown) <= maxURL {
			return shown
		}
		return found.Scheme + "://" + found.Host
	}
	return ""
}

// mayBe reports whether a server to which a program has connected may be that of a URL: they have the same name or address, or one is a name and the
// other an address.
func mayBe(server, ofURL string) bool {
	one, errOfOne := netip.ParseAddr(server)
	other, errOfOther := netip.ParseAddr(ofURL)
	if errOfOne == nil && errOfOther == nil {
		return one.Unmap() == other.Unmap()
	}
	return errOfOne == nil || strings.EqualFold(server, ofURL)
}

// usualPorts are the ports of URLs that name none.
var usualPorts = map[string]string{"http": "80", "https": "443"}

// urlOfLine returns the first URL in a line of a program; nil if there is none.
func urlOfLine(line string) *url.URL {
	if strings.HasPrefix(strings.TrimSpace(line), agentapi.StallPrefix) {
		return nil
	}
	text := writtenURL.FindString(line)
	if pool := connectionPool.FindStringSubmatch(line); pool != nil {
		text = "http" + strings.ToLower(pool[1]) + "://" + pool[2] + ":" + pool[3] + pool[4]
	}
	found, err := url.Parse(strings.TrimRight(text, ".,;:"))
	if text == "" || err != nil || found.Host == "" {
		return nil
	}
	found.Host = strings.TrimSuffix(found.Host, ":"+usualPorts[found.Scheme])
	return found
}

// nameURL adds the URL for which a connection of the program got no answer to the figures, if the launcher's log has it.
func (p *input) nameURL(figures map[string]string) {
	if launcher := p.Launcher(); launcher != nil && !strings.Contains(figures["address"], "://") {
		if found := urlIn(launcher.Log.Lines, figures["address"]); found != "" {
			figures["ofURL"] = " (" + p.mask(found) + ")"
		}
	}
}
