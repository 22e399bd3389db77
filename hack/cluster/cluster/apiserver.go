package cluster

import (
	"context"
	"fmt"

	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/process"
)

// StopAPIServer kills only the API server, as a failing machine would: on a graceful stop it would first remove its
// address, the only one, from the Service "kubernetes". Pods go on, and their changes are not recorded; etcd keeps what
// was written.
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

// StartAPIServer starts the API server if it does not run, and waits until it is healthy. It then
// restarts the cluster's components that watch the API server. During an outage their watches back off to one retry a
// minute, and until then nothing would happen: the controller manager creates no pods (in a real control plane it loses its
// lease and restarts anyway), kubelets do not see their pods, the DNS has no new names. That would hide how soon the tested
// programs recover.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	r, unlock, err := c.existingRun(ctx)
	if err != nil {
		return err
	}
	defer unlock()
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
		again(r.parts.ControllerManagerSpec()), again(r.parts.SchedulerSpec()), again(r.parts.ProxySpec()), again(r.policyAgentSpec()), again(r.dnsSpec()),
		func(ctx context.Context) error {
			return forEach(ctx, r.nodes, func(ctx context.Context, n layout.Node) error {
				return r.again(ctx, n.Kubelet(), func(ctx context.Context) error { return r.startKubelet(ctx, n) })
			})
		},
	)
}

// again restarts a component if it runs.
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
