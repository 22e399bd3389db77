package cli

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
)

// TestPricesOfNodes: a job goes by the prices of a label that all of its nodes have.
func TestPricesOfNodes(t *testing.T) {
	t.Parallel()
	prices := priceList{
		byNamespace: map[string]cost.Prices{"ns": {
			Currency: "EUR", Rates: cost.Rates{CoreHour: 1},
			Nodes: []cost.NodePrices{{Label: "pool=fast", Rates: cost.Rates{CoreHour: 10}}},
		}},
		nodes: map[string]map[string]string{"a": {"pool": "fast", "zone": "1"}, "b": {"pool": "fast", "zone": "2"}, "c": {"pool": "slow"}},
	}
	for name, test := range map[string]struct {
		nodes []string
		want  float64
	}{
		"all fast":                        {[]string{"a", "b"}, 10},
		"one slow":                        {[]string{"a", "c"}, 1},
		"one that is gone":                {[]string{"a", "z"}, 1},
		"no pods":                         {nil, 1},
		"a pod that never had a node too": {[]string{"", "b"}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := Job{Namespace: "ns", Name: "pi", Report: &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Consumption: &v1alpha1.Consumption{CPUCoreSeconds: 3600}}}}
			for _, node := range test.nodes {
				job.Report.Status.Pods = append(job.Report.Status.Pods, v1alpha1.PodStatus{Node: node})
			}
			if lines := sum([]Job{job}, prices, "job"); *lines[0].Cost != test.want {
				t.Errorf("it costs %v, want %v", *lines[0].Cost, test.want)
			}
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"": "0001-01-01T00:00:00Z", "90m": "2026-11-21T08:30:00Z", "30d": "2026-10-22T10:00:00Z", "2026-11-01": "2026-11-01T00:00:00Z"} {
		got, err := sinceWhen(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, want %s: %v", text, got.Format(time.RFC3339), want, err)
		}
	}
	for _, text := range []string{"-1h", "0d", "d", "1y", "2026-13-01"} {
		if _, err := sinceWhen(text, now); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
