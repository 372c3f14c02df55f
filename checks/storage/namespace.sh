# shellcheck shell=sh
# The paths below a folder of the file system, as this node sees them: hexadecimal, a path a line,
# as a name may hold anything but a slash. Run by siteproof's node.sh in the node's own folder.
# shellcheck disable=SC2153  # the check sets FOLDER, DEPTH and MAX_PATHS
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"

# level N: the paths of the first N levels of folders; false where there are more than MAX_PATHS, or the
# turn is over. What our own checks write for a while is left out.
level() {
    rm -f ended
    {
        (cd -P -- "$top/$FOLDER" && within find . -xdev -mindepth 1 -maxdepth "$1" \
            -name 'siteproof-test.*' -prune -o -print0)
        echo $? >ended
    } | od -A n -v -t x1 | awk -v max="$MAX_PATHS" '
        {
            for (i = 1; i <= NF; i++) {
                if ($i != "00") { path = path $i; continue }
                if (++paths > max) exit 1
                print substr(path, 5) # without ./
                path = ""
            }
        }' >level || return
    # 1: a folder that this user may not enter; others end what has been listed.
    read -r code <ended && [ "$code" -le 1 ]
}

find_top
echo "program=find" >>facts
cd -P -- "$top/$FOLDER" 2>/dev/null || stop "$FS_PATH/$FOLDER: does not exist, or cannot be entered"
cd - >/dev/null || exit
turn 0
trap turn_over EXIT
: >kept
depth=0
while [ "$depth" -lt "$DEPTH" ] && level $((depth + 1)); do
    depth=$((depth + 1))
    [ "$(wc -l <level)" -gt "$(wc -l <kept)" ] || [ "$depth" = 1 ] || depth=$DEPTH # no more below
    mv level kept
done
[ "$depth" -gt 0 ] || stop "$FS_PATH/$FOLDER: more than $MAX_PATHS paths, or no list within $TURN s"
sed 's/^/path /' kept
echo "depth $depth paths $(wc -l <kept)"
echo "end namespace"
