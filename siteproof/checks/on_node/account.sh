# shellcheck shell=sh
# What every result folder holds in addition to the measurement; sourced by node.sh, pair.sh and, before the
# measuring script, by what they start. On a compute node there is sh, awk, and coreutils or busybox.
unset CDPATH GREP_OPTIONS # `cd` would go, and print, elsewhere; old versions of grep obey it

# coreutils' timeout exits with 124. Without it, or with another one, this function does the same.
if [ -z "${SITEPROOF_TIMEOUT:-}" ]; then
    SITEPROOF_TIMEOUT=own
    ! command timeout --foreground 9 true 2>/dev/null || SITEPROOF_TIMEOUT=coreutils
    export SITEPROOF_TIMEOUT
fi
[ "$SITEPROOF_TIMEOUT" = coreutils ] ||
    timeout() ( # [--foreground] [-k SECONDS] SECONDS COMMAND...: ends what COMMAND has started, too
        set +f
        patience=10
        while :; do
            case $1 in
            --foreground) shift ;;
            -k) patience=$2 && shift 2 ;;
            *) break ;;
            esac
        done
        ends=$(($(uptime_of_node) + $1)) signal=TERM code='' naps=0
        shift
        { "$@" <&9 9<&- & } 9<&0 # a command in the background would read /dev/null
        child=$!
        trap 'end_tree "$child" TERM; exit 143' HUP INT TERM
        while kill -0 "$child" 2>/dev/null; do
            if [ "$(uptime_of_node)" -ge "$ends" ]; then
                end_tree "$child" "$signal"
                ends=$((ends + patience)) signal=KILL code=124
            fi
            naps=$((naps + 1))
            { [ "$naps" -lt 10 ] && sleep 0.1 2>/dev/null; } || sleep 1
        done
        wait "$child"
        exit "${code:-$?}"
    )

uptime_of_node() { # whole seconds
    read -r up _ </proc/uptime
    echo "${up%.*}"
}

end_tree() { # PROCESS SIGNAL: it, and what it has started
    # shellcheck disable=SC2046  # a list of processes
    kill -"$2" $(cat /proc/[0-9]*/stat 2>/dev/null | awk -v top="$1" '
        { process = $1; sub(/.*\) /, ""); parent[process] = $2 }
        END {
            found[top]
            do {
                n = 0
                for (p in parent) if (!(p in found) && parent[p] in found) { found[p]; n++ }
            } while (n)
            for (p in found) print p
        }') 2>/dev/null
}

# As coreutils' nproc, where there is none: the processors that this process may use.
command -v nproc >/dev/null ||
    nproc() {
        awk '$1 == "Cpus_allowed_list:" {
            n = split($2, range, ",")
            for (i = 1; i <= n; i++) {
                ends = split(range[i], end, "-")
                count += end[ends] - end[1] + 1
            }
            print count
        }' /proc/self/status
    }

# into_place FOLDER NAME: under its own name, whole or not at all, and never into what is there.
into_place() {
    mv -T -- "$1" "$2" 2>/dev/null || # not every mv has -T
        { [ ! -e "$2" ] && [ ! -L "$2" ] && mv -- "$1" "$2"; }
}

# The step's variables would make an mpirun below reach for the other nodes of the job. What a
# step of one's own needs stays: job and kind of MPI by other names, and where Slurm's settings lie.
forget_step() {
    slurm_memory
    SITEPROOF_JOB=${SLURM_JOB_ID:-} SITEPROOF_MPI=${SLURM_MPI_TYPE:-}
    export SITEPROOF_JOB SITEPROOF_MPI
    for name in $(set | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\|SLURMD_[A-Za-z0-9_]*\|PMIX\{0,1\}_[A-Za-z0-9_]*\)=.*/\1/p'); do
        [ "$name" = SLURM_CONF ] || unset "$name"
    done
}

# begin_script: what every script that Slurm or ReFrame starts needs first, in the stage directory:
# `stage`, `job` and `node`, and an environment that no user has shaped.
# shellcheck disable=SC2034  # read by the scripts that source this one
begin_script() {
    umask o-w
    LC_ALL=C TZ=UTC
    export LC_ALL TZ
    stage=$(pwd) job=${SLURM_JOB_ID:-local} node=${SLURMD_NODENAME:-$SITEPROOF_NODE}
    forget_step
    forget_variables
}

