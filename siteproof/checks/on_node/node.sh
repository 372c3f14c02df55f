#!/bin/sh
# Measure this node with ./measure.sh and create raw/NODE/, whole or not at all.
# On a compute node there is sh, coreutils and the benchmark, and nothing else of ours.
set +efCvx -u # what an exported SHELLOPTS may set
# shellcheck source=/dev/null
. ./settings
# shellcheck source=siteproof/checks/on_node/account.sh
. ./account.sh
begin_script
[ -d "raw/$node" ] && exit 0 # measured by the first job; this is the second

mine="$stage/raw/.$node.$SITEPROOF_ATTEMPT"
mkdir "$mine" 2>/dev/null || { rm -rf "$mine" && mkdir "$mine"; } || exit 1
cd "$mine" || exit 1
# What programs keep in /tmp has names that others can guess, and take first.
if TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/siteproof.XXXXXXXXXXXX"); then
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
else
    unset TMPDIR
fi
begin_account "$node" "$job" "$SITEPROOF_LIMIT"
trap 'exit 143' HUP INT TERM # a cancelled job leaves no result, rather than half of one
# In the foreground: a process group of its own would outlive a job that is ended.
# shellcheck disable=SC2016  # $1 is the inner shell's
timeout --foreground -k 10 "$SITEPROOF_LIMIT" \
    sh -c 'set +efuCvx; . "$1/account.sh"; first_to_go; need_modules "$1"; . "$1/measure.sh"' measure "$stage" \
    >stdout 2>stderr </dev/null
end_account $? || exit 1
seal "$node" "$node"
cd "$stage" && into_place "$mine" "raw/$node"
