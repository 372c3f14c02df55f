# shellcheck shell=sh
# The round trip of small packets from this client to the server: ping, which the server's kernel
# answers; then, where both ends have qperf, the latency of TCP.
# Run by siteproof's pair.sh with SIDE, ADDRESS and PORT set.
# shellcheck disable=SC2153  # the check sets SIZE, INTERVAL, PACKETS and SECONDS_OF_TCP
if [ "$SIDE" = server ]; then
    ! command -v qperf >/dev/null || exec qperf -lp "$PORT"
    exec sleep 86400 # ended when the turn is over
fi
need ping
echo "program=ping" >>facts
echo "interval=$INTERVAL" >>facts
run program=ping -- ping -n -c "$PACKETS" -i "$INTERVAL" -s "$SIZE" -W 2 "$ADDRESS"

ask_qperf() { # TEST...
    timeout $((SECONDS_OF_TCP + 3)) qperf -lp "$PORT" -ip $((PORT + 4000)) -t "$SECONDS_OF_TCP" \
        "$ADDRESS" "$@"
}
if ! command -v qperf >/dev/null; then
    echo "tcp_warning=tcp not measured: qperf is not installed" >>facts
elif ! ask_qperf conf >/dev/null 2>&1; then
    echo "tcp_warning=tcp not measured: no qperf answers" >>facts
else
    run program=qperf -- ask_qperf tcp_lat conf # conf last: it shows that nothing is cut off
fi
