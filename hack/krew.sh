#!/usr/bin/env bash
# Packs the command line for several platforms and writes a manifest for krew, kubectl's package manager:
# krew.sh VERSION RELEASES [OS/ARCH...]. RELEASES is the URL of the folder that the packages will be published in. The output
# folder is dist/krew, or $OUT. krew runs the plug-in as one word: kubectl odh-mpijob.
set -euo pipefail
version=$1 releases=$2
shift 2
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "krew: VERSION must look like v0.1.0, not '$version'" >&2; exit 2; }
[[ $releases =~ ^https:// ]] || { echo "krew: RELEASES must be an https URL, not '$releases'" >&2; exit 2; }
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 linux/ppc64le linux/s390x darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
cd "$(dirname "$0")/.."
out=${OUT:-dist/krew}
rm -rf "$out"
mkdir -p "$out"
manifest=$out/odh-mpijob.yaml
cat >"$manifest" <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: odh-mpijob
spec:
  version: $version
  homepage: ${releases%%/releases*}
  shortDescription: Run MPI jobs, see how they are doing, and repair them
  description: |
    Runs MPIJobs (kubeflow.org) and TrainJobs (trainer.kubeflow.org), shows what they wait for and why they fail, and
    suggests fixes. Requires the MPIJobs operator for OpenShift AI in the cluster.
  platforms:
YAML
for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/} program=kubectl-odh-mpijob
  [ "$os" != windows ] || program+=.exe
  echo "krew: $platform"
  folder=$(mktemp -d)
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -X opendatahub.io/mpijob/internal/version.stamp=$version" -o "$folder/$program" ./cmd/kubectl-odh-mpijob
  cp LICENSE "$folder"
  package=odh-mpijob_${version}_${os}_$arch.tar.gz
  # The package is reproducible: same sources, same checksum.
  tar --sort=name --owner=0 --group=0 --mtime=@0 -C "$folder" -cf - "$program" LICENSE | gzip -n >"$out/$package"
  rm -rf "$folder"
  cat >>"$manifest" <<YAML
  - selector: {matchLabels: {os: $os, arch: $arch}}
    uri: $releases/$package
    sha256: $(sha256sum "$out/$package" | cut -d' ' -f1)
    bin: $program
YAML
done
echo "krew: wrote $manifest and the packages next to it; test it with kubectl krew install --manifest=$manifest --archive=PACKAGE"
