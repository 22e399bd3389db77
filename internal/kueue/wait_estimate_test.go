package kueue_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
)

var day = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func TestWaits(t *testing.T) {
	team := kueue.Line{Backend: kueue.Kueue, Namespace: "a", Queue: "team"}
	other := kueue.Line{Backend: kueue.Kueue, Namespace: "b", Queue: "team"}
	var waits kueue.Waits
	let := func(line kueue.Line, name string, pods int32, minutes int) {
		waits.Add(line, types.UID(name), pods, time.Duration(minutes)*time.Minute, day.Add(time.Duration(minutes)*time.Minute))
	}
	if got := waits.Of(team, 4); got != (jobstate.Wait{FewestPods: 2, MostPods: 8}) {
		t.Errorf("of nobody it knows %+v", got)
	}
	for minutes := range 9 {
		let(team, fmt.Sprint("some-", minutes), 4, minutes+1)
	}
	let(team, "some-0", 4, 500)
	let(team, "tiny", 1, 500)
	let(team, "large", 9, 500)
	let(other, "elsewhere", 4, 500)
	if got := waits.Of(team, 4); got.Known || got.Samples != 9 {
		t.Errorf("of nine that compare it knows %+v", got)
	}
	let(team, "some-10", 8, 10)
	want := jobstate.Wait{Known: true, Samples: 10, FewestPods: 2, MostPods: 8, P50: 5 * time.Minute, P90: 9 * time.Minute}
	if got := waits.Of(team, 4); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestWaitsAreBounded: the latest are kept, in whatever order they are told.
func TestWaitsAreBounded(t *testing.T) {
	line := kueue.Line{Backend: kueue.Kueue, Namespace: "a", Queue: "team"}
	var waits kueue.Waits
	for i := range 1000 {
		number := i * 7 % 1000
		waits.Add(line, types.UID(fmt.Sprint(number)), 4, time.Duration(number)*time.Second, day.Add(time.Duration(number)*time.Second))
	}
	if got := waits.Of(line, 4); got.Samples != 200 || got.P50 != 899*time.Second || got.P90 != 979*time.Second {
		t.Errorf("of a thousand it knows %+v", got)
	}
	for i := range 1500 {
		of := kueue.Line{Backend: kueue.Kueue, Namespace: fmt.Sprint(i), Queue: "team"}
		waits.Add(of, types.UID(fmt.Sprint("job-", i)), 4, time.Second, day.Add(time.Duration(i)*time.Hour))
	}
	for namespace, known := range map[string]int32{"0": 0, "499": 0, "500": 1, "1499": 1} {
		if got := waits.Of(kueue.Line{Backend: kueue.Kueue, Namespace: namespace, Queue: "team"}, 4); got.Samples != known {
			t.Errorf("of the line in %s it knows %d, want %d", namespace, got.Samples, known)
		}
	}
}
