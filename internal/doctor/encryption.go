package doctor

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/encryption"
	"opendatahub.io/mpijob/internal/mpi"
)

// encryption reports what encrypts the traffic between the pods of jobs, as far as network plug-ins publish it. It fails if that is
// required, and nothing does.
func (c Cluster) encryption(ctx context.Context) []Result {
	const check = "Encryption"
	switch by, err := encryption.Find(ctx, c.API); {
	case len(by) > 0:
		return []Result{{Check: check, Verdict: OK, Found: strings.Join(by, " and ") + " encrypts the traffic between nodes, also that of MPI"}}
	case err != nil:
		return unknown(check, err)
	}
	const nothing = "no encryption of the traffic between pods was found"
	if by := c.requiresEncryption(ctx); by != "" {
		return []Result{{
			Check: check, Verdict: Fail, Found: by + " requires it, but " + nothing + ": jobs of more than one pod are refused",
			Remedy: "Ask a cluster administrator to enable it in the cluster's network (docs/security.md), or use another namespace.",
		}}
	}
	return []Result{{Check: check, Verdict: None, Found: nothing + ": messages of MPI cross the network in plain text, only their start is encrypted (docs/security.md)"}}
}

// requiresEncryption returns what requires that the traffic between pods is encrypted; "" if nothing does that the user may read.
func (c Cluster) requiresEncryption(ctx context.Context) string {
	if found, err := FindOperator(ctx, c.API); err == nil {
		if value, set := flagOf(found.deployment, "require-encryption"); set && value != "false" {
			return "the operator's flag --require-encryption"
		}
	}
	var namespace corev1.Namespace
	if err := c.API.Get(ctx, client.ObjectKey{Name: c.Namespace}, &namespace); err == nil && mpi.RequiresEncryption(namespace.Annotations) {
		return "the annotation " + mpi.AnnotationRequireEncryption + " of namespace " + c.Namespace
	}
	return ""
}
