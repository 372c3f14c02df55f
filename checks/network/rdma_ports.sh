# shellcheck shell=sh
# Ports of InfiniBand and RoCE devices: state, rate, width, and what they have counted.
# Run by siteproof's node.sh in the node's own folder. Needs no tool: the kernel's files are read.
# Setting: STATED, the devices, ports and interfaces that the site states.
# shellcheck source=siteproof/checks/on_node/rdma.sh
. "$1/rdma.sh"
# shellcheck disable=SC2086  # a list of names
absent=$(rdma_absent $STATED)
if [ -z "$(rdma_ports)$absent" ]; then
    echo "no InfiniBand or RoCE device in /sys/class/infiniband" >&2
    exit 127
fi
echo "program=sysfs" >>facts
[ -z "$absent" ] || echo "$absent"
rdma_report
