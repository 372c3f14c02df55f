# shellcheck shell=sh
# Whether this node sees the session's folder and may write there: one line, NODE ANSWER.
#
#   sh -c "TEXT OF THIS FILE" sight FOLDER TOKEN
#
# Given as text, as a node that cannot see the folder could not read this file either.

node=${SLURMD_NODENAME:-$(hostname)}
# A dead file system holds whoever touches it, so another process answers for this one.
(
    sleep 15 >/dev/null 2>&1
    echo "$node silent"
) &
other=$!
answer=seen
if [ "$(cat "$1/token" 2>/dev/null)" != "$2" ]; then
    answer=unseen
elif ! (umask 077 && echo "$2" >"$1/$node") 2>/dev/null; then
    answer=unwritable
fi
kill "$other" 2>/dev/null
echo "$node $answer"
