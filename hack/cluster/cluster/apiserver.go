package cluster

import (
	"context"
	"fmt"

	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// StopAPIServer ends the API server alone, without a word, as a machine that fails would: one that is asked to end first
// takes its address away from the Service "kubernetes", and it was the only one there. Pods go on, and nobody learns of
// what becomes of them; etcd keeps what was written.
func (c *Cluster) StopAPIServer(ctx context.Context) error {
	if _, err := c.settings(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	step := c.Report.Step("stop %s", controlplane.APIServer)
	return step.End(c.Processes.Stop(ctx, controlplane.APIServer, 0))
}

// StartAPIServer starts the API server if it does not run, and waits until it is healthy. What of the cluster watches it is
// then started anew. In its absence watches ask for it ever more seldom, at last once a minute, and for so long nothing
// would happen: the controller manager makes no pods (in a real control plane it loses its lease and is started anew
// anyway), kubelets do not see theirs, the DNS knows no new name. It would hide how soon those are back that are tested.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	wanted, err := c.settings()
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.newRun(ctx, wanted)
	if err != nil {
		return err
	}
	api := r.parts.APIServerSpec()
	runs, _, err := r.Processes.Running(api)
	if err != nil {
		return fmt.Errorf("%s: %w", api.Name, err)
	}
	if err := r.ensure(ctx, api); err != nil || runs {
		return err
	}
	again := func(spec process.Spec) func(context.Context) error {
		return func(ctx context.Context) error {
			return r.again(ctx, spec.Name, func(ctx context.Context) error { return r.ensure(ctx, spec) })
		}
	}
	return parallel(ctx,
		again(r.parts.ControllerManagerSpec()), again(r.parts.SchedulerSpec()), again(r.parts.ProxySpec()), again(r.dnsSpec()),
		func(ctx context.Context) error {
			return forEach(ctx, r.nodes, func(ctx context.Context, n layout.Node) error {
				return r.again(ctx, n.Kubelet(), func(ctx context.Context) error { return r.startKubelet(ctx, n) })
			})
		},
	)
}

// again starts a component anew if it runs.
func (r *run) again(ctx context.Context, name string, start func(context.Context) error) error {
	record, _, err := r.Processes.Get(name)
	if err != nil || !record.Alive() {
		return err
	}
	if err := r.Processes.Stop(ctx, name, 0); err != nil {
		return err
	}
	return start(ctx)
}
