package cost

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
)

const good = `
currency: EUR
coreHour: 0.03
gibHour: 0.004
deviceHours: {nvidia.com/gpu: 2.5}
nodes:
- label: node.kubernetes.io/instance-type=big
  coreHour: 0.05
  deviceHours: {nvidia.com/gpu: 4}
- label: pool=free
  deviceHours: {nvidia.com/gpu: 0}
`

func TestAmounts(t *testing.T) {
	t.Parallel()
	prices, err := Parse(map[string]string{Key: good})
	if err != nil {
		t.Fatal(err)
	}
	requests := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	for name, test := range map[string]struct {
		use  Use
		on   map[string]string
		want string
	}{
		"nothing":                       {want: "0.00 EUR"},
		"four pods for two hours":       {use: ForHours(requests, 4, 2), want: "20.74 EUR"}, // 16*0.03 + 64*0.004 + 8*2.5
		"on big nodes":                  {use: ForHours(requests, 4, 2), on: map[string]string{"node.kubernetes.io/instance-type": "big"}, want: "33.06 EUR"},
		"on free nodes":                 {use: ForHours(requests, 4, 2), on: map[string]string{"pool": "free"}, want: "0.74 EUR"},
		"on other nodes":                {use: ForHours(requests, 4, 2), on: map[string]string{"pool": "dear"}, want: "20.74 EUR"},
		"what a report has":             {use: Consumed(&v1alpha1.Consumption{CPUCoreSeconds: 36000, MemoryGiBSeconds: 3600, GPUSeconds: map[string]int64{"nvidia.com/gpu": 7200}}), want: "5.30 EUR"},
		"two together":                  {use: ForHours(requests, 1, 1).Plus(ForHours(requests, 1, 1)), want: "5.18 EUR"},
		"a report without consumption":  {use: Consumed(nil), want: "0.00 EUR"},
		"a device that has not a price": {use: Use{DeviceHours: map[string]float64{"example.com/nic": 5}}, want: "0.00 EUR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := prices.Amount(prices.On(test.on).Of(test.use)); got != test.want {
				t.Errorf("it costs %s, want %s", got, test.want)
			}
		})
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	use := Consumed(&v1alpha1.Consumption{GPUSeconds: map[string]int64{"nvidia.com/gpu": 3600, "amd.com/gpu": 1800, "example.com/nic": 3600}})
	if got := use.GPUHours(); got != 1.5 {
		t.Errorf("there are %v GPU hours, want 1.5", got)
	}
	rates := Rates{DeviceHours: map[string]float64{"nvidia.com/gpu": 1}}
	if diff := cmp.Diff([]string{"amd.com/gpu", "example.com/nic"}, rates.Unpriced(use)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Use{CoreHours: 1, DeviceHours: map[string]float64{"a/b": 3}},
		Use{DeviceHours: map[string]float64{"a/b": 1}}.Plus(Use{CoreHours: 1, DeviceHours: map[string]float64{"a/b": 2}}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

func TestParseTellsAllErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data map[string]string
		want []string
	}{
		"no key":           {data: map[string]string{"prices": good}, want: []string{"key prices.yaml is missing"}},
		"no YAML":          {data: map[string]string{Key: "currency: ["}, want: []string{"prices.yaml: "}},
		"a mistyped field": {data: map[string]string{Key: "currency: EUR\ncpuHour: 1"}, want: []string{`"cpuHour"`}},
		"no number":        {data: map[string]string{Key: "currency: EUR\ncoreHour: cheap"}, want: []string{"coreHour"}},
		"much at once": {
			data: map[string]string{Key: "coreHour: -1\ngibHour: -0.5\ndeviceHours: {gpu: 1, a/b: -2}\nnodes: [{label: pool}, {label: a=b, coreHour: -3}]"},
			want: []string{
				`currency: "" must be a word`, "coreHour: -1 must be 0 or more", "gibHour: -0.5", `"gpu" must be a resource such as nvidia.com/gpu`,
				"deviceHours[a/b]: -2", `nodes[0].label: "pool"`, "nodes[1].coreHour: -3",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(test.data)
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}
