package times_test

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/times"
)

func TestEarlierAndLater(t *testing.T) {
	early := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	late := early.Add(time.Second)
	for _, pair := range [][2]time.Time{{early, late}, {late, early}} {
		if got := times.Earlier(pair[0], pair[1]); got != early {
			t.Errorf("the earlier of %v is %s", pair, got)
		}
		if got := times.Later(pair[0], pair[1]); got != late {
			t.Errorf("the later of %v is %s", pair, got)
		}
	}
	for _, pair := range [][2]time.Time{{early, {}}, {{}, early}} {
		if got := times.Earlier(pair[0], pair[1]); got != early {
			t.Errorf("the earlier of %v is %s", pair, got)
		}
		if got := times.Later(pair[0], pair[1]); got != early {
			t.Errorf("the later of %v is %s", pair, got)
		}
	}
}

func TestShortest(t *testing.T) {
	for name, test := range map[string]struct {
		durations []time.Duration
		want      time.Duration
	}{
		"none":              {},
		"zero is none":      {durations: []time.Duration{0, 0}},
		"the past is none":  {durations: []time.Duration{-time.Second, time.Minute}, want: time.Minute},
		"the shortest":      {durations: []time.Duration{time.Hour, 0, time.Second, time.Minute}, want: time.Second},
		"only one is given": {durations: []time.Duration{time.Hour}, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := times.Shortest(test.durations...); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
