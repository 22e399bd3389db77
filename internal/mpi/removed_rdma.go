package mpi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/podspec"
)

// maxRemoved is the number of requests that AnnotationRemovedRDMA contains at most.
const maxRemoved = 100

// RemovedRequest is a request for RDMA that was removed from a job's fields, as the operation of a JSON Patch (RFC 6902) that adds it again.
type RemovedRequest struct {
	// Op is "add".
	Op string `json:"op"`
	// Path is the JSON Pointer of the request, whose last part is the name of the resource.
	Path string `json:"path"`
	// Value is the quantity: a string, or a number.
	Value any `json:"value"`
}

// RemovedRDMA reads AnnotationRemovedRDMA. Users can write it while no operator answers: what is no request for RDMA is left out.
func RemovedRDMA(annotations map[string]string) []RemovedRequest {
	var removed []RemovedRequest
	if err := json.Unmarshal([]byte(annotations[AnnotationRemovedRDMA]), &removed); err != nil || len(removed) > maxRemoved {
		return nil
	}
	return slices.DeleteFunc(removed, func(request RemovedRequest) bool { return !request.valid() })
}

func (r RemovedRequest) valid() bool {
	switch r.Value.(type) {
	case string, float64, int64:
	default:
		return false
	}
	parts := r.parts()
	return r.Op == "add" && len(parts) > 3 && parts[0] == "spec" && isRequests(parts[len(parts)-2]) && podspec.IsRDMA(r.resource())
}

// parts returns the names of fields and the positions in lists that lead to the request.
func (r RemovedRequest) parts() []string {
	parts := strings.Split(r.Path, "/")[1:]
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

func (r RemovedRequest) resource() corev1.ResourceName {
	parts := r.parts()
	if len(parts) == 0 {
		return ""
	}
	return corev1.ResourceName(parts[len(parts)-1])
}

// isRequests reports whether a field contains quantities of resources.
func isRequests(name string) bool { return name == "requests" || name == "limits" }

// StripRDMA removes the requests for RDMA from the fields of a job of any kind, in their JSON form, and returns them, sorted by path.
func StripRDMA(job map[string]any) []RemovedRequest {
	removed := stripRDMA(job["spec"], "/spec", "")
	slices.SortFunc(removed, func(a, b RemovedRequest) int { return strings.Compare(a.Path, b.Path) })
	return removed
}

// pointerEscapes writes a name as a part of a JSON Pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func stripRDMA(value any, path, name string) (removed []RemovedRequest) {
	switch value := value.(type) {
	case map[string]any:
		for key, entry := range value {
			at := path + "/" + pointerEscapes.Replace(key)
			if isRequests(name) && podspec.IsRDMA(corev1.ResourceName(key)) {
				removed = append(removed, RemovedRequest{Op: "add", Path: at, Value: entry})
				delete(value, key)
				continue
			}
			within := stripRDMA(entry, at, key)
			removed = append(removed, within...)
			if quantities, is := entry.(map[string]any); is && isRequests(key) && len(within) > 0 && len(quantities) == 0 {
				// Typed clients leave out an empty list, and Trainer refuses that as a change.
				delete(value, key)
			}
		}
	case []any:
		for i, entry := range value {
			removed = append(removed, stripRDMA(entry, fmt.Sprintf("%s/%d", path, i), "")...)
		}
	}
	return removed
}

// RestoreRDMA adds requests for RDMA to the fields of a job from which StripRDMA has removed them. What was changed since stays: a request
// that is there again, and a container that is gone.
func RestoreRDMA(job map[string]any, removed []RemovedRequest) {
	for _, request := range removed {
		parts := request.parts()
		var holder any = job
		for _, part := range parts[:len(parts)-2] {
			holder = entryOf(holder, part)
		}
		list := parts[len(parts)-2]
		if resources, is := holder.(map[string]any); is && resources[list] == nil {
			resources[list] = map[string]any{}
		}
		holder = entryOf(holder, list)
		if quantities, ok := holder.(map[string]any); ok && quantities[string(request.resource())] == nil {
			quantities[string(request.resource())] = request.Value
		}
	}
}

// entryOf returns the field of an object or the entry of a list; nil if there is none.
func entryOf(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// WithRemovedRDMA returns the value of AnnotationRemovedRDMA for requests that were removed now and before, or "" if there are none.
func WithRemovedRDMA(before, now []RemovedRequest) (string, error) {
	all := slices.Clone(now)
	for _, request := range before {
		if !slices.ContainsFunc(now, func(r RemovedRequest) bool { return r.Path == request.Path }) {
			all = append(all, request)
		}
	}
	switch {
	case len(all) == 0:
		return "", nil
	case len(all) > maxRemoved:
		return "", fmt.Errorf("%d requests for RDMA are too many: at most %d can be removed", len(all), maxRemoved)
	}
	data, err := json.Marshal(all)
	return string(data), err
}
