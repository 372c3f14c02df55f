# shellcheck shell=sh
# What checks with fio share: a file of MEBIBYTES in the node's test folder, which is written, read
# back and compared before anything counts. A measuring script sources it; $1 is the stage directory.
# Settings: MEBIBYTES, and those of file_system.sh.

# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"

# begin_fio DEPTH: as begin_test; then `o_direct` is 1 for O_DIRECT. The caller may set another `engine`.
begin_fio() {
    depth=$1
    need fio
    begin_test
    {
        echo "program=fio"
        echo "size=$((MEBIBYTES * 1048576))"
    } >>facts
    turn 0
    try_direct
    [ "$direct" = yes ] || cached=yes # what was read once may come from the cache from then on
    [ "$kind" != zfs ] || cached=yes
    o_direct=0 engine=psync
    [ "$direct" = no ] || o_direct=1
}

there() ( # fio in the test folder, where a name needs no quoting
    cd -- "$folder" && within fio --output-format=json --filename=test.1 --size="${MEBIBYTES}m" \
        --direct="$o_direct" --ioengine="$engine" --iodepth="$depth" --end_fsync=1 --randrepeat=0 "$@"
)

verify_file() {
    run phase=verify -- answered there --name=verify --rw=write --bs=1m \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0
}
