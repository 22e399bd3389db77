#!/usr/bin/env bash
# Installs, upgrades and removes the operator with the real Operator Lifecycle Manager (OLM) on a cluster on this machine. It builds OLM (hack/olm),
# two versions of the bundle, and a catalog for each, as images, pushes them to a registry on this machine, and runs TestOLM of hack/install.
# It removes the operator that it finds, and installs it again at the end; jobs and reports stay. If there was none, it removes the CRDs, too. The nodes need the images IMG, AGENT_IMG and
# SAMPLE_IMG, and share the network of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
export KUBECONFIG=${KUBECONFIG:-$PWD/.cluster/kubeconfig}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
step() { echo "olm-check: after $SECONDS s: $1"; }

if "${kubectl[@]}" get crd clusterserviceversions.operators.coreos.com >/dev/null 2>&1; then echo "olm-check: the cluster has OLM already: this test installs and removes its own" >&2; exit 1; fi
deployed() { "${kubectl[@]}" -n mpijob-system get deployment mpijob-operator --ignore-not-found -o "jsonpath=$1"; }
image=$(deployed '{.spec.template.spec.containers[0].image}')
agent=$(deployed '{.spec.template.spec.containers[0].env[?(@.name=="AGENT_IMAGE")].value}')

work=$(mktemp -d)
bin/registry serve --folder "$work" &
registry=$!
finish() {
  local code=$?
  trap - EXIT
  kill "$registry" 2>/dev/null || true
  wait "$registry" 2>/dev/null || true
  rm -rf "$work"
  if [ -n "$image" ]; then
    echo "olm-check: installing the earlier operator again"
    hack/deploy.sh "$image" "$agent" || code=1
  elif [ -n "${changed:-}" ]; then
    "${kubectl[@]}" delete --ignore-not-found --timeout=120s namespace mpijob-system
    "${kubectl[@]}" delete --ignore-not-found --timeout=120s crd mpijobs.kubeflow.org jobreports.mpi.opendatahub.io runtimetests.mpi.opendatahub.io
  fi
  exit $code
}
trap finish EXIT
for _ in $(seq 100); do [ ! -e "$work/address" ] || break; sleep 0.1; done
address=$(cat "$work/address")

# pack NAME ARGUMENT...: makes an image of files, pushes it, and adds its reference to images.txt
pack() {
  local name=$1 reference
  shift
  bin/images files --name "$address/olm/$name:test" --out "$work/$name.tar" "$@"
  reference=$(bin/images layout --name "$address/olm/$name:test" --out "$work/layouts/$name" "$work/$name.tar")
  bin/registry push "$work/layouts/$name" "$address/olm/$name:test" >/dev/null
  echo "$name $reference" >>"$work/images.txt"
}
reference() { sed -n "s/^$1 //p" "$work/images.txt"; }

step "building OLM"
for packages in tool ./cp; do (cd hack/olm && CGO_ENABLED=0 GOBIN=$work/bin go install -trimpath -ldflags '-s -w' -tags containers_image_openpgp "$packages"); done
# The contents of upstream's images, which have BusyBox's cp.
programs=()
for program in olm catalog copy-content cpb cp; do programs+=("/bin/$program=$work/bin/$program"); done
pack olm --user 1001:0 --env PATH=/bin --entrypoint /bin/olm "${programs[@]}"
pack opm --user 1001:0 --env PATH=/bin --entrypoint /bin/opm "/bin/opm=$PWD/bin/opm" "/bin/grpc_health_probe=$work/bin/grpc-health-probe"
(cd hack/olm && go list -m -f '{{.Dir}}' github.com/operator-framework/operator-lifecycle-manager) >"$work/source"

step "building bundles and catalogs"
mkdir "$work/release" "$work/catalog"
printf '%s\n' "$IMG" "$AGENT_IMG" >"$work/release/images.txt"
before=
for version in v0.0.1 v0.0.2; do
  bin/install --root . bundle "$version" "$work/release" "$(git log -1 --format=%ct)" "$work/$version/bundle"
  labels=()
  while IFS=': ' read -r key value; do labels+=(--label "$key=$value"); done < <(sed -n 's/^ *\(operators\.operatorframework\.io\.bundle\..*\)/\1/p' "$work/$version/bundle/metadata/annotations.yaml")
  pack "bundle-$version" "${labels[@]}" "/manifests=$work/$version/bundle/manifests" "/metadata=$work/$version/bundle/metadata"
  bin/opm render "$work/$version/bundle" --alpha-image-ref-template "$(reference "bundle-$version")" --migrate --output yaml >"$work/catalog/bundle-$version.yaml"
  [ -n "$before" ] || printf '%s\n' --- 'schema: olm.package' 'name: mpijob-operator' 'defaultChannel: candidate' --- 'schema: olm.channel' 'package: mpijob-operator' 'name: candidate' 'entries:' >"$work/catalog/package.yaml"
  { echo "- name: mpijob-operator.$version"; [ -z "$before" ] || printf '  replaces: mpijob-operator.%s\n  skipRange: <%s\n' "$before" "${version#v}"; } >>"$work/catalog/package.yaml"
  before=$version
  bin/opm validate "$work/catalog"
  pack "catalog-$version" --label operators.operatorframework.io.index.configs.v1=/configs "/configs/mpijob-operator=$work/catalog"
done

if [ -n "$image" ]; then
  step "removing the operator with the image $image"
  manifests=$(hack/manifests.sh)
  "${kubectl[@]}" delete --ignore-not-found --timeout=120s -k "$manifests" -l '!mpi.opendatahub.io/keep' >/dev/null
fi
step "installing with OLM"
changed=yes
(cd hack/install && OLM=$work go test ./cluster -count=1 -v -timeout 20m -run '^TestOLM$')
step "done"
