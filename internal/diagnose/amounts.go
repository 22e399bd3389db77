package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bytesText returns bytes in a unit that people read; "" for 0.
func bytesText(bytes int64) string {
	switch {
	case bytes <= 0:
		return ""
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<40:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<40)), ".0") + " TiB"
	case bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// amount returns how much of a resource there is, with its unit.
func amount(name corev1.ResourceName, q resource.Quantity) string {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		if text := bytesText(q.Value()); text != "" {
			return text
		}
		return "0"
	case corev1.ResourceCPU:
		return strconv.FormatFloat(float64(q.MilliValue())/1000, 'f', -1, 64)
	}
	return q.String()
}

// thing is what people call a resource.
func thing(name corev1.ResourceName) string {
	switch name {
	case corev1.ResourceCPU:
		return "CPUs"
	case corev1.ResourceMemory:
		return "of memory"
	case corev1.ResourceEphemeralStorage:
		return "of local disk"
	}
	return string(name)
}
