#!/usr/bin/env bash
# Runs web/test/cluster.mjs against the dashboard on the cluster, in a namespace of its own: cluster.sh SAMPLE_IMAGE
# PICTURES is a folder for the pictures of docs/dashboard.md, and PROJECT the namespace that they show.
set -euo pipefail
image=$1
cd "$(dirname "$0")/../.."
read -ra kubectl <<<"${KUBECTL:-kubectl}"
namespace=${PROJECT:-dashboard-e2e-$RANDOM}
runtime=mpi-$namespace
folder=$(mktemp -d)
trap '"${kubectl[@]}" delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null; "${kubectl[@]}" delete clustertrainingruntime "$runtime" "$runtime-made" "$runtime-typed" --ignore-not-found >/dev/null; "${kubectl[@]}" delete clusterrolebinding "$namespace" --ignore-not-found >/dev/null; rm -rf "$folder"' EXIT

"${kubectl[@]}" create namespace "$namespace" >/dev/null
for role in user:edit viewer:view admin:admin; do
  "${kubectl[@]}" -n "$namespace" create serviceaccount "${role%:*}" >/dev/null
  "${kubectl[@]}" -n "$namespace" create rolebinding "${role%:*}" --clusterrole="${role#*:}" --serviceaccount="$namespace:${role%:*}" >/dev/null
done
# The administrator of runtimes sees all namespaces.
"${kubectl[@]}" create clusterrolebinding "$namespace" --clusterrole=cluster-admin --serviceaccount="$namespace:admin" >/dev/null

# The runtime of this repository, with the images of this machine and limits.
"${kubectl[@]}" kustomize config/runtimes/kubernetes > "$folder/runtimes.yaml"
awk -v RS='---\n' '/\n  name: mpi-openmpi\n/' "$folder/runtimes.yaml" |
  sed -e "s#^  name: mpi-openmpi\$#  name: $runtime#" -e "s#quay.io/opendatahub/mpi-sample-openmpi:latest#$image#; s#quay.io/opendatahub/mpijob-agent:latest#${AGENT_IMG:-odh/mpijob-agent:dev}#" \
    -e '0,/^  annotations:$/s//  annotations:\n    mpi.opendatahub.io\/max-workers: "16"/' |
  "${kubectl[@]}" apply --server-side -f - >/dev/null

# The command line acts as the user of the pages.
umask 077
"${kubectl[@]}" config view --raw --minify --flatten > "$folder/kubeconfig"
user=$("${kubectl[@]}" --kubeconfig "$folder/kubeconfig" config view -o jsonpath='{.users[0].name}')
"${kubectl[@]}" --kubeconfig "$folder/kubeconfig" config set "users.$user.act-as" "system:serviceaccount:$namespace:user" >/dev/null

# Each wait has a limit; this one is for all of them.
limit=15m result=0
KUBECTL="${kubectl[*]}" NAMESPACE=$namespace SAMPLE_IMAGE=$image RUNTIME=$runtime PLUGIN=$PWD/bin/kubectl-odh-mpijob \
  USER_KUBECONFIG=$folder/kubeconfig timeout --kill-after=10 "$limit" node web/test/cluster.mjs || result=$?
[ "$result" != 124 ] || echo "dashboard-e2e: the journeys have not ended after $limit" >&2
exit "$result"
