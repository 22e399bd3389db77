package agentapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestUsagePause(t *testing.T) {
	t.Parallel()
	for running, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Minute: time.Minute, 30 * time.Minute: 3 * time.Minute, 100 * time.Hour: 5 * time.Minute} {
		if got := agentapi.UsagePause(running); got != want {
			t.Errorf("after %s: %s, want %s", running, got, want)
		}
	}
}

// TestStallInUsage: of what a program can write in the name of an agent, the lines that agents write are taken, and no more of them than they
// write.
func TestStallInUsage(t *testing.T) {
	t.Parallel()
	const stall, place = agentapi.StallPrefix + "all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1", agentapi.StackPrefix + "ranks 0, 1: main (train.py:1)"
	long := slices.Repeat([]string{place}, 100)
	for name, test := range map[string]struct{ lines, want []string }{
		"none":            {nil, nil},
		"a stall":         {[]string{stall}, []string{stall}},
		"with its places": {[]string{stall, place, place}, []string{stall, place, place}},
		"it is over":      {[]string{agentapi.StallPrefix + agentapi.StallOver}, nil},
		"of a program":    {[]string{"step 1", stall}, nil},
		"and its output":  {[]string{stall, "step 1", place}, []string{stall}},
		"too many":        {append([]string{stall}, long...), append([]string{stall}, long[:(agentapi.MaxStallBytes-len(stall))/len(place)]...)},
		"too long":        {[]string{stall + strings.Repeat("x", agentapi.MaxStallBytes)}, nil},
	} {
		data, err := json.Marshal(map[string]any{"msg": agentapi.UsageMessage, "logger": agentapi.Logger, "usage": agentapi.Usage{Stall: &agentapi.Stall{At: 1000, Lines: test.lines}}})
		if err != nil {
			t.Fatal(err)
		}
		line := `{"time":"2026-01-02T10:00:00Z",` + strings.TrimPrefix(string(data), "{")
		used, is := agentapi.ParseUsageLine(line)
		var got []string
		if used.Stall != nil {
			got = used.Stall.Lines
		}
		if !is || !slices.Equal(got, test.want) || used.Stall != nil && used.Stall.At != 1000 {
			t.Errorf("%s: %t, %q, want %q", name, is, got, test.want)
		}
	}
}
