package diagnose

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

var (
	writtenURL = regexp.MustCompile(`https?://[^\s'"<>()\[\]{},]+`)
	// urllib3's pools of connections name host, port and path apart (urllib3.exceptions.MaxRetryError).
	connectionPool = regexp.MustCompile(`HTTP(S?)ConnectionPool\(host='([^'\s]+)', port=(\d+)\)(?:.*? with url: ([^\s'"]+))?`)
)

// maxURL is the longest URL that a remedy has, in bytes, and urlLines how many last lines of a log are searched for it.
const (
	maxURL   = 120
	urlLines = 50
)

// urlIn returns the last URL in the lines of a log, without credentials and query, of the server and port of the address if that is
// known; "" if there is none.
func urlIn(lines []string, address string) string {
	host, port, _ := net.SplitHostPort(address)
	isName := host != "" && net.ParseIP(host) == nil
	for _, line := range slices.Backward(lines[max(0, len(lines)-urlLines):]) {
		if strings.HasPrefix(strings.TrimSpace(line), agentapi.StallPrefix) {
			continue
		}
		text := writtenURL.FindString(line)
		if pool := connectionPool.FindStringSubmatch(line); pool != nil {
			text = "http" + strings.ToLower(pool[1]) + "://" + net.JoinHostPort(pool[2], pool[3]) + pool[4]
		}
		found, err := url.Parse(strings.TrimRight(text, ".,;:"))
		if text == "" || err != nil || found.Host == "" {
			continue
		}
		usual := map[string]string{"http": "80", "https": "443"}[found.Scheme]
		if port != "" && cmp.Or(found.Port(), usual) != port || isName && found.Hostname() != host {
			continue
		}
		if found.Port() == usual {
			found.Host = strings.TrimSuffix(found.Host, ":"+usual)
		}
		found.User, found.RawQuery, found.Fragment = nil, "", ""
		if shown := found.String(); len(shown) <= maxURL {
			return shown
		}
		return found.Scheme + "://" + found.Host
	}
	return ""
}

// nameURL adds the URL for which a connection of the program got no answer to the figures, if the launcher's log has it.
func (p *input) nameURL(figures map[string]string) {
	if launcher := p.Launcher(); launcher != nil && !strings.Contains(figures["address"], "://") {
		if found := urlIn(launcher.Log.Lines, figures["address"]); found != "" {
			figures["ofURL"] = " (" + p.mask(found) + ")"
		}
	}
}
