package logstream

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/logs"
)

// Kept contains the log lines that a job's report has kept.
type Kept struct {
	// Lines are in the order of time. Their times are zero if unknown.
	Lines []logs.PodLine
	// Places are those of the pods by name.
	Places map[string]Place
	// Note describes what is missing; empty if nothing is.
	Note string
}

// ParseTail reads the lines of a failed job's report, each with its pod's name in brackets. Their times are unknown.
func ParseTail(tail []string) (lines []logs.PodLine) {
	for _, entry := range tail {
		pod, text, found := strings.Cut(strings.TrimPrefix(entry, "["), "] ")
		if !found {
			pod, found = strings.CutSuffix(pod, "]")
		}
		if found && strings.HasPrefix(entry, "[") {
			lines = append(lines, logs.PodLine{Pod: pod, Text: text})
		}
	}
	return lines
}

// Recall returns the lines as Run returns those of pods: filtered, and with the last lines of each pod according to Options.
func (k Kept) Recall(options Options) []Line {
	all := atlas{hosts: options.Hosts}
	ofPods := map[string]*levels{}
	since := options.SinceTime
	if options.Since > 0 {
		since = time.Now().Add(-options.Since)
	}
	var lines []Line
	for _, entry := range k.lastOf(options.Tail) {
		from := k.Places[entry.Pod]
		line := Line{Pod: entry.Pod, Time: entry.Time}
		line.Place, line.Rank, line.Text = all.read(from, entry.Text)
		if ofPods[entry.Pod] == nil {
			ofPods[entry.Pod] = &levels{}
		}
		line.Level = ofPods[entry.Pod].of(line)
		isOld := !line.Time.IsZero() && line.Time.Before(since)
		isNew := !options.Until.IsZero() && line.Time.After(options.Until)
		if !isOld && !isNew && options.Filter.reads(from) && options.Filter.wants(from, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// lastOf returns the last lines of each pod, so many of each; all if that is nil.
func (k Kept) lastOf(tail *int64) []logs.PodLine {
	if tail == nil {
		return k.Lines
	}
	count := map[string]int64{}
	var last []logs.PodLine
	for _, line := range slices.Backward(k.Lines) {
		if count[line.Pod]++; count[line.Pod] <= *tail {
			last = append(last, line)
		}
	}
	slices.Reverse(last)
	return last
}

// without returns the lines of all pods but some.
func (k Kept) without(pods []corev1.Pod) Kept {
	there := map[string]bool{}
	for i := range pods {
		there[pods[i].Name] = true
	}
	k.Lines = slices.DeleteFunc(slices.Clone(k.Lines), func(line logs.PodLine) bool { return there[line.Pod] })
	return k
}

// recall makes a queue for the kept lines of pods that do not exist any more, if some pods of the job still do.
func (f *follower) recall(ctx context.Context, pods []corev1.Pod) {
	if f.options.Follow || f.options.Previous || f.options.Container != "" || len(pods) == 0 {
		return
	}
	gone := f.options.Kept.without(pods)
	if len(gone.Lines) == 0 {
		return
	}
	if gone.Note != "" {
		f.say("%s", gone.Note)
	}
	q := f.merger.add(true)
	f.unread = append(f.unread, func() {
		defer q.end()
		q.opened()
		for lines := range slices.Chunk(gone.Recall(f.options), 256) {
			if q.push(ctx, lines, lines[len(lines)-1].Time) != nil {
				return
			}
		}
	})
}
