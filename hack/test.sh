#!/usr/bin/env bash
# Runs linters, unit tests and a share of the end-to-end tests: SHARE, by default a quarter, which the commit chooses; SHARE= is all. Two steps
# belong to one share each: installing a release to 0/4, and the oldest API server to 2/4. What this machine cannot run is printed as SKIPPED
# with the reason; the end is a summary.
# A cluster that this script starts is taken down again.
set -uo pipefail
cd "$(dirname "$0")/.."

summary=() untested=() failed=0
output=$(mktemp) kueue=$(mktemp)
trap '[ -z "${preparing:-}" ] || kill "$preparing" 2>/dev/null; rm -f "$output" "$kueue"' EXIT
step() { # step NAME COMMAND...
  local name=$1 start=$SECONDS result
  shift
  echo "== $name"
  if "$@" 2>&1 | tee "$output"; then result=ok; else result=FAILED; fi
  conclude "$name" "$result" $((SECONDS - start))
}
conclude() { # conclude NAME RESULT SECONDS, with the step's output in $output
  summary+=("$(printf '%-15s %-8s %4ds' "$1" "$2" "$3")")
  [ "$2" = FAILED ] || return 0
  failed=1
  # The end of a long output is what is read, and what failed may be far above it.
  while IFS= read -r line; do summary+=("  $line"); done < <(grep -aE '^[[:space:]]*(--- FAIL|FAIL|PROBLEM|panic:|fatal error:)' "$output" | sort -u | head -20)
  # Linters and generators have words of their own.
  if ! grep -qaE '^[[:space:]]*--- FAIL' "$output"; then while IFS= read -r line; do summary+=("  $line"); done < <(tail -n 15 "$output"); fi
}
together() { # together NAME...: "make NAME-test" for each at the same time; they wait more than they compute
  local folder name pids=() i=0
  folder=$(mktemp -d)
  echo "== $* at the same time"
  for name in "$@"; do
    (start=$SECONDS; make "$name-test" >"$folder/$name" 2>&1; code=$?; echo "== $name ended after $((SECONDS - start)) s"; echo $((SECONDS - start)) >"$folder/$name.seconds"; exit "$code") &
    pids+=($!)
  done
  for name in "$@"; do
    local result=ok
    wait "${pids[i++]}" || result=FAILED
    echo "== $name"
    tee "$output" <"$folder/$name"
    while IFS= read -r line; do untested+=("${line/: SKIPPED: /: }"); done < <(grep -aE '^python-[0-9.]+: SKIPPED: ' "$output" | sort -u)
    conclude "$name" "$result" "$(cat "$folder/$name.seconds")"
  done
  rm -rf "$folder"
}
skip() { # skip NAME REASON
  echo "== $1: SKIPPED: $2"
  summary+=("$(printf '%-15s SKIPPED  %s' "$1" "$2")")
}

