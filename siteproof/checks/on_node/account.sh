# shellcheck shell=sh
# What every result folder holds in addition to the measurement; sourced by node.sh, pair.sh and, before the
# measuring script, by what they start. On a compute node there is sh, awk, and coreutils or busybox.
unset CDPATH GREP_OPTIONS # `cd` would go, and print, elsewhere; old versions of grep obey it

# coreutils' timeout exits with 124. Without it, or with another one, this function does the same.
if [ -z "${SITEPROOF_TIMEOUT:-}" ]; then
    SITEPROOF_TIMEOUT=own
    command timeout --foreground 9 / 2>/dev/null ||
        [ $? -ne 126 ] || SITEPROOF_TIMEOUT=coreutils # it knows the option, and / is not a program
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
    for name in $(names_of_step); do
        [ "$name" = SLURM_CONF ] || unset "$name"
    done
}

# In a subshell: what could be a variable of Slurm or of PMI. No program is started for it.
names_of_step() {
    set -f
    IFS='
'
    for line in $(set); do
        name=${line%%=*}
        case $name in
        *[!A-Za-z0-9_]*) ;;
        SLURM_* | SLURMD_* | PMI_* | PMIX_*) [ "$name" = "$line" ] || echo "$name" ;;
        esac
    done
}

# begin_script: what every script that Slurm or ReFrame starts needs first, in the stage directory:
# `stage`, `job` and `node`, and an environment that no user has shaped.
# shellcheck disable=SC2034  # read by the scripts that source this one
begin_script() {
    umask o-w
    unset IFS # with some values the static busybox of Debian crashes
    LC_ALL=C TZ=UTC
    export LC_ALL TZ
    stage=$(pwd) job=${SLURM_JOB_ID:-local} node=${SLURMD_NODENAME:-$SITEPROOF_NODE}
    forget_step
    forget_variables
}

# A clean set, where the check asks for one: what a user has exported must not decide how fast a
# node is.
forget_variables() {
    [ "${SITEPROOF_CLEAN:-no}" = yes ] || return 0
    for name in $(account names); do
        unset "$name"
    done
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
        [ -z "${LOADEDMODULES:-}" ] || echo "modules=$LOADEDMODULES"
        ! processor_is_emulated || echo emulated=processor
        timed_account before cpus hardware swap memory kills values "limit=$3" start
    } >meta
    read -r began _ <"$proc/uptime"
    : >facts # the script adds KEY=VALUE lines: program, n, threads …
}

# Whether this node is a virtual machine of QEMU whose processor is software. A model of its own name
# is in cpuinfo; others are known by what CPUID has for hypervisors, which systemd-detect-virt reads.
processor_is_emulated() {
    grep -qs '^model name.*QEMU TCG' "$proc/cpuinfo" ||
        [ "$(systemd-detect-virt --vm 2>/dev/null)" = qemu ]
}

# end_account CODE: the rest of meta. A full disk cuts files short without a word: false then.
end_account() {
    ending=$(timed_account after swap kills end) log=''
    [ "$1" -eq 0 ] || log=$(oom_log "$began")
    printf '%s\n' "exit=$1" "${ending%end=*}${log:+$log
}end=${ending##*end=}" >>meta
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

digest() ( # of the files of a result, sorted by name; as siteproof/collect/raw.py makes it
    set +f
    set --
    for part in facts meta run.[0-9]*/dims run.[0-9]*/exit run.[0-9]*/stdout run.[0-9]*/stderr \
        stderr stdout; do
        [ ! -f "$part" ] || set -- "$@" "$part"
    done
    if [ -d run.1 ]; then # they may be too many for one command, and are not sorted
        printf '%s\n' "$@" | sort | xargs sha256sum --
    else
        sha256sum -- "$@"
    fi | sha256sum | {
        read -r sum _
        echo "$sum"
    }
)

need() { # PROGRAM: ends with the code of a program that is missing
    command -v "$1" >/dev/null && return
    echo "$1 is not installed" >&2
    exit 127
}

# measure PROGRAM [WORD...]: all of a check without a script. What it reports as an error is part of
# its output: BabelStream ends with 0 where its arrays are wrong.
measure() {
    need "$1"
    echo "program=$1" >>facts
    exec "$@" 2>&1
}

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
clock=0 # an expression of awk; never that of the environment

# slurm_memory: sets slurm_mib, MiB of this node that Slurm gives the job: what was requested, or all
# that slurm.conf has for the node (memory_of_nodes: NODE MIB lines; 1 means unknown to Slurm).
slurm_memory() {
    slurm_mib=0
    if is_whole "${SLURM_MEM_PER_NODE:-}"; then
        slurm_mib=$SLURM_MEM_PER_NODE
    elif is_whole "${SLURM_MEM_PER_CPU:-}" && is_whole "${SLURM_CPUS_ON_NODE:-}"; then
        slurm_mib=$((SLURM_MEM_PER_CPU * SLURM_CPUS_ON_NODE))
    elif [ -r memory_of_nodes ]; then
        while read -r name mib; do
            [ "$name" != "${SLURMD_NODENAME:-}" ] || [ "$mib" = 1 ] || ! is_whole "$mib" ||
                slurm_mib=$mib
        done <memory_of_nodes
    fi
}

is_whole() { # WORD: whether it is a whole number above 0
    case $1 in
    '' | 0* | *[!0-9]* | ?????????????*) return 1 ;;
    esac
}

