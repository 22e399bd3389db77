package jobs

import (
	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

// PageURL returns the address of the documentation of a finding, or "" if it has none. site is the address of the documentation
// site, or "" for the pages in the repository.
func PageURL(site string, finding v1alpha1.Finding) string { return codes.PageURL(site, finding.Code) }
