package logstream

import (
	"strings"

	"opendatahub.io/mpijob/internal/logs"
)

// Recall reads the log lines that a report has kept, each with its pod's name in brackets, as Run reads those of pods:
// filtered, and with the last lines of each pod according to Options. Their times are unknown. Places are those of the pods by name.
func Recall(kept []string, places map[string]Place, options Options) []Line {
	all := atlas{hosts: options.Hosts}
	byPod := map[string][]Line{}
	var order []string
	var before logs.Level
	for _, entry := range kept {
		pod, text, found := strings.Cut(strings.TrimPrefix(entry, "["), "] ")
		if !found {
			pod, found = strings.CutSuffix(pod, "]")
		}
		if !found || !strings.HasPrefix(entry, "[") {
			continue
		}
		from := places[pod]
		line := Line{Pod: pod}
		line.Place, line.Rank, line.Text = all.read(from, text)
		line.Level = logs.LevelOf(line.Text)
		if line.Level == logs.LevelNone && strings.HasPrefix(line.Text, " ") {
			line.Level = before
		}
		before = line.Level
		if byPod[pod] == nil {
			order = append(order, pod)
		}
		if options.Filter.reads(from) && options.Filter.wants(from, line) {
			byPod[pod] = append(byPod[pod], line)
		} else if byPod[pod] == nil {
			byPod[pod] = []Line{}
		}
	}
	var lines []Line
	for _, pod := range order {
		of := byPod[pod]
		if options.Tail != nil {
			of = of[max(0, len(of)-int(*options.Tail)):]
		}
		lines = append(lines, of...)
	}
	return lines
}
