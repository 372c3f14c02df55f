# shellcheck shell=sh
# The largest packet that passes from this client to the server: bisection over ping with the
# don't-fragment bit. The format of what it prints is that of siteproof/parsers/path_mtu.py.
# Run by siteproof's pair.sh with SIDE, ADDRESS and perhaps LINK_MTU set.
HEADERS=28    # bytes of IPv4 and ICMP
SMALLEST=40   # bytes of data: packets of 68 bytes, which pass everywhere (RFC 791)
LARGEST=65507 # bytes of data that a packet of IPv4 can hold
DEFAULT=1500  # bytes of a packet: tried early, as most paths have it

[ "$SIDE" = client ] || exec sleep 86400 # its kernel answers; ended when the turn is over
need ping
echo "program=ping" >>facts
network_facts "$ADDRESS" >>facts

probe() { # SIZE PACKETS: prints the result; one answer is enough
    became=ok
    if ! said=$(ping -4 -n -M 'do' -c "$2" -i 0.2 -W 1 -s "$1" "$ADDRESS" 2>&1); then
        became=lost
        case $said in
            *'essage too long'* | *'rag needed'*) became=too_big ;;
            *) echo "$said" | grep '^ping: ' >&2 ;; # no such host, no permission
        esac
    fi
    echo "size $1 $became"
    [ "$became" = ok ]
}

passes() { # SIZE: tried with two more packets if it was lost, as any packet may be
    probe "$1" 1 && return
    [ "$became" = lost ] && probe "$1" 2
}

# try SIZE: narrow [low, high): low passes, high does not.
try() {
    [ "$1" -gt "$low" ] && [ "$1" -lt "$high" ] || return 0
    if passes "$1"; then low=$1; else high=$1; fi
}

search() {
    low=$SMALLEST high=$((LARGEST + 1))
    if passes "$low"; then
        own=$(sed -n 's/^mtu=//p' facts) # nothing larger leaves this node
        # Where a guess is right, the next larger size fails, and the search is over.
        for mtu in "${LINK_MTU:-}" "$own" $DEFAULT; do
            [ -n "$mtu" ] || continue
            size=$((mtu - HEADERS))
            try "$size"
            [ "$low" != "$size" ] || try $((size + 1))
        done
        while [ $((high - low)) -gt 1 ]; do
            try $(((low + high) / 2))
        done
        echo "mtu $((low + HEADERS))"
    fi
    echo "end path_mtu"
}
run -- search
