package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// call is a request of a user.
type call struct {
	*user
	*http.Request
	// ctx ends with the request or its timeout.
	ctx context.Context
}

// namespace and reference return what the URL names.
func (c *call) namespace() string { return c.PathValue("namespace") }
func (c *call) reference() string { return c.PathValue("kind") + "/" + c.PathValue("name") }

// find returns the job that the URL names.
func (c *call) find() (jobs.Job, error) {
	return c.jobs.Find(c.ctx, c.namespace(), c.reference())
}

// route is an operation of the API.
type route struct {
	method, path, summary string
	// in is a value of the type of the body; nil for none. out is one of the result.
	in, out any
	handle  func(*call) (any, error)
	// stream writes the response itself, as server-sent events of the type of out.
	stream func(*call, http.ResponseWriter) error
}

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
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, Problem{Code: "Forbidden", Message: "requests from pages of other sites are not allowed"})
	}))
	return secure(protection.Handler(handler))
}

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
		if r.Method != http.MethodGet && r.Method != http.MethodDelete {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				writeProblem(w, http.StatusUnsupportedMediaType, Problem{Code: "Invalid", Message: "the body must be application/json"})
				return
			}
			// The length of a body in chunks is unknown.
			length := r.ContentLength
			if length < 0 || length > maxBody {
				length = maxBody
			}
			release, err := s.bodies.acquire(user.named(), length)
			if err != nil {
				writeError(w, r, err)
				return
			}
			defer release()
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		result, err := route.handle(c)
		if err != nil {
			writeError(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, result)
	})
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

// body reads the body of a request. Unknown fields are errors.
func body[T any](c *call) (T, error) {
	var value T
	decoder := json.NewDecoder(c.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		if large, is := errors.AsType[*http.MaxBytesError](err); is {
			return value, jobs.Invalid(jobs.FieldError{Reason: fmt.Sprintf("the request is larger than the limit of %d KiB", large.Limit>>10)})
		}
		return value, jobs.Invalid(jobs.FieldError{Reason: "the request is not valid JSON: " + strings.TrimPrefix(err.Error(), "json: ")})
	}
	return value, nil
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := encode(value)
	if err != nil {
		slog.Error("response cannot be encoded", "error", err)
		status, data = http.StatusInternalServerError, []byte(`{"code":"Internal","message":"the dashboard failed to answer this request; its log has the details"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// encode returns a value as JSON. Its strings are printable: names, messages and annotations are written by users and by
// programs, and pages show them, copy them to terminals and save them as files.
func encode(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil || isPrintable(data) {
		return data, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return json.Marshal(printable(decoded))
}

// printable returns a JSON value whose strings are printable.
func printable(value any) any {
	switch value := value.(type) {
	case string:
		return phrase.Printable(value)
	case []any:
		for i, each := range value {
			value[i] = printable(each)
		}
	case map[string]any:
		clean := make(map[string]any, len(value))
		for name, each := range value {
			clean[phrase.Printable(name)] = printable(each)
		}
		return clean
	}
	return value
}

// isPrintable reports whether all strings in JSON are printable. It reads the JSON as bytes, because nearly all of it is.
func isPrintable(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\\':
			i++
			if rest := data[i:]; rest[0] == 'r' || rest[0] == 'b' || rest[0] == 'f' || rest[0] == 'u' && rest[1] == '0' && rest[2] == '0' && rest[3] < '2' {
				return false
			}
		case b >= 0x7f:
			r, size := utf8.DecodeRune(data[i:])
			if text := string(r); phrase.Printable(text) != text {
				return false
			}
			i += size - 1
		}
	}
	return true
}

func writeProblem(w http.ResponseWriter, status int, problem Problem) { writeJSON(w, status, problem) }

// writeError writes an error as a problem, and logs it if it is the server's.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, problem := problemOf(err)
	if _, is := errors.AsType[*busyError](err); is {
		w.Header().Set("Retry-After", retryAfter)
	}
	if status == http.StatusInternalServerError {
		slog.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	writeProblem(w, status, problem)
}

// errUnauthorized is a login that has expired.
var errUnauthorized = errors.New("log in again: the login has expired")

// problemOf returns the HTTP status and the problem of an error.
func problemOf(err error) (int, Problem) {
	if invalid, is := errors.AsType[*jobs.InvalidError](err); is {
		problem := Problem{Code: "Invalid", Message: invalid.Error()}
		for _, field := range invalid.Fields {
			problem.Fields = append(problem.Fields, FieldProblem{field.Field, field.Value, field.Reason})
		}
		return http.StatusUnprocessableEntity, problem
	}
	if rejected, is := errors.AsType[*jobs.RejectedError](err); is {
		return http.StatusUnprocessableEntity, Problem{Code: "Rejected", Message: rejected.Error(), Reasons: rejected.Reasons}
	}
	if busy, is := errors.AsType[*busyError](err); is {
		return busy.status, Problem{Code: "Unavailable", Message: busy.message}
	}
	if bad, is := errors.AsType[*badNameError](err); is {
		return http.StatusNotFound, Problem{Code: "NotFound", Message: bad.Error()}
	}
	if missing, is := errors.AsType[*jobs.NotFoundError](err); is {
		return http.StatusNotFound, Problem{Code: "NotFound", Message: missing.Error(), Similar: missing.Similar}
	}
	if _, is := errors.AsType[*jobs.EndedError](err); is {
		return http.StatusConflict, Problem{Code: "Ended", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.AmbiguousError](err); is {
		return http.StatusConflict, Problem{Code: "Ambiguous", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.DeletedError](err); is {
		return http.StatusGone, Problem{Code: "Deleted", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.ExistsError](err); is {
		return http.StatusConflict, Problem{Code: "Exists", Message: err.Error()}
	}
	if _, is := errors.AsType[*jobs.QueueForbiddenError](err); is {
		return http.StatusForbidden, Problem{Code: "Forbidden", Message: "the job is in a queue, and you may not change its Workload: Kueue would start the job again at once"}
	}
	return apiProblem(err)
}

// apiProblem returns the status and the problem of an error of the API server.
func apiProblem(err error) (int, Problem) {
	switch {
	case errors.Is(err, errUnauthorized), apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, Problem{Code: "Unauthorized", Message: errUnauthorized.Error()}
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, Problem{Code: "Forbidden", Message: err.Error()}
	case jobs.IsNotInstalled(err):
		return http.StatusNotFound, Problem{Code: "NotInstalled", Message: err.Error()}
	case apierrors.IsNotFound(err):
		return http.StatusNotFound, Problem{Code: "NotFound", Message: err.Error()}
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return http.StatusConflict, Problem{Code: "Exists", Message: err.Error()}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return http.StatusUnprocessableEntity, Problem{Code: "Rejected", Message: err.Error(), Reasons: []string{err.Error()}}
	case refusedName.MatchString(err.Error()):
		return http.StatusUnprocessableEntity, Problem{Code: "Invalid", Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded), jobs.IsTransient(err):
		return http.StatusServiceUnavailable, Problem{Code: "Unavailable", Message: "the API server does not answer; try again in a few seconds"}
	}
	return http.StatusInternalServerError, Problem{Code: "Internal", Message: err.Error()}
}
