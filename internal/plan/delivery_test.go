package plan_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/plan"
)

func TestDelivery(t *testing.T) {
	able := plan.Runtime{Kubelet: "v1.37.1", Container: "containerd://2.4.2"}
	tests := map[string]struct {
		wanted plan.Delivery
		facts  plan.DeliveryFacts
		want   plan.Delivery
	}{
		"every node mounts images":     {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{able, able}}, plan.ImageVolume},
		"the first versions that do":   {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{"v1.35.0", "containerd://2.1.0"}}}, plan.ImageVolume},
		"a vendor's versions":          {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{"v1.36.2-gke.100", "containerd://2.2.1-k3s1"}}}, plan.ImageVolume},
		"the API server does not":      {plan.AutoDelivery, plan.DeliveryFacts{Runtimes: []plan.Runtime{able}}, plan.InitContainer},
		"no nodes are known":           {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true}, plan.InitContainer},
		"one kubelet is too old":       {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{able, {"v1.34.9", "containerd://2.4.2"}}}, plan.InitContainer},
		"one containerd is too old":    {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{"v1.37.1", "containerd://1.7.27"}, able}}, plan.InitContainer},
		"CRI-O":                        {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{"v1.37.1", "cri-o://1.37.0"}}}, plan.InitContainer},
		"a virtual node":               {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{Kubelet: "v1.37.1"}}}, plan.InitContainer},
		"a version that says nothing":  {plan.AutoDelivery, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{{"v1.37.1", "containerd://dev"}}}, plan.InitContainer},
		"the administrator: volume":    {plan.ImageVolume, plan.DeliveryFacts{}, plan.ImageVolume},
		"the administrator: container": {plan.InitContainer, plan.DeliveryFacts{Admitted: true, Runtimes: []plan.Runtime{able}}, plan.InitContainer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.DeliveryFor(test.wanted, test.facts); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
