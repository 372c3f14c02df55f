# shellcheck shell=sh
# A program over the nodes of a point, once: PROGRAM, a script of checks/apps, checks/cpu or of the site.
# The problem is as large as those of PARTS nodes together: of this point's, or of SMALLEST.
# Run by siteproof's sweep.sh in the point's own folder; prints what the program prints.
OVER_NODES=yes PARTS=${SMALLEST:-$NODE_COUNT}
CORES=${CORES:-$(nproc)}
export PARTS CORES
uptime_then() { read -r then _ </proc/uptime; }
account before swap >>meta
uptime_then
began=$then
# shellcheck source=/dev/null
(. "$1/$PROGRAM.sh")
code=$?
uptime_then
account after swap >>meta
awk -v a="$began" -v b="$then" 'BEGIN { printf "seconds=%.2f\n", b - a }' >>"$POINT_FOLDER/facts"
rm -rf "$POINT_FOLDER/work"
exit "$code"
