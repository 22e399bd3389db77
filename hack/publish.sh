#!/usr/bin/env bash
# Pushes the images of a release that hack/release.sh built, and signs everything: publish.sh [--dry-run | --unsigned] VERSION
# The caller is logged in to the registry (skopeo login) and, for keyless signatures, has an identity: the workflow release has
# one, and elsewhere cosign opens a browser. --dry-run only checks the files and prints what would be done. --unsigned does not sign; it
# is for registries on this machine, and only pushes to these, with bin/registry.
set -euo pipefail
cd "$(dirname "$0")/.."

run=() unsigned=
case ${1:-} in
--dry-run) run=(echo publish: would run:); shift ;;
--unsigned) unsigned=yes; shift ;;
esac
version=${1:-}
out=dist/release/$version layouts=dist/layouts/$version
[ -n "$version" ] && [ -f "$out/images.txt" ] || { echo "publish: $out/images.txt is missing: run make release VERSION=$version" >&2; exit 1; }
(cd "$out" && sha256sum --check --quiet checksums.txt)

sign() { [ -n "$unsigned" ] || "${run[@]}" cosign sign-blob --yes --bundle "$1.sigstore.json" "$1"; }
while read -r reference; do
  tagged=${reference%@*} digest=${reference#*@}
  name=${tagged##*/} name=${name%%:*}
  # The layout must be the image that the manifests name.
  [ -f "$layouts/$name/blobs/sha256/${digest#sha256:}" ] || { echo "publish: $layouts/$name does not have $digest" >&2; exit 1; }
  if [ -n "$unsigned" ]; then
    [[ $tagged == 127.0.0.1:* ]] || { echo "publish: $tagged: only a registry at 127.0.0.1 may have images without a signature" >&2; exit 1; }
    [ "$(bin/registry push "$layouts/$name" "$tagged")" = "$digest" ] || { echo "publish: $tagged has another digest than $digest" >&2; exit 1; }
    continue
  fi
  "${run[@]}" skopeo copy --all --preserve-digests "oci:$layouts/$name:$version" "docker://$tagged"
  "${run[@]}" cosign sign --yes --recursive "${tagged%:*}@$digest"
  "${run[@]}" cosign attest --yes --type cyclonedx --predicate "$out/$name.cdx.json" "${tagged%:*}@$digest"
done <"$out/images.txt"
# The checksums cover every file; the CLI's packages are also signed one by one, because krew and users fetch only these.
for file in "$out/checksums.txt" "$out"/odh-mpijob_*.tar.gz; do sign "$file"; done
# The subjects of the provenance that the workflow attests: all files, and the images by their digests.
cp "$out/checksums.txt" dist/subjects.txt
sed -E 's/^(.*):[^:@]+@sha256:([0-9a-f]+)$/\2  \1/' "$out/images.txt" >>dist/subjects.txt
echo "publish: $(wc -l <"$out/images.txt") images and $(wc -l <"$out/checksums.txt") files"
