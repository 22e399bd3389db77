package doctor

import (
	"context"
	"strings"

	"opendatahub.io/mpijob/internal/encryption"
)

// encryption reports what encrypts the traffic between the pods of jobs, as far as network plug-ins publish it.
func (c Cluster) encryption(ctx context.Context) []Result {
	const check = "Encryption"
	switch by, err := encryption.Find(ctx, c.API); {
	case len(by) > 0:
		return []Result{{Check: check, Verdict: OK, Found: strings.Join(by, " and ") + " encrypts the traffic between nodes, also that of MPI"}}
	case err != nil:
		return unknown(check, err)
	}
	return []Result{{
		Check: check, Verdict: None, Found: "no encryption of the traffic between pods was found: messages of MPI cross the network in plain text, only their start is encrypted (docs/security.md)",
	}}
}
