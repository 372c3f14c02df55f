#!/bin/sh
# Walk the points of a sweep on the job's first node, and create raw/NUMBER/ of each, whole or not at
# all. No srun around it: what measures a point starts its own ranks (launch.sh).
#
# points: NUMBER LIMIT NODES TASKS TASKS_PER_NODE TRIAL COMBINATION KEY=VALUE..., in the order of the
# walk; KEY in capitals. ./measure.sh runs in raw/.NUMBER.ATTEMPT/ under `timeout LIMIT`, after
# account.sh and launch.sh, with $1 = the stage directory and these variables, all exported:
#   NODES            names of the point's nodes, the first of the job's; NODE_COUNT: how many
#   TASKS TASKS_PER_NODE TRIAL
#   POINT_KEY        of each KEY=VALUE (POINT_TRANSFER)
#   POINT_NUMBER POINT_FOLDER POINT_LIMIT
#   JOB_NODES        names of all nodes of the job
# and those of the check's settings(). `facts` lines (KEY=VALUE) become conditions.
#
# A tuning sweep has knob.sh in the stage directory; it is sourced here, once, and called in this
# shell, in the stage directory ($stage): `knobs_set COMBINATION NODE...` before each point, with all
# nodes of the job; `knobs_facts` for the facts of its points; `knobs_restore` at the end, however
# the walk ends. Where knobs_set fails, also because it could not restore what was set before, no
# point of that combination is measured, and its stderr has the reason. COMBINATION 0: no knobs.
# shellcheck disable=SC2031  # account.sh has variables of the same names, in subshells
set +eCvx -uf # what an exported SHELLOPTS may set
# shellcheck source=/dev/null
. ./settings
# shellcheck source=siteproof/checks/on_node/account.sh
. ./account.sh
begin_script
SWEEP_STAGE=$stage
if [ -n "$SWEEP_SRUN" ] && [ -z "$SITEPROOF_MPI" ]; then
    # From 24.11 on it is (null) where slurm.conf sets none.
    SITEPROOF_MPI=$(scontrol show config 2>/dev/null | sed -n 's/(null)//; s/^MpiDefault *= *//p')
fi
export SWEEP_STAGE
child='' before='' knobs=0 knob_trouble=''

# The clock, without a process for it: seconds since 1970.
read -r up _ </proc/uptime
base=$(($(date +%s) - ${up%.*}))
look_at_clock() {
    read -r up _ </proc/uptime
    now=$((base + ${up%.*}))
}

# The account of this node, made once: no point has time for it.
make_account() {
    mkdir -p raw/.account && cd raw/.account || exit 1
    begin_account "$node" "$job" 0
    account=$(grep -v '^limit=\|^start=\|^swap_before=\|oom_kills_before=' meta)
    kills=$(grep 'oom_kills_before=' meta)
    cd "$SWEEP_STAGE" || exit 1
}

end_early() {
    trap '' HUP INT TERM
    if [ "$child" = starting ]; then # the signal fell between the start and the line that names it
        child=${!:-}
        [ "$child" != "$before" ] || child=''
    fi
    if [ -n "$child" ]; then
        # A shell just forked forgets signals until it has cleared its traps, which it does before
        # it opens its output; on a busy node that may take long.
        until [ -e "$mine/stdout" ] || ! kill -0 "$child" 2>/dev/null; do sleep 0.05; done
        kill "$child" 2>/dev/null
        wait "$child"
        end_strays
    fi
    exit 143 # a cancelled point leaves no result, rather than half of one
}

# turn_knobs COMBINATION: as a point needs them; knob_trouble: it cannot be measured.
turn_knobs() {
    [ "$1" -ne 0 ] || return 0
    [ "$1" -ne "$knobs" ] || [ -z "$knob_trouble" ] || return 0 # it failed before
    # shellcheck disable=SC2086  # a list of nodes
    knobs_set "$1" $JOB_NODES 2>knobs.err
    case $?,$1 in
    0,"$knobs") ;;
    0,*) knob_trouble='' && knobs_facts >knobs.facts ;;
    127,*) knob_trouble=127 ;; # a program is missing
    *) knob_trouble=1 ;;
    esac
    knobs=$1
}

