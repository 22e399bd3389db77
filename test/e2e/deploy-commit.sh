#!/usr/bin/env bash
# Installs the operator of an earlier commit on the cluster of this machine, with images built from it: deploy-commit.sh COMMIT
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "deploy-commit: there is no commit $1: fetch the repository's history" >&2; exit 1; }
cluster=$PWD/.cluster
folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/source"; rm -rf "$folder"' EXIT
git worktree add --quiet --detach "$folder/source" "$commit"
tag=${commit::12}

echo "deploy-commit: $(git log -1 --format='%h %s' "$commit")"
cd "$folder/source"
images program --name "odh/mpijob-operator:$tag" --package ./cmd/operator --out "$folder/operator.tar"
GOFIPS140=v1.0.0 images program --name "odh/mpijob-agent:$tag" --package ./cmd/agent --path /mpi-agent \
  --link /bin/ssh=../mpi-agent --folder /run --out "$folder/agent.tar"
cluster load --state "$cluster" "$folder/operator.tar" "$folder/agent.tar"
hack/deploy.sh "odh/mpijob-operator:$tag" "odh/mpijob-agent:$tag" "$folder/operator.tar"
