package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/web"
)

// TestHostPage builds the host page web/test/host, which loads the pages by module federation, and opens it in Chromium. The host
// serves the dashboard under /dashboard with the token of its user, as the Open Data Hub dashboard does.
func TestHostPage(t *testing.T) {
	needsServer(t)
	if os.Getenv("CHROMIUM") == "" {
		t.Skip("SKIPPED: CHROMIUM names no browser; `make dashboard-test` does")
	}
	files := t.TempDir()
	build := exec.CommandContext(t.Context(), "node", "node_modules/vite/bin/vite.js", "build", "--config", "test/host/vite.config.js", "--logLevel", "error")
	build.Dir = "../../web"
	build.Env = append(os.Environ(), "HOST_FILES="+files)
	build.Stdout, build.Stderr = t.Output(), t.Output()
	must(t, build.Run())

	token := namespace(t, "hosted", "user")["user"]
	mpiJob(t, "hosted", "hosted-job", nil)
	server, err := newServer(dashboard.Options{Assets: web.Assets(), BasePath: "/dashboard"})
	must(t, err)
	server.Watch(t.Context())
	pages := server.Handler()
	// The host has the policy of the dashboard.
	probe := httptest.NewRecorder()
	pages.ServeHTTP(probe, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
	mux := http.NewServeMux()
	mux.Handle("/dashboard/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		pages.ServeHTTP(w, r)
	}))
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", probe.Header().Get("Content-Security-Policy"))
		file := filepath.Join(files, filepath.FromSlash(filepath.Clean("/"+r.URL.Path)))
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			file = filepath.Join(files, "index.html")
		}
		http.ServeFile(w, r, file)
	}))
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)

	command := exec.CommandContext(t.Context(), "node", "test/host.mjs")
	command.Dir = "../../web"
	command.Env = append(os.Environ(), "HOST_URL="+host.URL)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	must(t, command.Run())
}
