// The dashboard serves web pages for training jobs.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/program"
	"opendatahub.io/mpijob/internal/version"
	"opendatahub.io/mpijob/web"
)

func main() {
	var options dashboard.Options
	check := flag.String("check", "", "Only ask the dashboard on the address whether it is alive (healthz) or ready (readyz), for probes")
	flag.StringVar(&options.Listen, "listen", ":8080", "Address to serve on")
	flag.StringVar(&options.CertFile, "tls-cert", "", "File of the TLS certificate (default none: without TLS, for a proxy on the same host)")
	flag.StringVar(&options.KeyFile, "tls-key", "", "File of the key of the TLS certificate")
	flag.BoolVar(&options.SelfSigned, "tls-self-signed", false, "Serve with TLS also while the file of --tls-cert does not exist, with a certificate that is made at start")
	flag.StringVar(&options.BasePath, "base-path", "/", "Path under which the dashboard is served, such as /training")
	flag.BoolVar(&options.TrustProxy, "trust-proxy", false, "Accept the user's token from a proxy in the header X-Forwarded-Access-Token. Only the proxy may then reach the address")
	flag.StringVar(&options.Prometheus, "prometheus", "", "URL of the Prometheus or Thanos for charts, asked with the user's token, such as https://thanos-querier.openshift-monitoring.svc:9092 (default none)")
	flag.StringVar(&options.PrometheusCA, "prometheus-ca", "", "File of the certificates to verify it with (default those of the system)")
	flag.StringVar(&options.LogBucket, "log-bucket", "", "URL of the S3 server with the complete logs of finished jobs, as users reach it: no other server is asked (default none: pages show the last lines in reports)")
	flag.StringVar(&options.LogBucketCA, "log-bucket-ca", "", "File of the certificates to verify it with (default those of the system)")
	flag.IntVar(&options.UserStreams, "max-streams-per-user", 40, "Maximum number of streams of changes and logs that a user may have open at once; a page has up to two")
	flag.StringVar(&options.Program, "program", "oc odh mpijob", "Command line in the commands that pages show")
	program.Main("dashboard", func(handler slog.Handler) error {
		slog.SetDefault(slog.New(handler))
		if *check != "" {
			return probe(options.Listen, *check)
		}
		return run(options)
	})
}

func run(options dashboard.Options) error {
	if (options.CertFile == "") != (options.KeyFile == "") {
		return fmt.Errorf("--tls-cert and --tls-key must be set together")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	options.Assets = web.Assets()
	server, err := dashboard.New(config, options, time.Now)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return server.Run(ctx, func(address net.Addr) {
		slog.Info("serving", "address", address.String(), "version", version.Get().Version, "pages", options.Assets != nil)
	})
}

// probe fails if the dashboard on an address is not healthy.
func probe(address, what string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+what, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", what, response.Status)
	}
	return nil
}
