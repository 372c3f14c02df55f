# shellcheck shell=sh
# A point of a sweep with IOR: TASKS ranks write POINT_BLOCK bytes each in requests of
# POINT_TRANSFER, read what another node wrote, and compare. POINT_API, POINT_LAYOUT, POINT_REORDER.
# Run by siteproof's sweep.sh in the point's own folder.
need ior
total=$((TASKS * POINT_BLOCK))
NEEDED=$((total + total / 10)) apart=''
if [ "$FS_SHARED" = no ] && [ "$NODE_COUNT" -gt 1 ]; then # each node has a file system of its own
    NEEDED=$((NEEDED / NODE_COUNT + 1)) apart=yes
fi
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"

on_each() { # SCRIPT: on each node of the point, where the test folder has the same name everywhere
    # shellcheck disable=SC2016  # the variables are those of each node
    launch_each sh -c '. "$1/file_system.sh"; eval "$2"' each "$stage" "$1"
}

if [ "$apart" = yes ]; then
    top=$(cd -P -- "$FS_PATH" 2>/dev/null && pwd) || stop "$FS_PATH: not there"
    folder=$(folder_of "$node")
    trap 'exit 143' HUP INT TERM
    # shellcheck disable=SC2016  # the variables are those of each node
    trap 'on_each "top=\$(cd -P -- \"\$FS_PATH\" && pwd); remove \"\$(folder_of \"\$node\")\""' EXIT
    on_each 'begin_test; trap - EXIT HUP INT TERM' || exit
    kind=$(kind_of "$top")
else
    begin_test
fi
plain_path
echo "program=ior" >>facts
api=${POINT_API:-POSIX} piece=$POINT_BLOCK pieces=1 alone=''
case ${POINT_LAYOUT:-file_a_task} in
    file_a_task) alone=-F ;;
    interleaved) piece=$POINT_TRANSFER pieces=$((POINT_BLOCK / POINT_TRANSFER)) ;;
esac

# Who reads: each task what a task of the next node wrote, where that is to be seen. A last node with
# fewer tasks than the others would read some of its own.
try_direct
past_cache='' reader=same
if [ "${POINT_REORDER:-yes}" = yes ] && [ "$NODE_COUNT" -gt 1 ] && [ -z "$apart" ] &&
    [ $((TASKS % TASKS_PER_NODE)) -eq 0 ]; then
    past_cache='-C -Q 1' reader=another direct=no
elif [ "$api" = POSIX ] && [ "$direct" = yes ] &&
    [ $((POINT_TRANSFER % 4096)) -eq 0 ]; then # O_DIRECT takes whole blocks only
    past_cache=--posix.odirect
else
    direct=no
fi

# Whether memory can have held all of it: all of the node's, as what Slurm gives binds no page cache.
clients=$(awk -F = -v nodes="$NODE_COUNT" \
    '$1 == "memory_kib" { printf "%.0f", $2 * 1024 * nodes }' meta)
[ "$direct" = no ] || clients=0
if [ "$cached" = no ] && [ "$kind" != zfs ] && [ -n "$SERVER_MEMORY" ] &&
    [ "$total" -gt $((clients + SERVER_MEMORY)) ]; then
    cached=no
else
    cached=yes
fi
note_cache
echo "read_by=$reader" >>facts

# By its whole path: a rank that does not see the folder must fail, and not write elsewhere. -G: the
# data that all three runs use. The table of the ranks follows IOR's own words.
ranks() {
    ended=0
    # shellcheck disable=SC2086  # nothing, where there is no option
    launch ior -a "$api" $alone -t "$POINT_TRANSFER" -b "$piece" -s "$pieces" -k -g -G 1978 \
        -o "$folder/test.1" -O summaryFormat=JSON \
        -O saveRankPerformanceDetailsCSV="$folder/test.ranks" "$@" || ended=$?
    cat "$folder/test.ranks"
    return "$ended"
}

run phase=write -- heard ranks -w -e || exit
[ "$reader" = another ] || for file in "$folder"/test.1*; do drop_cache "$file"; done
# shellcheck disable=SC2086
run phase=read -- heard ranks -r $past_cache || exit
# shellcheck disable=SC2086
run phase=verify -- heard ranks -r -R $past_cache # its comparing takes time
