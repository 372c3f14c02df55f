#!/bin/sh
# One application of a workload on one of its nodes: into RESULT/run.NUMBER, a command of the point.
#
#   sh member.sh STAGE RESULT FIRST PHASE APPLICATION PROGRAM WORK VARIABLE=VALUE... -- NODE...
#
# The nodes of the application have the numbers from FIRST on, in their order. WORK: where it works.
# ONCE=yes: it runs for all of its nodes, with the first one's number.
set -u
stage=$1 result=$2 number=$3 phase=$4 application=$5 program=$6 work=$7
shift 7
member=${SLURMD_NODENAME:-}
variables=''
while [ "$1" != -- ]; do
    variables="$variables $1"
    shift
done
shift
member=${member:-$1} ran_on=$member
[ "${ONCE:-no}" = no ] || member=$1 ran_on=$*
for other; do
    [ "$other" != "$member" ] || break
    number=$((number + 1))
done
cd "$stage" || exit
# shellcheck source=siteproof/checks/on_node/account.sh
. ./account.sh
forget_step
mine=$result/run.$number
TMPDIR=$work/$phase.$application.$member
mkdir "$mine" && mkdir -p "$TMPDIR" && cd "$TMPDIR" || exit
export TMPDIR
echo "cpus=$(nproc)" >meta
clock() { # seconds since 1970, in hundredths
    read -r up _ </proc/uptime
    awk -v up="$up" -v begun="$started" -v now="$base" 'BEGIN { printf "%.2f", now + up - begun }'
}
read -r started _ </proc/uptime
base=$(date +%s)
begin=$(clock)
# shellcheck disable=SC2016,SC2086  # variables of the inner shell; a list of them
env $variables sh -c 'set +efuCvx; . "$1/account.sh"; . "$1/$2.sh"' measure "$stage" "$program" \
    >"$mine/stdout" 2>"$mine/stderr" </dev/null
code=$?
printf '%s\n' "phase=$phase" "application=$application" "member=$ran_on" "begin=$begin" \
    "end=$(clock)" "$(grep '^program=' facts || echo "program=$program")" >"$mine/dims"
cd / && rm -rf "$TMPDIR"
echo "$code" >"$mine/exit"