# variables HOW: those that steer a library (SITEPROOF_STEERING: names, or beginnings with *).
# names: those that are not wanted (all but SITEPROOF_WANTED); values: env.NAME=VALUE, a line each.
variables() {
    how=$1 awk '
        function named(name, list,    n, word, i, star) {
            n = split(list, word, " ")
            for (i = 1; i <= n; i++) {
                star = sub(/[*]$/, "", word[i])
                if ((star ? substr(name, 1, length(word[i])) : name) == word[i]) return 1
            }
            return 0
        }
        BEGIN {
            for (name in ENVIRON) {
                value = ENVIRON[name]
                if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/) continue
                if (!named(name, ENVIRON["SITEPROOF_STEERING"])) continue
                # Where the software lies is no setting, and Slurm makes one up for each job.
                if (name ~ /_(ROOT|DIR|HOME|PREFIX|PATH)$/ || name ~ /_precondition_transports$/)
                    continue
                gsub(/[^ -~]/, "?", value)
                if (ENVIRON["how"] == "values") {
                    if (value != "") print "env." name "=" substr(value, 1, 200)
                } else if (!named(name, ENVIRON["SITEPROOF_WANTED"])) print name
            }
        }'
}

# A clean set, where the check asks for one: what a user has exported must not decide how fast a
# node is.
forget_variables() {
    [ "${SITEPROOF_CLEAN:-no}" = yes ] || return 0
    for name in $(variables names); do
        unset "$name"
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
        processors_given
        processor_and_memory
        memory_given
        oom_kills before
        variables values
        echo "limit=$3"
        echo "start=$(date +%s)"
    } >meta
    read -r began _ <"$proc/uptime"
    : >facts # the script adds KEY=VALUE lines: program, n, threads …
}

# end_account CODE: the rest of meta. A full disk cuts files short without a word: false then.
end_account() {
    {
        echo "exit=$1"
        awk '$1 == "pswpout" { print "swap_after=" $2 }' /proc/vmstat
        oom_kills after
        [ "$1" -eq 0 ] || oom_log "$began"
        echo "end=$(date +%s)"
    } >>meta && grep -q '^end=[0-9]' meta
}

# seal NODE NAME: who has left the result NAME, made on which host, and that it is whole: munge's
# credential over the digest of its files. Where there is none, why. The last file of a result.
seal() {
    [ -n "${SITEPROOF_NONCE:-}" ] || return 0
    if ! command -v munge >/dev/null; then
        echo "none: munge is not installed on the node"
    elif ! timeout 20 munge ${SITEPROOF_MUNGE:+-S "$SITEPROOF_MUNGE"} \
        -s "siteproof $SITEPROOF_NONCE $1 $2 $(digest)" 2>&1; then
        echo "none: munge gave no credential"
    fi >origin
}

digest() ( # of the files of a result; as siteproof/collect/origin.py makes it
    set +f
    for part in meta facts stdout stderr run.[0-9]*/dims run.[0-9]*/exit run.[0-9]*/stdout \
        run.[0-9]*/stderr; do
        [ ! -f "$part" ] || echo "$part"
    done | sort | xargs sha256sum -- | sha256sum | cut -d ' ' -f 1
)

# run KEY=VALUE... -- COMMAND...: one command of several, its output and exit code in run.N/.
run() {
    runs=$((${runs:-0} + 1))
    mkdir "run.$runs" || return
    while [ "$1" != -- ]; do
        printf '%s\n' "$1"
        shift
    done >"run.$runs/dims"
    shift
    "$@" >"run.$runs/stdout" 2>"run.$runs/stderr" </dev/null
    set -- $?
    echo "$1" >"run.$runs/exit"
    return "$1"
}

# ---- how much of the node the job has, and what the kernel killed because memory ran out

proc=${SITEPROOF_TEST_PROC:-/proc} cgroups=${SITEPROOF_TEST_CGROUPS:-/sys/fs/cgroup}

