#!/usr/bin/env bash
# Tests everything that this machine can test. What it cannot is printed as SKIPPED with the reason, and a summary
# stands at the end. Cluster and state are left as they were found: a cluster started here is taken down again.
set -uo pipefail
cd "$(dirname "$0")/.."

summary=() failed=0
step() { # step NAME COMMAND...
  local name=$1 start=$SECONDS result
  shift
  echo "== $name"
  if "$@"; then result=ok; else result=FAILED failed=1; fi
  summary+=("$(printf '%-12s %-8s %4ds' "$name" "$result" $((SECONDS - start)))")
}
skip() { # skip NAME REASON
  echo "== $1: SKIPPED: $2"
  summary+=("$(printf '%-12s SKIPPED  %s' "$1" "$2")")
}

# In CI and in a fresh clone the tree is clean, so that verify can tell what generation and formatting change.
if [ -z "$(git status --porcelain 2>/dev/null)" ]; then step verify make verify; else
  step lint make lint
  skip verify "there are changes that are not committed; make verify compares with what is committed"
fi
step unit make unit
step bench make bench-smallest

if [ -n "${KUBECONFIG:-}" ]; then
  step e2e make e2e
elif [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
  skip e2e "a Kubernetes on this machine needs root on Linux; with KUBECONFIG set, that cluster is used"
else
  # Whether it is up is asked before anything starts it.
  was_up=yes; bin/cluster status >/dev/null 2>&1 || was_up=no
  step run make run
  step e2e make e2e
  # By themselves: with Kueue every new pod waits for its webhook, also those of all other tests.
  step queues make e2e SUITE=Queue WITH=kueue,trainer
  # Kubernetes' gate for gangs changes how every job is placed, so that the other tests run without it.
  step gangs make e2e SUITE='^TestGang' SAMPLES=openmpi GANGS=native
  if [ "$was_up" = no ] && [ -z "${KEEP_CLUSTER:-}" ]; then step cluster-down make cluster-down
  else step gangs-off make cluster-up GANGS=none; fi
fi

echo; echo "Summary"; printf '  %s\n' "${summary[@]}"
exit "$failed"
