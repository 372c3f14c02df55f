# shellcheck shell=sh
# One pattern of fio with POINT_DEPTH requests of POINT_BLOCK bytes at a time, for DURATION seconds,
# in a file of MEBIBYTES that is written, read back and compared first.
# Run by siteproof's sweep.sh for a point of a sweep, on the first node of the job.
# shellcheck disable=SC2034  # fio.sh and begin_test read what is set here
NEEDED=$((MEBIBYTES * 1048576 * 11 / 10))
# shellcheck source=siteproof/checks/on_node/fio.sh
. "$1/fio.sh"
[ "$TASKS" -eq 1 ] || stop "fio measures one node, and the point has $TASKS tasks: tasks: 1"
begin_fio "${POINT_DEPTH:-1}"
if [ "$direct" = yes ]; then
    engine=libaio # also for one request at a time, so that a curve is of one engine
elif [ "$depth" -gt 1 ]; then
    stop "$FS_PATH takes no O_DIRECT, without which libaio has one request at a time, and not $depth"
fi
verify_file || exit
set -- --name="$POINT_PATTERN" --rw="$POINT_PATTERN" --bs="$POINT_BLOCK" --runtime="$DURATION"
case $POINT_PATTERN in *read) set -- "$@" --time_based ;; esac
run phase="$POINT_PATTERN" -- there "$@" || exit
note_cache
