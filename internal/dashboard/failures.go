package dashboard

import (
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

// FailureCount is a cause for which jobs failed.
type FailureCount struct {
	// Code is the code of the first finding; empty if the cause is unknown.
	Code string `json:"code"`
	Jobs int    `json:"jobs"`
	// Guide is set if the help explains the code.
	Guide bool `json:"guide"`
}

// failures counts the causes of the jobs that failed after a time and that the user may see; in one namespace, unless its name is
// empty. Deleted jobs count while their reports are kept.
func (s *Server) failures(c *call, since, until time.Time, namespace string) ([]FailureCount, error) {
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, row := range visible {
		if row.Phase == string(v1alpha1.PhaseFailed) && (namespace == "" || row.Namespace == namespace) && row.Ended != nil && row.Ended.After(since) && (until.IsZero() || row.Ended.Before(until)) {
			counts[row.Reason]++
		}
	}
	all := []FailureCount{}
	for _, code := range keys(counts) {
		all = append(all, FailureCount{code, counts[code], codes.IsExplained(code)})
	}
	slices.SortStableFunc(all, func(a, b FailureCount) int { return b.Jobs - a.Jobs })
	return all, nil
}
