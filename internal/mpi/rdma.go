package mpi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/podspec"
)

// Values of AnnotationRDMA.
const (
	// RDMARequired makes the pods wait for nodes with RDMA.
	RDMARequired = "required"
	// RDMAOptional lets the job run over TCP if no node of the cluster offers the RDMA that its pods request. It is the default.
	RDMAOptional = "optional"
)

// maxRemoved is the number of requests that AnnotationRemovedRDMA contains at most.
const maxRemoved = 100

// RDMAPath is the field of AnnotationRDMA.
var RDMAPath = field.NewPath("metadata", "annotations").Key(AnnotationRDMA)

// ParseRDMA reads AnnotationRDMA: whether the job may run without RDMA. It returns true if the annotation is missing or
// invalid.
func ParseRDMA(annotations map[string]string) (optional bool, errs field.ErrorList) {
	switch text, set := annotations[AnnotationRDMA]; {
	case !set, text == RDMAOptional:
		return true, nil
	case text == RDMARequired:
		return false, nil
	default:
		return true, field.ErrorList{field.NotSupported(RDMAPath, text, []string{RDMARequired, RDMAOptional})}
	}
}

// RDMA describes the use of RDMA by a job.
type RDMA struct {
	// Optional is whether the job may run without it.
	Optional bool
	// Fixed is whether AnnotationRDMA has no effect on this job: nothing completes the pods that another controller creates.
	Fixed bool
	// Removed are the RDMA resources that the user's pods request and this job does not (see WithoutRDMA and StripRDMA), by name.
	Removed []corev1.ResourceName
}

// RDMAOf reads how a job uses RDMA. Requests are only removed from the fields of jobs in a queue.
func RDMAOf(job metav1.Object) RDMA {
	var rdma RDMA
	if rdma.Optional, _ = ParseRDMA(job.GetAnnotations()); !rdma.Optional || job.GetLabels()[LabelQueue] == "" {
		return rdma
	}
	removed := map[corev1.ResourceName]bool{}
	for _, request := range RemovedRDMA(job.GetAnnotations()) {
		removed[request.resource()] = true
	}
	rdma.Removed = slices.Sorted(maps.Keys(removed))
	return rdma
}

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

// ResourceNames returns names of resources as a text.
func ResourceNames(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, " and ")
}

// RequestsRDMA reports whether a pod requests RDMA.
func RequestsRDMA(pods []corev1.PodSpec) bool {
	return slices.ContainsFunc(pods, func(pod corev1.PodSpec) bool {
		for name := range podspec.Requests(pod) {
			if podspec.IsRDMA(name) {
				return true
			}
		}
		return false
	})
}

// LacksRDMA reports whether a pod requests more of an RDMA resource than any node has. offers are the allocatable resources of
// the cluster's nodes; without nodes nothing is known.
func LacksRDMA(pods []corev1.PodSpec, offers []corev1.ResourceList) bool {
	if len(offers) == 0 {
		return false
	}
	for _, pod := range pods {
		for name, requested := range podspec.Requests(pod) {
			isEnough := func(node corev1.ResourceList) bool { have := node[name]; return have.Cmp(requested) >= 0 }
			if podspec.IsRDMA(name) && !slices.ContainsFunc(offers, isEnough) {
				return true
			}
		}
	}
	return false
}

// PodSpecs returns the specifications of the job's pods, one of each role.
func (j Job) PodSpecs() []corev1.PodSpec {
	var pods []corev1.PodSpec
	if !j.Launcher.None {
		pods = append(pods, j.Launcher.Template.Spec)
	}
	if j.Workers.Count > 0 {
		pods = append(pods, j.Workers.Template.Spec)
	}
	return pods
}

// WithoutRDMA returns the job without requests for RDMA, of all of its pods: ranks communicate in one way.
func (j Job) WithoutRDMA() Job {
	removed := map[corev1.ResourceName]bool{}
	for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
		copied := template.DeepCopy()
		for _, containers := range [][]corev1.Container{copied.Spec.InitContainers, copied.Spec.Containers} {
			for i := range containers {
				for _, list := range []corev1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
					maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool {
						if podspec.IsRDMA(name) {
							removed[name] = true
						}
						return podspec.IsRDMA(name)
					})
				}
			}
		}
		*template = *copied
	}
	for _, name := range j.RDMA.Removed {
		removed[name] = true
	}
	j.RDMA.Removed = slices.Sorted(maps.Keys(removed))
	return j
}
