package cluster

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// aboveLimit is the API server's message about a request above the limit of the same container (k8s.io/kubernetes/pkg/apis/core/validation).
var aboveLimit = regexp.MustCompile(`(?:"([^"]+)": )?must be less than or equal to (\S+) limit of (\S+)`)

// nameDefaultLimits adds to errors about requests above a limit that the pod's template does not have where that limit comes from: the default of a
// LimitRange. Errors about sizes that a LimitRange does not allow name it.
func nameDefaultLimits(errs field.ErrorList, template corev1.PodTemplateSpec, ranges []corev1.LimitRange) {
	for _, err := range errs {
		nameRange(err, ranges)
		found := aboveLimit.FindStringSubmatch(err.Detail)
		if found == nil {
			continue
		}
		name := corev1.ResourceName(found[2])
		limit, invalid := resource.ParseQuantity(found[3])
		if invalid != nil || setsLimit(template, name, limit) {
			continue
		}
		if text := defaultLimitText(name, limit, found[1], ranges); text != "" {
			err.Detail += text
		}
	}
}

// beyond is the API server's message about a size that a LimitRange does not allow (k8s.io/kubernetes/plugin/pkg/admission/limitranger).
var beyond = regexp.MustCompile(`(maximum|minimum) (\S+) usage per (Container|Pod) is ([^\s,]+)`)

// someRange is how an error mentions the LimitRange that it is about.
const someRange = "a LimitRange of the namespace"

// nameRange names the LimitRange with the bound that an error is about, if exactly one has it.
func nameRange(err *field.Error, ranges []corev1.LimitRange) {
	found := beyond.FindStringSubmatch(err.Detail)
	if found == nil || !strings.HasPrefix(err.Detail, someRange) {
		return
	}
	var names []string
	for _, of := range ranges {
		for _, item := range of.Spec.Limits {
			bounds := item.Max
			if found[1] == "minimum" {
				bounds = item.Min
			}
			if bound, set := bounds[corev1.ResourceName(found[2])]; set && string(item.Type) == found[3] && bound.String() == found[4] {
				names = append(names, of.Name)
			}
		}
	}
	if len(names) == 1 {
		err.Detail = "LimitRange " + names[0] + " of the namespace" + strings.TrimPrefix(err.Detail, someRange)
	}
}

// setsLimit reports whether a container of a template has a limit itself.
func setsLimit(template corev1.PodTemplateSpec, name corev1.ResourceName, limit resource.Quantity) bool {
	for _, container := range template.Spec.Containers {
		if own, set := container.Resources.Limits[name]; set && own.Cmp(limit) == 0 {
			return true
		}
	}
	return false
}

// defaultLimitText names the LimitRange whose default a limit is, and what to do about a request above it; "" if it is of none.
func defaultLimitText(name corev1.ResourceName, limit resource.Quantity, request string, ranges []corev1.LimitRange) string {
	for _, of := range ranges {
		for _, item := range of.Spec.Limits {
			byDefault, set := item.Default[name]
			if item.Type != corev1.LimitTypeContainer || !set || byDefault.Cmp(limit) != 0 {
				continue
			}
			text := fmt.Sprintf(", which is the default of LimitRange %s for containers without a limit", of.Name)
			most, bounded := item.Max[name]
			wanted, invalid := resource.ParseQuantity(request)
			switch {
			case !bounded:
				return text + fmt.Sprintf("; set the limit of %s, too, or request at most %s", name, limit.String())
			case invalid == nil && wanted.Cmp(most) > 0:
				return text + fmt.Sprintf("; it allows at most %s for each container: request at most that, or ask its administrator to raise it", most.String())
			}
			return text + fmt.Sprintf("; set the limit of %s, too, to at most %s", name, most.String())
		}
	}
	return ""
}
