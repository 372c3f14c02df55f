# shellcheck shell=sh
# One TCP test from CLIENT to SERVER by iperf3, as a point of a sweep: both ends in one step, of
# which the client prints. Run by siteproof's sweep.sh with ADDRESS, PORT and OMIT set.
# shellcheck disable=SC2154  # launch.sh and the check set what is not set here
command -v iperf3 >/dev/null || {
    echo "iperf3 is not installed" >&2
    exit 127
}
[ "$NODE_COUNT" -eq 2 ] || {
    echo "TCP needs two nodes: tasks: 2, tasks_per_node: 1" >&2
    exit 1
}
seconds=${POINT_SECONDS:-10}
MAX_SECONDS=$((seconds + OMIT + 15)) # until an end that receives nothing gives up
export MAX_SECONDS
# cubic, where the kernel has it: what it has chosen otherwise may pace, and need no such buffers.
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control && congestion=cubic
echo program=iperf3 >>facts
# shellcheck disable=SC2086  # one word or none
run -- launch_each sh "$SWEEP_STAGE/tcp_end.sh" -t "$seconds" -O "$OMIT" \
    -P "${POINT_STREAMS:-1}" ${POINT_WINDOW:+-w "$POINT_WINDOW"} ${congestion:+-C "$congestion"}
