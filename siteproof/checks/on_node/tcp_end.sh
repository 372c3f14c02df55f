#!/bin/sh
# One of the two ends of a TCP test: the server for one test, or the client with the options given,
# whose output is printed. CLIENT and SERVER are nodes, ADDRESS and PORT the server's.
set -u
# shellcheck source=siteproof/checks/on_node/account.sh
. "$SWEEP_STAGE/account.sh"
if [ "${SLURMD_NODENAME:-}" = "$SERVER" ]; then
    timeout "$MAX_SECONDS" iperf3 -s -1 -p "$PORT" >"$POINT_FOLDER/server.out" 2>&1
    exit
fi
# shellcheck source=siteproof/checks/on_node/network.sh
. "$SWEEP_STAGE/network.sh"
network_facts "$ADDRESS" >>"$POINT_FOLDER/facts"
tries=0
while :; do
    timeout "$MAX_SECONDS" iperf3 -c "$ADDRESS" -p "$PORT" -J "$@" >"$POINT_FOLDER/client.out"
    code=$?
    tries=$((tries + 1))
    # The server may not listen yet: nothing was measured.
    if ! grep -q '"error":.*\(Connection refused\|unable to connect\)' "$POINT_FOLDER/client.out" ||
        [ "$tries" -ge 40 ]; then
        break
    fi
    sleep 0.25
done
cat "$POINT_FOLDER/client.out"
exit "$code"
