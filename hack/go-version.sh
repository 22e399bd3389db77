#!/usr/bin/env bash
# Prints the version of Go that releases are built with, as GOTOOLCHAIN expects it: the toolchain of go.mod.
set -euo pipefail
awk '$1 == "toolchain" {print $2; found = 1} END {exit !found}' "$(dirname "$0")/../go.mod"
