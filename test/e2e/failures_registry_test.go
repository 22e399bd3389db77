package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// registry serves a container registry that has no image: what begins with private/ it shows to nobody without a login,
// and of everything else it says that it is not there. It returns the registry's part of an image's name. Nodes of the
// one-machine cluster reach it, as they share the machine's network, and speak HTTP to 127.0.0.1.
func registry(t *testing.T) string {
	t.Helper()
	if !isOurs() {
		t.Skip("SKIPPED: only nodes of the one-machine cluster reach a registry in this process")
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	refuse := func(w http.ResponseWriter, status int, code, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // it lives for a test
		switch {
		case r.URL.Path == "/v2/":
			w.WriteHeader(http.StatusOK)
		case r.URL.Path == "/token":
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "Invalid username or password.")
		case strings.HasPrefix(r.URL.Path, "/v2/private/"):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service=%q`, host, host))
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "access to the requested resource is not authorized")
		default:
			refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return host
}
