# shellcheck shell=sh
# Memory bandwidth: STREAM 5.10 if it is there, likwid-bench otherwise.
# STREAM's rule 1(a): an array of at least four times the last-level caches.
# Run by siteproof's node.sh in the node's own folder; prints the tool's output, notes facts.
caches() { # bytes of all distinct last-level caches
    for cpu in /sys/devices/system/cpu/cpu[0-9]*/cache; do
        last=; for last in "$cpu"/index*; do :; done
        [ -r "$last/size" ] && echo "$(cat "$last/shared_cpu_list") $(cat "$last/size")"
    done | sort -u | awk '{ sub(/K$/, "", $NF); total += $NF * 1024 } END { printf "%.0f\n", total }'
}
cache=$(caches)
[ "${CACHE:-0}" -gt "$cache" ] && cache=$CACHE
wanted=$((4 * cache))
[ "$wanted" -ge 80000000 ] || wanted=80000000 # ten million elements, STREAM's own default
threads=${CORES:-$(sed -n 's/^cpus=//p' meta)}
echo "last_level_cache=$cache" >>facts
OMP_NUM_THREADS=$threads OMP_PROC_BIND=close OMP_PLACES=cores
export OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES

for program in stream_c.exe stream_c stream; do
    # ImageMagick has a program named stream, too.
    if path=$(command -v "$program") && grep -q "STREAM version" "$path"; then
        echo "program=stream" >>facts
        exec "$path"
    fi
done
if ! command -v likwid-bench >/dev/null; then
    echo "neither STREAM (stream, stream_c) nor likwid-bench is installed" >&2
    exit 127
fi
{
    echo "program=likwid-bench"
    echo "array_bytes=$wanted"
} >>facts
# stream is STREAM's triad; likwid's own triad has four arrays. The size is that of all arrays.
likwid-bench -t copy -W "N:$((2 * wanted / 1000 + 100))kB:$threads" &&
    likwid-bench -t stream -W "N:$((3 * wanted / 1000 + 100))kB:$threads"
