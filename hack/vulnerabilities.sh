#!/usr/bin/env bash
# Looks for known vulnerabilities in the programs of a release, as the release's version of Go builds them, and in the packages of
# the dashboard's pages. The database of Go's is that of hack/tools/govulncheck/go.mod; npm's is only there if its registry answers.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
indexdb -vulns "$(cd hack/tools/govulncheck && go list -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv" -out "$work/go"
GOTOOLCHAIN=$(hack/go-version.sh) govulncheck -db "file://$work/go" -scan package -format json ./cmd/... >"$work/go.json"
go run ./hack/vulnerabilities <"$work/go.json"

if ! reason=$(hack/node.sh); then
  echo "SKIPPED: npm audit: $reason"
elif (cd web && npm audit --omit=dev) >"$work/npm" 2>&1; then
  tail -n 1 "$work/npm"
elif grep -q 'audit endpoint returned an error' "$work/npm"; then
  echo "SKIPPED: npm audit: the registry does not answer"
else
  cat "$work/npm"
  exit 1
fi
