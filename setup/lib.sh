# shellcheck shell=sh
# What the setup scripts share. Sourced first, from anywhere in the clone's setup/.

# shellcheck disable=SC2034 # for the scripts that source this
top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

say() { printf 'siteproof: %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# follow STATE LOG COMMAND...: runs a command whose output goes to LOG. Every ten seconds a line that
# fits the terminal says what STATE, a function, prints. Sets job, so that a trap can end it.
follow() {
    state=$1 log=$2
    shift 2
    "$@" >>"$log" 2>&1 </dev/null 9>&- &
    job=$! begun=$(date +%s) told=0
    while kill -0 "$job" 2>/dev/null; do
        sleep .5
        seconds=$(($(date +%s) - begun))
        if [ $((seconds / 10)) -gt "$told" ]; then
            told=$((seconds / 10))
            say "$seconds s: $("$state")" | cut -c "1-$(width)"
        fi
    done
    wait "$job"
}

# Columns of the terminal; 80 where there is none.
width() {
    columns=${COLUMNS:-$(stty size 2>/dev/null <&2 | cut -d' ' -f2)}
    [ "${columns:-0}" -gt 0 ] 2>/dev/null || columns=80
    echo "$columns"
}
