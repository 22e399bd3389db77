#!/usr/bin/env bash
# A cluster for development that the current kubeconfig names: of kind, k3d, k3s, minikube or CRC.
#   existing.sh offer          prints how to use it, if there is one; it is never used without CLUSTER=current
#   existing.sh load ARCHIVE…  loads images into it
set -euo pipefail
action=$1
shift
file=${KUBECONFIG:-$HOME/.kube/config}
file=${file%%:*}
context=$(sed -n 's/^current-context:[[:space:]]*//p' "$file" 2>/dev/null | tr -d "\"'" | head -n 1) || true

# Whether minikube made the current context: its name is that of a profile, which can be any.
by_minikube() {
  awk -v context="$context" '
    /^[^ ]/ { made = 0 }
    /^ +provider: *minikube\.sigs\.k8s\.io *$/ { made = 1 }
    /^  name: / { name = substr($0, 9); gsub(/["'\'']/, "", name); if (made && name == context) found = 1 }
    END { exit !found }' "$file" 2>/dev/null
}

kind= name=
case $context in
kind-*) kind=kind name=${context#kind-} ;;
k3d-*) kind=k3d name=${context#k3d-} ;;
minikube) kind=minikube name=$context ;;
*crc*) kind=CRC name=$context ;;
# The name that k3s gives it, on the machine of k3s.
default) if [ -e "${K3S_FOLDER:-/etc/rancher/k3s}" ]; then kind=k3s name=$context; fi ;;
esac
if by_minikube; then kind=minikube name=$context; fi

case $action in
offer)
  [ -n "$kind" ] || exit 0
  images=
  [ "$kind" != CRC ] || images=" IMG=REGISTRY/mpijob-operator:TAG AGENT_IMG=REGISTRY/mpijob-agent:TAG SAMPLE_IMG=REGISTRY/mpi-sample-openmpi:TAG"
  echo "run: your kubeconfig names a cluster of $kind ($context); this starts another one. To use yours: make run CLUSTER=current$images"
  ;;
load)
  for archive; do
    case $kind in
    kind) kind load image-archive "$archive" --name "$name" ;;
    k3d) k3d image import "$archive" --cluster "$name" ;;
    minikube) minikube image load "$archive" --profile "$name" ;;
    k3s) k3s ctr images import "$archive" ;;
    CRC) echo "load: images cannot be loaded into CRC: push them to a registry that it can pull from, and set IMG, AGENT_IMG and SAMPLE_IMG" >&2; exit 1 ;;
    *) echo "load: the current context of $file is \"$context\", which is no cluster of kind, k3d, k3s, minikube or CRC: set KUBECONFIG, IMG, AGENT_IMG and SAMPLE_IMG instead of CLUSTER" >&2; exit 1 ;;
    esac
  done
  ;;
*) echo "existing: $action is unknown; use offer or load" >&2; exit 1 ;;
esac
