package logstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

var recalledAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func keptLines() Kept {
	kept := Kept{Places: map[string]Place{"l": {Role: mpi.RoleLauncher}, "w0": {Role: mpi.RoleWorker}, "w1": {Role: mpi.RoleWorker, Index: 1}}}
	kept.Lines = ParseTail([]string{"[w1] Traceback:", "[w1]", "[w1]   File x", "no pod"})
	for i, line := range []string{"l start", "w0 hello", "l [1,1]<stdout>:ERROR bad", "l end"} {
		pod, text, _ := strings.Cut(line, " ")
		kept.Lines = append(kept.Lines, logs.PodLine{Pod: pod, Text: text, Time: recalledAt.Add(time.Duration(i) * time.Minute)})
	}
	return kept
}

func TestRecall(t *testing.T) {
	t.Parallel()
	set := func(first int) Set { return Set{{First: first, Last: first}} }
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"all":        {Options{}, "[w1:Traceback: w1: w1:  File x l:start w0:hello l:ERROR bad l:end]"},
		"a rank":     {Options{Filter: Filter{Ranks: set(1)}}, "[w1:Traceback: w1: w1:  File x l:ERROR bad]"},
		"a worker":   {Options{Filter: Filter{Workers: set(0)}}, "[w0:hello]"},
		"the last":   {Options{Tail: new(int64(1))}, "[w1:  File x w0:hello l:end]"},
		"since":      {Options{SinceTime: recalledAt.Add(3 * time.Minute)}, "[w1:Traceback: w1: w1:  File x l:end]"},
		"until":      {Options{Until: recalledAt}, "[w1:Traceback: w1: w1:  File x l:start]"},
		"long since": {Options{Since: time.Second}, "[w1:Traceback: w1: w1:  File x]"},
		"a level":    {Options{Filter: Filter{Level: logs.LevelError}}, "[w1:Traceback: l:ERROR bad]"},
	} {
		test.options.Hosts = Hosts{Slots: 1, Ranks: 2}
		var got []string
		for _, line := range keptLines().Recall(test.options) {
			got = append(got, line.Pod+":"+line.Text)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
	left := keptLines().without([]corev1.Pod{{}, *podNamed("l"), *podNamed("w1")})
	if len(left.Lines) != 1 || left.Lines[0].Pod != "w0" || len(keptLines().Lines) != 7 {
		t.Errorf("without two pods, %v are left", left.Lines)
	}
}

func podNamed(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name = name
	return pod
}
