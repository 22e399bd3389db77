package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

type portForwardOptions struct {
	*Factory
	target    *target
	addresses []string
}

func newPortForward(f *Factory) *cobra.Command {
	o := &portForwardOptions{Factory: f}
	c := &cobra.Command{
		Use:   "port-forward NAME [LOCAL:]REMOTE...",
		Short: "Forward local ports to a pod of a job",
		Long: `Forward local ports to the launcher's pod, to a worker's pod, or to the pod of a rank, until Ctrl-C. With REMOTE alone,
the local port has the same number; with :REMOTE, it is any free port.`,
		Example: `# TensorBoard in the launcher
{{name}} train 6006

# The metrics of the agent of worker 2, at http://localhost:8080/metrics
{{name}} train --worker 2 8080:2223`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], args[1:]) },
	}
	o.target = addTarget(c)
	c.Flags().StringSliceVar(&o.addresses, "address", []string{"localhost"}, "Local addresses to listen on, separated by commas")
	return c
}

func (o *portForwardOptions) run(ctx context.Context, arg string, ports []string) error {
	pod, config, request, err := o.target.reach(ctx, o.Factory, arg, "portforward")
	if err != nil {
		return err
	}
	forwarder, err := o.forwarder(ctx, config, request, ports)
	if err != nil {
		return err
	}
	if err := forwarder.ForwardPorts(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("forward ports of pod %s: %w", pod.Name, err)
	}
	if ctx.Err() != nil {
		return silently(ExitDetached)
	}
	return nil
}

// forwarder forwards ports to where a request goes, over a websocket or, with older API servers, SPDY, until the context
// ends.
func (o *portForwardOptions) forwarder(ctx context.Context, config *rest.Config, request *rest.Request, ports []string) (*portforward.PortForwarder, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, request.URL())
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(request.URL(), config)
	if err != nil {
		return nil, err
	}
	either := portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	forwarder, err := portforward.NewOnAddressesForStreaming(either, o.addresses, ports, ctx.Done(), make(chan struct{}), o.Out, o.ErrOut)
	if err != nil {
		return nil, usagef("%s: %v; use ports such as 6006 or 8080:6006", strings.Join(ports, " "), err)
	}
	return forwarder, nil
}