commit=$(git rev-parse HEAD 2>/dev/null || echo 0)
share=${SHARE-$((16#${commit: -1} % 4))/4}
in_share() { [ -z "$share" ] || [ "$share" = "$1/4" ]; } # in_share N: whether the tests of share N run
command -v npm >/dev/null || { skip prose "npm is missing: install Node.js 20.19 or later"; export SKIP_PROSE=1; }
# verify compares the tree with the last commit, so that it needs a clean tree, as in CI and in a fresh clone.
if [ -z "$(git status --porcelain 2>/dev/null)" ]; then step verify make verify; else
  step lint make lint
  skip verify "there are uncommitted changes, and make verify compares the tree with the last commit"
fi
step unit make unit
# The oldest version of Kubernetes, as far as it is tested without a node: its kube-apiserver compiles in 3 minutes on two cores.
if in_share 2; then step oldest-api make oldest; else skip oldest-api "it belongs to SHARE=2/4, and this run has $share"; fi
step vulnerabilities make vulnerabilities
while IFS= read -r line; do untested+=("vulnerabilities: ${line#NOT CHECKED: }"); done < <(grep -a '^NOT CHECKED: ' "$output")
warnings=()
while IFS= read -r line; do warnings+=("vulnerabilities: ${line#WARNING: }"); done < <(grep -a '^WARNING: ' "$output")
step bench make bench-smallest
python=yes; python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || python=no
chromium=no; if hack/node.sh >/dev/null && web/test/chromium.sh >/dev/null; then chromium=yes; fi
tests=() pages=no
if [ "$python" = yes ]; then
  tests+=(sdk sdk-functions) # the latter on each Python that uv finds or can download
  reason=$(test/modelregistry/mariadb.sh 2>&1 >/dev/null) || skip registry "the SDK's tests with Model Registry need MariaDB: ${reason##*$'\n'}"
else skip sdk "the Python SDK needs python3 3.10 or later with venv"; fi
if [ "$python" = no ]; then skip docs "the documentation site needs python3 3.10 or later with venv"
elif [ "$chromium" = yes ]; then tests+=(docs)
else step docs make docs; fi
if [ "$chromium" = yes ]; then pages=yes; tests+=(dashboard)
elif ! reason=$(hack/node.sh); then skip dashboard "$reason"
else skip dashboard "Chromium is missing and cannot be installed"; fi
# What several of them need is made before, once.
[ "$python" = no ] || make hack/site/.venv/synced
[ "$chromium" = no ] || make web/node_modules/.package-lock.json
[ ${#tests[@]} = 0 ] || together "${tests[@]}"

if [ -n "${KUBECONFIG:-}" ]; then
  step e2e make e2e
elif [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
  skip e2e "a Kubernetes on this machine needs root on Linux; with KUBECONFIG set, that cluster is used"
else
  # Check this before any step starts a cluster.
  was_up=yes; bin/cluster status >/dev/null 2>&1 || was_up=no
  step run make run
  # What the queues need takes minutes to compile; the first tests of e2e wait more than they compute.
  nice -n 19 bin/cluster binaries --with kueue >"$kueue" 2>&1 & preparing=$!
  # Removes the operator; the next step installs it again.
  step install make install-e2e
  if ! in_share 0; then skip release "it belongs to SHARE=0/4, and this run has $share"
  elif [ "$python" = no ]; then skip release "the Python SDK needs python3 3.10 or later with venv"
  elif ! reason=$(hack/node.sh); then skip release "$reason"
  else
    step release make release-check
    while IFS= read -r line; do untested+=("release: ${line#release-check: SKIPPED: }"); done < <(grep -a '^release-check: SKIPPED: ' "$output")
  fi
  # What jobs do every day, and a share of the other tests.
  step e2e make e2e SHARE="$share"
  if reason=$(test/e2e/upgrade-from.sh 2>&1 >/dev/null); then step upgrade make e2e-upgrade
  else
    skip upgrade "${reason#upgrade-from: }"
    untested+=("upgrade and rollback between two versions: ${reason#upgrade-from: }")
  fi
  step switch make e2e-switch
  if [ "$python" = yes ]; then step sdk-e2e make sdk-e2e; fi
  # The page that trains with PyTorch needs an image of its own, which takes 4 minutes to build: make pages-e2e runs it, too.
  step pages make pages-e2e SAMPLES=openmpi PAGE='README|first-job|repair'
  if [ "$pages" = yes ]; then step journeys make dashboard-e2e; fi
  wait "$preparing" || cat "$kueue"
  preparing=
  # Separate from the other tests: the feature gate GenericWorkload changes how every job is scheduled, and Kueue's webhook delays every
  # new pod in the cluster.
  step gangs make e2e SUITE='^TestGang' SAMPLES=openmpi GANGS=native WITH=kueue,trainer
  step queues make e2e SUITE=Queue GANGS=none WITH=kueue,trainer
  # Some of the tests of all jobs, with jobs that Kueue admits (docs/promises.md).
  step queued make e2e-promises QUEUED=1 BRIEF=1
  if [ "$was_up" = no ] && [ -z "${KEEP_CLUSTER:-}" ]; then
    step cluster-down make cluster-down
    # The oldest version of Kubernetes: installation, one job that succeeds and one that fails. Its compile takes 7 minutes of CPU.
    if [ -z "${OLDEST:-}" ]; then skip oldest "OLDEST=1 runs the smallest tests on a cluster of Kubernetes 1.29, and takes 8 minutes more; oldest-api has tested its API server"
    else
      step oldest make e2e-oldest
      step cluster-down make cluster-down
    fi
  else
    step queues-off make cluster-up WITH=trainer
    skip oldest "the cluster that runs is kept, and has another version; make cluster-down, then make e2e KUBERNETES=1.29 runs it"
  fi
fi

echo; echo "Summary"; printf '  %s\n' "${summary[@]}"
# What every machine can test, if it is given what is missing.
if [ ${#untested[@]} -gt 0 ]; then echo; printf 'WARNING: not tested: %s\n' "${untested[@]}"; fi
if [ ${#warnings[@]} -gt 0 ]; then echo; printf 'WARNING: %s\n' "${warnings[@]}"; fi
exit "$failed"
