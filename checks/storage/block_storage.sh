# shellcheck shell=sh
# Serial write and read of one file with dd, in blocks of 1 MiB: TRIALS times MEBIBYTES.
# Run by siteproof's node.sh in the node's own folder.
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
begin_test
echo "program=dd" >>facts
size=$((MEBIBYTES * 1048576))
file=$folder/test.1
turn 0
try_direct
to='' from=''
if [ "$direct" = yes ] && [ "$PAST_CACHE" = yes ]; then
    to=oflag=direct from=iflag=direct
else
    direct=no
fi
stored=$size
trial=1
while [ "$trial" -le "$TRIALS" ]; do
    # shellcheck disable=SC2086  # nothing, where there is no option
    run phase=write trial="$trial" -- within \
        dd if=/dev/zero of="$file" bs=1M count="$MEBIBYTES" conv=fdatasync $to || exit
    kept_now=$(stat -c '%b %B' -- "$file" | awk '{ printf "%.0f", $1 * $2 }')
    [ "$kept_now" -ge "$stored" ] || stored=$kept_now
    drop_cache "$file"
    before=$(fetched)
    # shellcheck disable=SC2086
    run phase=read trial="$trial" -- within dd if="$file" of=/dev/null bs=1M $from || exit
    judge_cache "$before" "$size"
    rm -f -- "$file" # the next trial gets new blocks
    trial=$((trial + 1))
done
note_cache
echo "stored=$stored" >>facts
