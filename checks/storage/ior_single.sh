# shellcheck shell=sh
# One task of IOR writes a file of MEBIBYTES, reads it past the page cache, and compares it.
# Run by siteproof's node.sh in the node's own folder.
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
need ior
begin_test
echo "program=ior" >>facts
size=$((MEBIBYTES * 1048576))
turn 0
try_direct
past_cache=''
[ "$direct" = no ] || past_cache=--posix.odirect

# In the test folder, where a name needs no quoting. -G: the data that all three runs use.
there() (
    cd -- "$folder" && within ior -a POSIX -t 1m -b "${MEBIBYTES}m" -k -G 1978 -o test.1 \
        -O summaryFormat=JSON "$@"
)

run phase=write -- heard there -w -e || exit
drop_cache "$folder/test.1"
before=$(fetched)
# shellcheck disable=SC2086  # nothing, where there is no option
run phase=read -- heard there -r $past_cache || exit
judge_cache "$before" "$size"
# shellcheck disable=SC2086
run phase=verify -- heard there -r -R $past_cache || exit # its comparing takes time
note_cache
