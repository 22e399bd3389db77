package dns

import (
	"testing"

	"opendatahub.io/mpijob/hack/cluster/internal/golden"
)

func TestCorefile(t *testing.T) {
	for name, resolvConf := range map[string]string{
		"with-a-server":    "# made by hand\nsearch example.com\nnameserver 192.0.2.53\n",
		"with-a-link-zone": "nameserver fe80::1%eth0\n",
		"without-a-server": "search example.com\nnameserver\n",
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".Corefile", Corefile("/clone/.cluster/config/coredns.kubeconfig", resolvConf))
		})
	}
}
