package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLogOutRevokesTheToken(t *testing.T) {
	const valid = "valid until it expires"
	// The name was computed by Python: base64.urlsafe_b64encode(hashlib.sha256(b"user").digest()).
	const token, name = "sha256~user", "sha256~BPiZbadjt6lpsQKO4wB1aerzpjVIbdqyEdUSyFud-Ps"
	for what, test := range map[string]struct {
		token string
		// code is the answer to the deletion of an OAuthAccessToken; 0 if there must be none.
		code int
		want string
	}{
		"a login of OpenShift":             {token, http.StatusOK, "not valid any more"},
		"a login that has ended":           {token, http.StatusUnauthorized, "not valid any more"},
		"a login that is kept":             {token, http.StatusForbidden, valid},
		"an API server that fails":         {token, http.StatusInternalServerError, valid},
		"a cluster without such resources": {token, http.StatusNotFound, valid},
		"the token of an account":          {"user-ada", 0, valid},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBackend(t)
			deleted := 0
			b.Mux.HandleFunc("DELETE /apis/oauth.openshift.io/v1/oauthaccesstokens/{name}", func(w http.ResponseWriter, r *http.Request) {
				if deleted++; r.PathValue("name") != name || r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("%s is deleted", r.URL.Path)
				}
				writeStatus(w, test.code, map[int]metav1.StatusReason{http.StatusOK: "", http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusNotFound: metav1.StatusReasonNotFound}[test.code])
			})
			server := newServerFor(t, b, Options{})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/logout", nil)
			r.AddCookie(loginCookie(test.token))
			w := httptest.NewRecorder()
			server.Handler().ServeHTTP(w, r)
			if cookie := w.Header().Get("Set-Cookie"); w.Code != http.StatusOK || !strings.Contains(cookie, "Max-Age=0") || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("status %d, cookie %q: %s", w.Code, cookie, w.Body)
			}
			if want := test.code != 0; (deleted > 0) != want {
				t.Errorf("%d tokens are deleted", deleted)
			}
		})
	}
}