# in_groups KIND CONTROLLER V1FILE V2FILE [job]: adds to `groups` a line KIND FILE for each of these
# files of every group that holds this process, the innermost first; with `job` of none above the
# job's own.
in_groups() {
    while IFS=: read -r number controllers path; do
        case $number:,$controllers, in
        0:,,) top=$cgroups file=$4 ;;
        *,"$2",*)
            top=$cgroups/$2 file=$3
            [ -d "$top" ] || top=$cgroups/$controllers
            ;;
        *) continue ;;
        esac
        path=${path%/}
        while :; do
            [ ! -r "$top$path/$file" ] || groups="$groups$1 $top$path/$file
"
            case ${5:-},$path in
            ,* | job,*/job_[0-9]*/*) ;;
            job,*) break ;;
            esac
            [ -n "$path" ] || break
            path=${path%/*}
        done
    done 2>/dev/null <"$proc/self/cgroup"
}

# account FIELD...: lines of meta, or other words, by one program, as this runs on every node for
# every check.
#   before, after   of which moment `swap` and `kills` are
#   cpus            processors on which this process may run; fewer where a quota gives it less time
#   hardware        processor, flags, memory
#   swap            pages written to it
#   memory          the least of what the kernel has, the groups allow and Slurm gives, and whose
#                   word that is
#   kills           how many processes the kernel has killed by now, on the node and of the job. In
#                   v2 a group counts those of the groups within it, in v1 only its own.
#   values          env.NAME=VALUE of the variables that steer a library (SITEPROOF_STEERING: names,
#                   or beginnings with *)
#   names           of those of them that are not wanted (all but SITEPROOF_WANTED)
#   KEY=VALUE       itself
#   start, end      the time, by timed_account only
account() (
    groups='' cpus=0
    case " $* " in
    *' cpus '*)
        cpus=$(nproc)
        in_groups quota cpu cpu.cfs_quota_us cpu.max
        in_groups period cpu cpu.cfs_period_us none
        ;;
    esac
    case " $* " in *' memory '*) in_groups limit memory memory.limit_in_bytes memory.max ;; esac
    case " $* " in *' kills '*) in_groups kills memory memory.oom_control memory.events job ;; esac
    exec awk '
        function of_groups(kind,    i, file) { # each line of these files to take()
            for (i = 1; i in group; i++) {
                if (index(group[i], kind " ") != 1) continue
                file = substr(group[i], length(kind) + 2)
                while ((getline < file) > 0) take(kind)
                close(file)
            }
        }
        function take(kind) {
            if (kind == "limit" && /^[0-9]+$/) least_memory(sprintf("%.0f", $1 / 1024), "cgroup")
            if (kind == "quota" && NF == 1) quota[++quotas] = $1 # v1; -1 or max: none
            if (kind == "quota" && NF == 2 && $1 + 0 > 0) share($1 / $2) # v2: with its period
            if (kind == "period" && quota[++periods] + 0 > 0) share(quota[periods] / $1)
            if (kind == "kills" && $1 == "oom_kill_disable") v1 = 1
            if (kind == "kills" && $1 == "oom_kill") {
                counted = 1
                sum += $2
                if ($2 + 0 > most) most = $2 + 0
            }
        }
        function share(of) {
            of = int(of) + (of > int(of))
            if (of < cpus) cpus = of
        }
        function least_memory(kib, whose) {
            if (kib + 0 > 0 && (!least || kib + 0 < least)) { least = kib + 0; by = whose }
        }
        function value(file, key,    found) { # of the line that begins with this word
            while ((getline < file) > 0) if ($1 == key) { found = $2; break }
            close(file)
            return found
        }
        function hardware(    name, seen) {
            while ((getline < "/proc/cpuinfo") > 0 && !(("processor" in seen) && ("flags" in seen))) {
                name = /^model name/ ? "processor" : /^flags/ ? "flags" : ""
                sub(/^[^:]*: */, "")
                if (name && !seen[name]++) print name "=" $0
            }
            show("memory_kib", value("/proc/meminfo", "MemTotal:"))
        }
        function show(key, found) {
            if (found != "") print key "=" found
        }
        function memory() {
            least_memory(value(proc "/meminfo", "MemTotal:"), "kernel")
            of_groups("limit")
            least_memory(slurm * 1024, "Slurm")
            if (least) printf "memory_given_kib=%.0f\nmemory_given_by=%s\n", least, by
        }
        function kills() {
            show("oom_kills_" moment, value(proc "/vmstat", "oom_kill"))
            of_groups("kills")
            if (counted) print "job_oom_kills_" moment "=" (v1 ? sum : most) + 0
        }
        function named(name, list,    n, word, i, star) {
            n = split(list, word, " ")
            for (i = 1; i <= n; i++) {
                star = sub(/[*]$/, "", word[i])
                if ((star ? substr(name, 1, length(word[i])) : name) == word[i]) return 1
            }
            return 0
        }
        function variables(how,    name, text) {
            for (name in ENVIRON) {
                text = ENVIRON[name]
                if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/) continue
                if (!named(name, ENVIRON["SITEPROOF_STEERING"])) continue
                # Where the software lies is no setting, nor is what Slurm itself sets in each job.
                if (name ~ /_(ROOT|DIR|HOME|PREFIX|PATH)$/ || name ~ /_precondition_transports$/)
                    continue
                if (name ~ /^((OMPI|PRTE)_MCA_plm_slurm_args|I_MPI_HYDRA_BOOTSTRAP(_EXEC_EXTRA_ARGS)?)$/)
                    continue
                gsub(/[^ -~]/, "?", text)
                if (how == "values") show("env." name, substr(text, 1, 200))
                else if (!named(name, ENVIRON["SITEPROOF_WANTED"])) print name
            }
        }
        BEGIN {
            proc = ARGV[1]
            slurm = ARGV[2]
            cpus = ARGV[3] + 0
            split(ARGV[4], group, "\n")
            for (i = 5; i < ARGC; i++) {
                field = ARGV[i]
                if (field == "before" || field == "after") moment = field
                else if (field == "cpus") {
                    of_groups("quota")
                    of_groups("period")
                    print "cpus=" cpus
                }
                else if (field == "hardware") hardware()
                else if (field == "swap") show("swap_" moment, value("/proc/vmstat", "pswpout"))
                else if (field == "memory") memory()
                else if (field == "kills") kills()
                else if (field == "values" || field == "names") variables(field)
                else if (field == "start" || field == "end") print field "=" '"$clock"'
                else print field
            }
        }' "$proc" "${slurm_mib:-0}" "$cpus" "$groups" "$@"
)

# The same with a clock: that of awk, where it has one, or else that of another program.
timed_account() {
    clock='systime()'
    account "$@" 2>/dev/null && return
    clock=$(date +%s)
    account "$@"
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

# need_modules STAGE: ends this shell where the batch script lacks a module that the site names.
need_modules() {
    [ -s "$1/modules_missing" ] || return 0
    head -n 1 "$1/modules_missing" >&2
    exit 127
}

# first_to_go: what this shell starts dies before the scripts that account for it.
first_to_go() {
    { echo 500 >"$proc/self/oom_score_adj"; } 2>/dev/null || :
}
