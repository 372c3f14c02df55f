#!/bin/sh
# Hold the knobs of a tuning sweep on this node.
#   sh knob_hold.sh hold FOLDER   note what they were, set them, read them back, wait for
#                                 FOLDER/release, restore them; also when it is ended by a signal
#   sh knob_hold.sh mend FOLDER   restore what an earlier holder, which was killed, has left
# FOLDER/wanted: lines KNOB, tab, VALUE; without a value it is only read. FOLDER/peers: addresses.
# Leaves in FOLDER: NODE.was before anything is set; then NODE.set (KNOB=VALUE, as read back) or
# NODE.failed (why); at the end NODE.restored, or NODE.stuck (what is not as it was). What was is
# also noted on the node, in /run, which lives as long as the values do: until the next boot.
set -u
LC_ALL=C
export LC_ALL
node=${SLURMD_NODENAME:-${SITEPROOF_NODE:-$(cat /proc/sys/kernel/hostname)}}
records=${SITEPROOF_KNOB_RECORDS:-/run/siteproof-knobs}
record=$records/$node
folder=$2
tab=$(printf '\t')
# shellcheck source=siteproof/checks/on_node/knob_kinds.sh
. "$(dirname "$0")/knob_kinds.sh"
PEERS=$(cat "$folder/peers" 2>/dev/null)

leave() { # NAME: what is read from stdin, whole or not at all
    cat >"$folder/.$node.$1" && mv -f "$folder/.$node.$1" "$folder/$node.$1"
}

fail() { # REASON…: the exit trap restores
    echo "$*" | leave failed
    exit 1
}

same_boot() {
    grep -qx "boot $(cat /proc/sys/kernel/random/boot_id)" "$record"
}

held() { # whether the record's holder still runs
    holder=$(sed -n 's/^holder //p' "$record")
    [ -n "$holder" ] && [ "$holder" != $$ ] &&
        tr '\0' ' ' <"/proc/$holder/cmdline" 2>/dev/null | grep -q 'knob_hold.sh hold'
}

# restore: the values of the record, last set first; lines HANDLE, tab, VALUE; then what is not so.
# No file of it lies on a disk: a full one would cut the list short, or say that nothing is wrong.
restore() {
    back=$(sed -n "s/^was$tab//p" "$record" | tac)
    for _ in 1 2; do # some values hold others down
        printf '%s\n' "$back" | while IFS=$tab read -r handle value; do
            # shellcheck disable=SC2086  # a handle is words
            is=$(value_of $handle 2>/dev/null) && same "$is" "$value" ||
                put "$value" $handle 2>/dev/null || :
        done
        wrong=$(printf '%s\n' "$back" | while IFS=$tab read -r handle value; do
            # shellcheck disable=SC2086
            is=$(value_of $handle 2>/dev/null) || is='unreadable'
            same "$is" "$value" || printf '%s\t%s\t%s\n' "$handle" "$is" "$value"
        done)
        [ -n "$wrong" ] || break
    done
    if [ -n "$wrong" ]; then
        printf '%s\n' "$wrong" | awk -F '\t' '{ print $1 " is " $2 ", and was " $3 }' | leave stuck
        return 1
    fi
    rm -f "$record"
    : | leave restored
}

mend() { # what an earlier holder has left; false where it could not be restored
    [ -e "$record" ] || return 0
    if ! same_boot; then
        rm -f "$record" # the values went with the boot
        return 0
    fi
    ! held || say "another sweep holds knobs of this node" || return
    restore || say "what an earlier sweep has left: $(cat "$folder/$node.stuck")"
}

note_what_was() { # handles and values, before anything is set
    : >"$folder/.$node.handles"
    while IFS=$tab read -r knob value; do
        found=$(handles "${knob#knob.}") || return
        echo "$found" | while read -r handle; do
            # shellcheck disable=SC2086
            is=$(value_of $handle) || say "$knob: cannot be read" || exit
            printf '%s\t%s\t%s\t%s\n' "$knob" "$handle" "$is" "$value"
        done >>"$folder/.$node.handles" || return
    done <"$folder/wanted"
    awk -F '\t' -v OFS='\t' '$4 != "" { print $2, $3 }' "$folder/.$node.handles" |
        leave was || return
    [ ! -s "$folder/$node.was" ] || keep_record || say "$record: cannot be written"
}

keep_record() {
    (umask 077 && mkdir -p "$records") || return
    {
        echo "boot $(cat /proc/sys/kernel/random/boot_id)"
        echo "holder $$"
        sed "s/^/was$tab/" "$folder/$node.was"
    } >"$record.new" && mv -f "$record.new" "$record"
}

set_all() {
    while IFS=$tab read -r knob handle is value; do
        # shellcheck disable=SC2086
        [ -z "$value" ] || same "$is" "$value" || put "$value" $handle ||
            say "$knob: '$value' was refused" || return
    done <"$folder/.$node.handles"
}

read_back() { # KNOB=VALUE, of several devices all different values; false where one is another
    while IFS=$tab read -r knob handle _ value; do
        # shellcheck disable=SC2086
        is=$(value_of $handle) || say "$knob: cannot be read" || return
        [ -z "$value" ] || same "$is" "$value" ||
            say "$knob: requested '$value', read back '$is' ($handle)" || return
        printf 'knob.%s=%s\n' "${knob#knob.}" "$is"
    done <"$folder/.$node.handles" >"$folder/.$node.values" || return
    distinct_values <"$folder/.$node.values"
}

finish() {
    trap '' HUP INT TERM
    trap - EXIT
    if [ -e "$record" ]; then
        restore 2>/dev/null
    else
        : | leave restored # nothing was set
    fi
    rm -f "$folder/.$node".*
}

hold() {
    why=$folder/.$node.why
    [ "$(id -u)" = 0 ] || ! cut -f 2 "$folder/wanted" | grep -q . ||
        fail "knobs are set by root, and this job is not root's"
    mend 2>"$why" || fail "$(tail -n 1 "$why")"
    rm -f "$folder/$node.restored"
    trap 'exit 143' HUP INT TERM
    trap finish EXIT
    note_what_was 2>"$why" || fail "$(tail -n 1 "$why")"
    set_all 2>"$why" || fail "$(tail -n 1 "$why")"
    read_back >"$folder/.$node.read" 2>"$why" || fail "$(tail -n 1 "$why")"
    leave set <"$folder/.$node.read"
    while [ ! -e "$folder/release" ] && [ -d "/proc/$PPID" ]; do sleep 1; done
}

case $1 in
hold) hold ;;
mend)
    mend
    code=$?
    rm -f "$folder/.$node".*
    exit $code
    ;;
esac
