# shellcheck shell=sh disable=SC2154  # sweep.sh sets stage
# The knobs of a tuning sweep, as the walker of its points sets and restores them. Sourced by
# sweep.sh; $stage is the stage directory. Each function prints on stderr why it fails.
#   knobs_set NUMBER NODE…   the combination NUMBER, on these nodes; where it is set already,
#                            nothing is done. 0: every node has read it back; 127: a program is
#                            missing; what failed leaves nothing set
#   knobs_facts              knob.NAME=VALUE as read back, for the facts of a point
#   knobs_still_set          false: a node has put them back, so what was measured does not count
#   knobs_restore            everything as it was. False: a node could not be restored, so nothing
#                            more may be measured; the end of the check names it, too
# $stage/knobs: lines NUMBER, tab, KNOB, tab, VALUE; without a value the machine's own is only read.
# KNOB_PEERS: addresses, for knobs of {interface}: the one that leads to them.
# On every node a step of its own holds the values (knob_hold.sh) and restores them when it is
# released, or ended by Slurm; its files are in $stage/knobs.d/TURN/.
# shellcheck source=siteproof/checks/on_node/knob_kinds.sh
. "$stage/knob_kinds.sh"
knobs_held='' knobs_turn=0 knobs_step=''
KNOB_WAIT=${KNOB_WAIT:-60} # seconds for all nodes to set and read back, and to restore

knobs_set() {
    [ "$knobs_held" != "$*" ] || ! kill -0 "$knobs_step" 2>/dev/null || return 0
    knobs_restore || return
    knobs_turn=$((knobs_turn + 1))
    knobs_folder=$stage/knobs.d/$SITEPROOF_ATTEMPT.$knobs_turn
    mkdir -p "$knobs_folder" || return
    awk -F '\t' -v OFS='\t' -v n="$1" '$1 == n { print $2, $3 }' "$stage/knobs" \
        >"$knobs_folder/wanted" || return
    echo "${KNOB_PEERS:-}" >"$knobs_folder/peers"
    knobs_held=$*
    shift
    knobs_nodes=$*
    knobs_launch hold "$@" >"$knobs_folder/log" 2>&1 </dev/null &
    knobs_step=$!
    knobs_wait_for set failed
    for knobs_node in $knobs_nodes; do
        [ -e "$knobs_folder/$knobs_node.set" ] || {
            knobs_why "$knobs_node" failed 'has not set its knobs' >&2
            knobs_restore
            ! grep -q 'is not installed' "$knobs_folder/$knobs_node.failed" 2>/dev/null ||
                return 127
            return 1
        }
    done
}

knobs_still_set() {
    kill -0 "$knobs_step" 2>/dev/null || {
        echo "the step that holds the knobs has ended" >&2
        return 1
    }
    for knobs_node in $knobs_nodes; do
        if [ -e "$knobs_folder/$knobs_node.restored" ] || [ -e "$knobs_folder/$knobs_node.stuck" ]
        then
            echo "$knobs_node: has put its knobs back" >&2
            return 1
        fi
    done
}

knobs_facts() { # all different values, if nodes differ
    for knobs_node in $knobs_nodes; do
        cat "$knobs_folder/$knobs_node.set"
    done | distinct_values
}

knobs_restore() {
    [ -n "$knobs_held" ] || return 0
    : >"$knobs_folder/release"
    knobs_wait_for restored stuck
    kill -0 "$knobs_step" 2>/dev/null && sleep 2 && kill "$knobs_step" 2>/dev/null
    wait "$knobs_step" 2>/dev/null
    knobs_held=''
    for knobs_node in $knobs_nodes; do # a holder that was killed
        knobs_is_back "$knobs_node" ||
            (knobs_launch mend "$knobs_node" >>"$knobs_folder/log" 2>&1 </dev/null)
    done
    knobs_left=0
    for knobs_node in $knobs_nodes; do
        knobs_is_back "$knobs_node" ||
            { knobs_left=1 && knobs_why "$knobs_node" stuck 'is not restored' >&2; }
    done
    return $knobs_left
}

knobs_is_back() { # NODE: restored, or it never began
    [ -e "$knobs_folder/$1.restored" ] || [ ! -s "$knobs_folder/$1.was" ]
}

knobs_why() { # NODE FILE WORDS
    echo "$1: $(cat "$knobs_folder/$1.$2" 2>/dev/null || echo "$3")"
}

knobs_launch() { # hold|mend NODE…: on each of them, or here where there is no Slurm
    what=$1
    shift
    if [ -n "${SITEPROOF_JOB:-${SLURM_JOB_ID:-}}" ]; then
        set -- --jobid="${SITEPROOF_JOB:-$SLURM_JOB_ID}" --overlap --nodes=$# --ntasks=$# \
            --ntasks-per-node=1 --nodelist="$(echo "$*" | tr ' ' ,)" --no-kill \
            --kill-on-bad-exit=0 --wait=0 --cpu-bind=none
        eval "set -- srun ${SITEPROOF_SRUN_OPTIONS:-}"' "$@"'
    else
        set -- env SITEPROOF_NODE="$1"
    fi
    [ "$what" = hold ] || set -- timeout -k 5 "$KNOB_WAIT" "$@"
    set -- "$@" sh "$stage/knob_hold.sh" "$what" "$knobs_folder"
    [ "$what" != hold ] || exec "$@"
    "$@"
}

knobs_wait_for() { # FILE FILE: until each node has left one, the step has ended, or too long
    knobs_until=$(($(date +%s) + KNOB_WAIT))
    while [ "$(date +%s)" -lt $knobs_until ] && kill -0 "$knobs_step" 2>/dev/null; do
        knobs_missing=0
        for knobs_node in $knobs_nodes; do
            [ -e "$knobs_folder/$knobs_node.$1" ] || [ -e "$knobs_folder/$knobs_node.$2" ] ||
                knobs_missing=1
        done
        [ $knobs_missing = 1 ] || return 0
        sleep 0.2
    done
}
