#!/usr/bin/env bash
# Builds a release into dist/release/VERSION: release.sh [--dry-run] VERSION
# dist/layouts/VERSION has the images as hack/publish.sh pushes them. Their digests are known here, so that manifests name them.
# VERSION is a tag such as v0.1.0. The script checks that the tree is clean, that CHANGELOG.md has a section for VERSION, and
# that the tag, if it exists, is at HEAD. With --dry-run a failed check is only a warning and no tag is created.
# REGISTRY is where the images will be pushed to, RELEASES the URL that the files will be published at, PLATFORMS the list of
# OS/ARCH of the CLI (default: all of hack/krew.sh). With --dry-run, ARCHITECTURES and SAMPLES may list fewer images: the manifests and
# the chart then only have the runtimes of these.
set -euo pipefail
cd "$(dirname "$0")/.."

dry_run=
[ "${1:-}" != --dry-run ] || { dry_run=yes; shift; }
version=${1:-}
registry=${REGISTRY:-quay.io/opendatahub}
releases=${RELEASES:-https://github.com/${GITHUB_REPOSITORY:-opendatahub-io/mpijob}/releases/download/$version}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "release: VERSION must look like v0.1.0, not '$version'" >&2; exit 2; }
for tool in bin/images bin/install bin/kustomize sdk/python/.uv/bin/uv; do [ -x "$tool" ] || { echo "release: $tool is missing: run make release VERSION=$version" >&2; exit 1; }; done

check() { # check MESSAGE COMMAND...
  local message=$1
  shift
  if "$@"; then return; fi
  if [ -n "$dry_run" ]; then echo "release: warning: $message" >&2; else echo "release: $message" >&2; exit 1; fi
}
all_architectures="amd64 arm64"
# The sample images, which the MPI runtimes use unless a job names another one. Intel MPI must not be redistributed.
all_samples="openmpi openmpi5 mpich pytorch deepspeed"
architectures=${ARCHITECTURES:-$all_architectures} samples=${SAMPLES:-$all_samples}
partial=
[ "$architectures $samples" = "$all_architectures $all_samples" ] || partial=yes
is_whole() { [ -z "$partial" ]; }
notes() { awk -v heading="## [${version#v}]" 'index($0, "## [") == 1 {inside = index($0, heading) == 1; next} inside' CHANGELOG.md; }
is_clean() { [ -z "$(git status --porcelain)" ]; }
has_notes() { [ -n "$(notes | tr -d '[:space:]')" ]; }
tag_is_here() { ! git rev-parse -q --verify "refs/tags/$version" >/dev/null || [ "$(git rev-parse "$version^{commit}")" = "$(git rev-parse HEAD)" ]; }
check "this is a part of a release: only the architectures '$architectures' and the samples '$samples'" is_whole
check "the tree has uncommitted changes; commit or stash them" is_clean
check "CHANGELOG.md has no section '## [${version#v}] - DATE', or it is empty" has_notes
check "the tag $version exists at another commit" tag_is_here
# Python writes release candidates without separators (PEP 440).
python_version=$(sed -E 's/-([a-z]+)\.?/\1/' <<<"${version#v}")
check "the version in sdk/python/pyproject.toml is not $python_version" grep -qx "version = \"$python_version\"" sdk/python/pyproject.toml
[ -f web/dist/app/index.html ] || { echo "release: the dashboard's pages are not built: run make release VERSION=$version" >&2; exit 1; }

GOTOOLCHAIN=$(hack/go-version.sh)
export GOTOOLCHAIN

out=dist/release/$version
layouts=dist/layouts/$version
rm -rf "$out" "$layouts"
mkdir -p "$out" "$layouts"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ldflags="-X opendatahub.io/mpijob/internal/version.stamp=$version"

echo "release: the CLI and its krew manifest"
read -ra platforms <<<"${PLATFORMS:-}"
OUT=$work/krew hack/krew.sh "$version" "$releases" "${platforms[@]}"
cp "$work"/krew/* "$out"

for arch in $architectures; do
  echo "release: the images for linux/$arch"
  GOARCH=$arch GOFIPS140=v1.0.0 bin/images program --name "$registry/mpijob-operator:$version" --package ./cmd/operator --ldflags "$ldflags" --out "$out/mpijob-operator_${version}_linux_$arch.tar"
  GOARCH=$arch GOFIPS140=v1.0.0 bin/images program --name "$registry/mpijob-dashboard:$version" --package ./cmd/dashboard --ldflags "$ldflags" --out "$out/mpijob-dashboard_${version}_linux_$arch.tar"
  GOARCH=$arch GOFIPS140=v1.0.0 bin/images program --name "$registry/mpijob-agent:$version" --package ./cmd/agent --path /mpi-agent --library /lib/libmpi-profile.so=internal/agent/library/build.sh --library /lib/libmpi-exchange.so=internal/agent/library/build.sh --library /lib/libmpi-gpus.so=internal/agent/library/build.sh --link /bin/ssh=../mpi-agent --folder /run --ldflags "$ldflags" --out "$out/mpijob-agent_${version}_linux_$arch.tar"
done

for sample in $samples; do
  echo "release: the image of $sample for linux/amd64"
  bin/images sample "$sample" --out "$out/mpi-sample-${sample}_${version}_linux_amd64.tar"
done

echo "release: digests"
for name in mpijob-operator mpijob-dashboard mpijob-agent $(printf 'mpi-sample-%s ' $samples); do
  bin/images layout --name "$registry/$name:$version" --out "$layouts/$name" "$out/${name}_${version}"_linux_*.tar >>"$out/images.txt"
done
pin() { # pin FILE: adds its digest to each image of this release in a manifest, and fails if there is any other image of the project
  local reference
  while read -r reference; do sed -i -E "s#${reference%@*}(@sha256:[0-9a-f]+)?([\"' ]|\$)#$reference\2#g" "$1"; done <"$out/images.txt"
  if unpinned=$(grep -nE "(^|[^a-z0-9/])(quay\.io/opendatahub|$registry)/mpi" "$1" | grep -v '@sha256:'); then
    echo "release: $1 names images without a digest: $unpinned" >&2
    exit 1
  fi
}

echo "release: manifests"
# kustomize only accepts relative paths.
overlay=dist/release/.overlay
render() { # render FOLDER NAME [KUSTOMIZATION]: the manifests of config/FOLDER with this version's image of NAME
  mkdir -p "$overlay"
  cat >"$overlay/kustomization.yaml" <<YAML
resources: [../../../config/$1]
images:
- {name: quay.io/opendatahub/$2, newName: $registry/$2, newTag: $version}
labels:
- pairs: {app.kubernetes.io/version: $version}
  fields:
  - {kind: Deployment, path: metadata/labels, create: true}
  - {kind: ValidatingWebhookConfiguration, path: metadata/labels, create: true}
  - {kind: MutatingWebhookConfiguration, path: metadata/labels, create: true}
  - {kind: ValidatingAdmissionPolicy, path: metadata/labels, create: true}
  - {kind: ValidatingAdmissionPolicyBinding, path: metadata/labels, create: true}
${3:-}
YAML
  bin/kustomize build "$overlay"
  rm -rf "$overlay"
}
operator="patches:
- target: {kind: Deployment, name: mpijob-operator}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: mpijob-operator}
    spec: {template: {spec: {containers: [{name: operator, env: [{name: AGENT_IMAGE, value: \"$registry/mpijob-agent:$version\"}]}]}}}"
render default mpijob-operator "$operator" >"$out/install.yaml"
render without-policies mpijob-operator "$operator" >"$out/install-without-policies.yaml"
# The runtimes name several images of the project, some of them in fields that kustomize does not know as images. Those whose image the
# release does not have are left out, such as that of Intel MPI (images/README.md).
runtimes() { # runtimes FOLDER: the runtimes of config/runtimes/FOLDER with the images of this version
  bin/kustomize build "config/runtimes/$1" |
    awk -v RS='---\n' -v samples=" $samples " '{
      match($0, /mpi-sample-[a-z0-9]+/)
      if (!index(samples, " " substr($0, RSTART + 11, RLENGTH - 11) " ")) next
      printf "%s%s", separator, $0; separator = "---\n"
    }' | sed -E "s#quay.io/opendatahub/(mpijob-agent|mpi-sample-[a-z0-9]+):latest#$registry/\1:$version#"
}
for platform in openshift openshift-image-volume kubernetes kubernetes-image-volume; do runtimes "$platform" >"$out/runtimes-$platform.yaml"; done
render dashboard/openshift mpijob-dashboard >"$out/dashboard-openshift.yaml"
cp config/dashboard/openshift/host.yaml "$out/dashboard-openshift-host.yaml"
render dashboard/openshift-token mpijob-dashboard >"$out/dashboard-openshift-token.yaml"
render dashboard/base mpijob-dashboard >"$out/dashboard.yaml"
for file in install install-without-policies dashboard dashboard-openshift{,-token} runtimes-{openshift,kubernetes}{,-image-volume}; do pin "$out/$file.yaml"; done

echo "release: the Helm chart and the bundle for OLM"
epoch=$(git log -1 --format=%ct)
bin/install --root . ${partial:+--partial} package "$version" "$out" "$epoch"
bin/install compare "$version" "$out"
bin/install --root . bundle "$version" "$out" "$epoch" "$work/bundle"
cp "$work"/olm-admission{,-without-policies}.yaml "$out"
tar -C "$work/bundle" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=a+r,u+w,go-w -cf - . | gzip -n >"$out/mpijob-operator-bundle_$version.tar.gz"

echo "release: the Python SDK"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) sdk/python/.uv/bin/uv build --quiet --out-dir "$out" sdk/python
rm -f "$out/.gitignore"

echo "release: SBOMs"
# They describe the files of the images themselves, not others that were built in the same way.
extract() { # extract ARCHIVE PATH FILE: a file of an image, which has one layer
  tar -xOf "$1" "$(tar -tf "$1" | grep '\.tar\.gz$')" | tar -xzO "$2" >"$3"
  chmod +x "$3"
}
go build -o "$work/sbom" ./hack/sbom
for name in operator agent dashboard; do
  path=$name extra=()
  [ "$name" != agent ] || path=mpi-agent
  [ "$name" != dashboard ] || extra=(--npm web/package-lock.json)
  extract "$out/mpijob-${name}_${version}_linux_amd64.tar" "$path" "$work/$name"
  "$work/sbom" --binary "$work/$name" "${extra[@]}" "mpijob-$name" "$version" >"$out/mpijob-$name.cdx.json"
done
for sample in $samples; do
  extract "$out/mpi-sample-${sample}_${version}_linux_amd64.tar" var/lib/dpkg/status "$work/status"
  "$work/sbom" --dpkg "$work/status" "mpi-sample-$sample" "$version" >"$out/mpi-sample-$sample.cdx.json"
done
tar -xzf "$out/odh-mpijob_${version}_linux_amd64.tar.gz" -C "$work" kubectl-odh-mpijob
"$work/sbom" --binary "$work/kubectl-odh-mpijob" kubectl-odh-mpijob "$version" >"$out/kubectl-odh-mpijob.cdx.json"
# The SDK is published without its dependencies; these are the ones that it is tested with.
sdk/python/.uv/bin/uv export --quiet --project sdk/python --locked --no-dev --all-extras --preview-features sbom-export --format cyclonedx1.5 >"$out/openshift-ai-sdk.cdx.json"

notes >"$out/notes.md"
(cd "$out" && sha256sum -- $(ls | grep -v -e '^notes.md$' -e '^checksums.txt$') >checksums.txt)

# The stamps, as this machine can run them.
if [ "$(go env GOOS)/$(go env GOARCH)" = linux/amd64 ]; then
  for stamped in "$("$work/operator" --version)" "$("$work/agent" version)" "$("$work/dashboard" --version)"; do
    [[ $stamped == "$version "* ]] || { echo "release: a binary reports the version '$stamped'" >&2; exit 1; }
  done
fi
if [ -z "$dry_run" ] && ! git rev-parse -q --verify "refs/tags/$version" >/dev/null; then
  git tag -a "$version" -m "Release $version"
  echo "release: created the tag $version; publish it with: git push origin $version"
fi
echo "release: $out"
ls -l "$out" | awk 'NR > 1 {printf "  %9.1f kB  %s\n", $5 / 1000, $NF}'
