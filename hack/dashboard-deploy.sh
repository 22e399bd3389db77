#!/usr/bin/env bash
# Installs the dashboard and waits until it is ready: dashboard-deploy.sh IMAGE ARCHIVE
# ARCHIVE is the file that the image was loaded from; the dashboard restarts if its checksum changes.
set -euo pipefail
image=$1 archive=$2
cd "$(dirname "$0")/.."
read -ra kubectl <<<"${KUBECTL:-kubectl}"
overlay=dist/dashboard-deploy
mkdir -p "$overlay"
cat > "$overlay/kustomization.yaml" <<YAML
resources: [../../config/dashboard/base]
images:
- {name: quay.io/opendatahub/mpijob-dashboard, newName: ${image%:*}, newTag: "${image##*:}"}
patches:
- target: {kind: Deployment, name: mpijob-dashboard}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: mpijob-dashboard}
    spec: {template: {metadata: {annotations: {mpi.opendatahub.io/build: "$(sha256sum "$archive" | cut -c1-12)"}}}}
YAML
echo "dashboard: installing $image"
"${kubectl[@]}" apply --server-side --force-conflicts -k "$overlay" >/dev/null
if ! "${kubectl[@]}" -n mpijob-system rollout status deployment/mpijob-dashboard --timeout=120s; then
  "${kubectl[@]}" -n mpijob-system describe pods -l app.kubernetes.io/name=mpijob-dashboard | tail -40 >&2
  "${kubectl[@]}" -n mpijob-system logs deployment/mpijob-dashboard --tail=40 >&2 || true
  echo "dashboard: it did not become ready; see above" >&2
  exit 1
fi
