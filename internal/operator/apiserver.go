package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// awaitServer waits until the API server is ready, trying again so often, or until the context ends. An operator that ends
// because there is none is started again after ever longer pauses, and is then late when there is one again.
func awaitServer(ctx context.Context, config *rest.Config, every time.Duration) error {
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	refused := 0
	for told := false; ; told = true {
		err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return nil
		}
		if !away(err) {
			if refused++; refused == mostRefusals {
				return nil
			}
		}
		if !told {
			log.Log.Info("the API server is not ready; waiting for it", "address", config.Host, "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// mostRefusals is how often an API server may say that we may not ask until we believe it. One that has just started says
// so to everybody until it has read who may do what.
const mostRefusals = 20

// away reports whether an error means that the API server cannot be reached or is not ready. Any other answer, such as
// Forbidden, means that it can.
func away(err error) bool {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		return err != nil
	}
	return status.Status().Code >= 500
}
