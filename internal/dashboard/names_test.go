package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/logstream/podserver"
)

// backend is a stand-in for an API server. It takes the token user-NAME for the user NAME, and allows everything.
type backend struct {
	*podserver.Server
	// reviews counts the tokens that were verified, requests all other requests.
	reviews, requests atomic.Int64
	// revoked makes it accept no token any more.
	revoked atomic.Bool
	// mayNot makes it allow nothing.
	mayNot atomic.Bool
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{Server: podserver.New(t)}
	b.Mux.HandleFunc("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", func(w http.ResponseWriter, r *http.Request) {
		b.reviews.Add(1)
		name, known := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer user-")
		if !known || b.revoked.Load() {
			writeStatus(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		}
		review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
		review.Status.UserInfo.Username, _, _ = strings.Cut(name, ".")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	b.Mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
		b.requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":%t}}`, !b.mayNot.Load())
	})
	b.Mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		b.requests.Add(1)
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	return b
}

func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code)}) //nolint:gosec // a status of HTTP
}

// newServerFor returns a server that reaches a backend.
func newServerFor(t *testing.T, b *backend, options Options) *Server {
	t.Helper()
	server, err := New(b.Config(), options, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// request sends a request to a server, with a token.
func request(t *testing.T, server *Server, token, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	// A stream that is not refused goes on.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	return w
}

// TestNamesThatCannotExist sends names that client-go refuses, and others that no object can have, to each route with
// placeholders or parameters for names.
func TestNamesThatCannotExist(t *testing.T) {
	b := newBackend(t)
	server := newServerFor(t, b, Options{})
	names := []string{"a/b", "a%b", "..", "a b", "Ab", "a\x00b", "ä", strings.Repeat("a", 254)}
	valid := map[string]string{"namespace": "team", "name": "train", "kind": "mpijob"}
	for _, route := range server.routes() {
		for placeholder := range valid {
			if !strings.Contains(route.path, "{"+placeholder+"}") || placeholder == "kind" {
				continue
			}
			for _, name := range names {
				path := strings.ReplaceAll(route.path, "{"+placeholder+"}", url.PathEscape(name))
				if name == ".." {
					path = strings.ReplaceAll(route.path, "{"+placeholder+"}", "%2E%2E")
				}
				for other, value := range valid {
					path = strings.ReplaceAll(path, "{"+other+"}", value)
				}
				w := request(t, server, "user-ada", route.method, path, "{}")
				if text := w.Body.String(); w.Code != http.StatusNotFound || !strings.Contains(text, placeholder) || !strings.Contains(text, "cannot exist") {
					t.Errorf("%s %s: status %d: %s", route.method, path, w.Code, text)
				}
			}
		}
		path := strings.NewReplacer("{namespace}", "team", "{name}", "train", "{kind}", "mpijob").Replace(route.path)
		for _, query := range []string{"?namespace=a%2Fb", "?namespace=team,a%2Fb", "?job=mpijob/a%2Fb&job=mpijob/c"} {
			w := request(t, server, "user-ada", route.method, path+query, "{}")
			if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "cannot exist") {
				t.Errorf("%s %s%s: status %d: %s", route.method, path, query, w.Code, text)
			}
		}
	}
	body := `{"spec":{"name":"x","namespace":"a/b","image":"i","workers":1},"commandLine":"true","dryRun":true}`
	if w := request(t, server, "user-ada", http.MethodPost, "/jobs", body); w.Code >= http.StatusInternalServerError || strings.Contains(w.Body.String(), `"Internal"`) {
		t.Errorf("POST /jobs %s: status %d: %s", body, w.Code, w.Body)
	}
	if w := request(t, server, "user-ada", http.MethodGet, "/namespaces/team/jobs/mpijob/train-1.2", ""); w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), "cannot exist") {
		t.Errorf("a valid name: %s", w.Body)
	}
}
