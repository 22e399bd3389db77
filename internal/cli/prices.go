package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/cost"
)

// pricesName names the ConfigMap with the prices, in a job's namespace or in that of the operator. The former counts.
const (
	pricesName      = "mpijob-prices"
	pricesNamespace = "mpijob-system"
)

// prices are those that hold in a namespace; false where nobody has written any down, or the user may not read them.
func (f *Factory) prices(ctx context.Context, namespace string) (cost.Prices, bool, error) {
	c, err := f.Client()
	if err != nil {
		return cost.Prices{}, false, err
	}
	for _, where := range []string{namespace, pricesNamespace} {
		var written corev1.ConfigMap
		err := c.Get(ctx, types.NamespacedName{Namespace: where, Name: pricesName}, &written)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			continue
		case err != nil:
			return cost.Prices{}, false, fmt.Errorf("read prices: %w", err)
		}
		prices, err := cost.Parse(written.Data)
		if err != nil {
			return cost.Prices{}, false, fmt.Errorf("read prices from ConfigMap %s/%s: %w", where, pricesName, err)
		}
		return prices, true, nil
	}
	return cost.Prices{}, false, nil
}
