package dashboard

import (
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
)

// Manifest is the YAML of a job.
type Manifest struct {
	// Clean is without the fields of the API server and controllers, Full with them.
	Clean string `json:"clean"`
	Full  string `json:"full"`
}

// manifest returns the YAML of a job.
func (s *Server) manifest(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if job.Object == nil {
		return nil, &jobs.DeletedError{Job: job}
	}
	clean, err := yaml.Marshal(jobs.UserFields(job.Object).Object)
	if err != nil {
		return nil, err
	}
	full := job.Object.DeepCopy()
	full.SetManagedFields(nil)
	all, err := yaml.Marshal(full.Object)
	return Manifest{string(clean), string(all)}, err
}
