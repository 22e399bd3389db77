#!/usr/bin/env bash
# Installs the operator and waits until it is ready: deploy.sh IMAGE AGENT_IMAGE [ARCHIVE]
# ARCHIVE is the file that the image was loaded from; the operator restarts if its checksum changes.
set -euo pipefail
image=$1 agent=$2 archive=${3:-}
cd "$(dirname "$0")/.."
read -ra kubectl <<<"${KUBECTL:-kubectl}"

command -v "${kubectl[0]}" >/dev/null || { echo "deploy: kubectl is missing: install it, or unset KUBECONFIG to use a cluster on this machine" >&2; exit 1; }
build=$(date +%s)
[ -z "$archive" ] || build=$(sha256sum "$archive" | cut -c1-12)

# name:tag, name@digest, or only a name; its registry may have a port.
last=${image##*/}
case $last in
*@*) name=${image%@*} version="digest: ${image##*@}" ;;
*:*) name=${image%:*} version="newTag: \"${image##*:}\"" ;;
*) name=$image version="newTag: latest" ;;
esac

# The API server refuses a CRD without a version in which it has stored objects.
for stored in $("${kubectl[@]}" get crd mpijobs.kubeflow.org --ignore-not-found -o 'jsonpath={.status.storedVersions[*]}'); do
  [ "$stored" = v2beta1 ] || { echo "deploy: the cluster stores MPIJobs of kubeflow.org/$stored, as Kubeflow Training Operator and old MPI operators install them: the CRD mpijobs.kubeflow.org cannot be replaced while it has them; see docs/migration.md#replace-training-operator" >&2; exit 1; }
done

base=$(hack/manifests.sh)
[ "$base" = config/default ] || echo "deploy: this cluster does not serve ValidatingAdmissionPolicies (Kubernetes before 1.30): installing without them, see docs/kubernetes.md"

overlay=dist/deploy
mkdir -p "$overlay"
cat > "$overlay/kustomization.yaml" <<YAML
resources: [../../$base]
images:
- name: quay.io/opendatahub/mpijob-operator
  newName: $name
  $version
labels:
- pairs: {app.kubernetes.io/version: "$(git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo dev)"}
  fields:
  - {kind: Deployment, path: metadata/labels, create: true}
  - {kind: ValidatingWebhookConfiguration, path: metadata/labels, create: true}
  - {kind: MutatingWebhookConfiguration, path: metadata/labels, create: true}
  - {kind: ValidatingAdmissionPolicy, path: metadata/labels, create: true}
  - {kind: ValidatingAdmissionPolicyBinding, path: metadata/labels, create: true}
patches:
- target: {kind: Deployment, name: mpijob-operator}
  patch: |
    - {op: add, path: /spec/template/metadata/annotations/mpi.opendatahub.io~1build, value: "$build"}
- target: {kind: Deployment, name: mpijob-operator}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: mpijob-operator}
    spec: {template: {spec: {containers: [{name: operator, env: [{name: AGENT_IMAGE, value: "$agent"}]}]}}}
YAML
echo "deploy: installing the operator, $image"
"${kubectl[@]}" apply --server-side --force-conflicts -k "$overlay" >/dev/null
"${kubectl[@]}" wait --for=condition=Established crd/mpijobs.kubeflow.org --timeout=60s >/dev/null
if ! "${kubectl[@]}" -n mpijob-system rollout status deployment/mpijob-operator --timeout=180s; then
  "${kubectl[@]}" -n mpijob-system get pods -o wide >&2
  "${kubectl[@]}" -n mpijob-system describe pods >&2 | tail -40 >&2
  "${kubectl[@]}" -n mpijob-system logs deployment/mpijob-operator --tail=40 >&2 || true
  echo "deploy: the operator did not become ready; see above" >&2
  exit 1
fi
