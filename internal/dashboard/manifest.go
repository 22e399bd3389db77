package dashboard

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
)

// Manifest is the YAML of a job. Secrets are masked.
type Manifest struct {
	// Clean is without the fields of the API server and controllers.
	Clean string `json:"clean"`
	// Full is with them; empty if the job is deleted.
	Full string `json:"full"`
	// Masked is the number of masked values.
	Masked int `json:"masked"`
}

// manifest returns the YAML of a job.
func (s *Server) manifest(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	written, err := job.Written()
	if err != nil {
		return nil, err
	}
	masked := jobs.Masked(written)
	clean, err := yaml.Marshal(written.Object)
	if err != nil || job.Object == nil {
		return Manifest{Clean: string(clean), Masked: masked}, err
	}
	full := job.Object.DeepCopy()
	full.SetManagedFields(nil)
	unstructured.RemoveNestedField(full.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation) // the fields again, as one text
	jobs.Masked(full)
	all, err := yaml.Marshal(full.Object)
	return Manifest{string(clean), string(all), masked}, err
}
