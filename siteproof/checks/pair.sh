#!/bin/sh
# Walk the timetable of a link: at its turns this node is client or server of ./measure.sh, by its
# own clock, and leaves raw/TURN/ (client) or raw/TURN.server/ behind, whole or not at all.
# timetable: ROUND TURN CLIENT SERVER PORT ADDRESS; begin: when round 0 begins, seconds since 1970.
set -u
LC_ALL=C TZ=UTC
export LC_ALL TZ
stage=$(pwd)
# shellcheck source=/dev/null
. ./settings
# shellcheck source=siteproof/checks/account.sh
. ./account.sh
job=${SLURM_JOB_ID:-local}
node=${SLURMD_NODENAME:-$SITEPROOF_NODE}
forget_step
read -r first <begin || exit 1
LATE=5 # seconds after which a client no longer begins: the next turn needs the nodes
LEAD=2 # seconds that a server has to be ready; clocks may differ by as much

wait_until() { # TIME: seconds since 1970
    sleep "$(awk -v then="$1" -v now="$(date +%s.%N)" \
        'BEGIN { left = then - now; printf "%.3f", (left > 0 ? left : 0) }')"
}

measure() { # FOLDER LIMIT: one side of a turn; SIDE, PEER, ADDRESS and PORT are set
    mine="$stage/raw/.$1.$SITEPROOF_ATTEMPT"
    [ ! -e "$mine" ] || rm -rf "$mine"
    mkdir -p "$mine" && cd "$mine" || return
    begin_account "$node" "$job" "$2"
    export SIDE PEER ADDRESS PORT
    # shellcheck disable=SC2016  # $1 is the inner shell's
    timeout -k 2 "$2" \
        sh -c '. "$1/account.sh"; . "$1/network.sh"; . "$1/measure.sh"' measure "$stage" \
        >stdout 2>stderr </dev/null
    end_account $? && mv -T "$mine" "$stage/raw/$1"
}

turn() { # SIDE ROUND TURN CLIENT SERVER PORT ADDRESS
    SIDE=$1 PORT=$6 ADDRESS=$7
    at=$((first + $2 * SITEPROOF_TURN))
    if [ "$SIDE" = server ]; then
        PEER=$4
        wait_until "$at"
        measure "$3.server" $((SITEPROOF_TURN - 2))
    else
        PEER=$5
        wait_until $((at + LEAD))
        [ "$(date +%s)" -le $((at + LEAD + LATE)) ] || return
        measure "$3" $((SITEPROOF_TURN - LEAD - 3))
    fi
}

awk -v me="$node" '$3 == me { print "client", $0 } $4 == me { print "server", $0 }' timetable | {
    last=
    while read -r side round number client server port address; do
        [ "$round" = "$last" ] || wait
        last=$round
        turn "$side" "$round" "$number" "$client" "$server" "$port" "$address" </dev/null &
    done
    wait
}
