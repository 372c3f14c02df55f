# shellcheck shell=sh
# What a figure of the network depends on beside the network; sourced before a measuring script.

# network_facts ADDRESS: how this host would reach it, as KEY=VALUE lines; what is unknown is left out.
network_facts() {
    ip=$(getent ahosts "$1" 2>/dev/null | awk 'NR == 1 { print $1 }')
    device=$(ip -o route get "${ip:-$1}" 2>/dev/null |
        awk '{ for (i = 1; i < NF; i++) if ($i == "dev") { print $(i + 1); exit } }')
    if [ -n "$device" ] && [ -r "/sys/class/net/$device/mtu" ]; then
        echo "mtu=$(cat "/sys/class/net/$device/mtu")"
    fi
    for key in rmem wmem; do
        [ ! -r "/proc/sys/net/ipv4/tcp_$key" ] ||
            awk -v key="$key" '{ print key "_max=" $3 }' "/proc/sys/net/ipv4/tcp_$key"
    done
}
