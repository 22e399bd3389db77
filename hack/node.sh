#!/usr/bin/env bash
# Succeeds if Node.js and npm can build the dashboard's pages; otherwise prints why not.
set -euo pipefail
command -v npm >/dev/null && command -v node >/dev/null || { echo "npm is missing: install Node.js 20.19 or later"; exit 1; }
version=$(node --version)
IFS=. read -r major minor _ <<<"${version#v}"
[ "$major" -gt 20 ] || { [ "$major" -eq 20 ] && [ "$minor" -ge 19 ]; } || { echo "Node.js $version is too old: install 20.19 or later"; exit 1; }
