package dashboard

import "testing"

func TestPrometheusByHTTPS(t *testing.T) {
	for address, allowed := range map[string]bool{
		"https://thanos-querier.openshift-monitoring.svc:9092": true, "http://127.0.0.1:9090": true, "http://localhost:9090": true, "http://[::1]:9090": true,
		"http://prometheus.monitoring.svc:9090": false, "http://localhost.example.com": false, "http://127.0.0.1@example.com": false, "ftp://localhost": false, "prometheus": false,
	} {
		if _, err := newPrometheus(address, ""); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}
