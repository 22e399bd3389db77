package mpi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// kueuePrefix begins the names that Kueue uses.
const kueuePrefix = "kueue.x-k8s.io/"

// assigned are the annotations that Kueue writes into pod templates when it admits a job (pkg/podset). Users write others of Kueue, such as
// those for topologies.
var assigned = []string{kueuePrefix + "workload", kueuePrefix + "workload-slice-name"}

// RemoveAssignments removes what Kueue wrote into the fields of a job of either kind when it admitted the job, except for node selectors
// and tolerations of MPIJobs (see KeepPlacement). Kueue restores a job when it suspends the job, but not when the job ends; it would
// not start a copy that has the labels and annotations.
func RemoveAssignments(job map[string]any) {
	for _, template := range templates(job) {
		removeNames(template, "labels", func(name string) bool { return strings.HasPrefix(name, kueuePrefix) })
		removeNames(template, "annotations", func(name string) bool { return slices.Contains(assigned, name) })
		pod, _ := template["spec"].(map[string]any)
		keepEntries(pod, "schedulingGates", func(gate map[string]any) bool { return !startsWith(gate["name"], kueuePrefix) })
	}
	spec, _ := job["spec"].(map[string]any)
	keepEntries(spec, "runtimePatches", func(patch map[string]any) bool {
		// The API server sets the time.
		delete(patch, "time")
		return !startsWith(patch["manager"], kueuePrefix)
	})
}

// KeepPlacement gives the pod templates of an MPIJob the node selectors and tolerations that it had before Kueue admitted it, and added
// those of the nodes of its queue. manifest is the job from then as YAML; one that cannot be read changes nothing.
func KeepPlacement(job map[string]any, manifest string) {
	var before map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &before); err != nil {
		return
	}
	old := templates(before)
	for role, template := range templates(job) {
		was, _ := old[role]["spec"].(map[string]any)
		pod, _ := template["spec"].(map[string]any)
		if was == nil || pod == nil {
			continue
		}
		for _, name := range []string{"nodeSelector", "tolerations"} {
			if value, has := was[name]; has {
				pod[name] = value
			} else {
				delete(pod, name)
			}
		}
	}
}

// templates returns the pod templates of an MPIJob by role; none for other jobs.
func templates(job map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	roles, _, _ := unstructured.NestedFieldNoCopy(job, "spec", "mpiReplicaSpecs")
	replicas, _ := roles.(map[string]any)
	for role, fields := range replicas {
		replica, _ := fields.(map[string]any)
		if template, is := replica["template"].(map[string]any); is {
			found[role] = template
		}
	}
	return found
}

// removeNames removes labels or annotations of a template, and what becomes empty by that.
func removeNames(template map[string]any, field string, remove func(name string) bool) {
	metadata, _ := template["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	count := len(entries)
	maps.DeleteFunc(entries, func(name string, _ any) bool { return remove(name) })
	if len(entries) > 0 || count == 0 {
		return
	}
	if delete(metadata, field); len(metadata) == 0 {
		delete(template, "metadata")
	}
}

// keepEntries removes the objects of a list that are not to be kept, and a list that becomes empty.
func keepEntries(of map[string]any, name string, keep func(map[string]any) bool) {
	entries, is := of[name].([]any)
	if !is {
		return
	}
	var kept []any
	for _, entry := range entries {
		if object, is := entry.(map[string]any); !is || keep(object) {
			kept = append(kept, entry)
		}
	}
	if len(kept) == 0 {
		delete(of, name)
		return
	}
	of[name] = kept
}

func startsWith(value any, prefix string) bool {
	text, _ := value.(string)
	return strings.HasPrefix(text, prefix)
}
