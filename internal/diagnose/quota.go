package diagnose

import "opendatahub.io/mpijob/internal/mpi"

var quotaTexts = map[mpi.Code]text{
	mpi.CodeQuotaTooSmall: {
		summary: "The namespace {namespace} may never have what the job asks for, so that waiting does not help: it asks for {figures}.",
		remedies: []Remedy{
			{Text: "Ask for less: fewer workers, or less for each of them.", Action: "{workersField}"},
			{Text: "Ask whoever runs the cluster for a larger quota.", Action: "kubectl -n {namespace} describe resourcequota"},
			{Text: "Or run the job in a namespace with a larger one."},
		},
	},
	mpi.CodeQuotaExhausted: {
		summary: "The namespace's quota has no room for the whole job now, so that none of its pods is made yet: it asks for {figures}.",
		remedies: []Remedy{
			{Text: "Wait until other work in the namespace has ended; the job then starts by itself."},
			{Text: "See what uses the quota, and delete what is not needed.", Action: "kubectl -n {namespace} get mpijobs,pods"},
			{Text: "Or ask for less: fewer workers, or less for each of them.", Action: "{workersField}"},
			{Text: "Or ask whoever runs the cluster for more.", Action: "kubectl -n {namespace} describe resourcequota"},
		},
	},
}

// shortOfQuota tells what the namespace's quotas lack for a job that has no pods yet. What has no room now is told of a job that
// waits for just that: others wait for something else first, or their pods are refused with figures.
func shortOfQuota(p *patient) []Finding {
	never, now := mpi.SplitShortages(p.seen.Shortages)
	switch {
	case len(never) > 0:
		f := p.find(mpi.CodeQuotaTooSmall, Error, nil, map[string]string{"figures": mpi.ShortageText(never)})
		for _, s := range never {
			f.Evidence = append(f.Evidence, "Quota "+s.Quota+": "+s.Hard.String()+" "+string(s.Resource)+", asked for "+s.Asked.String())
		}
		return []Finding{f}
	case len(now) > 0 && p.outcome.Reason == mpi.ReasonQuota:
		f := p.find(mpi.CodeQuotaExhausted, Warning, nil, map[string]string{"figures": mpi.ShortageText(now)})
		for _, s := range now {
			f.Evidence = append(f.Evidence, "Quota "+s.Quota+": "+s.Used.String()+" of "+s.Hard.String()+" "+string(s.Resource)+" in use, asked for "+s.Asked.String())
		}
		return []Finding{f}
	}
	return nil
}
