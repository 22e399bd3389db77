// Package operator wires the controllers, the admission webhooks and the gang scheduler to one manager, and runs it.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/admission"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/controller"
	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstore"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/reporting"
	"opendatahub.io/mpijob/internal/runtimetest/runner"
	"opendatahub.io/mpijob/internal/tracing"
)

// Options configure an operator.
type Options struct {
	// Namespace is the one that the operator itself runs in: its lease and webhook certificate are kept there.
	Namespace string
	// WatchNamespaces restricts the operator to jobs in these namespaces; empty: all.
	WatchNamespaces []string
	// ClusterDomain ends the host names in hostfiles; empty leaves it out.
	ClusterDomain string
	// AgentImage brings the agent into pods; empty: ranks are started by the images' own sshd.
	AgentImage string
	// AgentDelivery is how it does so; empty is plan.InitContainer.
	AgentDelivery plan.Delivery
	// NetworkPolicies isolates every job by a NetworkPolicy; if false, existing ones are removed.
	NetworkPolicies bool
	// IsolateAllTrainJobs creates a NetworkPolicy for TrainJobs without MPI, too.
	IsolateAllTrainJobs bool
	// AllowEgress is where pods of all jobs may connect to besides their own job, as mpi.ParseEgress reads it.
	AllowEgress string
	// RequireEncryption lets jobs of more than one pod run only if the cluster's network encrypts the traffic between pods.
	RequireEncryption bool
	// KeyType is the type of jobs' SSH keys; empty: cluster.KeyP521.
	KeyType cluster.KeyType
	// LeaderElection lets several replicas run of which one works.
	LeaderElection bool
	// HealthAddress serves /healthz and /readyz; MetricsAddress serves /metrics over TLS to those whom the API
	// server authorizes for it. "0" turns one off.
	HealthAddress, MetricsAddress string
	// GangScheduling is what places jobs as a whole, by the names of package gang; any other is a scheduler with
	// coscheduling, and empty is gang.Auto.
	GangScheduling string
	// Autoscaler is whether a cluster autoscaler may add nodes, as controller.AutoscalerAuto and the others; empty: it is
	// detected.
	Autoscaler string
	// ReportRetention is how long a job's report is kept after its end, for failed jobs at least a day; 0 keeps it
	// indefinitely.
	ReportRetention time.Duration
	// ReportLimits bound the reports of finished jobs in each namespace: the oldest are deleted first, those of failed jobs
	// last.
	ReportLimits reporting.Limits
	// MaskPatterns are regular expressions of text to hide in reports, in addition to the patterns of logs.Masker.
	MaskPatterns []string
	// UsageLabels are the keys of the labels of jobs that are kept in the sums of deleted reports.
	UsageLabels []string
	// MaxLogBytes is how many bytes of the compressed logs of its pods the report of a finished job keeps; 0 keeps none.
	MaxLogBytes int
	// LogBucket is the bucket that complete logs are kept in; the zero value keeps none.
	LogBucket logstore.Settings
	// LogsLink is the template of the links to jobs' logs in a log store (report.ParseLogsLink); empty: reports have none.
	LogsLink string
	// JobLinks are the links of all jobs to pages about them (report.ParseJobLinks); empty: reports have only those of their jobs.
	JobLinks string
	// TrainingProgress is how often the log of a job that runs is read for its progress; 0: never.
	TrainingProgress time.Duration
	// WebhookPort serves the admission webhooks; 0 turns them off.
	WebhookPort int
	// TLSMinVersion is the lowest version of TLS that is served, such as VersionTLS13; empty: VersionTLS12. TLSCipherSuites are
	// the cipher suites of TLS 1.2; empty: those of Go.
	TLSMinVersion   string
	TLSCipherSuites []string
	// Tracing sends the traces of jobs and reconciles; nil sends none. The caller closes it.
	Tracing *tracing.Tracing
}

// validated are the kinds whose jobs the operator's webhook validates.
var validated = []kinds.Validated{mpijob.Kind{}}

// Run runs an operator until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	if err := awaitServer(ctx, config, time.Second); err != nil || ctx.Err() != nil {
		return err
	}
	m, err := newManager(ctx, config, options)
	if err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("run operator: %w", err)
	}
	return nil
}

