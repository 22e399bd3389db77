#!/usr/bin/env bash
# Writes the bundle for the Operator Lifecycle Manager into dist/bundle, and validates with opm a catalog in which it replaces an
# earlier version. The images are those of config/default; a release has its own (hack/release.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
out=dist/bundle version=v0.0.1 earlier=v0.0.0
rm -rf "$out"
mkdir -p "$out/catalog"
printf 'quay.io/opendatahub/mpijob-%s:latest\n' operator agent >"$out/images.txt"
render() { # render VERSION FOLDER: writes its bundle, and adds it to the catalog
  bin/install --root . bundle "$1" "$out" "$(git log -1 --format=%ct)" "$2"
  bin/opm render "$2" --alpha-image-ref-template "quay.io/opendatahub/mpijob-operator-bundle:$1" --output yaml >"$out/catalog/bundle-$1.yaml"
}
render "$earlier" "$out/earlier/bundle"
render "$version" "$out/bundle"
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
- name: mpijob-operator.$earlier
- name: mpijob-operator.$version
  replaces: mpijob-operator.$earlier
  skipRange: <${version#v}
YAML
bin/opm validate "$out/catalog"
echo "bundle: $out/bundle; opm accepts it in the catalog $out/catalog"
