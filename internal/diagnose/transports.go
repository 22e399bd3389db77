package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// transportless reports ranks that crashed although the job selects transports of Open MPI none of which connects pods: version 4.1.4
// crashes then without a word about it.
func transportless(p *input) []Finding {
	selected := p.Job.WithoutTransport()
	crash := slices.IndexFunc(p.Signs, func(s facts.Sign) bool { return s.Code == codes.SegmentationFault })
	if selected == "" || crash < 0 {
		return nil
	}
	return []Finding{p.find(codes.NoTransport, p.Signs[crash].Pods, nil,
		fmt.Sprintf("The launcher selects the transports %q of Open MPI (btl), none of which connects pods.", selected), facts.LogLine(p.Signs[crash].Pods[0], p.Signs[crash].Line))}
}
