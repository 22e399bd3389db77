package jobs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestGPUUse: the utilization of GPUs comes from a custom metric of pods, where the cluster serves one.
func TestGPUUse(t *testing.T) {
	t.Parallel()
	const path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/DCGM_FI_DEV_GPU_UTIL"
	value := func(pod, value string) string {
		return fmt.Sprintf(`{"describedObject": {"kind": "Pod", "namespace": "ns", "name": %q}, "metricName": "DCGM_FI_DEV_GPU_UTIL", "value": %q}`, pod, value)
	}
	list := func(items ...string) string {
		return `{"kind": "MetricValueList", "items": [` + strings.Join(items, ", ") + `]}`
	}
	tests := map[string]struct {
		status int
		body   string
		want   []string
	}{
		"no adapter":           {http.StatusNotFound, `{}`, []string{"a: requested", "b: requested"}},
		"not allowed":          {http.StatusForbidden, `{}`, []string{"a: requested", "b: requested"}},
		"not JSON":             {http.StatusOK, `<html>`, []string{"a: requested", "b: requested"}},
		"both pods":            {http.StatusOK, list(value("a", "85"), value("b", "12500m")), []string{"a: 0.850", "b: 0.125"}},
		"one pod":              {http.StatusOK, list(value("b", "0")), []string{"a: requested", "b: 0.000"}},
		"a pod of another job": {http.StatusOK, list(value("c", "50")), []string{"a: requested", "b: requested"}},
		"more than there are":  {http.StatusOK, list(value("a", "170")), []string{"a: 1.000", "b: requested"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != path || r.URL.Query().Get("labelSelector") == "" {
					t.Errorf("unexpected request %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			t.Cleanup(server.Close)
			adapter, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			c, _ := newServer(t, object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: train}}"),
				worker("train", "a", corev1.PodRunning), worker("train", "b", corev1.PodRunning))
			c.discovery = adapter
			loads, err := c.loads(t.Context(), "ns", labels.SelectorFromSet(Job{Kind: "MPIJob", Name: "train"}.PodLabels()))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var sum Load
			for pod, load := range loads {
				text := "requested"
				if load.GPUUse != nil {
					text = fmt.Sprintf("%.3f", *load.GPUUse)
				}
				got = append(got, pod.Name+": "+text)
				sum.Add(load)
			}
			if diff := cmp.Diff(test.want, slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("usage (-want +got)\n%s", diff)
			}
			if strings.Contains(strings.Join(got, " "), ".") != (sum.GPUUse != nil) || sum.GPUs != 2 {
				t.Errorf("the sum is %v of %d", sum.GPUUse, sum.GPUs)
			}
		})
	}
}
