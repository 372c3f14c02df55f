# shellcheck shell=sh
# Ports of InfiniBand and RoCE devices: state, rate, width, and what they have counted.
# Run by siteproof's node.sh in the node's own folder. Needs no tool: the kernel's files are read.
# shellcheck source=siteproof/checks/on_node/rdma.sh
. "$1/rdma.sh"
if [ -z "$(rdma_ports)" ]; then
    echo "no InfiniBand or RoCE device in /sys/class/infiniband" >&2
    exit 127
fi
echo "program=sysfs" >>facts
rdma_report
