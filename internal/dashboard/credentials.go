package dashboard

import (
	"net/http"
	"regexp"
	"strings"
)

// credential is the token of a request and where it comes from.
type credential struct {
	token string
	// ours is set for a login with the dashboard's own cookie.
	ours bool
}

// cookieName has a prefix with which browsers only accept a secure cookie of exactly this host (RFC 6265bis).
const cookieName = "__Host-mpijob-login"

// maxBearer is the maximum length of a token in a header, in bytes. Tokens of identity providers with many groups take some KiB.
const maxBearer = 16 << 10

// bearer matches tokens (RFC 6750).
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)

// credentialOf returns the token of a request; false if there is none, or if it is not the text of a token. A header of a proxy
// only counts if one is trusted.
func credentialOf(r *http.Request, trustProxy bool) (credential, bool) {
	found := credential{}
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is && token != "" {
		found.token = token
	} else if token := r.Header.Get("X-Forwarded-Access-Token"); trustProxy && token != "" {
		found.token = token
	} else if cookie, err := r.Cookie(cookieName); err == nil {
		found = credential{token: cookie.Value, ours: true}
	}
	return found, len(found.token) <= maxBearer && bearer.MatchString(found.token)
}
