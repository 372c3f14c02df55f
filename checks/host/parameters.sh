# shellcheck shell=sh
# What this host is set to: sysctls, NICs and bonds, as lines that parsers/host_parameters.py reads.
# SYSCTLS and NICS name what the site expects; each is read without root, or reported as unreadable.
set -f # a name is a name, and no pattern of files
echo "program=proc" >>facts
path_of() { # KEY: sets `file`
    rest=$1 file=/proc/sys
    while [ "$rest" != "${rest#*.}" ]; do
        file=$file/${rest%%.*} rest=${rest#*.}
    done
    file=$file/$rest
}

for key in ${SYSCTLS:-}; do
    path_of "$key"
    if value=$(cat "$file" 2>&1); then
        echo "sysctl $key = $value"
    else
        echo "unreadable sysctl.$key $value"
    fi
done
for nic in ${NICS:-}; do
    path=/sys/class/net/$nic
    if [ ! -d "$path" ]; then
        echo "unreadable nic.$nic no such interface"
        continue
    fi
    mtu='' length=''
    read -r mtu <"$path/mtu"
    echo "nic $nic mtu $mtu"
    read -r length <"$path/tx_queue_len"
    echo "nic $nic txqueuelen $length"
    { read -r speed <"$path/speed"; } 2>/dev/null && echo "nic $nic speed $speed"
    if command -v ethtool >/dev/null && pause=$(ethtool -a "$nic" 2>&1); then
        echo "$pause" | awk -v nic="$nic" '
            /^Autonegotiate:/ { a = $2 } /^RX:/ { r = $2 } /^TX:/ { t = $2 }
            END { print "nic", nic, "flow_control rx=" r, "tx=" t, "autoneg=" a }'
    else
        echo "unreadable nic.$nic.flow_control ${pause:-ethtool is not installed}"
    fi
done
bonds=$(cat /sys/class/net/bonding_masters 2>/dev/null) # unexpected ones, too
for bond in $bonds; do
    path=/sys/class/net/$bond/bonding
    echo "bond $bond mode $(cat "$path/mode")"
    up=
    members=$(cat "$path/slaves")
    for member in $members; do
        [ "$(cat "/sys/class/net/$member/operstate")" != up ] || up="$up $member"
    done
    echo "bond $bond members$up"
done
for bond in ${BONDS:-}; do
    [ -d "/sys/class/net/$bond/bonding" ] || echo "unreadable bond.$bond no such bond"
done
echo "end host parameters"
