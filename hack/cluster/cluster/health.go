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

// check tells whether a component is healthy now.
type check func(context.Context) error

// checks returns the health check of every component, by process name.
func (c *Cluster) checks(nodes []layout.Node) map[string]check {
	ca := c.store().Cert(controlplane.CA)
	all := map[string]check{
		// Where clients go, not where metrics are: a member that after a loss
		// of data waits for itself for ever says there that it is well.
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
		controlplane.Scheduler:         httpCheck(ca, fmt.Sprintf("https://127.0.0.1:%d/readyz", layout.SchedulerPort)),
		controlplane.Proxy:             httpCheck("", fmt.Sprintf("http://127.0.0.1:%d/healthz", layout.ProxyHealthPort)),
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
		socket, err := c.containerdSocket(n)
		if err != nil {
			return err
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
		return connection.Close()
	}
}

// containerdSocket is the path of a running containerd's socket as seen from
// outside its mount namespace. It goes through /proc also because a socket's
// path may have 107 bytes only, which a clone deep in a home folder exceeds.
func (c *Cluster) containerdSocket(n layout.Node) (string, error) {
	record, ok, err := c.Processes.Get(n.Containerd())
	if err != nil {
		return "", fmt.Errorf("%s: %w", n.Name(), err)
	}
	if !ok || !record.Alive() {
		return "", fmt.Errorf("containerd of %s does not run; start it with: cluster up", n.Name())
	}
	return fmt.Sprintf("/proc/%d/root%s", record.Identity.PID, node.ContainerdSocket), nil
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
