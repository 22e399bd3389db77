package quota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// String describes the shortage with all figures.
func (s Shortage) String() string {
	text := fmt.Sprintf("%s %s requested", s.Asked.String(), s.Resource)
	if by := s.by(); by != "" {
		text += " (" + by + ")"
	}
	if s.Never() {
		return text + fmt.Sprintf(", quota %s allows %s", s.Quota, s.Hard.String())
	}
	free := s.Free()
	text += fmt.Sprintf(", %s of %s used in quota %s", s.Used.String(), s.Hard.String(), s.Quota)
	if !s.Ahead.IsZero() {
		text += fmt.Sprintf(", %s reserved for earlier jobs", s.Ahead.String())
	}
	return text + fmt.Sprintf(", %s free", free.String())
}

func (s Shortage) by() string {
	var parts []string
	for _, share := range s.By {
		switch {
		case share.Role == mpi.RoleLauncher && s.Resource == corev1.ResourcePods:
			parts = append(parts, "the launcher")
		case share.Role == mpi.RoleLauncher:
			parts = append(parts, fmt.Sprintf("the launcher with %s", share.Each.String()))
		case s.Resource == corev1.ResourcePods:
			parts = append(parts, phrase.Count(int32(share.Count), "worker"))
		case share.Count == 1:
			parts = append(parts, fmt.Sprintf("1 worker with %s", share.Each.String()))
		default:
			parts = append(parts, fmt.Sprintf("%d workers with %s each", share.Count, share.Each.String()))
		}
	}
	return strings.Join(parts, " and ")
}

// ShortageText says all that is short, in one sentence's middle.
func ShortageText(short []Shortage) string {
	texts := make([]string, len(short))
	for i, s := range short {
		texts[i] = s.String()
	}
	return strings.Join(texts, "; ")
}

// fitting says how many workers would fit into the room that there is of each: "use at most 16 workers, ", or nothing
// where fewer workers alone do not help.
func fitting(j mpi.Job, short []Shortage, room func(Shortage) resource.Quantity) string {
	most := int64(-1)
	for _, s := range short {
		n, workers := s.workers(room(s))
		switch {
		case !workers:
			return ""
		case most < 0 || n < most:
			most = n
		}
	}
	if most <= 0 {
		return ""
	}
	n, thing := asWritten(j, int32(most))
	return "use at most " + phrase.Count(n, thing) + ", "
}

// advise returns what to do about shortages: fewer workers as fitting says, less per pod if that lowers anything, or something else.
func advise(fewer string, short []Shortage, otherwise string) string {
	if slices.ContainsFunc(short, func(s Shortage) bool { return !s.counts() }) {
		return fewer + "request less per pod, or " + otherwise
	}
	text := fewer
	if fewer != "" {
		text += "or "
	}
	text += otherwise
	for _, s := range short {
		if len(s.By) == 0 {
			return text + fmt.Sprintf(": every job needs %s of its own (%s), whatever its size", s.Resource, s.Asked.String())
		}
	}
	return text
}

// counts reports whether objects are counted, of which less per pod does not change the number.
func (s Shortage) counts() bool {
	switch s.Resource {
	case corev1.ResourcePods, corev1.ResourceServices, corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims:
		return true
	}
	return strings.HasPrefix(string(s.Resource), "count/")
}

// asWritten is a number of workers as users write it, and what they call them: a TrainJob's launcher may be one of its
// nodes.
func asWritten(j mpi.Job, workers int32) (int32, string) {
	switch {
	case !j.External:
		return workers, "worker"
	case j.Launcher.RunsRanks:
		return workers + 1, "node"
	}
	return workers, "node"
}
