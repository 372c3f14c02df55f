# shellcheck shell=sh
# TCP from this client to the server and back: iperf3 where it is installed, nuttcp otherwise.
# Run by siteproof's pair.sh with SIDE, ADDRESS and PORT set.
# shellcheck disable=SC2154  # network.sh sets program
choose_program iperf3 nuttcp
[ "$SIDE" = client ] || serve_watched
network_facts "$ADDRESS" >>facts
measure_tcp() { # DIRECTION STREAMS
    if [ "$program" = iperf3 ]; then
        set -- "$1" "$2" iperf3 -c "$ADDRESS" -p "$PORT" -t "$SECONDS_OF_RUN" -O "$OMIT" -P "$2" -J
        [ "$1" = out ] || set -- "$@" -R
    else # its second port is for the data
        way=-t
        [ "$1" = out ] || way=-r
        set -- "$1" "$2" nuttcp "$way" -P "$PORT" -p $((PORT + 4000)) -T "$SECONDS_OF_RUN" \
            -N "$2" -fparse "$ADDRESS"
    fi
    direction=$1 streams=$2
    shift 2
    watch_cores >cores &
    watcher=$!
    run direction="$direction" streams="$streams" -- timeout $((SECONDS_OF_RUN + OMIT + 3)) "$@"
    kill "$watcher"
    wait "$watcher" 2>/dev/null
    { look_at_cores && echo "end cores"; } >>cores
    run program=cores direction="$direction" streams="$streams" -- cat cores
}
# shellcheck disable=SC2153
for streams in $STREAMS; do
    measure_tcp out "$streams"
    measure_tcp in "$streams"
done
