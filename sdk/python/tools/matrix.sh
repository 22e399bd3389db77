#!/usr/bin/env bash
# Builds the wheel and the sdist, installs them into clean environments, and runs the unit tests there: with each
# Python from 3.10 to 3.14 that is installed or can be downloaded, the newest dependencies, and once the oldest.
# A Python 3.14 that is not installed is unpacked from Debian's packages, which needs root and mmdebstrap.
# matrix.sh functions only tests which functions train() takes, which depends on the compiler of each Python.
set -uo pipefail
cd "$(dirname "$0")/.."
uv=$PWD/.uv/bin/uv
PATH=$PATH:$(printf "%s:" "$HOME"/.pyenv/versions/*/bin)
work=$(mktemp -d) failed=0
trap 'rm -rf "$work"' EXIT

if [ "${1:-}" = functions ]; then
  # What import openshift_ai_sdk needs; the wheels of all versions are in the cache of uv after the first run.
  for version in 3.10 3.11 3.12 3.13 3.14; do
    if ! UV_HTTP_TIMEOUT=10 "$uv" venv --quiet --python "$version" "$work/$version" 2>"$work/log"; then
      echo "python-$version: SKIPPED: $(tail -1 "$work/log")"
    elif "$uv" pip install --quiet --python "$work/$version" . 'pytest>=8.4' >"$work/log" 2>&1 &&
      "$work/$version/bin/python" -m pytest --quiet -p no:cacheprovider tests/unit/test_program.py >"$work/log" 2>&1; then
      echo "python-$version: ok, $(tail -1 "$work/log")"
    else
      echo "python-$version: FAILED"
      tail -20 "$work/log"
      failed=1
    fi
  done
  exit "$failed"
fi

"$uv" build --quiet --out-dir "$work/dist" || exit 1

check() { # check NAME PYTHON PACKAGE [OPTION...]
  local name=$1 python=$2 package=$3
  shift 3
  if ! UV_HTTP_TIMEOUT=10 "$uv" venv --quiet --python "$python" "$work/$name" 2>"$work/log"; then
    echo "$name: SKIPPED: $(tail -1 "$work/log")"
    return
  fi
  if "$uv" pip install --quiet --python "$work/$name" "$@" "${package}[aio,notebook]" 'pytest>=8.4' 'griffe>=2.0' &&
    KUBECONFIG=/nonexistent "$work/$name/bin/python" -m pytest --quiet tests/unit -k 'not command_line' >"$work/log" 2>&1; then
    echo "$name: ok, $("$uv" pip list --quiet --python "$work/$name" | awk '/^(kubernetes|pydantic|aiohttp) / {printf "%s %s ", $1, $2}')"
  else
    echo "$name: FAILED"
    tail -20 "$work/log"
    failed=1
  fi
}

# check_in_debian VERSION: the same in a folder with Debian's Python, as the root of the file system.
check_in_debian() {
  local version=$1 name="python-$1" root=$work/debian
  if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
    echo "$name: SKIPPED: it is not installed, and unpacking Debian's needs root and mmdebstrap"
    return
  fi
  if ! mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="python$version-venv" sid "$root" http://deb.debian.org/debian >"$work/log" 2>&1; then
    echo "$name: SKIPPED: $(tail -1 "$work/log")"
    return
  fi
  for folder in lib lib64 bin; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
  mkdir -p "$root"/{dev,tmp,etc/ssl/certs,repository/sdk/python,repository/internal}
  [ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
  [ -e "$root/dev/urandom" ] || mknod -m 666 "$root/dev/urandom" c 1 9
  cp -L /etc/resolv.conf /etc/hosts "$root/etc"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
  # What the tests compare with.
  cp -r ../../config ../../docs ../../README.md "$root/repository"
  cp -r ../../internal/logs "$root/repository/internal"
  cp -r src tests tools pyproject.toml README.md "$root/repository/sdk/python"
  if env -u PIP_FIND_LINKS HOME=/tmp KUBECONFIG=/nonexistent LC_ALL=C.UTF-8 chroot "$root" "/usr/bin/python$version" -c '
import os, subprocess, sys
os.chdir("/repository/sdk/python")
run = lambda *words: subprocess.run(["/tmp/venv/bin/python", "-m", *words], check=True)
subprocess.run([sys.executable, "-m", "venv", "/tmp/venv"], check=True)
run("pip", "install", "--quiet", ".[aio,notebook]", "pytest>=8.4", "griffe>=2.0")
run("pytest", "--quiet", "tests/unit", "-k", "not command_line")' >"$work/log" 2>&1; then
    echo "$name: ok, Python of Debian unstable"
  else
    echo "$name: FAILED"
    tail -20 "$work/log"
    failed=1
  fi
}

for version in 3.10 3.11 3.12 3.13; do check "python-$version" "$version" "$(ls "$work"/dist/*.whl)"; done
if "$uv" python find 3.14 >/dev/null 2>&1; then check python-3.14 3.14 "$(ls "$work"/dist/*.whl)"; else check_in_debian 3.14; fi
# The lower bounds in pyproject.toml.
check oldest 3.10 "$(ls "$work"/dist/*.whl)" kubernetes==29.0.0 pydantic==2.10.0 pyyaml==6.0.1 urllib3==2.0.2 \
  aiohttp==3.10.0 tqdm==4.66.0 ipywidgets==8.1.0
check sdist 3.12 "$(ls "$work"/dist/*.tar.gz)"
exit "$failed"
