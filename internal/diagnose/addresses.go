package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

var (
	webAddress = regexp.MustCompile(`\b(?:https?|ftp|s3)://[^\s'"<>)\]]+`)
	// hostAndPort is how urllib3 names its server, serverAndPort how libpq does, and serverName how drivers of MySQL do, without a port.
	hostAndPort   = regexp.MustCompile(`host='([^']+)', port=(\d+)`)
	serverAndPort = regexp.MustCompile(`server at "([^"]+)"(?: \([^)]*\))?, port (\d+)`)
	serverName    = regexp.MustCompile(`server on '([^']+)'`)
	// literalAddress is how a line of a program names an address, and toAddress how most errors do.
	literalAddress = regexp.MustCompile(`\(["']([\w.:-]+)["'], *(\d+)`)
	toAddress      = regexp.MustCompile(`(?:^|[\s"'(/\]]|ipv[46]:)((?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+|\[[0-9a-fA-F:]+\]):(\d{2,5})(?:$|[\s"'),/;]|[:.](?:\s|$))`)
	// notTime matches the host of toAddress: a time of day has no letter and no dot.
	notTime = regexp.MustCompile(`[A-Za-z.[]`)
	// unanswered is where the launcher's agent names an address.
	unanswered = regexp.MustCompile(`gets no answer from ([^\s;,]+)`)
)

// addressIn returns what a program could not connect to, as its error or the line that raised it names it; "" if neither does.
func addressIn(text, source string) string {
	for _, form := range []*regexp.Regexp{hostAndPort, serverAndPort} {
		if found := form.FindStringSubmatch(text); found != nil {
			return found[1] + ":" + found[2]
		}
	}
	if found := webAddress.FindString(text + "\n" + source); found != "" {
		return found
	}
	for _, found := range append(literalAddress.FindAllStringSubmatch(text, -1), toAddress.FindAllStringSubmatch(text, -1)...) {
		if notTime.MatchString(found[1]) {
			return found[1] + ":" + found[2]
		}
	}
	if found := serverName.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	if found := literalAddress.FindStringSubmatch(source); found != nil {
		return found[1] + ":" + found[2]
	}
	return ""
}

// lastAddress returns the address that got no answer as an agent saw it, or else the last one in the launcher's log; "" if there is none.
func (p *input) lastAddress() string {
	launcher := p.Launcher()
	if launcher == nil {
		return ""
	}
	for _, line := range slices.Backward(launcher.Log.Lines) {
		if found := unanswered.FindStringSubmatch(line); found != nil && strings.HasPrefix(line, agentapi.StallPrefix) {
			return found[1]
		}
	}
	for _, line := range slices.Backward(launcher.Log.Lines) {
		if found := webAddress.FindString(line); found != "" {
			return found
		}
	}
	return ""
}
