#!/usr/bin/env bash
# Prints the commit that the test of upgrades starts from: the latest release before this commit; else the commit before the last change of
# the reports' CRD, so that the two versions differ in what a report has; else the commit before this one. The history
# that a shallow clone lacks is fetched, if its remote answers.
set -euo pipefail
cd "$(dirname "$0")/../.."
exists() { git rev-parse --verify --quiet "$1^{commit}" >/dev/null; }

if ! exists HEAD; then echo "upgrade-from: this is no clone of a git repository: the upgrade starts from an earlier commit, which it does not have" >&2; exit 1; fi
if ! exists HEAD^ && [ "$(git rev-parse --is-shallow-repository)" = true ]; then
  GIT_TERMINAL_PROMPT=0 timeout 60 git fetch --quiet --deepen=200 >/dev/null 2>&1 || true
fi
if ! exists HEAD^; then echo "upgrade-from: this clone has only one commit, and its history cannot be fetched: the upgrade starts from an earlier commit (git fetch --unshallow; fetch-depth: 0 of actions/checkout)" >&2; exit 1; fi
if tag=$(git describe --tags --match 'v*' --abbrev=0 HEAD^ 2>/dev/null); then echo "$tag"; exit; fi
last=$(git log -1 --format=%H HEAD -- config/crd/mpi.opendatahub.io_jobreports.yaml)
if [ -n "$last" ] && exists "$last^"; then git rev-parse "$last^"; else git rev-parse HEAD^; fi
