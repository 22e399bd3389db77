#!/usr/bin/env bash
# Writes the bundle for the Operator Lifecycle Manager into dist/bundle, and validates a catalog that has only this bundle with opm.
# The images are those of config/default; a release has its own (hack/release.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
out=dist/bundle version=v0.0.0
rm -rf "$out"
mkdir -p "$out/catalog"
printf 'quay.io/opendatahub/mpijob-%s:latest\n' operator agent >"$out/images.txt"
bin/install --root . bundle "$version" "$out" "$(git log -1 --format=%ct)" "$out/bundle"
bin/opm render "$out/bundle" --alpha-image-ref-template "quay.io/opendatahub/mpijob-operator-bundle:$version" --output yaml >"$out/catalog/bundle.yaml"
cat >"$out/catalog/package.yaml" <<YAML
---
schema: olm.package
name: mpijob-operator
defaultChannel: candidate
---
schema: olm.channel
package: mpijob-operator
name: candidate
entries:
- name: mpijob-operator.$version
YAML
bin/opm validate "$out/catalog"
echo "bundle: $out/bundle; opm accepts it in the catalog $out/catalog"
