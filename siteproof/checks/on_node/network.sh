# shellcheck shell=sh
# What a network value depends on in addition to the network; sourced before a measuring script.

# network_facts ADDRESS: how this host would reach it (ip, device), as KEY=VALUE lines; what is
# unknown is left out.
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

# choose_program NAME...: PROGRAM if it is set, or the first that is installed; a fact.
choose_program() {
    program=${PROGRAM:-}
    for name; do
        [ -n "$program" ] || ! command -v "$name" >/dev/null || program=$name
    done
    if ! command -v "${program:=$1}" >/dev/null; then
        echo "$program is not installed" >&2
        exit 127
    fi
    echo "program=$program" >>facts
}

# look_at_cores: the time, and of each core its busy and all ticks since boot, on one line.
look_at_cores() {
    awk -v now="$(date +%s)" '
        /^cpu[0-9]/ {
            all = 0
            for (i = 2; i <= 9; i++) all += $i # the time of guests is in that of users
            line = line sprintf(" %.0f/%.0f", all - $5 - $6, all)
        }
        END { print "cores " now line }' /proc/stat
}

# watch_cores: this each second, until the shell that began it ends.
watch_cores() {
    while kill -0 $$ 2>/dev/null; do
        look_at_cores
        sleep 1
    done
}

# serve_watched: as serve, with the cores of this end in run.1/.
serve_watched() {
    mkdir run.1
    echo program=cores >run.1/dims
    watch_cores >run.1/stdout 2>run.1/stderr </dev/null &
    serve
}

# serve: be the server of what choose_program found, of TCP and UDP, until it is ended.
serve() {
    case $program in
        iperf3) exec iperf3 -s -p "$PORT" ;;
        *) exec nuttcp -S --nofork -P "$PORT" ;;
    esac
}

nuttcp_version() { # such as 8.2.2
    nuttcp -V 2>&1 | sed -n 's/^nuttcp-//p'
}

# nuttcp_since VERSION: false only where a nuttcp is installed that is older.
nuttcp_since() {
    command -v nuttcp >/dev/null || return 0
    printf '%s\n' "$1" "$(nuttcp_version)" | sort -V -C
}
