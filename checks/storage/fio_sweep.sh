# shellcheck shell=sh
# One pattern of fio with POINT_DEPTH requests of POINT_BLOCK bytes at a time, for DURATION seconds,
# in a file of MEBIBYTES that is written, read back and compared first.
# Run by siteproof's sweep.sh for a point of a sweep, on the first node of the job.
# shellcheck disable=SC2034  # begin_test reads it
NEEDED=$((MEBIBYTES * 1048576 * 11 / 10))
# shellcheck source=siteproof/checks/file_system.sh
. "$1/file_system.sh"
depth=${POINT_DEPTH:-1}
[ "$TASKS" -eq 1 ] || stop "fio measures one node, and the point has $TASKS tasks: tasks: 1"
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
asked=0 engine=psync
[ "$direct" = no ] || asked=1
if [ "$direct" = yes ]; then
    engine=libaio # also for one request at a time, so that a curve is of one engine
elif [ "$depth" -gt 1 ]; then
    stop "$FS_PATH takes no O_DIRECT, without which libaio has one request at a time, and not $depth"
fi

there() ( # fio in the test folder, where a name needs no quoting
    cd -- "$folder" && within fio --output-format=json --filename=test.1 --size="${MEBIBYTES}m" \
        --direct="$asked" --ioengine="$engine" --iodepth="$depth" --end_fsync=1 --randrepeat=0 "$@"
)

run phase=verify -- answered there --name=verify --rw=write --bs=1m \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0 || exit
set -- --name="$POINT_PATTERN" --rw="$POINT_PATTERN" --bs="$POINT_BLOCK" --runtime="$DURATION"
case $POINT_PATTERN in *read) set -- "$@" --time_based ;; esac
run phase="$POINT_PATTERN" -- there "$@" || exit
note_cache
