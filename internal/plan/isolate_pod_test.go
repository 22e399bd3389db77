package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestIsolatePod: pods have no sidecar of a service mesh and no API token, unless their template asks for them.
func TestIsolatePod(t *testing.T) {
	const none = "label false, annotation false, token false"
	tests := map[string]struct {
		change func(*corev1.PodTemplateSpec)
		want   string
	}{
		"nothing set":                  {func(*corev1.PodTemplateSpec) {}, none},
		"in the mesh by a label":       {func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{mpi.IstioInject: "true"} }, "label true, annotation none, token false"},
		"in the mesh by an annotation": {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{mpi.IstioInject: "true"} }, "label none, annotation true, token false"},
		"a token":                      {func(p *corev1.PodTemplateSpec) { p.Spec.AutomountServiceAccountToken = new(true) }, "label false, annotation false, token true"},
		"a service account":            {func(p *corev1.PodTemplateSpec) { p.Spec.ServiceAccountName = "trainer" }, "label false, annotation false, token unset"},
	}
	show := func(values map[string]string) string {
		if value, is := values[mpi.IstioInject]; is {
			return value
		}
		return "none"
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(1, func(j *mpi.Job) {
				test.change(&j.Launcher.Template)
				test.change(&j.Workers.Template)
			})
			launcher := launcherTemplate(job, Settings{})
			pod := worker(job, 0, Settings{})
			for role, got := range map[mpi.Role]corev1.PodTemplateSpec{mpi.RoleLauncher: launcher, mpi.RoleWorker: {ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}} {
				token := "unset"
				if set := got.Spec.AutomountServiceAccountToken; set != nil {
					token = fmt.Sprint(*set)
				}
				if says := fmt.Sprintf("label %s, annotation %s, token %s", show(got.Labels), show(got.Annotations), token); says != test.want {
					t.Errorf("%s: %s, want %s", role, says, test.want)
				}
			}
		})
	}
}
