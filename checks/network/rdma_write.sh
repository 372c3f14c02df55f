# shellcheck shell=sh
# RDMA writes from this client to the server: ib_write_bw on PORT, ib_write_lat on the one after it,
# and what the ports of this node have counted before and after.
# Run by siteproof's pair.sh with SIDE, ADDRESS and PORT set.
# shellcheck source=siteproof/checks/on_node/rdma.sh
. "$1/rdma.sh"
if [ -z "$(rdma_ports)" ]; then
    echo "no InfiniBand or RoCE device in /sys/class/infiniband" >&2
    exit 127
fi
if [ -n "$DEVICE" ] && [ ! -d "/sys/class/infiniband/$DEVICE/ports/$DEVICE_PORT" ]; then
    echo "no port $DEVICE_PORT of a device $DEVICE in /sys/class/infiniband, as the link has it" >&2
    exit 127
fi
for tool in ib_write_bw ib_write_lat; do
    command -v $tool >/dev/null || {
        echo "$tool is not installed" >&2
        exit 127
    }
done
# -F: the clock of a processor may change without harm to what is printed here.
with_device() { # COMMAND...: with the link's device and its port; of a client, to the server
    "$@" -F -i "$DEVICE_PORT" ${DEVICE:+-d "$DEVICE"} ${GID_INDEX:+-x "$GID_INDEX"} ${to:+"$to"}
}
write_bw() {
    with_device ib_write_bw -p "$PORT" -s "$LARGEST" -n "$ITERATIONS" --report_gbits
}
write_lat() {
    with_device ib_write_lat -p $((PORT + 1)) -s "$SMALLEST" -n "$ITERATIONS"
}
to=''
if [ "$SIDE" = server ]; then
    write_lat &
    write_bw
    code=$?
    wait
    exit "$code"
fi
to=$ADDRESS
{
    echo "program=ib_write_bw"
    echo "version=$(ib_write_bw --version 2>&1 | sed -n 's/^Version: *//p')"
    network_facts "$ADDRESS"
} >>facts
run program=sysfs phase=before -- rdma_report
run program=ib_write_bw -- write_bw || exit
run program=ib_write_lat -- write_lat || exit
run program=sysfs phase=after -- rdma_report
