#!/bin/sh
# Measure this node with ./measure.sh and leave raw/NODE/ behind, whole or not at all.
# On a compute node there is sh, coreutils and the benchmark, and nothing else of ours.
set -u
LC_ALL=C TZ=UTC
export LC_ALL TZ
stage=$(pwd)
# shellcheck source=/dev/null
. ./settings
job=${SLURM_JOB_ID:-local}
node=${SLURMD_NODENAME:-$SITEPROOF_NODE}
[ -d "raw/$node" ] && exit 0 # measured already; this is the second submission

# The step's variables would make an mpirun below reach for the other nodes of the job.
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\|SLURMD_[A-Za-z0-9_]*\|PMIX\{0,1\}_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

mine="$stage/raw/.$node.$SITEPROOF_ATTEMPT"
rm -rf "$mine"
mkdir -p "$mine" && cd "$mine" || exit 1
swapped() { awk '$1 == "pswpout" { print $2 }' /proc/vmstat; }
{
    echo "node=$node"
    echo "host=$(uname -n)"
    echo "kernel=$(uname -r)"
    echo "job=$job"
    echo "cpus=$(nproc)"
    echo "processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "flags=$(sed -n 's/^flags[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "memory_kib=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)"
    echo "swap_before=$(swapped)"
    echo "limit=$SITEPROOF_LIMIT"
    echo "start=$(date +%s)"
} >meta
: >facts # measure.sh adds KEY=VALUE lines: program, n, threads …
# In the foreground: a process group of its own would outlive a job that is ended.
timeout --foreground -k 10 "$SITEPROOF_LIMIT" sh "$stage/measure.sh" >stdout 2>stderr </dev/null
code=$?
{
    echo "exit=$code"
    echo "swap_after=$(swapped)"
    echo "end=$(date +%s)"
} >>meta || exit 1
# A full disk cuts files short without a word: what cannot be written to the end does not count.
tail -n 1 meta | grep -q '^end=' && cd "$stage" && mv -T "$mine" "raw/$node"
