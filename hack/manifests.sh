#!/usr/bin/env bash
# Prints the folder of the manifests that the cluster can be installed with: Kubernetes serves ValidatingAdmissionPolicies
# since 1.30.
set -euo pipefail
read -ra kubectl <<<"${KUBECTL:-kubectl}"
served=$("${kubectl[@]}" get --raw /apis/admissionregistration.k8s.io/v1) || { echo "manifests: the API server does not respond; see above" >&2; exit 1; }
case $served in
*'"validatingadmissionpolicies"'*) echo config/default ;;
*) echo config/without-policies ;;
esac
