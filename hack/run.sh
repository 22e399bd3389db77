#!/usr/bin/env bash
# Runs the sample job pi, prints its output, and prints the Python code of the same job: run.sh IMAGE
set -euo pipefail
image=$1
cd "$(dirname "$0")/.."
read -ra kubectl <<<"${KUBECTL:-kubectl}"
namespace=mpijob-demo

"${kubectl[@]}" create namespace "$namespace" --dry-run=client -o yaml | "${kubectl[@]}" apply --server-side -f - >/dev/null
"${kubectl[@]}" label --overwrite namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
kubectl+=(-n "$namespace")
"${kubectl[@]}" delete mpijob pi --ignore-not-found --wait >/dev/null
echo "run: pi over 4 workers, config/samples/pi.yaml"
sed "s#odh/mpi-sample-openmpi:dev#$image#" config/samples/pi.yaml | "${kubectl[@]}" create -f -

# Print each status message of the job once.
said="" deadline=$((SECONDS + 300))
while :; do
  read -r reason message < <("${kubectl[@]}" get mpijob pi -o jsonpath='{.status.conditions[-1:].reason} {.status.conditions[-1:].message}' && echo)
  if [ "$message" != "$said" ]; then printf '  %3ds  %-16s %s\n' "$SECONDS" "$reason" "$message"; said=$message; fi
  # Running, Succeeded or Failed: the launcher has started mpirun.
  [ -z "$("${kubectl[@]}" get mpijob pi -o jsonpath='{.status.conditions[?(@.status=="True")].type}' | tr ' ' '\n' | grep -xE 'Running|Succeeded|Failed' || true)" ] || break
  [ $SECONDS -lt $deadline ] || { "${kubectl[@]}" describe mpijob pi >&2; "${kubectl[@]}" get pods -o wide >&2; echo "run: the job has not started within 300 s" >&2; exit 1; }
  sleep 0.5
done
echo; "${kubectl[@]}" get pods -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName,STATUS:.status.phase,IP:.status.podIP; echo
"${kubectl[@]}" logs --follow job/pi-launcher
until "${kubectl[@]}" get mpijob pi -o jsonpath='{.status.completionTime}' | grep -q .; do
  [ $SECONDS -lt $deadline ] || { echo "run: the job has not finished within 300 s" >&2; exit 1; }
  sleep 0.2
done
echo; "${kubectl[@]}" get mpijob pi
[ "$("${kubectl[@]}" get mpijob pi -o jsonpath='{.status.conditions[?(@.type=="Succeeded")].status}')" = True ] || { "${kubectl[@]}" describe mpijob pi >&2; echo "run: the job has failed" >&2; exit 1; }
echo "run: the job is done. Look around with: ${kubectl[*]} get all"
echo; echo "run: the same job in Python (make sdk installs the SDK into sdk/python/.venv):"
sed "s#odh/mpi-sample-openmpi:dev#$image#; s/^/  /" config/samples/pi.py
