# shellcheck shell=sh
# What every result folder holds beside the measurement; sourced by node.sh, pair.sh and, before the
# measuring script, by what they start. On a compute node there is sh, coreutils and awk.

# The step's variables would make an mpirun below reach for the other nodes of the job. What a
# step of one's own needs stays: job and kind of MPI by other names, and where Slurm's settings lie.
forget_step() {
    SITEPROOF_JOB=${SLURM_JOB_ID:-} SITEPROOF_MPI=${SLURM_MPI_TYPE:-}
    export SITEPROOF_JOB SITEPROOF_MPI
    for name in $(set | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\|SLURMD_[A-Za-z0-9_]*\|PMIX\{0,1\}_[A-Za-z0-9_]*\)=.*/\1/p'); do
        [ "$name" = SLURM_CONF ] || unset "$name"
    done
}

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

# begin_account NODE JOB LIMIT: meta and facts of a result, in its folder.
begin_account() {
    read -r host </proc/sys/kernel/hostname
    read -r kernel </proc/sys/kernel/osrelease
    {
        echo "node=$1"
        echo "host=$host"
        echo "kernel=$kernel"
        echo "job=$2"
        echo "cpus=$(nproc)"
        processor_and_memory
        echo "limit=$3"
        echo "start=$(date +%s)"
    } >meta
    : >facts # the script adds KEY=VALUE lines: program, n, threads …
}

# end_account CODE: the rest of meta. A full disk cuts files short without a word: false then.
end_account() {
    {
        echo "exit=$1"
        awk '$1 == "pswpout" { print "swap_after=" $2 }' /proc/vmstat
        echo "end=$(date +%s)"
    } >>meta && grep -q '^end=[0-9]' meta
}

# run KEY=VALUE... -- COMMAND...: one command of several, its output and exit code in run.N/.
run() {
    runs=$((${runs:-0} + 1))
    mkdir "run.$runs" || return
    while [ "$1" != -- ]; do
        echo "$1"
        shift
    done >"run.$runs/dims"
    shift
    "$@" >"run.$runs/stdout" 2>"run.$runs/stderr" </dev/null
    set -- $?
    echo "$1" >"run.$runs/exit"
    return "$1"
}
