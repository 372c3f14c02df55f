# shellcheck shell=sh
# Bandwidth to, from, between and within GPUs by nvbandwidth, which verifies what it has copied.
# Run by siteproof's node.sh in the node's own folder. Setting: GPUS.
# shellcheck source=siteproof/checks/on_node/gpu.sh
. "$1/gpu.sh"
need nvbandwidth
need_gpus
echo "program=nvbandwidth" >>facts
watched run -- unless_wrong 'Invalid value when checking' nvbandwidth -j -t host_to_device_memcpy_ce \
    device_to_host_memcpy_ce device_to_device_memcpy_write_ce device_local_copy
