# shellcheck shell=sh
# FILES files of MEBIBYTES of this node's own, checksummed before they reach the storage; then the
# files of the node before it (of itself, where there is no other) are read and compared.
# Run by siteproof's node.sh in the node's own folder.
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
begin_test
echo "program=sha256sum" >>facts
sums=$stage/turns/$SITEPROOF_ATTEMPT.sums # they do not pass through the storage that is tested

write_files() {
    number_of=1
    while [ "$number_of" -le "$FILES" ]; do
        file=$folder/test.$number_of
        dd if=/dev/urandom bs=1M count="$MEBIBYTES" iflag=fullblock 2>/dev/null |
            within tee -- "$file" | sha256sum | sed "s/-\$/test.$number_of/" >>written
        drop_cache "$file"
        if [ "$(stat -c %s -- "$file")" != $((MEBIBYTES * 1048576)) ]; then
            [ "$(date +%s)" -lt "$ends" ] || exit 124 # as `within` does
            stop "$FS_PATH: test.$number_of could not be written whole"
        fi
        number_of=$((number_of + 1))
    done
}

# The node before this one, the last one before the first; this one where files are its own.
writer() {
    set -- "$node"
    # shellcheck disable=SC2086  # a list of nodes
    [ "$FS_SHARED" = no ] || set -- $NODES
    eval "last=\${$#}"
    for other; do
        [ "$other" != "$node" ] || break
        last=$other
    done
    echo "$last"
}

compare() ( # what sha256sum prints of the files, after the checksums that it compares with
    cd -- "$1" && cat -- "$2" || exit
    answered within sha256sum --check -- "$2" || exit
    echo "end sha256sum"
)

turn 0
: >written
write_files
if ! { cp written "$sums.$node.part" && mv "$sums.$node.part" "$sums.$node"; }; then
    stop "$stage: the checksums cannot be written"
fi
from=$(writer)
theirs=$(folder_of "$from")
if [ "$from" = "$node" ]; then
    echo "read_by=same" >>facts
else
    echo "read_by=other" >>facts
    kept=yes # for the node that reads them, which then removes them
fi
turn 1
while [ ! -e "$sums.$from" ] || ! ls -- "$top" >/dev/null || [ ! -d "$theirs" ]; do
    if [ "$(date +%s)" -ge "$ends" ]; then
        if [ -e "$sums.$from" ]; then
            echo "invalid=what $from has written is not seen here" >>facts
        else
            echo "interrupted=$from has not written its files" >>facts
        fi
        exit 0
    fi
    sleep 1
done
run phase=read -- compare "$theirs" "$sums.$from" || exit
[ "$from" = "$node" ] || remove "$theirs"
