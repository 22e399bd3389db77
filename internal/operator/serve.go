package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"opendatahub.io/mpijob/internal/admission"
	jobmetrics "opendatahub.io/mpijob/internal/metrics"
)

// tlsConfig returns how webhooks and metrics are served, but for the certificate.
func tlsConfig(options Options) (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	var err error
	if options.TLSMinVersion != "" {
		if config.MinVersion, err = cliflag.TLSVersion(options.TLSMinVersion); err != nil {
			return nil, fmt.Errorf("--tls-min-version: %w", err)
		}
	}
	if config.CipherSuites, err = cliflag.TLSCipherSuites(options.TLSCipherSuites); err != nil {
		return nil, fmt.Errorf("--tls-cipher-suites: %w", err)
	}
	return config, nil
}

// serveMetrics serves /metrics to clients whom the API server authorizes, with the certificate of a Secret, by
// which they can verify it. An operator outside of a cluster has no namespace for the Secret, and makes a certificate up.
func serveMetrics(ctx context.Context, m manager.Manager, certificate *admission.Certificate, options Options) error {
	if options.MetricsAddress == "" || options.MetricsAddress == "0" {
		return nil
	}
	authorized, err := filters.WithAuthenticationAndAuthorization(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	handler, err := authorized(log.Log.WithName("metrics"), promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	config, err := tlsConfig(options)
	if err != nil {
		return err
	}
	config.GetCertificate = certificate.GetForMetrics
	switch {
	case options.WebhookPort != 0: // the webhooks keep it
	case options.Namespace != "":
		err = admission.AddCertificate(m, certificate, options.Namespace)
	default:
		config.GetCertificate, err = selfSigned()
	}
	if err != nil {
		return err
	}
	register(ctx, jobmetrics.Certificates(certificate.Expiries))
	if options.Tracing != nil {
		register(ctx, options.Tracing.Spans())
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	server, err := serverAt(ctx, "metrics", options.MetricsAddress, maxMetricsConnections, config, mux)
	if err != nil {
		return err
	}
	if err := m.Add(server); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// register serves metrics until the context ends. In tests, another operator of the same process may have registered its own.
func register(ctx context.Context, collector prometheus.Collector) {
	if err := metrics.Registry.Register(collector); err == nil {
		context.AfterFunc(ctx, func() { metrics.Registry.Unregister(collector) })
	}
}

// selfSigned returns a new certificate that no client can verify.
func selfSigned() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
	if err != nil {
		return nil, fmt.Errorf("make certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate for metrics: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}
