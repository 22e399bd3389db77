#!/usr/bin/env bash
# Installs a release that hack/release.sh built on a cluster that can pull its images, runs jobs, and removes it: release-install.sh VERSION
# It replaces the operator, its CRDs with all reports, and MPI runtimes of the same names. At the end it installs the operator and the
# runtimes again that it found; it stops if the cluster has MPIJobs or TrainJobs.
set -euo pipefail
cd "$(dirname "$0")/.."
# The test below needs it, as kubectl does.
export KUBECONFIG=${KUBECONFIG:-$PWD/.cluster/kubeconfig}
version=$1
release=$PWD/dist/release/$version
read -ra kubectl <<<"${KUBECTL:-kubectl}"

list_jobs() { local kind; for kind in mpijobs.kubeflow.org trainjobs.trainer.kubeflow.org; do "${kubectl[@]}" get "$kind" --all-namespaces --ignore-not-found -o name 2>/dev/null || true; done; }
# Those of a test that has just ended are being deleted with their namespaces.
for _ in $(seq 60); do jobs=$(list_jobs); [ -n "$jobs" ] || break; sleep 1; done
[ -z "$jobs" ] || { echo "release-install: the cluster has jobs, which would be deleted with the CRDs: delete them first: $jobs" >&2; exit 1; }
deployed() { "${kubectl[@]}" -n mpijob-system get deployment mpijob-operator --ignore-not-found -o "jsonpath=$1"; }
image=$(deployed '{.spec.template.spec.containers[0].image}')
agent=$(deployed '{.spec.template.spec.containers[0].env[?(@.name=="AGENT_IMAGE")].value}')

delete() { "${kubectl[@]}" delete --ignore-not-found "$@" >/dev/null || true; }
# The test has created those again that were there before, which have the same names: the release's have images of its registry.
delete_runtimes() {
  local name registry
  registry=$(head -n 1 "$release/images.txt" | cut -d / -f 1)
  for name in $("${kubectl[@]}" get -f "$release/runtimes-kubernetes.yaml" --ignore-not-found -o name); do
    if "${kubectl[@]}" get "$name" -o yaml | grep -qF "$registry/"; then delete "$name"; fi
  done
}

finish() {
  local code=$?
  trap - EXIT
  # The operator removes what keeps its jobs from being deleted.
  delete namespace release-test --timeout=120s
  if [ $code != 0 ]; then
    # A test that failed may have left parts of the release.
    delete_runtimes
    delete -f "$release/install.yaml" --timeout=60s
    delete namespace mpijob-system --timeout=120s
  fi
  if [ -n "$image" ]; then
    echo "release-install: installing the earlier operator again"
    hack/deploy.sh "$image" "$agent" || code=1
  fi
  exit $code
}
trap finish EXIT
if [ -n "$image" ]; then
  echo "release-install: removing the operator with the image $image"
  "${kubectl[@]}" delete --ignore-not-found --timeout=120s -f "$release/install.yaml" >/dev/null
fi
uv=$PWD/sdk/python/.uv/bin/uv
[ -x "$uv" ] || uv=
(cd hack/install && RELEASE=$release UV=$uv go test ./cluster -count=1 -v -timeout 10m -run '^TestReleasedFiles$')
