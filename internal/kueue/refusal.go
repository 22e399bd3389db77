package kueue

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/phrase"
)

// The clauses of Kueue about a pod set that it does not admit. By default, the reason of the condition is the same for jobs that wait and for jobs
// that are never admitted, so that only the words tell (kueue/pkg/scheduler/flavorassigner/flavorassigner.go and
// tas_flavorassigner.go).
const (
	perPodSet = "couldn't assign flavors to pod set "
	aFlavor   = `([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)`
)

var (
	// goTaint is a taint as Go prints its struct.
	goTaint    = regexp.MustCompile(`^\{(\S+) (\S*) (\S+) [^}]*\}$`)
	notCovered = regexp.MustCompile(`resource (\S+) unavailable in ClusterQueue`)
	tooMuch    = regexp.MustCompile(`insufficient quota for (\S+) in flavor ` + aFlavor +
		`, (?:previously considered podsets requests \((\S+)\) \+ current podset request \((\S+)\)|request) > maximum capacity \((\S+)\)`)
	waitsFor     = regexp.MustCompile(`insufficient unused quota for \S+ in flavor ` + aFlavor + `,`)
	notActive    = regexp.MustCompile(`^(LocalQueue|ClusterQueue) (\S+) is (stopped|inactive)\.?$`)
	topologyFull = regexp.MustCompile(`topology "[^"]*" (?:doesn't allow|allows) to fit`)
	noTopology   = regexp.MustCompile(`topology "[^"]*" (?:doesn't allow|allows) to fit [^.]*\. Total nodes: (\d+); excluded: ([^;]*)`)
	excludes     = regexp.MustCompile(`(nodeSelector|affinity|taint "[^"]*"): (\d+)`)
	mismatches   = []struct {
		said *regexp.Regexp
		// why has the first group of the expression, if it has two; the last one is the flavor.
		why string
	}{
		{regexp.MustCompile(`untolerated taint (\{[^}]*\}|\S+) in flavor ` + aFlavor), "its taint %s is not tolerated"},
		{regexp.MustCompile(`flavor ` + aFlavor + ` doesn't match node affinity`), "its node labels do not match the node selector or affinity"},
		{regexp.MustCompile(`flavor ` + aFlavor + ` not found`), "it does not exist"},
		{regexp.MustCompile(`Flavor "` + aFlavor + `" does not support TopologyAwareScheduling`), "it has no topology, which the pods request"},
		{regexp.MustCompile(`Flavor "` + aFlavor + `" supports only TopologyAwareScheduling`), "it requires that the pods request a topology"},
		{regexp.MustCompile(`Flavor "` + aFlavor + `" does not contain the requested level`), "its topology lacks the level that the pods request"},
	}
)

// refusal returns the reason for which a queue never admits a job, and a clause that explains it, from the message of Kueue about its
// pod sets. Both are empty if the job only waits, or if the words do not tell.
func refusal(message string) (reason, why string) {
	if queue := notActive.FindStringSubmatch(message); queue != nil {
		return ReasonStopped, stoppedText(queue[1]+" "+queue[2], queue[3] == "stopped")
	}
	for sentence := range strings.SplitSeq(message, perPodSet) {
		if reason, why = refusalOfPodSet(sentence); reason != "" {
			return reason, why
		}
	}
	return "", ""
}

// MayLackNodes reports whether a job may wait because all nodes together cannot hold its pods: Kueue found none for it in its topology, or
// it was put out because its pods found none.
func MayLackNodes(state jobstate.QueueState) bool {
	return !state.Admitted && (state.Reason == ReasonTimeout || topologyFull.MatchString(state.Message))
}

// stoppedText explains that a queue admits no jobs. One that is inactive is stopped, or incompletely configured.
func stoppedText(queue string, stopped bool) string {
	if stopped {
		return queue + " is stopped: it admits no job until its administrator starts it again"
	}
	return queue + " is inactive: it is stopped or incompletely configured, and admits no job until its administrator corrects that"
}

// refusalOfPodSet is refusal for one pod set. A pod set is never admitted if none of the flavors that Kueue tried ever accepts it: one
// that has enough quota for it, and only less left, will.
func refusalOfPodSet(said string) (reason, why string) {
	if resource := notCovered.FindStringSubmatch(said); resource != nil {
		return ReasonLacksResource, "it has no quota for " + resource[1]
	}
	exceeded, refused := map[string]string{}, map[string]string{}
	for _, m := range tooMuch.FindAllStringSubmatch(said, -1) {
		resource, flavor, before, request, most := m[1], m[2], m[3], m[4], m[5]
		switch {
		case request == "":
			exceeded[flavor] = fmt.Sprintf("flavor %s has at most %s of %s", flavor, most, resource)
		case before == "0":
			exceeded[flavor] = fmt.Sprintf("flavor %s has at most %s of %s, and %s are requested", flavor, most, resource, request)
		default:
			exceeded[flavor] = fmt.Sprintf("flavor %s has at most %s of %s, and %s + %s are requested", flavor, most, resource, before, request)
		}
	}
	for _, mismatch := range mismatches {
		for _, m := range mismatch.said.FindAllStringSubmatch(said, -1) {
			why := mismatch.why
			if len(m) > 2 {
				why = fmt.Sprintf(why, goTaint.ReplaceAllString(m[1], "$1=$2:$3"))
			}
			flavor := m[len(m)-1]
			refused[flavor] = fmt.Sprintf("flavor %s: %s", flavor, why)
		}
	}
	if why := noNodeOf(said); why != "" {
		return reasonNoFlavor, why
	}
	for _, m := range waitsFor.FindAllStringSubmatch(said, -1) {
		if exceeded[m[1]] == "" && refused[m[1]] == "" {
			return "", ""
		}
	}
	all := slices.Concat(slices.Sorted(maps.Values(exceeded)), slices.Sorted(maps.Values(refused)))
	switch {
	case len(exceeded) > 0:
		reason = reasonExceeds
	case len(refused) > 0:
		reason = reasonNoFlavor
	}
	return reason, strings.Join(all, "; ")
}

// noNodeOf returns that none of the nodes of a topology accepts the pods, however many of them are free; "" if some do.
func noNodeOf(said string) string {
	m := noTopology.FindStringSubmatch(said)
	if m == nil {
		return ""
	}
	nodes, _ := strconv.Atoi(m[1])
	left := nodes
	var reasons []string
	for _, excluded := range excludes.FindAllStringSubmatch(m[2], -1) {
		count, _ := strconv.Atoi(excluded[2])
		left -= count
		reasons = append(reasons, excluded[1]+" excludes "+phrase.Count(count, "node"))
	}
	if left > 0 || len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("none of its %s accepts the pods: %s", phrase.Count(nodes, "node"), strings.Join(reasons, ", "))
}
