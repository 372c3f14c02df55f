# shellcheck shell=sh disable=SC2154  # file_system.sh sets top
# What a Lustre file system is like before anything is written to it: targets that are full or
# disabled, and the striping that new files have. Sourced by file_system.sh; `top`, where it is
# mounted, and `stop` are there. Settings: MAX_FULL (per cent), STRIPE_COUNT, STRIPE_SIZE (bytes)
# and STRIPE_POOL, empty where the site asks for none.
# Written after the Lustre manual and the man pages of lfs (2.15); it never ran on Lustre.
LUSTRE_PATIENCE=60 # seconds for a tool that waits for a dead server

# lustre_before: ends the test with the reason where nothing should be written.
lustre_before() {
    if ! command -v lfs >/dev/null; then
        echo "lustre_warning=targets and striping not read: lfs is not installed" >>facts
        [ -z "$STRIPE_COUNT$STRIPE_SIZE$STRIPE_POOL" ] ||
            stop "$FS_PATH: the site names a striping, and lfs, which sets it, is not installed"
        return 0
    fi
    # Its exit code is not 0 where some targets do not answer, and the others are printed.
    { timeout "$LUSTRE_PATIENCE" lfs df "$top" && timeout "$LUSTRE_PATIENCE" lfs df -i "$top"; } \
        >lustre.df 2>&1 || echo "lfs df ended with $?" >>lustre.df
    lustre_trouble <lustre.df >lustre.trouble
    degraded=$(lustre_degraded <lustre.df)
    [ -z "$degraded" ] || echo "lustre_warning=degraded targets, which are slower: $degraded" >>facts
    [ ! -s lustre.trouble ] || stop "$FS_PATH: $(head -n 5 lustre.trouble | paste -s -d ';' - | sed 's/;/; /g')"
}

# lustre_trouble: a line for each target that is inactive, takes no new objects, or is too full.
# Flags stand after the target's index: R read-only, N no new objects, S no space, I no inodes.
lustre_trouble() {
    awk -v most="$MAX_FULL" '
        /^lfs df ended/ { ended = $0; next }
        /^UUID/ { what = /Inodes/ ? "of its inodes used" : "full"; next }
        $2 == ":" && $1 ~ /^[^ ]+$/ || $1 ~ /:$/ && $1 != "filesystem_summary:" {
            name = $1; sub(/:$/, "", name)
            why = $0; sub(/^[^:]*: */, "", why)
            if (!seen[name]++) print name " " (why ~ /inactive/ ? "is inactive" : "does not answer: " why)
            bad++
            next
        }
        match($0, /\[(OST|MDT):[0-9]+\]/) {
            targets++
            flags = substr($0, RSTART + RLENGTH); gsub(/[ \t]/, "", flags)
            full = $5; sub(/%$/, "", full)
            if (flags ~ /[RNSI]/ && !seen[$1]++) print $1 " takes no new objects (" flags ")"
            else if (full ~ /^[0-9]+$/ && full + 0 > most + 0 && !seen[$1]++)
                print $1 ": " full " % " what ", at most " most " % are allowed"
        }
        END {
            if (!targets) print "lfs df names no target"
            else if (ended != "" && !bad) print ended
        }'
}

# lustre_degraded: the first targets with the flag D, whose RAID is degraded or rebuilt, by blanks.
lustre_degraded() {
    awk 'match($0, /\[(OST|MDT):[0-9]+\]/) && substr($0, RSTART + RLENGTH) ~ /D/ && !seen[$1]++ {
        print $1 }' | head -n 5 | paste -s -d ' ' -
}

# lustre_striping FOLDER: as the site asks for; what a new file there has are facts.
lustre_striping() {
    command -v lfs >/dev/null || return 0
    if [ -n "$STRIPE_COUNT$STRIPE_SIZE$STRIPE_POOL" ]; then
        timeout "$LUSTRE_PATIENCE" lfs setstripe ${STRIPE_COUNT:+-c "$STRIPE_COUNT"} \
            ${STRIPE_SIZE:+-S "$STRIPE_SIZE"} ${STRIPE_POOL:+-p "$STRIPE_POOL"} "$1" 2>lustre.why ||
            stop "$FS_PATH: lfs setstripe failed: $(head -n 1 lustre.why)"
    fi
    : >"$1/test.0" || stop "$FS_PATH: cannot be written to"
    timeout "$LUSTRE_PATIENCE" lfs getstripe -y "$1/test.0" >lustre.layout 2>lustre.why ||
        stop "$FS_PATH: lfs getstripe failed: $(head -n 1 lustre.why)"
    rm -f -- "$1/test.0"
    had_count=$(lustre_field stripe_count) had_size=$(lustre_field stripe_size)
    had_pool=$(lustre_field pool)
    [ -n "$had_count" ] || stop "$FS_PATH: lfs getstripe -y names no stripe count"
    {
        echo "stripe_count=$had_count"
        echo "stripe_size=$had_size"
        echo "stripe_pool=${had_pool:-none}"
    } >>facts
    # -1 asks for all targets; how many these are, the file shows.
    lustre_differs count "${STRIPE_COUNT#-1}" "$had_count"
    lustre_differs size "$STRIPE_SIZE" "$had_size"
    lustre_differs pool "$STRIPE_POOL" "$had_pool"
}

# lustre_field NAME: its values in the layout, of each component of a composite one, by commas.
lustre_field() {
    sed -n "s/^[ -]*\(lmm_\)\{0,1\}$1: *\([A-Za-z0-9_.-]\{1,40\}\) *\$/\2/p" lustre.layout |
        head -n 32 | paste -s -d , -
}

lustre_differs() { # WHAT WANTED HAD
    [ -z "$2" ] || [ "$2" = "$3" ] ||
        stop "$FS_PATH: stripe $1 ${3:-none}, the site names $2"
}
