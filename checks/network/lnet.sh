# shellcheck shell=sh
# One LNET selftest between the point's clients and the first of the file system's servers.
# Run by siteproof's sweep.sh with SERVERS (names or NIDs) and INTERVALS (of 5 s) set.
# Written after the Lustre manual and the source of lst (2.15); it was never run on Lustre.
# shellcheck disable=SC2153,SC2154  # launch.sh and the check set what is not set here
for name in lst lctl; do
    command -v $name >/dev/null || {
        echo "$name is not installed: LNET selftest is a part of Lustre" >&2
        exit 127
    }
done
[ "$(id -u)" = 0 ] || {
    echo "LNET selftest needs root, and this job runs as another user" >&2
    exit 1
}

# clients_nids: the first NID of each client, whose module is loaded on the way.
clients_nids() {
    # shellcheck disable=SC2016  # the client's
    launch_each sh -c 'modprobe lnet_selftest && lctl list_nids | grep -v "@lo$" | head -n 1'
}

server_nids() { # NETWORK: of the first POINT_SERVERS; a name is what it resolves to, in the network
    count=0
    for server in $SERVERS; do
        [ "$count" -lt "$POINT_SERVERS" ] || break
        case $server in
        *@*) echo "$server" ;;
        *) getent ahostsv4 "$server" | awk -v net="$1" 'NR == 1 { print $1 "@" net }' ;;
        esac
        count=$((count + 1))
    done
}

ratio() { # A B: in the smallest numbers; 10:10 would let each client talk with all servers
    awk -v a="$1" -v b="$2" 'BEGIN {
        x = a; y = b
        while (y) { t = x % y; x = y; y = t }
        print a / x ":" b / x
    }'
}

test_lnet() { # its output, of both streams, in one text
    exec 2>&1
    export LST_SESSION=$$
    lst new_session --timeout 300 siteproof || return
    trap 'exit 143' HUP INT TERM
    trap 'lst end_session' EXIT
    # shellcheck disable=SC2086  # lists of NIDs
    lst add_group clients $clients && lst add_group servers $servers &&
        lst add_batch bulk &&
        lst add_test --batch bulk --concurrency "${POINT_CONCURRENCY:-8}" \
            --distribute "$(ratio "$POINT_CLIENTS" "$POINT_SERVERS")" --from clients --to servers \
            brw "$POINT_DIRECTION" check=simple size="$POINT_SIZE" &&
        lst run bulk &&
        lst stat --delay 5 --count "$INTERVALS" clients &&
        lst show_error clients &&
        lst stop bulk
}

clients=$(clients_nids) || exit
servers=$(server_nids "$(echo "$clients" | sed -n '1s/.*@//p')")
if [ "$(echo "$clients" | wc -w)" -ne "$POINT_CLIENTS" ] ||
    [ "$(echo "$servers" | wc -w)" -ne "$POINT_SERVERS" ]; then
    echo "$POINT_CLIENTS clients and $POINT_SERVERS servers are required; clients: $clients;" \
        "servers: $servers" >&2
    exit 1
fi
{
    echo program=lnet_selftest
    echo "check=simple"
    echo "net=$(echo "$clients" | sed -n '1s/.*@//p')"
} >>facts
# A shell of its own, so that the session ends with it.
run_lnet() { (test_lnet); }
run -- run_lnet
