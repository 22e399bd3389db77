package cluster

import (
	"context"
	"time"

	"opendatahub.io/mpijob/hack/cluster/controlplane"
)

// StopAPIServer stops the API server alone. Pods go on, and nobody learns of what becomes of them; etcd keeps what was
// written.
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
	return step.End(c.Processes.Stop(ctx, controlplane.APIServer, 5*time.Second))
}

// StartAPIServer starts the API server if it does not run, and waits until it is healthy.
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
	return r.ensure(ctx, r.parts.APIServerSpec())
}
