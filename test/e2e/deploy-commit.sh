#!/usr/bin/env bash
# Installs the operator of an earlier commit on the cluster of this machine, with images built from it: deploy-commit.sh COMMIT
# With KEEP_CRDS=1 the CRDs stay those of this tree, as after a rollback. The images are built once.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -n "$1" ] || { echo "deploy-commit: there is no commit to start from" >&2; exit 1; }
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "deploy-commit: there is no commit $1: fetch the repository's history" >&2; exit 1; }
cluster=$PWD/.cluster crds=$PWD/config/crd
folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/source"; rm -rf "$folder"' EXIT
git worktree add --quiet --detach "$folder/source" "$commit"
tag=${commit::12}
archives=$PWD/dist/from-$tag
mkdir -p "$archives"

echo "deploy-commit: $(git log -1 --format='%h %s' "$commit")${KEEP_CRDS:+, with the CRDs of this tree}"
cd "$folder/source"
if ! [ -e "$archives/complete" ]; then
  images program --name "odh/mpijob-operator:$tag" --package ./cmd/operator --out "$archives/operator.tar"
  GOFIPS140=v1.0.0 images program --name "odh/mpijob-agent:$tag" --package ./cmd/agent --path /mpi-agent \
    --link /bin/ssh=../mpi-agent --folder /run --out "$archives/agent.tar"
  touch "$archives/complete"
fi
cluster load --state "$cluster" "$archives/operator.tar" "$archives/agent.tar"
[ -z "${KEEP_CRDS:-}" ] || cp "$crds"/*.yaml config/crd/
hack/deploy.sh "odh/mpijob-operator:$tag" "odh/mpijob-agent:$tag" "$archives/operator.tar"
