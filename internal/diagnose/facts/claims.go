package facts

import (
	"cmp"
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

// UnboundClaims returns the claims of the job that exist and are not bound, first those about which a warning reports why.
func (f *Facts) UnboundClaims() []jobstate.Claim {
	claims := slices.DeleteFunc(slices.Clone(f.Evidence.Claims), func(c jobstate.Claim) bool { return c.Missing || c.Phase == corev1.ClaimBound })
	slices.SortStableFunc(claims, func(a, b jobstate.Claim) int {
		return cmp.Compare(min(len(b.Problem), 1), min(len(a.Problem), 1))
	})
	return claims
}

// WaitsForVolume reports whether the scheduler has selected a node for a pod, and a claim of the job is not bound because of a problem: with the
// mode WaitForFirstConsumer volumes are made only then. Until that fails, the pod has no condition PodScheduled; it then has an internal error.
func (f *Facts) WaitsForVolume(pod Pod) bool {
	claims := f.UnboundClaims()
	if len(claims) == 0 || claims[0].Problem == "" || pod.Spec.NodeName != "" {
		return false
	}
	condition := podstatus.NotScheduled(pod.Pod)
	return notTried(pod) || condition != nil && condition.Reason == corev1.PodReasonSchedulerError
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
