package facts

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Claims say how the job's volume claims are; which picks some.
func (f *Facts) Claims(which func(jobstate.Claim) bool) []string {
	var lines []string
	for _, claim := range f.Evidence.Claims {
		switch {
		case which != nil && !which(claim):
		case claim.Missing:
			lines = append(lines, fmt.Sprintf("PersistentVolumeClaim %s does not exist in namespace %s.", claim.Name, f.Job.Namespace))
		default:
			class := claim.Class
			if class == "" {
				class = "none"
			}
			lines = append(lines, fmt.Sprintf("PersistentVolumeClaim %s is %s; storage class %s, access modes %v.", claim.Name, claim.Phase, class, claim.AccessModes))
		}
	}
	return lines
}

// MissingClaim returns what the scheduler reports of a pod whose claim does not exist, if it reports an internal error instead.
// Kubernetes 1.37 does so for pods of a PodGroup: "error in "DynamicResources" PodGroupPostFilter plugins: not found".
func (f *Facts) MissingClaim(pod Pod) string {
	condition := podstatus.NotScheduled(pod.Pod)
	if condition == nil || condition.Reason != corev1.PodReasonSchedulerError {
		return ""
	}
	// The pods are known without their volumes.
	i := slices.IndexFunc(f.Evidence.Claims, func(c jobstate.Claim) bool { return c.Missing })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("persistentvolumeclaim %q not found (%s)", f.Evidence.Claims[i].Name, condition.Message)
}
