#!/usr/bin/env bash
# Prints the path of Chromium. It is installed from Debian's packages if it is missing and this machine allows it.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if path=$(command -v "$name"); then echo "$path"; exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >&2 && command -v chromium && exit 0
fi
echo "chromium: Chromium is missing: install the package chromium" >&2
exit 1
