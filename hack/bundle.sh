#!/usr/bin/env bash
# Writes the bundle for the Operator Lifecycle Manager into dist/bundle, and validates with opm a catalog in which it replaces an
# earlier version: bundle.sh [VERSION]. The images are those of config/default. With VERSION, the bundle is that of the release in
# dist/release/VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
out=dist/bundle released=${1:-} version=${1:-v0.0.1} earlier=v0.0.0
rm -rf "$out"
mkdir -p "$out/catalog"
if [ -n "$released" ]; then cp "dist/release/$version/images.txt" "$out"; else printf 'quay.io/opendatahub/mpijob-%s:latest\n' operator agent >"$out/images.txt"; fi
render() { # render VERSION FOLDER: writes its bundle, unless it is that of a release, and adds it to the catalog
  if [ "$1" = "$released" ]; then
    mkdir -p "$2"
    tar -xzf "dist/release/$1/mpijob-operator-bundle_$1.tar.gz" -C "$2"
  else bin/install --root . bundle "$1" "$out" "$(git log -1 --format=%ct)" "$2"; fi
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
