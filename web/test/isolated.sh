#!/bin/sh
# Runs Chromium (CHROMIUM) on a network of its own, in which the port RELAY_PORT of 127.0.0.1 is the socket RELAY_SOCKET.
# On the network of a node, Chromium aborts all requests (ERR_NETWORK_CHANGED) when the interface of a pod is added or removed.
set -eu
if [ -z "${RELAY_ISOLATED:-}" ]; then RELAY_ISOLATED=1 exec unshare --net -- "$0" "$@"; fi
ip link set lo up
# Playwright talks to Chromium through the descriptors 3 and 4, which must end with Chromium.
node "$(dirname "$0")/relay.mjs" 3>&- 4>&- >/dev/null 2>&1 &
exec "$CHROMIUM" "$@"
