package dashboard

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"opendatahub.io/mpijob/internal/jobs"
)

// missing collects what a user may not read. Kinds that are not installed are not missing.
type missing []string

func (m *missing) note(what string, err error) error {
	switch {
	case err == nil || jobs.IsNotInstalled(err):
		return nil
	case apierrors.IsForbidden(err):
		*m = append(*m, what)
		return nil
	}
	return err
}
