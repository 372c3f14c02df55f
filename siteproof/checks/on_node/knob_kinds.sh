# shellcheck shell=sh
# What a tuning sweep may set on a node: how each kind of knob is found, read and set. Sourced by
# knob_hold.sh, and by knob.sh for distinct_values. A handle is one thing to read and set: KIND
# WORDS…; a knob may have several, as osc.*.max_dirty_mb has one a device. All functions print on
# stderr why they fail.

say() {
    echo "$*" >&2
    return 1
}

# distinct_values: of lines KNOB=VALUE one line a knob, its different values with " | " between.
distinct_values() {
    awk '!seen[$0]++ {
        at = index($0, "="); knob = substr($0, 1, at - 1); value = substr($0, at + 1)
        if (knob in all) all[knob] = all[knob] " | " value
        else { order[++n] = knob; all[knob] = value }
    } END { for (i = 1; i <= n; i++) print order[i] "=" all[order[i]] }'
}

# handles KNOB: its handles on this node, a line each.
handles() {
    case $1 in
    sysctl.?*) sysctl_handle "${1#*.}" ;;
    nic.?*.mtu | nic.?*.txqueuelen) nic_handle "${1#*.}" ;;
    lustre.?*.?*) lustre_handles "${1#*.}" ;;
    lnet.?*) lnet_handles "${1#*.}" ;;
    *) say "$1: no kind of knob" ;;
    esac
}

value_of() { # HANDLE, as words: its value, blanks as one
    case $1 in
    sysctl) cat "/proc/sys/$2" ;;
    nic) cat "/sys/class/net/$2/$(nic_file "$3")" ;;
    lustre) lctl get_param -n "$2" ;;
    lnet) lnet_table | awk -F '\t' -v of="$2 $3 $4" '$1 " " $2 " " $3 == of { print $4 }' ;;
    esac | awk '{ for (i = 1; i <= NF; i++) printf "%s%s", (n++ ? " " : ""), $i }
        END { if (n) print ""; exit !n }'
}

put() { # VALUE HANDLE, as words
    value=$1
    shift
    case $1 in
    sysctl) printf '%s\n' "$value" >"/proc/sys/$2" ;;
    nic) ip link set dev "$2" "$3" "$value" ;;
    lustre) lctl set_param "$2=$value" >/dev/null ;;
    lnet) lnet_put "$2" "$3" "$4" "$value" ;;
    esac
}

same() { # VALUE VALUE: as text with blanks as one, or as numbers: Lustre may print 32.0 for 32
    A=$1 B=$2 awk 'BEGIN {
        a = ENVIRON["A"]; b = ENVIRON["B"]
        gsub(/[ \t]+/, " ", a); gsub(/[ \t]+/, " ", b)
        sub(/^ /, "", a); sub(/ $/, "", a); sub(/^ /, "", b); sub(/ $/, "", b)
        number = "^[0-9]+([.][0-9]+)?$"
        exit !(a "" == b "" || (a ~ number && b ~ number && a + 0 == b + 0))
    }'
}

sysctl_handle() { # NAME: with dots, or with slashes where a part of it has dots, as in sysctl(8)
    case $1 in
    */*) name=$1 ;;
    *) name=$(printf '%s' "$1" | tr . /) ;;
    esac
    case /$name/ in */../*) say "$1: no kernel parameter" || return ;; esac
    [ -f "/proc/sys/$name" ] || say "$1: this kernel has no such parameter here" || return
    echo "sysctl $name"
}

nic_handle() { # DEVICE.mtu or DEVICE.txqueuelen; {interface}: the one that leads to $PEERS
    device=${1%.*}
    [ "$device" != '{interface}' ] || device=$(interface_to_peers) || return
    [ -e "/sys/class/net/$device/mtu" ] || say "$device: no such interface" || return
    echo "nic $device ${1##*.}"
}

nic_file() {
    [ "$1" = mtu ] && echo mtu || echo tx_queue_len
}

interface_to_peers() { # the device of the route to the first address that is not this node's own
    for peer in ${PEERS:-}; do
        ip=$(getent ahosts "$peer" 2>/dev/null | awk 'NR == 1 { print $1 }')
        ip -o route get "${ip:-$peer}" 2>/dev/null | awk '$1 != "local" {
            for (i = 1; i < NF; i++) if ($i == "dev" && $(i + 1) != "lo") found = $(i + 1)
        } END { if (found) print found; exit !found }' && return
    done
    say "{interface}: no interface leads to ${PEERS:-any other node}"
}

# Lustre and LNET: written after the manual and lnetctl's help of 2.15, and never run on Lustre.
lustre_handles() { # PARAMETER, with * for every device
    command -v lctl >/dev/null || say "lctl is not installed: no Lustre client" || return
    lctl get_param "$1" 2>/dev/null | awk -F = '/^[A-Za-z0-9]/ && NF > 1 { print "lustre", $1; n++ }
        END { exit !n }' || say "$1: Lustre has no such parameter here"
}

# lnet_table: NET, INTERFACE, TUNABLE and VALUE of this node's own interfaces, tabs between them.
lnet_table() {
    lnetctl net show -v | awk '
        { sub(/\r$/, ""); line = $0; gsub(/^[ \t-]+|[" ]+$/, "", line) }
        line ~ /^net type:/ { net = substr(line, 11); nic = ""; next }
        line ~ /^nid:/ { nic = ""; tunables = 0 }
        line ~ /^0: / && !nic { nic = substr(line, 4) }
        line ~ /^tunables:/ { tunables = 1; next }
        line ~ /tunables:$/ || line ~ /^statistics:/ { tunables = 0 }
        tunables && net != "lo" && nic && split(line, part, ": ") == 2 {
            print net "\t" nic "\t" part[1] "\t" part[2]
        }'
}

lnet_handles() { # TUNABLE
    command -v lnetctl >/dev/null || say "lnetctl is not installed: no LNET" || return
    case $1 in
    peer_credits | credits | peer_buffer_credits | peer_timeout) ;;
    *) say "lnet.$1: cannot be changed at run time: an option of the module, needs a reload" ||
        return ;;
    esac
    lnet_table | awk -F '\t' -v key="$1" '$3 == key { print "lnet", $1, $2, key; n++ }
        END { exit !n }' || say "lnet.$1: LNET is not up, or has no such tunable"
}

# lnet_put NET INTERFACE TUNABLE VALUE: the interface is taken out of LNET and put in again, which
# would cut off a mounted file system.
lnet_put() {
    ! grep -q '^[^ ]* [^ ]* lustre ' /proc/mounts ||
        say "lnet.$3: cannot be changed while Lustre is mounted: needs a reload" || return
    old=$(lnet_table | awk -F '\t' -v net="$1" -v nic="$2" -v key="$3" '
        $1 == net && $2 == nic && $3 != key && $3 ~ /^((peer_(buffer_)?)?credits|peer_timeout)$/ {
            gsub(/_/, "-", $3)
            print "--" $3, $4
        }')
    # Where an earlier attempt could not add it again, it is not there to be taken out.
    ! lnet_table | awk -F '\t' -v net="$1" -v nic="$2" '$1 == net && $2 == nic { n++ }
        END { exit !n }' || lnetctl net del --net "$1" --if "$2" || return
    # shellcheck disable=SC2086  # options, made above
    lnetctl net add --net "$1" --if "$2" $old "--$(echo "$3" | tr _ -)" "$4"
}
