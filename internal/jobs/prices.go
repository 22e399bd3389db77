package jobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/podspec"
)

// The ConfigMap with the prices is in a job's namespace or in the operator's. The job's namespace takes precedence.
const (
	pricesName      = "mpijob-prices"
	pricesNamespace = "mpijob-system"
)

// Prices returns the prices of a namespace; nil if there are none or the user may not read them.
func (c *Client) Prices(ctx context.Context, namespace string) (*cost.Prices, error) {
	for _, where := range []string{namespace, pricesNamespace} {
		var config corev1.ConfigMap
		err := c.api.Get(ctx, types.NamespacedName{Namespace: where, Name: pricesName}, &config)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read prices: %w", err)
		}
		prices, err := cost.Parse(config.Data)
		if err != nil {
			return nil, fmt.Errorf("read prices from ConfigMap %s/%s: %w", where, pricesName, err)
		}
		return &prices, nil
	}
	return nil, nil
}

// HourlyCost is the cost of a job for an hour.
type HourlyCost struct {
	// Amount includes the currency.
	Amount string
	// Unpriced are resources without a price. They are not part of the amount.
	Unpriced []string
}

// HourlyCost returns what an hour of a job costs; nil if there are no prices or the job's size is unknown.
func (c *Client) HourlyCost(ctx context.Context, job *unstructured.Unstructured) (*HourlyCost, error) {
	size, known := SizeOf(job)
	if !known {
		return nil, nil
	}
	prices, err := c.Prices(ctx, job.GetNamespace())
	if err != nil || prices == nil {
		return nil, err
	}
	use := cost.ForHours(podspec.Requests(size.Worker), float64(size.Workers), 1).Plus(cost.ForHours(podspec.Requests(size.Launcher), 1, 1))
	rates := prices.On(size.Worker.NodeSelector)
	return &HourlyCost{Amount: prices.Amount(rates.Of(use)), Unpriced: rates.Unpriced(use)}, nil
}
