package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	needsServer(t)
	token := namespace(t, "csrf", "user")["user"]
	mpiJob(t, "csrf", "kept", nil)
	send := func(method, path, kind string, headers map[string]string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
		must(t, err)
		request.AddCookie(&http.Cookie{Name: "__Host-mpijob-login", Value: token})
		request.Header.Set("Content-Type", kind)
		for name, value := range headers {
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode
	}
	job := "/api/v1/namespaces/csrf/jobs/mpijob/kept"
	for name, got := range map[string]int{
		"deletion by another site":         send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "cross-site"}),
		"deletion by a site of the domain": send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "same-site"}),
		"an old browser's other origin":    send(http.MethodPost, job+"/suspend", "application/json", map[string]string{"Origin": "https://evil.example"}),
		"a login by another site":          send(http.MethodPost, "/api/v1/login", "text/plain", map[string]string{"Sec-Fetch-Site": "cross-site"}),
	} {
		if got != http.StatusForbidden {
			t.Errorf("%s: status %d", name, got)
		}
	}
	if got := send(http.MethodPost, job+"/suspend", "text/plain", map[string]string{"Sec-Fetch-Site": "same-origin"}); got != http.StatusUnsupportedMediaType {
		t.Errorf("a form: status %d", got)
	}
	if got := send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "same-origin"}); got != http.StatusOK {
		t.Errorf("deletion by the page: status %d", got)
	}
}
