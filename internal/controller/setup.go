package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/gang/scheduler"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/reporting"
	"opendatahub.io/mpijob/internal/tracing"
)

// Options configure the controllers.
type Options struct {
	// Kinds are the APIs in which users write jobs.
	Kinds    []kinds.Kind
	Cluster  *cluster.Cluster
	Settings plan.Settings
	// Deliveries decides how the agent gets into a job's pods.
	Deliveries *cluster.Deliveries
	// Reporter writes the reports of jobs; nil where the cluster has no JobReports.
	Reporter *reporting.Reporter
	// Masker hides secrets in the status of pods before it is cached.
	Masker logs.Masker
	// Namespaces restricts the controllers to jobs in these namespaces; empty: all.
	Namespaces []string
	// GangScheduling selects the gang scheduler (gang.Choose); empty is gang.Auto.
	GangScheduling string
	// Autoscaler is whether a cluster autoscaler may add nodes (AutoscalerAuto); empty is AutoscalerAuto.
	Autoscaler string
	// Sign returns the signature of a text that all replicas agree on; empty if there is none yet. nil: there is never one.
	Sign func(text string) string
	// Tracing sends the traces of reconciles; nil sends none.
	Tracing *tracing.Tracing
}

// Add adds a controller for each kind of job to a manager.
func Add(ctx context.Context, m manager.Manager, config *rest.Config, options Options) (*Gangs, error) {
	queues, err := addQueues(ctx, m, config, options.Namespaces, options.Kinds, options.Reporter.Run)
	if err != nil {
		return nil, err
	}
	gangs, err := addGangs(ctx, m, config, options.GangScheduling, options.Namespaces, queues, options.Reporter)
	if err != nil {
		return nil, err
	}
	quotas, err := addQuotas(ctx, m, options.Cluster, options.Settings, options.Reporter.Run)
	if err != nil {
		return nil, err
	}
	scaler := &autoscaler{setting: options.Autoscaler, live: m.GetAPIReader()}
	if scaler.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, m.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("set up looking for autoscalers: %w", err)
	}
	if err := m.Add(scaler); err != nil {
		return nil, fmt.Errorf("add looking for autoscalers: %w", err)
	}
	names := make([]string, len(options.Kinds))
	for i, kind := range options.Kinds {
		names[i] = kind.Name()
	}
	embedded, err := scheduler.Add(ctx, m, config, options.Cluster, options.Settings, names, scaler.isPresent, options.Reporter.Run)
	if err != nil {
		return nil, err
	}
	gangs.embedded, gangs.autoscaled, gangs.sign = embedded, scaler.isPresent, options.Sign
	if gangs.placesByDefault() {
		// Not for the first job: that would wait for it.
		err := m.Add(manager.RunnableFunc(func(context.Context) error { embedded.Start(); return nil }))
		if err != nil {
			return nil, fmt.Errorf("add watching of nodes: %w", err)
		}
	}
	for _, kind := range options.Kinds {
		r := &reconciler{
			kind: kind, readers: kinds.Readers{Cached: m.GetClient(), Live: m.GetAPIReader()}, client: m.GetClient(), cluster: options.Cluster,
			clock: clock.RealClock{}, settings: options.Settings, reporter: options.Reporter, queues: queues, quotas: quotas, gangs: gangs,
			deliveries: options.Deliveries, tracing: options.Tracing,
			events: m.GetEventRecorderFor(mpi.EventSource), //nolint:staticcheck // tools compare core/v1 events, which the new recorder does not write
		}
		if kind.Runner() == nil {
			err = r.watch(m, embedded.Source(kind.Name()))
		} else {
			err = r.watchRunner(m, config, options.Masker, options.Namespaces, embedded.Source(kind.Name()))
		}
		if err != nil {
			return nil, err
		}
	}
	return gangs, nil
}