# slurm_memory: sets slurm_mib, MiB of this node that Slurm gives the job: what was requested, or all
# that slurm.conf has for the node (memory_of_nodes: NODE MIB lines; 1 means unknown to Slurm).
slurm_memory() {
    slurm_mib=$(whole "${SLURM_MEM_PER_NODE:-}")
    if [ "$slurm_mib" -eq 0 ]; then
        each=$(whole "${SLURM_MEM_PER_CPU:-}") many=$(whole "${SLURM_CPUS_ON_NODE:-}")
        slurm_mib=$((each * many))
    fi
    if [ "$slurm_mib" -eq 0 ] && [ -r memory_of_nodes ]; then
        slurm_mib=$(awk -v me="${SLURMD_NODENAME:-}" \
            '$1 == me && $2 > 1 { found = $2 } END { printf "%d", found }' memory_of_nodes)
    fi
}

whole() { # WORD: it, if it is a whole number; otherwise 0
    case $1 in
    '' | 0* | *[!0-9]* | ?????????????*) echo 0 ;;
    *) echo "$1" ;;
    esac
}

# in_groups CONTROLLER V1FILE V2FILE [job]: what these files say of every group that holds this
# process, the innermost first; with `job` of none above the job's own.
in_groups() {
    while IFS=: read -r number controllers path; do
        case $number:,$controllers, in
        0:,,) top=$cgroups file=$3 ;;
        *,"$1",*)
            top=$cgroups/$1 file=$2
            [ -d "$top" ] || top=$cgroups/$controllers
            ;;
        *) continue ;;
        esac
        path=${path%/}
        while :; do
            [ ! -r "$top$path/$file" ] || cat "$top$path/$file"
            case ${4:-},$path in
            ,* | job,*/job_[0-9]*/*) ;;
            job,*) break ;;
            esac
            [ -n "$path" ] || break
            path=${path%/*}
        done
    done 2>/dev/null <"$proc/self/cgroup"
}

# The least of what the kernel has, the groups allow and Slurm gives, and whose word that is.
memory_given() {
    {
        awk '$1 == "MemTotal:" { print "kernel", $2 }' "$proc/meminfo"
        in_groups memory memory.limit_in_bytes memory.max |
            awk '/^[0-9]+$/ { printf "cgroup %.0f\n", $1 / 1024 }'
        echo "Slurm ${slurm_mib:-0}" | awk '{ printf "%s %.0f\n", $1, $2 * 1024 }'
    } | awk '$2 > 0 && (!least || $2 < least) { least = $2; by = $1 }
        END { if (least) printf "memory_given_kib=%.0f\nmemory_given_by=%s\n", least, by }'
}

# Processors on which this process may run; fewer where a quota gives it less time than they have.
processors_given() {
    {
        echo "cpus $(nproc)"
        in_groups cpu cpu.cfs_quota_us cpu.max # QUOTA, and in v2 its PERIOD; -1 or max: none
        in_groups cpu cpu.cfs_period_us none | sed 's/^/period /'
    } | awk '
        function take(share) {
            share = int(share) + (share > int(share))
            if (share < least) least = share
        }
        $1 == "cpus" { least = $2; next }
        $1 == "period" { if (quota[++at] + 0 > 0) take(quota[at] / $2); next }
        NF == 1 { quota[++count] = $1 }
        NF == 2 && $1 + 0 > 0 { take($1 / $2) }
        END { print "cpus=" least }'
}

# oom_kills WHEN: how many processes the kernel has killed by now, on the node and of the job. In v2
# a group counts those of the groups within it, in v1 only its own.
oom_kills() {
    awk -v key="oom_kills_$1" '$1 == "oom_kill" { print key "=" $2 }' "$proc/vmstat"
    in_groups memory memory.oom_control memory.events job | awk -v key="job_oom_kills_$1" '
        $1 == "oom_kill_disable" { v1 = 1 }
        $1 == "oom_kill" { seen = 1; sum += $2; if ($2 > most) most = $2 }
        END { if (seen) print key "=" (v1 ? sum : most) + 0 }'
}

# oom_log UPTIME: the kernel's last word of a kill since then, where users may read its log.
oom_log() {
    dmesg 2>/dev/null | awk -v since="$1" '
        /[Oo]ut of memory.*[Kk]illed process/ {
            time = line = $0
            sub(/^\[ */, "", time)
            sub(/^\[[^]]*\] */, "", line)
            if (time + 0 >= since) last = line
        }
        END { if (last != "") print "oom_log=" substr(last, 1, 200) }'
}

# first_to_go: what this shell starts dies before the scripts that account for it.
first_to_go() {
    { echo 500 >"$proc/self/oom_score_adj"; } 2>/dev/null || :
}
