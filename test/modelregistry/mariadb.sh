#!/usr/bin/env bash
# Prints the path of MariaDB's server. It is installed from Debian's packages if it is missing and this machine allows it.
set -euo pipefail
find_it() { PATH=$PATH:/usr/sbin command -v mariadbd; }
find_it && exit 0
# Its package has no service. It is not installed if that would remove a MySQL.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove \
    -o DPkg::Lock::Timeout=300 mariadb-server-core; } >&2 && find_it && exit 0
fi
echo "mariadb: MariaDB is missing: install the package mariadb-server-core" >&2
exit 1