# deny: what is measured with these knobs does not count, for the reason in the last line of knobs.err.
deny() {
    echo "invalid=$(tail -n 1 "$stage/knobs.err")" >>facts
}

restore_knobs() {
    [ "$knobs" -ne 0 ] || return 0
    cd "$stage" && knobs_restore
}

# Ranks that outlive their point: steps of this job by their name, processes here by their mark.
end_strays() {
    if [ -n "$SWEEP_SRUN" ]; then
        tries=0
        while steps=$(timeout 10 squeue -h -s -j "$job" -o '%i %j' |
            awk -v name="siteproof-$number" '$2 == name { print $1 }') &&
            [ -n "$steps" ] && [ "$tries" -lt 20 ]; do
            # shellcheck disable=SC2086  # a list of steps
            timeout 10 scancel --signal=KILL $steps
            tries=$((tries + 1))
            sleep 0.5
        done
    fi
    set +f
    tries=0 # what is forked while the list is made is found in the next round
    while strays=$(with_mark) && [ -n "$strays" ] && [ "$tries" -lt 20 ]; do
        # shellcheck disable=SC2086  # a list of processes
        kill -KILL $strays 2>/dev/null
        tries=$((tries + 1))
        sleep 0.05
    done
    set -f
}

with_mark() { # processes of this point; busybox's grep knows no -z
    if echo | grep -qz '' 2>/dev/null; then
        grep -lzxF "SITEPROOF_POINT=$mine" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
        return
    fi
    for environ in /proc/[0-9]*/environ; do
        ! { tr '\0' '\n' <"$environ" | grep -qxF "SITEPROOF_POINT=$mine"; } 2>/dev/null ||
            echo "$environ" | cut -d/ -f3
    done
}

# Whether the nodes of a point that failed still start processes.
nodes_answer() {
    [ -n "$SWEEP_SRUN" ] || return 0
    # shellcheck disable=SC2086  # a list of nodes
    set -- $nodes
    set -- --jobid="$job" --overlap --job-name="siteproof-$number" --mpi=none \
        --nodes=$# --ntasks=$# --nodelist="$(echo "$nodes" | tr ' ' ,)" true
    eval "set -- ${SITEPROOF_SRUN_OPTIONS:-}"' "$@"'
    timeout -k 5 20 srun "$@" </dev/null >/dev/null 2>&1
}

wait_for_slurm() {
    [ "$SWEEP_PATIENCE" -gt 0 ] || return 0
    nodes_answer || {
        sleep "$SWEEP_PATIENCE" &
        wait $! # and a trap need not wait for it
        SWEEP_PATIENCE=0 # the cause was another one: no second wait
    }
}

first_nodes() { # COUNT: the names of so many nodes
    count=$1 nodes=''
    # shellcheck disable=SC2086  # a list of nodes
    set -- $JOB_NODES
    while [ "$count" -gt 0 ] && [ $# -gt 0 ]; do
        nodes="${nodes:+$nodes }$1"
        shift
        count=$((count - 1))
    done
}

# in_point KEY=VALUE...: what a point's own shell knows; then it measures, in its place.
in_point() {
    for pair; do
        export "POINT_$pair"
    done
    NODES=$nodes NODE_COUNT=$count_of TASKS=$tasks TASKS_PER_NODE=$per_node TRIAL=$trial
    POINT_NUMBER=$number POINT_FOLDER=$mine POINT_LIMIT=$limit SITEPROOF_POINT=$mine
    export NODES NODE_COUNT TASKS TASKS_PER_NODE TRIAL POINT_NUMBER POINT_FOLDER POINT_LIMIT \
        SITEPROOF_POINT
    # shellcheck disable=SC2016  # $1 is the inner shell's
    set -- -k 10 "$limit" sh -c \
        'set +efuCvx; . "$1/account.sh"; first_to_go; need_modules "$1"; . "$1/launch.sh"; . "$1/measure.sh"' \
        measure "$SWEEP_STAGE"
    [ "$SITEPROOF_TIMEOUT" = own ] || exec timeout "$@"
    timeout "$@"
}

# What the kernel has killed on this node since the last look; only a failed point needs it.
kills_of_point() {
    kills=$(account after kills)
    echo "$kills" >>meta
    kills=$(echo "$kills" | sed 's/_after=/_before=/')
}

# Ranks that ended by a signal that nobody sends: a fault of their own. Memory that ran out would run
# out once more.
crashed() {
    case $code in
    0 | 124 | 127) return 1 ;;
    esac
    ! grep -q '^invalid=' facts && [ -z "$knob_trouble" ] && ! ran_out_of_memory || return 1
    case $code in
    132 | 134 | 135 | 136 | 139) return 0 ;; # ILL, ABRT, BUS, FPE, SEGV
    esac
    grep -rqs "$FAULTS" .
}

