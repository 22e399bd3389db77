package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// isolatePod keeps what a job's pod does not need out of a template: the sidecar of a service mesh, which ranks on other pods
// cannot pass (mpi.IstioInject), and the API token of a service account that the user did not choose. A template that sets
// them itself is left as it is.
func isolatePod(template *corev1.PodTemplateSpec) {
	_, labelled := template.Labels[mpi.IstioInject]
	_, annotated := template.Annotations[mpi.IstioInject]
	if !labelled && !annotated {
		template.Labels, template.Annotations = with(template.Labels, mpi.IstioInject, "false"), with(template.Annotations, mpi.IstioInject, "false")
	}
	if spec := &template.Spec; spec.AutomountServiceAccountToken == nil && spec.ServiceAccountName == "" {
		spec.AutomountServiceAccountToken = new(false)
	}
}

// with returns a map with another entry.
func with(values map[string]string, key, value string) map[string]string {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}
