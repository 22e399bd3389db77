package dashboard

import "sigs.k8s.io/yaml"

// Manifest is the YAML of a job.
type Manifest struct {
	// Clean is without the fields of the API server and controllers. Of a deleted job, secrets are masked.
	Clean string `json:"clean"`
	// Full is with them; empty if the job is deleted.
	Full string `json:"full"`
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
	clean, err := yaml.Marshal(written.Object)
	if err != nil || job.Object == nil {
		return Manifest{Clean: string(clean)}, err
	}
	full := job.Object.DeepCopy()
	full.SetManagedFields(nil)
	all, err := yaml.Marshal(full.Object)
	return Manifest{string(clean), string(all)}, err
}
