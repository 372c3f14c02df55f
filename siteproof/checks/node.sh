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
for name in $(set | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\|SLURMD_[A-Za-z0-9_]*\|PMIX\{0,1\}_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

mine="$stage/raw/.$node.$SITEPROOF_ATTEMPT"
[ ! -e "$mine" ] || rm -rf "$mine"
mkdir -p "$mine" && cd "$mine" || exit 1
# One program reads what it can: this runs on every node, for every check.
processor_and_memory() {
    awk '
        FILENAME == "/proc/cpuinfo" {
            name = /^model name/ ? "processor" : /^flags/ ? "flags" : ""
            sub(/^[^:]*: */, "")
            if (name && !seen[name]++) print name "=" $0
            next
        }
        $1 == "MemTotal:" { print "memory_kib=" $2 }
        $1 == "pswpout" { print "swap_before=" $2 }
    ' /proc/cpuinfo /proc/meminfo /proc/vmstat
}
read -r host </proc/sys/kernel/hostname
read -r kernel </proc/sys/kernel/osrelease
{
    echo "node=$node"
    echo "host=$host"
    echo "kernel=$kernel"
    echo "job=$job"
    echo "cpus=$(nproc)"
    processor_and_memory
    echo "limit=$SITEPROOF_LIMIT"
    echo "start=$(date +%s)"
} >meta
: >facts # measure.sh adds KEY=VALUE lines: program, n, threads …
# In the foreground: a process group of its own would outlive a job that is ended.
timeout --foreground -k 10 "$SITEPROOF_LIMIT" sh "$stage/measure.sh" >stdout 2>stderr </dev/null
code=$?
{
    echo "exit=$code"
    awk '$1 == "pswpout" { print "swap_after=" $2 }' /proc/vmstat
    echo "end=$(date +%s)"
} >>meta || exit 1
# A full disk cuts files short without a word: what cannot be written to the end does not count.
grep -q '^end=[0-9]' meta && cd "$stage" && mv -T "$mine" "raw/$node"
