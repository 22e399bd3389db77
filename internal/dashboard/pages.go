package dashboard

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// missingPage is shown if the web pages were not built.
const missingPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Dashboard without pages</title>
<h1>The pages of the dashboard are not built</h1>
<p>This binary contains the API only. To build it with the pages, which requires Node.js 20.19 or later, run:</p>
<pre>make dashboard</pre>
<p>The API is described in <a href="api/v1/openapi.json">api/v1/openapi.json</a>.</p>
</html>
`

// pages serves the files of the web pages. Other paths are pages of the application: index.html.
func (s *Server) pages() http.Handler {
	if s.options.Assets == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(missingPage))
		})
	}
	base := strings.TrimSuffix(s.options.BasePath, "/") + "/"
	index, err := fs.ReadFile(s.options.Assets, "index.html")
	if err != nil {
		index = []byte(missingPage)
	}
	index = bytes.Replace(index, []byte(`<base href="/"`), []byte(`<base href="`+base+`"`), 1)
	files := http.FileServerFS(s.options.Assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if info, err := fs.Stat(s.options.Assets, name); err == nil && !info.IsDir() && name != "index.html" {
			if strings.HasPrefix(name, "assets/") || strings.HasPrefix(name, "remote/assets/") {
				// Their names contain a hash of their content.
				w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			}
			if serveCompressed(s.options.Assets, name, w, r) {
				return
			}
			files.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(name, "assets/") || strings.HasPrefix(name, "remote/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index)
	})
}

// serveCompressed serves the compressed form of a file, which is made with the pages, to clients that accept it.
func serveCompressed(assets fs.FS, name string, w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return false
	}
	data, err := fs.ReadFile(assets, name+".gz")
	if err != nil {
		return false
	}
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".json": "application/json"}
	if kind := kinds[path.Ext(name)]; kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Vary", "Accept-Encoding")
	_, _ = w.Write(data)
	return true
}
