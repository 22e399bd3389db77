package diagnose

import (
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/quota"
)

// shortOfQuota reports what the namespace's quotas lack for a job without pods. A lack that can pass is only reported
// if the job waits for it: others wait for something else first, or their pods are rejected with figures.
func shortOfQuota(p *input) []Finding {
	never, now := quota.SplitShortages(p.Seen.Shortages)
	switch {
	case len(never) > 0:
		f := p.find(codes.QuotaTooSmall, nil, map[string]string{"figures": quota.ShortageText(never)})
		for _, s := range never {
			f.Evidence = append(f.Evidence, "Quota "+s.Quota+": "+s.Hard.String()+" "+string(s.Resource)+", requested "+s.Asked.String())
		}
		return []Finding{f}
	case len(now) > 0 && p.Outcome.Reason == codes.WaitingForQuota:
		f := p.find(codes.QuotaExhausted, nil, map[string]string{"figures": quota.ShortageText(now)})
		for _, s := range now {
			f.Evidence = append(f.Evidence, "Quota "+s.Quota+": "+s.Used.String()+" of "+s.Hard.String()+" "+string(s.Resource)+" used, requested "+s.Asked.String())
		}
		return []Finding{f}
	}
	return nil
}
