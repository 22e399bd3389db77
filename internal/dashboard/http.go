package dashboard

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

func (s *Server) newHandler() http.Handler {
	api := http.NewServeMux()
	for _, route := range s.routes() {
		api.Handle(route.method+" /api/v1"+route.path, s.serve(route))
	}
	api.HandleFunc("POST /api/v1/login", s.logIn)
	api.HandleFunc("POST /api/v1/logout", s.logOut)
	api.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	})
	api.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, Problem{Code: "NotFound", Message: fmt.Sprintf("the API has no %s %s; see /api/v1/openapi.json", r.Method, r.URL.Path)})
	})
	api.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	api.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready() {
			http.Error(w, "jobs are not listed yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	api.Handle("/", s.pages())

	var handler http.Handler = api
	if s.options.BasePath != "/" {
		outer := http.NewServeMux()
		outer.Handle(s.options.BasePath+"/", http.StripPrefix(s.options.BasePath, api))
		outer.Handle("/healthz", api)
		outer.Handle("/readyz", api)
		outer.Handle("/{$}", http.RedirectHandler(s.options.BasePath+"/", http.StatusFound))
		handler = outer
	}
	return secure(protect(handler))
}

// serve returns the handler of a route.
func (s *Server) serve(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credential, found := credentialOf(r, s.options.TrustProxy)
		if !found {
			writeProblem(w, http.StatusUnauthorized, Problem{Code: "Unauthorized", Message: "log in to continue"})
			return
		}
		user, err := s.users.find(r.Context(), credential.token)
		if err != nil {
			writeError(w, r, err)
			return
		}
		if err := checkNames(r, route.path); err != nil {
			writeError(w, r, err)
			return
		}
		c := &call{user: user, Request: r, ctx: r.Context()}
		if route.stream != nil {
			s.serveStream(route, c, w)
			return
		}
		release, err := s.requests.acquire(user.named(), 1)
		if err != nil {
			writeError(w, r, err)
			return
		}
		defer release()
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		c.ctx = ctx
		read, err := s.limitBody(w, r, user)
		if err != nil {
			writeError(w, r, err)
			return
		}
		defer read()
		result, err := route.handle(c)
		if err != nil {
			writeError(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, result)
	})
}

// limitBody limits the body of a request, and what the bodies of all requests in work may take until release is called.
func (s *Server) limitBody(w http.ResponseWriter, r *http.Request, user *user) (release func(), err error) {
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		return func() {}, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errMediaType
	}
	// The length of a body in chunks is unknown.
	length := r.ContentLength
	if length < 0 || length > maxBody {
		length = maxBody
	}
	release, err = s.bodies.acquire(user.named(), length)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return release, err
}

// serveStream serves a stream. It has no timeout, but each write has.
func (s *Server) serveStream(route route, c *call, w http.ResponseWriter) {
	release, err := s.streams.acquire(c.named(), 1)
	if err != nil {
		writeError(w, c.Request, err)
		return
	}
	defer release()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	c.ctx = ctx
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := route.stream(c, w); err != nil && ctx.Err() == nil {
		writeError(w, c.Request, err)
	}
}
