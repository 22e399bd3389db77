#!/usr/bin/env bash
# Builds a release of this tree, pushes it to a registry on this machine, and installs it from there on the one-machine cluster, as a user
# does (hack/release-install.sh). The nodes share the network of this machine, and have no image by the names of this registry.
# Without ALL, the release only has the images for amd64 and the sample of Open MPI. Nothing is signed: signatures need an identity.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v$(sed -n 's/^version = "\(.*\)"$/\1/p' sdk/python/pyproject.toml)
[ -n "${ALL:-}" ] || export ARCHITECTURES=amd64 SAMPLES=openmpi PLATFORMS=linux/amd64
step() { echo "release-check: after $SECONDS s: $1"; }

work=$(mktemp -d)
bin/registry serve --folder "$work" &
registry=$!
trap 'kill "$registry" 2>/dev/null; wait "$registry" 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 100); do [ ! -e "$work/address" ] || break; sleep 0.1; done
address=$(cat "$work/address")

step "building $version"
REGISTRY=$address/opendatahub hack/release.sh --dry-run "$version"
step "pushing to $address"
hack/publish.sh --unsigned "$version"
step "validating the bundle for OLM"
if [ -x bin/opm ]; then hack/bundle.sh "$version"; else echo "release-check: SKIPPED: bin/opm is missing; make bundle compiles it"; fi
step "installing on the cluster"
hack/release-install.sh "$version"
step "done"
