package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"opendatahub.io/mpijob/hack/cluster/controlplane"
	"opendatahub.io/mpijob/hack/cluster/dns"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/node"
)

// check reports whether a component is healthy now.
type check func(context.Context) error

// checks returns the health check of every component, by process name. minor
// is Kubernetes' minor version.
func (c *Cluster) checks(nodes []layout.Node, minor int) map[string]check {
	ca := c.store().Cert(controlplane.CA)
	all := map[string]check{
		// The clients' port, not the metrics' port: the latter reports healthy
		// for a member that waits indefinitely for itself after a loss of data.
		controlplane.Etcd: func(ctx context.Context) error {
			return controlplane.EtcdHealth(ctx, c.store())
		},
		controlplane.APIServer: func(ctx context.Context) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			return client.Ready(ctx)
		},
		controlplane.ControllerManager: httpCheck(ca, fmt.Sprintf("https://127.0.0.1:%d/healthz", layout.ControllerManagerPort)),
		controlplane.Scheduler:         httpCheck(ca, controlplane.SchedulerHealth(minor)),
		controlplane.Proxy:             httpCheck("", fmt.Sprintf("http://127.0.0.1:%d/healthz", layout.ProxyHealthPort)),
		controlplane.PolicyAgent:       httpCheck("", fmt.Sprintf("http://127.0.0.1:%d/healthz", layout.PolicyHealthPort)),
		dns.Name:                       httpCheck("", fmt.Sprintf("http://127.0.0.1:%d/ready", layout.DNSReadyPort)),
	}
	for _, n := range nodes {
		all[n.Containerd()] = c.containerdCheck(n)
		all[n.Kubelet()] = httpCheck("", fmt.Sprintf("http://%s:%d/healthz", n.IP(), layout.KubeletHealthPort))
	}
	return all
}

func (c *Cluster) containerdCheck(n layout.Node) check {
	return func(ctx context.Context) error {
		process, err := c.containerdProcess(n)
		if err != nil {
			return err
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "unix", process+"/root"+node.ContainerdSocket)
		if err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
		return connection.Close()
	}
}

// containerdProcess returns the folder in /proc of a node's containerd. Its
// socket is reached through root in there, because it is in the node's mount
// namespace and because a socket's path is limited to 107 bytes, which a clone
// deep in a home folder exceeds.
func (c *Cluster) containerdProcess(n layout.Node) (string, error) {
	record, ok, err := c.Processes.Get(n.Containerd())
	if err != nil {
		return "", fmt.Errorf("%s: %w", n.Name(), err)
	}
	if !ok || !record.Alive() {
		return "", fmt.Errorf("containerd of %s does not run; start it with: cluster up", n.Name())
	}
	return fmt.Sprintf("/proc/%d", record.Identity.PID), nil
}

// httpCheck expects status 200 of url. caFile is needed for https.
func httpCheck(caFile, url string) check {
	return func(ctx context.Context) error {
		transport := &http.Transport{DisableKeepAlives: true}
		if caFile != "" {
			ca, err := os.ReadFile(caFile)
			if err != nil {
				return fmt.Errorf("health: %w", err)
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(ca)
			transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		client := &http.Client{Transport: transport, Timeout: 3 * time.Second}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health: %s answers %s", url, response.Status)
		}
		return nil
	}
}
