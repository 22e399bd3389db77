// Package dashboard serves the web pages for training jobs and their HTTP API.
//
// The server keeps a row for each job up to date with its own account (rows.go, feed.go), as a cache: each row is shown only
// to users who may list the job (users.go). Everything else is read and written with the token of the user, through the
// library jobs that the command line uses. The server has no state of its own.
package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
)

// Options configure the server.
type Options struct {
	// Listen is the address to serve on, such as :8080.
	Listen string
	// CertFile and KeyFile are the files of a TLS certificate; empty to serve without TLS. They are read again when they change.
	CertFile, KeyFile string
	// SelfSigned makes the server use a certificate of its own while the files do not exist.
	SelfSigned bool
	// BasePath is the path under which the dashboard is served, such as /training; empty for /.
	BasePath string
	// TrustProxy accepts the token in the header X-Forwarded-Access-Token. Only a proxy may then reach the server.
	TrustProxy bool
	// Program is how the command line is called in the commands that pages show; empty for "oc odh mpijob".
	Program string
	// Prometheus is the URL of a Prometheus or Thanos that users may ask with their tokens; empty for none. PrometheusCA is
	// the file of the certificates that it is verified with; empty for those of the system.
	Prometheus, PrometheusCA string
	// LogBucket is the URL of the S3 server whose complete logs of jobs are read; empty for none. LogBucketCA is the file of the
	// certificates that it is verified with; empty for those of the system.
	LogBucket, LogBucketCA string
	// UserStreams is how many streams of changes and logs a user may have open at once; 0 for 40.
	UserStreams int
	// Assets are the files of the web pages, with index.html; nil if they were not built.
	Assets fs.FS
}

// Server serves the dashboard.
type Server struct {
	options Options
	now     func() time.Time
	users   *users
	rows    *rows
	feeds   []*feed
	probe   *probe
	api     dynamic.Interface
	// prometheus is nil without one.
	prometheus *prometheus
	// completeLogs reads complete logs; nil without a log bucket.
	completeLogs jobs.Fetch
	// requests, bodies and streams limit what is in work at once.
	requests, bodies, streams, logs *limiter
	// logLines limits the lines of logs that wait.
	logLines *logstream.Budget
	handler  http.Handler
	// closing is closed when the server stops, so that streams end.
	closing chan struct{}
}

const (
	// readTimeout limits how long a client may take to send a request, requestTimeout how long a request takes.
	headerTimeout, readTimeout, requestTimeout, idleTimeout = 5 * time.Second, 30 * time.Second, 60 * time.Second, 2 * time.Minute
)

// New returns a server that reaches the API server with a configuration. The configuration's credentials are only used to
// watch jobs, reports and runtimes.
func New(config *rest.Config, options Options, now func() time.Time) (*Server, error) {
	options.BasePath = "/" + strings.Trim(options.BasePath, "/")
	options.Program = cmp.Or(options.Program, "oc odh mpijob")
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "mpijob-dashboard"
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make REST mapper: %w", err)
	}
	api, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	known, err := newUsers(config, mapper, now)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, now: now, users: known, rows: newRows(now), api: api, closing: make(chan struct{})}
	s.requests, s.bodies = newLimiter("requests", maxRequests, maxUserRequests), newLimiter("large requests", maxBodies, maxUserBodies)
	s.logs, s.logLines = newLimiter("logs of pods", maxLogs, maxUserLogs), logstream.NewBudget(maxLogLines)
	s.streams = newLimiter("open pages", maxStreams, int64(cmp.Or(options.UserStreams, maxUserStreams)))
	if s.prometheus, err = newPrometheus(options.Prometheus, options.PrometheusCA); err != nil {
		return nil, err
	}
	if s.completeLogs, err = fetchFrom(options.LogBucket, options.LogBucketCA); err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	s.probe = &probe{api: clientset.Discovery().RESTClient()}
	known.isAway = s.probe.isAway
	s.feeds = feeds(s.rows)
	s.handler = s.newHandler()
	return s, nil
}

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Watch keeps the rows up to date until the context ends.
func (s *Server) Watch(ctx context.Context) {
	go s.probe.run(ctx)
	for _, f := range s.feeds {
		go f.run(ctx, s.api)
	}
}

// stale returns why the rows may be out of date; empty if they are not.
func (s *Server) stale() string {
	if s.probe.isAway() {
		return "The API server does not answer. The list is as it was last known and continues by itself."
	}
	for _, f := range s.feeds {
		if _, err := f.state(); err != nil {
			return fmt.Sprintf("The API server does not answer for %ss. The list is as it was last known and continues by itself.", f.kind.Kind)
		}
	}
	return ""
}

// ready reports whether all kinds were listed once.
func (s *Server) ready() bool {
	for _, f := range s.feeds {
		if synced, _ := f.state(); !synced {
			return false
		}
	}
	return true
}

// Run serves until the context ends. Requests that are running then have ten seconds to finish. The function started is
// called with the address when the server accepts connections.
func (s *Server) Run(ctx context.Context, started func(net.Addr)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.options.Listen, err)
	}
	served := &certificates{certFile: s.options.CertFile, keyFile: s.options.KeyFile, selfSigned: s.options.SelfSigned}
	if s.options.SelfSigned {
		// Probes wait a second at most for the first answer.
		if _, err := served.get(); err != nil {
			return err
		}
	}
	server := s.httpServer()
	s.Watch(ctx)
	done := make(chan error, 1)
	go func() {
		if s.options.CertFile == "" && !s.options.SelfSigned {
			done <- server.Serve(listener)
			return
		}
		server.TLSConfig = served.config()
		done <- server.ServeTLS(listener, "", "")
	}()
	started(listener.Addr())
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	close(s.closing)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		// Streams and downloads, which take longer, set the deadline of each write.
		WriteTimeout: requestTimeout + writeTimeout,
		ErrorLog:     slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
}
