# shellcheck shell=sh
# UDP from this client to the server and back, by nuttcp or iperf3.
# RUNS, one a line (siteproof/checks/per_pair.py): KIND SECONDS DATAGRAM MBPS BURST WINDOW, until_loss or
# always.
# Run by siteproof's pair.sh with SIDE, ADDRESS and PORT set.
# shellcheck disable=SC2153,SC2154  # the check, network.sh and account.sh set PROGRAM, program …
MAX_BURST_OF_IPERF3=1000 # packets of a burst that iperf3 takes

# nuttcp 6.1.2 reads 300m/20 as 0.3 Mb/s, loses nothing and is content.
case $RUNS in
    *until_loss*) nuttcp_since 6.2.7 || old_nuttcp=$(nuttcp_version) ;;
esac
if [ -z "${old_nuttcp:-}" ]; then
    choose_program nuttcp iperf3
elif [ "$PROGRAM" = nuttcp ]; then
    echo "nuttcp $old_nuttcp knows no bursts; 6.2.7 or later does" >&2
    exit 127
else
    choose_program iperf3
fi
[ "$SIDE" = client ] || serve
network_facts "$ADDRESS" >>facts
[ "$program" != nuttcp ] || echo "version=$(nuttcp_version)" >>facts

mtu=$(sed -n 's/^mtu=//p' facts)
if [ -z "$mtu" ] || [ "${LINK_MTU:-$mtu}" -lt "$mtu" ]; then
    mtu=${LINK_MTU:-1500}
fi
case ${ip:-} in
    *:*) fill=$((mtu - 48)) ;; # headers: IPv6 40, UDP 8
    *) fill=$((mtu - 28)) ;;   # IPv4 20, UDP 8
esac
power=8192
while [ "$power" -gt "$fill" ]; do
    power=$((power / 2))
done

most_window=$(cat /proc/sys/net/core/[rw]mem_max 2>/dev/null | sort -n | head -n 1)
fit_window() { # BYTES: sets window to what the sockets of this host may have of it
    window=$1
    if [ "$window" -gt "${most_window:-$window}" ]; then
        grep -q '^window_warning=' facts || echo "window_warning=sockets of this host hold at" \
            "most $most_window bytes, $window were to be used" >>facts
        window=$most_window
    fi
}

discarded() { # datagrams that reached this host, and found no room in their socket
    awk '$1 != "Udp:" { next }
        !at { for (i = 2; i <= NF; i++) if ($i == "RcvbufErrors") at = i; next }
        { print $at; exit }' /proc/net/snmp
}

measure_udp() { # DIRECTION KIND SECONDS BYTES MBPS BURST WINDOW
    fit_window "$7"
    words="direction=$1 kind=$2 duration=$3 datagram=$4 burst=$6 window=$window"
    if [ "$program" = nuttcp ]; then # its second port is for the data
        rate=u
        [ "$5" = 0 ] || rate=i$5m/$6
        way=-t
        [ "$1" = out ] || way=-r
        set -- "$@" nuttcp "$way" -u -P "$PORT" -p $((PORT + 4000)) "-l$4" "-T$3" "-R$rate" \
            -i1 -fparse
        [ "$window" = 0 ] || set -- "$@" "-w$((window / 1024))"
        set -- "$@" "$ADDRESS"
    else
        rate=0
        [ "$5" = 0 ] || rate=$5M/$6
        set -- "$@" iperf3 -c "$ADDRESS" -p "$PORT" -u -b "$rate" -l "$4" -t "$3" -J
        [ "$window" = 0 ] || set -- "$@" -w "$window"
        [ "$1" = out ] || set -- "$@" -R
    fi
    limit=$(($3 + AROUND_RUN)) way=$1
    shift 7
    before=$(discarded)
    # shellcheck disable=SC2086  # words without blanks
    run $words -- timeout "$limit" "$@" || return
    [ "$way" = out ] || echo "discarded=$(($(discarded) - before))" >>"run.$runs/dims"
}

lossless() { # whether the last run lost nothing
    if [ "$program" = nuttcp ]; then
        grep -q ' real_seconds=.* drop=0 ' "run.$runs/stdout"
    else
        grep -q '"lost_packets"' "run.$runs/stdout" &&
            ! grep -q '"lost_packets":[[:space:]]*[1-9]' "run.$runs/stdout"
    fi
}

able() { # BURST: whether the program takes it
    [ "$program" = nuttcp ] || [ "$1" -le "$MAX_BURST_OF_IPERF3" ]
}

walk() { # DIRECTION: all runs, or up to the first loss
    while read -r kind seconds datagram mbps burst size until; do
        [ "$datagram" != fill ] || datagram=$fill
        [ "$datagram" != power ] || datagram=$power
        able "$burst" || continue
        measure_udp "$1" "$kind" "$seconds" "$datagram" "$mbps" "$burst" "$size" || return
        [ "$until" = always ] || lossless || return 0
    done
}

bound=$(echo "$RUNS" | while read -r _ _ _ _ burst _; do
    ! able "$burst" || echo "$burst"
done | sort -n | tail -n 1)
echo "burst_bound=$bound" >>facts
for direction in out in; do
    walk "$direction" <<EOT
$RUNS
EOT
done
