#!/bin/sh
# Walk the timetable of a link: at its turns this node is client or server of ./measure.sh, by its
# own clock, and creates raw/TURN/ (client) or raw/TURN.server/, whole or not at all.
# timetable: ROUND TURN CLIENT SERVER PORT ADDRESS; begin.N: when round 0 of the N-th job begins,
# seconds since 1970. The lengths of time are those of siteproof/checks/timetable.py.
set +efCvx -u # what an exported SHELLOPTS may set
# shellcheck source=/dev/null
. ./settings
# shellcheck source=siteproof/checks/on_node/account.sh
. ./account.sh
begin_script
read -r first <"begin.$SITEPROOF_ATTEMPT" || exit 1

wait_until() { # TIME: seconds since 1970
    left=$(awk -v then="$1" -v now="$(date +%s.%N)" \
        'BEGIN { left = then - now; printf "%.3f", (left > 0 ? left : 0) }')
    # busybox's date may have no %N, and its sleep may take whole seconds only.
    sleep "$left" 2>/dev/null || sleep $((${left%.*} + (1${left#*.} > 1000)))
}

measure() { # FOLDER END: one side of a turn, until END at most; SIDE, PEER, ADDRESS, PORT are set
    mine="$stage/raw/.$1.$SITEPROOF_ATTEMPT"
    rm -rf "$mine"
    mkdir "$mine" && cd "$mine" || return
    limit=$(($2 - $(date +%s)))
    [ "$limit" -gt 0 ] || return
    begin_account "$node" "$job" "$limit"
    export SIDE PEER ADDRESS PORT
    # shellcheck disable=SC2016  # $1 is the inner shell's
    timeout -k "$SITEPROOF_KILL" "$limit" \
        sh -c 'set +efuCvx; . "$1/account.sh"; first_to_go; need_modules "$1"; . "$1/network.sh"; . "$1/measure.sh"' \
        measure "$stage" \
        >stdout 2>stderr </dev/null
    end_account $? || return
    seal "$node" "$1"
    # In a second job there may be the account of a turn that came to nothing.
    rm -rf "$stage/raw/$1"
    into_place "$mine" "$stage/raw/$1"
}

turn() { # SIDE ROUND TURN CLIENT SERVER PORT ADDRESS: nothing where it comes too late
    SIDE=$1 PORT=$6 ADDRESS=$7
    at=$((first + $2 * SITEPROOF_TURN))
    begin=$((at + SITEPROOF_LEAD))
    if [ "$SIDE" = server ]; then
        PEER=$4
        wait_until "$at"
        [ "$(date +%s)" -gt "$begin" ] || measure "$3.server" $((at + SITEPROOF_TURN - SITEPROOF_KILL))
    else
        PEER=$5
        wait_until "$begin"
        latest=$((begin + SITEPROOF_LATE))
        [ "$(date +%s)" -gt "$latest" ] || measure "$3" $((latest + SECONDS_OF_TURN))
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
