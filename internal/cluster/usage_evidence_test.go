package cluster

import (
	"strings"
	"testing"
)

func TestLastUsage(t *testing.T) {
	t.Parallel()
	const (
		first  = `{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":10,"metrics":null}}` + "\n"
		second = `{"time":"2026-01-02T10:01:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":70,"metrics":null}}` + "\n"
		other  = `{"time":"2026-01-02T10:01:01Z","level":"INFO","msg":"started","logger":"mpi-agent","pid":7}` + "\n"
	)
	for name, test := range map[string]struct {
		log  string
		want int64
	}{
		"none":                             {other + other, -1},
		"empty":                            {"", -1},
		"a line break":                     {"\n", -1},
		"the last one":                     {first + other + second + other, 70},
		"the last line":                    {first + second, 70},
		"without a line break":             {other + strings.TrimSpace(first), 10},
		"a line that is cut":               {first + second[:len(second)/2], 10},
		"of another program":               {first + strings.Replace(second, "mpi-agent", "mine", 1), 10},
		"with numbers that are none":       {first + strings.Replace(second, "70", `"many"`, 1), 10},
		"with another object in its place": {first + strings.Replace(second, `"until":70`, `"until":[]`, 1), 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch got := lastUsage([]byte(test.log)); {
			case got == nil && test.want >= 0, got != nil && got.Until != test.want:
				t.Errorf("%+v, want until %d", got, test.want)
			}
		})
	}
}

func TestWithoutUsage(t *testing.T) {
	t.Parallel()
	const (
		used  = `{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":10,"metrics":null}}` + "\n"
		other = `{"msg":"usage","of":"the program"}` + "\n"
	)
	for log, want := range map[string]string{"": "", "a\nb": "a\nb", used + "a\n" + used + other + "b": "a\n" + other + "b", used: ""} {
		if got := string(withoutUsage([]byte(log))); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
