# shellcheck shell=sh
# A point of a sweep with mdtest: TASKS ranks create POINT_FILES files each, stat, read and remove
# them, as IO500's mdtest-easy or mdtest-hard (POINT_VARIANT). Each phase is a run of its own.
# Run by siteproof's sweep.sh in the point's own folder.
need mdtest
files=$((TASKS * POINT_FILES))
NEEDED=$((files * 8192)) # a block and what describes it
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
begin_test
plain_path
inodes=$(df -P -i -- "$top" | awk 'END { print $4 }')
case $inodes in
    '' | 0 | *[!0-9]*) ;; # it has as many as it needs, or reports no number
    *) [ "$inodes" -gt "$files" ] || stop "$FS_PATH: room for $inodes of $files files is left" ;;
esac
case ${POINT_VARIANT:-easy} in
    easy) how='-u -L' compare='' ;;
    hard) how='-t -w 3901 -e 3901' compare=-X ;;
esac

# Each rank goes on to what a rank one, two and three nodes further on has made (-N 1). Of two nodes
# the second one further on is the maker: there the ranks move themselves.
shifted='' reader=same cached=yes moved=''
if [ "$NODE_COUNT" -gt 1 ] && [ $((TASKS % TASKS_PER_NODE)) -eq 0 ]; then
    shifted='-N 1' reader=another cached=no
    [ "$NODE_COUNT" -gt 2 ] || moved=1
fi
case $kind in tmpfs | ramfs) cached=yes ;; esac
{
    echo "program=mdtest"
    echo "read_by=$reader"
    echo "cached=$cached"
} >>facts

ranks() ( # by its whole path: a rank that does not see the folder must fail
    # shellcheck disable=SC2086  # nothing, where there is no option
    launch mdtest "$@" -F -P -n "$POINT_FILES" $how $shifted -G 1978 -d "$folder/test.tree"
)

moved() (
    reordered=$moved
    [ -n "$reordered" ] || unset reordered
    ranks "$@"
)

run phase=create -- heard ranks -C || exit
run phase=stat -- heard ranks -T || exit
# shellcheck disable=SC2086
run phase=read -- heard moved -E $compare || exit
run phase=remove -- heard ranks -r
