#!/usr/bin/env bash
# Runs the dashboard on this machine, with the rights of its ServiceAccount in config/dashboard:
#   dashboard.sh run BINARY    in the foreground
#   dashboard.sh start BINARY  in the background, in place of one that was started before
#   dashboard.sh stop          stops the one in the background, if there is one
set -euo pipefail
action=$1 binary=${2:-}
cd "$(dirname "$0")/.."
state=dist/dashboard
mkdir -p "$state"

stop() {
  local pid
  pid=$(cat "$state/pid" 2>/dev/null) || return 0
  # Another process may have the number by now.
  if [ "$(readlink "/proc/$pid/exe" 2>/dev/null | sed 's/ (deleted)$//')" = "$(cat "$state/binary" 2>/dev/null)" ]; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  fi
  rm -f "$state/pid"
}
if [ "$action" = stop ]; then stop; exit; fi

read -ra kubectl <<<"${KUBECTL:-kubectl}"
namespace=mpijob-demo
# The account of the dashboard, and a user for the demonstration with the rights of edit in one namespace.
"${kubectl[@]}" -n mpijob-system apply --server-side --force-conflicts -f config/dashboard/base/rbac.yaml >/dev/null
"${kubectl[@]}" create namespace "$namespace" --dry-run=client -o yaml | "${kubectl[@]}" apply --server-side -f - >/dev/null
"${kubectl[@]}" -n "$namespace" create serviceaccount demo-user --dry-run=client -o yaml | "${kubectl[@]}" apply --server-side -f - >/dev/null
"${kubectl[@]}" -n "$namespace" create rolebinding demo-user --clusterrole=edit --serviceaccount="$namespace:demo-user" --dry-run=client -o yaml | "${kubectl[@]}" apply --server-side -f - >/dev/null

# The dashboard acts as its own account, with the administrator's right to impersonate it.
umask 077
"${kubectl[@]}" config view --raw --minify --flatten > "$state/kubeconfig"
user=$("${kubectl[@]}" --kubeconfig "$state/kubeconfig" config view -o jsonpath='{.users[0].name}')
"${kubectl[@]}" --kubeconfig "$state/kubeconfig" config set "users.$user.act-as" system:serviceaccount:mpijob-system:mpijob-dashboard >/dev/null
export KUBECONFIG=$PWD/$state/kubeconfig

address=${LISTEN:-127.0.0.1:8090}
help() { # help ADDRESS
  echo "dashboard: http://$1"
  echo "dashboard: to log in, paste the token that this command prints:"
  echo "  ${kubectl[*]} -n $namespace create token demo-user"
}
if [ "$action" = run ]; then
  help "$address"
  exec "$binary" --listen "$address" --program "kubectl odh mpijob" --log-level warn
fi

stop
# Without LISTEN, any free port is used if another program has 8090.
if [ -z "${LISTEN:-}" ] && (exec 3<>"/dev/tcp/127.0.0.1/8090") 2>/dev/null; then address=127.0.0.1:0; fi
setsid "$binary" --listen "$address" --program "kubectl odh mpijob" </dev/null >"$state/log" 2>&1 &
pid=$!
echo "$pid" > "$state/pid"
realpath "$binary" > "$state/binary"
for _ in $(seq 300); do
  kill -0 "$pid" 2>/dev/null || { cat "$state/log" >&2; echo "dashboard: it has ended; see above" >&2; exit 1; }
  if bound=$(grep -o '"msg":"serving","address":"[^"]*' "$state/log" | cut -d'"' -f8) && [ -n "$bound" ] && "$binary" --check readyz --listen "$bound" 2>/dev/null; then
    help "$bound"
    echo "dashboard: to stop it, run make cluster-down or kill $pid; its log is $state/log"
    exit
  fi
  sleep 0.1
done
cat "$state/log" >&2
echo "dashboard: it is not ready after 30 s; see its log above" >&2
stop
exit 1
