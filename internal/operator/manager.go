package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
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
	// NetworkPolicies has every job isolated by a NetworkPolicy; without it those of before are removed.
	NetworkPolicies bool
	// AllowEgress is where pods of all jobs may connect to besides their own job, as mpi.ParseEgress reads it.
	AllowEgress string
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
	// ReportRetention is how long a job's report is kept after its end, those of failed jobs for a day at least; 0: for
	// ever.
	ReportRetention time.Duration
	// MaskPatterns are regular expressions of what is hidden in reports beside what logs.Masker knows.
	MaskPatterns []string
	// TrainingProgress is how often the log of a job that runs is read for its progress; 0: never.
	TrainingProgress time.Duration
	// WebhookPort serves the admission webhooks; 0 turns them off.
	WebhookPort int
}

// apiKinds are the APIs in which users write jobs.
var apiKinds = []kinds.Kind{mpijob.Kind{}}

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
	if _, errs := mpi.ParseEgress(options.AllowEgress); len(errs) > 0 {
		return nil, fmt.Errorf("what all jobs' pods may connect to: %w", errors.Join(errs...))
	}
	// The API server's priority and fairness divides it among its clients; throttling ourselves below that
	// would only make jobs start late.
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1

	certificate := &certificate{}
	m, err := manager.New(restConfig, manager.Options{
		Scheme: scheme(),
		Cache:  cacheOptions(masker, options),
		Client: client.Options{FieldOwner: mpi.FieldManager, Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		// Tests run several operators in one process, each on a namespace of its own.
		Controller:                    config.Controller{EnableWarmup: new(true), SkipNameValidation: new(true)},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "mpijob-operator",
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(15 * time.Second),
		RenewDeadline:                 ptr.To(10 * time.Second),
		RetryPeriod:                   ptr.To(2 * time.Second),
		HealthProbeBindAddress:        options.HealthAddress,
		Metrics: metricsserver.Options{
			BindAddress: options.MetricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer: webhook.NewServer(webhook.Options{
			Port:    options.WebhookPort,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certificate.get }},
		}),
		GracefulShutdownTimeout: ptr.To(10 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("set up operator: %w", err)
	}
	if err := cluster.AddIndexes(ctx, m.GetFieldIndexer()); err != nil {
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
	reports, err := newReporter(ctx, m, masker, options)
	if err != nil {
		return nil, err
	}
	waiting, err := addQueues(m, restConfig, options, mpijob.Kind{}.Name(), trainjob.Kind)
	if err != nil {
		return nil, err
	}
	together, err := addGangs(ctx, m, restConfig, options, waiting, reports)
	if err != nil {
		return nil, err
	}
	settings := plan.Settings{
		ClusterDomain: options.ClusterDomain, AgentImage: options.AgentImage,
		NetworkPolicies: options.NetworkPolicies, OperatorNamespace: options.Namespace, AllowEgress: options.AllowEgress,
	}
	limits, err := addQuotas(ctx, m, c, settings)
	if err != nil {
		return nil, err
	}
	line, err := addEmbedded(m, restConfig, c, settings)
	if err != nil {
		return nil, err
	}
	together.embedded = line
	theirs := &trainJobs{
		quotas: limits,
		live:   m.GetAPIReader(), clock: clock.RealClock{}, reporter: reports, queues: waiting, gangs: together, cluster: c, settings: settings,
		runtimes: map[types.NamespacedName]usedRuntime{},
	}
	if err := addTrainJobs(m, restConfig, options, theirs); err != nil {
		return nil, err
	}
	if err := addRuntimeTests(m, reports); err != nil {
		return nil, err
	}
	for _, kind := range apiKinds {
		r := &reconciler{
			kind: kind, client: m.GetClient(), cluster: c, clock: clock.RealClock{}, settings: settings, reporter: reports, queues: waiting, quotas: limits, gangs: together, line: line,
			events: m.GetEventRecorderFor(mpi.EventSource), //nolint:staticcheck // tools compare core/v1 events, which the new recorder does not write
		}
		if err := r.register(m); err != nil {
			return nil, err
		}
	}
	if options.WebhookPort != 0 {
		if err := addWebhooks(m, certificate, options.Namespace, c, settings, reports, together); err != nil {
			return nil, err
		}
	}
	return m, addChecks(m, certificate, options)
}

// addChecks says when the operator lives (it answers) and is ready (its caches are filled, its webhook has a
// certificate).
func addChecks(m manager.Manager, certificate *certificate, options Options) error {
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	ready := func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		switch {
		case !m.GetCache().WaitForCacheSync(ctx):
			return fmt.Errorf("caches are being filled")
		case options.WebhookPort != 0 && !certificate.ready():
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
	suit(&caches, options)
	return caches
}

// suit restricts a cache to the namespaces that the operator watches, and has it catch up soon when the API server was away.
func suit(caches *cache.Options, options Options) {
	caches.NewInformer = cluster.NewInformer
	for _, namespace := range options.WatchNamespaces {
		if caches.DefaultNamespaces == nil {
			caches.DefaultNamespaces = map[string]cache.Config{}
		}
		caches.DefaultNamespaces[namespace] = cache.Config{}
	}
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(kubeflow.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}
