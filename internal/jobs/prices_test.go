package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cost"
)

// pricesIn returns the ConfigMap with the prices of a namespace.
func pricesIn(namespace, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mpijob-prices"}, Data: map[string]string{cost.Key: text}}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	own, general := pricesIn("ns", "{currency: EUR, coreHour: 1}"), pricesIn("mpijob-system", "{currency: USD, coreHour: 2}")
	for name, test := range map[string]struct {
		configs []client.Object
		refuse  error
		want    string
		fails   string
	}{
		"none":                    {},
		"the namespace's":         {configs: []client.Object{own, general}, want: "EUR"},
		"the operator's":          {configs: []client.Object{general}, want: "USD"},
		"prices that are hidden":  {configs: []client.Object{own}, refuse: forbidden("configmaps")},
		"a request that fails":    {configs: []client.Object{own}, refuse: errors.New("broken"), fails: "read prices: broken"},
		"prices that are invalid": {configs: []client.Object{pricesIn("ns", "{coreHour: -1}"), general}, fails: "read prices from ConfigMap ns/mpijob-prices: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newServer(t, test.configs...)
			s.refuse = func(string, string) error { return test.refuse }
			prices, err := c.Prices(t.Context(), "ns")
			if test.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
					t.Errorf("%v, want %s", err, test.fails)
				}
				return
			}
			if err != nil || (prices == nil) != (test.want == "") || prices != nil && prices.Currency != test.want {
				t.Errorf("%+v, %v; want %s", prices, err, test.want)
			}
		})
	}
}

func TestHourlyCost(t *testing.T) {
	t.Parallel()
	const sized = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 1}}}]}}}
    Worker: {replicas: 3, template: {spec: {nodeSelector: {pool: fast}, containers: [{name: a, image: i, resources: {limits: {cpu: 2, nvidia.com/gpu: 1, example.com/nic: 1}}}]}}}
`
	const prices = "{currency: EUR, coreHour: 1, deviceHours: {nvidia.com/gpu: 10}, nodes: [{label: pool=fast, coreHour: 2}]}"
	c, s := newServer(t, pricesIn("ns", prices))
	job := object(t, sized)
	// (3*2+1)*2 for the cores of the fast nodes, 3*10 for GPUs.
	got, err := c.HourlyCost(t.Context(), job)
	if err != nil || got == nil || got.Amount != "44.00 EUR" || !slices.Equal(got.Unpriced, []string{"example.com/nic"}) {
		t.Errorf("%+v, %v", got, err)
	}
	train := object(t, trainJobText)
	if got, err := c.HourlyCost(t.Context(), train); got != nil || err != nil {
		t.Errorf("a job whose pods are in its runtime costs %+v, %v", got, err)
	}
	s.refuse = func(string, string) error { return errors.New("broken") }
	if _, err := c.HourlyCost(t.Context(), job); err == nil {
		t.Error("unreadable prices are ignored")
	}
	c, _ = newServer(t)
	if got, err := c.HourlyCost(t.Context(), job); got != nil || err != nil {
		t.Errorf("without prices it costs %+v, %v", got, err)
	}
}
