# shellcheck shell=sh
# TCP from this client to the server and back by netperf, with the processor time of both ends.
# Run by siteproof's pair.sh with SIDE, ADDRESS and PORT set.
for tool in netperf netserver; do
    command -v $tool >/dev/null || {
        echo "$tool is not installed" >&2
        exit 127
    }
done
[ "$SIDE" = client ] || exec netserver -D -p "$PORT"
{
    echo "program=netperf"
    echo "version=$(netperf -V | sed -n 's/^Netperf version //p')"
    network_facts "$ADDRESS"
} >>facts
for direction in out in; do
    kind=TCP_STREAM
    [ $direction = out ] || kind=TCP_MAERTS
    # Its data take a port of the server's choice, which may be closed; 0 is the client's.
    run direction=$direction -- timeout $((SECONDS_OF_RUN + 3)) \
        netperf -H "$ADDRESS" -p "$PORT" -t $kind -c -C -l "$SECONDS_OF_RUN" -- \
        -P 0,$((PORT + 4000)) -m "$BLOCK" -M "$BLOCK" -k "$KEYS"
done
