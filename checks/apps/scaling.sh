# shellcheck shell=sh
# A program over the nodes of a point, once: PROGRAM, a script of checks/apps, checks/cpu or of the site.
# The problem is as large as those of PARTS nodes together: of this point's, or of SMALLEST.
# Run by siteproof's sweep.sh in the point's own folder; prints what the program prints.
OVER_NODES=yes PARTS=${SMALLEST:-$NODE_COUNT}
CORES=${CORES:-$(nproc)}
export OVER_NODES PARTS CORES
look_up() { read -r up _ </proc/uptime; }
account before swap >>meta
look_up
started=$up
# shellcheck source=/dev/null
(. "$1/$PROGRAM.sh")
code=$?
look_up
account after swap >>meta
awk -v a="$started" -v b="$up" 'BEGIN { printf "seconds=%.2f\n", b - a }' >>"$POINT_FOLDER/facts"
rm -rf "$POINT_FOLDER/work"
exit "$code"