ran_out_of_memory() {
    grep -rqsi 'out of memory\|oom[-_]kill event' . ||
        ! awk -F = '/oom_kills_before=/ { split($1, k, "_before"); b[k[1]] = $2 }
            /oom_kills_after=/ { split($1, k, "_after"); if ($2 > b[k[1]]) exit 1 }' meta
}

FAULTS='Segmentation fault\|Bus error\|Illegal instruction\|Floating[ -]point exception'

first_fault() { # one line: what the launcher or the shell printed of it
    { grep -rhs "$FAULTS" . || echo "exit code $code"; } | head -n 1 | tr -cd ' -~' | cut -c 1-200
}

# measure KEY=VALUE...: a point; once more where its ranks crashed, and then its facts say so. What
# the first attempt left stays in the stage directory.
measure() {
    crash=''
    attempt "$@" || return
    if crashed; then
        look_at_clock
        if [ $((now + limit)) -gt "$ends" ]; then
            echo "point $number crashed; the job's time limit leaves no room to repeat it"
        else
            end_strays
            crash=$(first_fault)
            cd "$SWEEP_STAGE" && rm -rf "$mine.crashed" && mv -- "$mine" "$mine.crashed" || return
            attempt "$@" || return
        fi
    fi
    seal "$node" "$number"
    cd "$SWEEP_STAGE" && into_place "$mine" "raw/$number"
}

attempt() { # KEY=VALUE...
    mine="$SWEEP_STAGE/raw/.$number.$SITEPROOF_ATTEMPT"
    rm -rf "$mine"
    mkdir "$mine" && cd "$mine" || return
    look_at_clock
    printf '%s\n' "$account" "$kills" "limit=$limit" "start=$now" >meta
    if [ "$knobs" -ne 0 ]; then cat "$stage/knobs.facts"; fi >facts
    [ -z "$crash" ] || echo "crashed=$crash" >>facts
    if [ -n "$knob_trouble" ]; then
        cat "$stage/knobs.err" >stderr
        : >stdout
        code=$knob_trouble
        [ "$code" -eq 127 ] || deny
    else
        before=${!:-} child=starting
        (in_point "$@") >stdout 2>stderr </dev/null &
        child=$!
        wait "$child"
        code=$?
        child=''
        case $code in 124 | 137) end_strays ;; esac
        [ "$knobs" -eq 0 ] || knobs_still_set 2>"$stage/knobs.err" || deny
        [ "$code" -eq 0 ] || kills_of_point
        # A dead node ends the job, once Slurm has noticed; its point is measured elsewhere.
        [ "$code" -eq 0 ] || wait_for_slurm
    fi
    look_at_clock
    # A full disk cuts files short: then there is no result.
    printf 'exit=%s\nend=%s\n' "$code" "$now" >>meta
}

if [ -e knob.sh ]; then
    # shellcheck source=/dev/null
    . ./knob.sh
fi
: >knobs.facts
make_account
look_at_clock
ends=$((now + SITEPROOF_LIMIT))
trap end_early HUP INT TERM
trap restore_knobs EXIT
while read -r number limit count_of tasks per_node trial combination rest; do
    [ ! -d "raw/$number" ] || continue # measured already; this is the second submission
    look_at_clock
    if [ $((now + limit)) -gt "$ends" ]; then
        echo "point $number and those after it: the job's time limit leaves no room for them"
        break
    fi
    turn_knobs "$combination"
    first_nodes "$count_of"
    # shellcheck disable=SC2086  # a list of pairs
    measure $rest || exit
done <points
