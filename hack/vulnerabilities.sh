#!/usr/bin/env bash
# Looks for known vulnerabilities in the programs of a release, as the release's version of Go builds them, in the packages of the
# dashboard's pages, and in those that the SDK's lock file pins. The database of Go's is that of hack/tools/govulncheck/go.mod; those of npm
# and PyPI are only there if their registries answer, and change from day to day: what they have is printed as WARNING, and fails with STRICT=1
# only. What was not checked is printed as NOT CHECKED.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=(${STRICT:+-strict} -govulncheck "$work/go.json")
indexdb -vulns "$(cd hack/tools/govulncheck && go list -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv" -out "$work/go"
GOTOOLCHAIN=$(hack/go-version.sh) govulncheck -db "file://$work/go" -scan package -format json ./cmd/... >"$work/go.json"

if reason=$(hack/node.sh); then
  # It fails for vulnerabilities, and for a registry that does not answer: the result tells them apart.
  (cd web && timeout 120 npm audit --fetch-retries=0 --omit=dev --json) >"$work/npm.json" 2>"$work/npm.err" || true
  results+=(-npm "$work/npm.json")
else
  echo "npm audit: $reason"
fi

uv=sdk/python/.uv/bin/uv
if [ ! -x "$uv" ]; then
  echo "pip-audit: $uv is missing: it needs python3 3.10 or later with venv"
elif timeout 60 "$uv" export --quiet --project sdk/python --locked --no-dev --all-extras --no-emit-project --format requirements-txt >"$work/requirements.txt"; then
  timeout 180 "$uv" run --quiet --locked --project hack/tools/pip-audit pip-audit --requirement "$work/requirements.txt" --disable-pip --progress-spinner off --format json \
    >"$work/pip.json" 2>"$work/pip.err" || true
  results+=(-pip "$work/pip.json")
else
  echo "pip-audit: uv cannot read what the SDK's lock file pins"
fi
go run ./hack/vulnerabilities "${results[@]}"
