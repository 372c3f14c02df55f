# shellcheck shell=sh
# Random reads and writes with fio, in blocks of 4 KiB and 1 MiB, in a file of MEBIBYTES that is
# written, read back and compared first. DURATION (s) of each phase; DEPTH requests at a time.
# Run by siteproof's node.sh in the node's own folder.
# shellcheck source=siteproof/checks/file_system.sh
. "$1/file_system.sh"
if ! command -v fio >/dev/null; then
    echo "fio is not installed" >&2
    exit 127
fi
begin_test
{
    echo "program=fio"
    echo "size=$((MEBIBYTES * 1048576))"
} >>facts
turn 0
try_direct
[ "$direct" = yes ] || cached=yes # what was read once may come from the cache from then on
[ "$kind" != zfs ] || cached=yes
asked=0
[ "$direct" = no ] || asked=1
engine=psync
if [ "$DEPTH" -gt 1 ]; then
    engine=libaio # only the others know more than one request at a time
fi

there() ( # fio in the test folder, where a name needs no quoting
    cd -- "$folder" && within fio --output-format=json --filename=test.1 --size="${MEBIBYTES}m" \
        --direct="$asked" --ioengine="$engine" --iodepth="$DEPTH" --end_fsync=1 --randrepeat=0 "$@"
)

run phase=verify -- answered there --name=verify --rw=write --bs=1m \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0 || exit
for block in 4k 1m; do
    run phase=read block="$block" -- there --name=read --rw=randread --bs="$block" \
        --time_based --runtime="$DURATION" || exit
    run phase=write block="$block" -- there --name=write --rw=randwrite --bs="$block" \
        --runtime="$DURATION" || exit
done
note_cache