func newManager(ctx context.Context, restConfig *rest.Config, options Options) (manager.Manager, error) {
	masker, err := logs.NewMasker(options.MaskPatterns)
	if err != nil {
		return nil, fmt.Errorf("patterns to mask: %w", err)
	}
	if _, errs := isolation.ParseEgress(options.AllowEgress); len(errs) > 0 {
		return nil, fmt.Errorf("what all jobs' pods may connect to: %w", errors.Join(errs...))
	}
	if err := errors.Join(plan.CheckDelivery(options.AgentDelivery), reporting.CheckLogBytes(options.MaxLogBytes), reporting.CheckUsageLabels(options.UsageLabels), options.LogBucket.Check(), controller.CheckAutoscaler(options.Autoscaler)); err != nil {
		return nil, err
	}
	// The API server's priority and fairness divides it among its clients; throttling ourselves below that
	// would only make jobs start late.
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1
	options.Tracing.WrapRequests(restConfig)

	certificate := &admission.Certificate{}
	served, err := tlsConfig(options)
	if err != nil {
		return nil, err
	}
	served.GetCertificate = certificate.Get
	m, err := manager.New(restConfig, manager.Options{
		Scheme: scheme(),
		Cache:  cacheOptions(masker, options),
		Client: client.Options{FieldOwner: mpi.FieldManager, Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		// Tests run several operators in one process, each on a namespace of its own.
		Controller:                    config.Controller{EnableWarmup: new(true), SkipNameValidation: new(true)},
		LeaderElection:                options.LeaderElection,
		LeaderElectionConfig:          ownConnection(restConfig),
		LeaderElectionID:              "mpijob-operator",
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		// A leader that is killed is replaced within 5 s (docs/decisions/0020-lease-of-the-leader.md). One that cannot renew its
		// lease stops 600 ms before another may lead; a moment with two leaders would be harmless (docs/architecture.md).
		LeaseDuration:          ptr.To(4 * time.Second),
		RenewDeadline:          ptr.To(3400 * time.Millisecond),
		RetryPeriod:            ptr.To(250 * time.Millisecond),
		HealthProbeBindAddress: options.HealthAddress,
		// serveMetrics does it, with a limit of connections.
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		WebhookServer:           newWebhookServer(options.WebhookPort, served),
		GracefulShutdownTimeout: ptr.To(10 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("set up operator: %w", err)
	}
	if err := errors.Join(fillCache(ctx, m, options), serveMetrics(ctx, m, certificate, options)); err != nil {
		return nil, err
	}
	keys, err := cluster.NewKeys(cmp.Or(options.KeyType, cluster.KeyP521))
	if err != nil {
		return nil, err
	}
	if err := m.Add(keys); err != nil {
		return nil, fmt.Errorf("add stock of SSH keys: %w", err)
	}
	c := cluster.New(m.GetClient(), m.GetAPIReader(), keys, clock.RealClock{})
	reports, err := reporting.New(ctx, m, reporting.Options{
		Masker: masker, Retention: options.ReportRetention, Limits: options.ReportLimits, MaxLogBytes: options.MaxLogBytes, LogBucket: options.LogBucket, LogsLink: options.LogsLink, JobLinks: options.JobLinks, TrainingProgress: options.TrainingProgress, ServeMetrics: options.MetricsAddress != "0",
		Tracing: options.Tracing, Namespace: options.Namespace, Encryption: c.EncryptedBy, UsageLabels: options.UsageLabels,
	})
	if err != nil {
		return nil, err
	}
	settings := plan.Settings{
		ClusterDomain: options.ClusterDomain, AgentImage: options.AgentImage,
		NetworkPolicies: options.NetworkPolicies, IsolatesAllTrainJobs: options.IsolateAllTrainJobs, RequireEncryption: options.RequireEncryption, ReplacesKeys: cmp.Or(options.KeyType, cluster.KeyP521) != cluster.KeyP521, OperatorNamespace: options.Namespace, AllowEgress: options.AllowEgress,
	}
	gangs, err := controller.Add(ctx, m, restConfig, controller.Options{
		Kinds: []kinds.Kind{mpijob.Kind{}, trainjob.NewKind()}, Cluster: c, Settings: settings,
		Deliveries: cluster.NewDeliveries(c, cmp.Or(options.AgentDelivery, plan.InitContainer)),
		Reporter:   reports, Masker: masker, Namespaces: options.WatchNamespaces, GangScheduling: options.GangScheduling,
		Autoscaler: options.Autoscaler, Tracing: options.Tracing, Sign: certificate.Sign,
	})
	if err != nil {
		return nil, err
	}
	if reports != nil {
		if err := runner.Add(m, c.NamespaceAnnotations, options.Namespace); err != nil {
			return nil, err
		}
	}
	if options.WebhookPort != 0 {
		if err := admission.Add(m, validated, certificate, options.Namespace, c, settings, reports, gangs); err != nil {
			return nil, err
		}
	}
	return m, addChecks(m, certificate, options)
}

// ownConnection returns a configuration whose requests have a connection of their own. Otherwise the lease would be renewed on the
// connection of all writes and watches, and wait for them when the API server is slow.
func ownConnection(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	// client-go shares connections among configurations with the same dialer.
	own.Dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return own
}

// fillCache adds the indexes, and the nodes if deliveries or admission depend on them: the first job does not wait for their
// list.
func fillCache(ctx context.Context, m manager.Manager, options Options) error {
	if err := cluster.AddIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if options.AgentDelivery != plan.AutoDelivery && options.WebhookPort == 0 {
		return nil
	}
	if _, err := m.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	return nil
}

// addChecks says when the operator lives (it answers) and is ready (its caches are filled, its webhook has a
// certificate).
func addChecks(m manager.Manager, certificate *admission.Certificate, options Options) error {
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	ready := func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		switch {
		case !m.GetCache().WaitForCacheSync(ctx):
			return fmt.Errorf("caches are being filled")
		case options.WebhookPort != 0 && !certificate.IsReady():
			return fmt.Errorf("webhook has no certificate yet")
		}
		return nil
	}
	if err := m.AddReadyzCheck("ready", ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

func cacheOptions(masker logs.Masker, options Options) cache.Options {
	caches := cluster.CacheOptions(masker)
	cluster.RestrictTo(&caches, options.WatchNamespaces)
	return caches
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(kubeflow.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}
