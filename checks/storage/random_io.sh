# shellcheck shell=sh
# Random reads and writes with fio, in blocks of 4 KiB and 1 MiB, in a file of MEBIBYTES that is
# written, read back and compared first. DURATION (s) of each phase; DEPTH requests at a time.
# Run by siteproof's node.sh in the node's own folder.
# shellcheck disable=SC2034,SC2153  # fio.sh reads what is set here; DEPTH is a setting
# shellcheck source=siteproof/checks/on_node/fio.sh
. "$1/fio.sh"
begin_fio "$DEPTH"
if [ "$depth" -gt 1 ]; then
    engine=libaio # only the others know more than one request at a time
fi
verify_file || exit
for block in 4k 1m; do
    run phase=read block="$block" -- there --name=read --rw=randread --bs="$block" \
        --time_based --runtime="$DURATION" || exit
    run phase=write block="$block" -- there --name=write --rw=randwrite --bs="$block" \
        --runtime="$DURATION" || exit
done
note_cache
