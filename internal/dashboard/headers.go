package dashboard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// secure sets the headers of every response, and logs requests that fail. Neither tokens nor queries are logged.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		header.Set("Cache-Control", "no-store")
		if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		began := time.Now()
		defer func() {
			failure := recover()
			if failure == nil {
				slog.Debug("request", "method", r.Method, "path", r.URL.Path, "milliseconds", time.Since(began).Milliseconds())
				return
			}
			if err, is := failure.(error); is && errors.Is(err, http.ErrAbortHandler) {
				panic(failure)
			}
			slog.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(failure))
			writeProblem(w, http.StatusInternalServerError, Problem{Code: "Internal", Message: "the dashboard failed to handle this request; its log has the details"})
		}()
		next.ServeHTTP(w, r)
	})
}
