package logs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/logs"
)

func TestParseFigures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		line string
		want map[string]float64
	}{
		"pairs":           {"step=3 loss=0.4 throughput=1,250.5 latency_us=1.8", map[string]float64{"throughput": 1250.5, "latency_us": 1.8}},
		"a colon":         {"Bandwidth: 11.2, message_rate: 2.1e6", map[string]float64{"bandwidth": 11.2, "message_rate": 2.1e6}},
		"JSON":            {`{"step": 3, "samples_per_second": 512, "bandwidth_gbps": "80", "name": "x"}`, map[string]float64{"samples_per_second": 512, "bandwidth_gbps": 80}},
		"rank 0":          {"[1,0]<stdout>: images_per_sec=3", map[string]float64{"images_per_sec": 3}},
		"another rank":    {"[1,3]<stdout>: images_per_sec=3", nil},
		"not a number":    {"throughput=nan latency=inf", nil},
		"another name":    {"bandwidth_of_the_network_card_in_bytes=3 memory=4", nil},
		"no figures":      {"hello", nil},
		"twice the first": {"lr=0.1 lr=0.2", map[string]float64{"lr": 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, logs.ParseFigures(test.line)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := logs.ParseFigures(strings.Repeat("throughput=1 ", 100_000)); len(got) != 1 {
		t.Errorf("of a long line: %v", got)
	}
}
