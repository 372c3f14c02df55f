# shellcheck shell=sh disable=SC2154,SC2317  # `stated`, spool and drain are in front of it
# The health of a node: what `stated` of the file that `siteproof health` writes calls, in front of
# this text. One line, and exit code 1 where something is not as stated. It reads /proc and /sys, and
# of file systems only those of `free`; it writes nothing but its record, and that only if it changes.
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}
LC_ALL=C
export PATH LC_ALL
umask 022
PATIENCE=0.5    # seconds for all file systems of `free` together
LONGEST=400     # bytes of what is wrong
LARGEST=65536   # bytes of the record, which then gets the name NAME.old
wrong='' late='' silent='' watchdog='' value=''

bad() { wrong="$wrong${wrong:+; }$1"; }

get() { # FILE: its first line in `value`, with one blank between words; empty if there is none
    value=''
    [ -r "$1" ] || return 1
    { read -r value; } 2>/dev/null <"$1"
    set -f
    # shellcheck disable=SC2086
    set -- $value
    value=$*
    set +f
    [ -n "$value" ]
}

shown() { # `value` as it may stand in the line
    case $value in
        '') value=nothing ;;
        *[!A-Za-z0-9_.,:/+\ -]*) value='another text' ;;
    esac
    [ ${#value} -le 60 ] || value='another text'
}

number() { # FILE: as get, 0 if it is no number
    get "$1"
    case $value in '' | *[!0-9]* | ???????????????????*) value=0 ;; esac
}

memory() { # KIB TEXT
    total=0
    { read -r _ total _; } </proc/meminfo
    [ "$total" -ge "$1" ] || bad "memory $((total / 1024)) MiB, stated $2"
}

processors() { # LOWEST HIGHEST: how many hardware threads are online
    get /sys/devices/system/cpu/online
    online=0
    case $value in
        *[!0-9,-]*) ;;
        *)
            IFS=,
            for range in $value; do online=$((online + ${range#*-} - ${range%-*} + 1)); done
            unset IFS
            ;;
    esac
    if [ "$online" -lt "$1" ]; then
        bad "$online processors, stated $1"
    elif [ "$online" -gt "$2" ]; then
        bad "$online processors, stated $2"
    fi
}

mount_of() { # PATH KIND, both as in /proc/mounts
    [ -n "${mounts:-}" ] || mounts=$(cat /proc/mounts)
    at=$1
    while :; do
        case $mounts in
            *" $at $2 ro,"* | *" $at $2 ro "*) bad "$1 is read-only"; return ;;
            *" $at $2 "* | *" $at autofs "*) return ;;
            *" $at "[!/]*) break ;; # of another kind
        esac
        [ "$at" != / ] || break
        at=${at%/*}
        at=${at:-/}
    done
    bad "$1 is not mounted as $2"
}

interface() { # NAME MB/S MTU: 0 is not stated
    nic=/sys/class/net/$1
    [ -d "$nic" ] || { bad "no interface $1"; return; }
    get "$nic/operstate"
    case $value in up | unknown) ;; *) shown; bad "$1 is $value"; return ;; esac
    if [ "$2" -gt 0 ]; then
        number "$nic/speed"
        [ "$value" -ge "$2" ] || bad "$1 has $value Mb/s, stated $2"
    fi
    number "$nic/mtu"
    [ "$value" -ge "$3" ] || bad "$1 has an MTU of $value, stated $3"
}

infiniband() { # DEVICE PORT GB/S: 0 is not stated
    port=/sys/class/infiniband/$1/ports/$2
    [ -d "$port" ] || { bad "no port $1:$2"; return; }
    get "$port/state"
    case $value in *ACTIVE) ;; *) shown; bad "$1:$2 is $value"; return ;; esac
    get "$port/rate"
    rate=${value%%[!0-9]*}
    [ "${rate:-0}" -ge "$3" ] || bad "$1:$2 has ${rate:-0} Gb/s, stated $3"
}

version() { # FIELD FILE VALUE...: values are globs
    field=$1 file=$2
    shift 2
    get "$file"
    for glob; do
        # shellcheck disable=SC2254
        case $value in $glob) return ;; esac
    done
    shown
    bad "$field is $value"
}

gpus() { # NUMBER
    found=0
    for device in /dev/nvidia[0-9]*; do
        [ ! -c "$device" ] || found=$((found + 1))
    done
    if [ "$found" -eq 0 ]; then
        for device in /sys/class/drm/renderD*; do
            [ ! -d "$device/device" ] || found=$((found + 1))
        done
    fi
    [ "$found" -eq "$1" ] || bad "$found GPUs, stated $1"
}

sum() { # FILE...: in `value`
    all=0
    for file; do
        number "$file"
        all=$((all + value))
    done
    value=$all
}

memory_errors() { # CORRECTED UNCORRECTED: empty is not stated
    controllers=/sys/devices/system/edac/mc
    sum "$controllers"/mc*/ce_count
    [ "$value" -le "${1:-$value}" ] || bad "more than $1 corrected memory errors"
    sum "$controllers"/mc*/ue_count
    [ "$value" -le "${2:-$value}" ] || bad "more than $2 uncorrected memory errors"
}

file_system_errors() { # LIMIT
    sum /sys/fs/ext4/*/errors_count
    [ "$value" -le "$1" ] || bad "more than $1 errors of ext4 file systems"
}

zombies() { # LIMIT
    found=0
    set -f
    IFS='
'
    for line in $(set +f && cat /proc/[0-9]*/stat 2>/dev/null); do
        case $line in *') Z '*) found=$((found + 1)) ;; esac
    done
    unset IFS
    set +f
    [ "$found" -le "$1" ] || bad "more than $1 zombies"
}

leftover_processes() { # LIMIT: of users none of whose processes belongs to a job of Slurm
    with_job=' ' without='' found=0
    # shellcheck disable=SC2046
    set -- "$1" $(stat -c '%u %n' /proc/[0-9]* 2>/dev/null)
    most=$1
    shift
    while [ $# -gt 1 ]; do
        if [ "$1" -ge 1000 ] && [ "$1" -ne 65534 ]; then
            case $with_job in
                *" $1 "*) ;;
                *) if of_job "$2/cgroup"; then with_job="$with_job$1 "; else without="$without $1"; fi ;;
            esac
        fi
        shift 2
    done
    for user in $without; do
        case $with_job in *" $user "*) ;; *) found=$((found + 1)) ;; esac
    done
    [ "$found" -le "$most" ] || bad "more than $most processes of users without a job"
}

of_job() { # FILE: whether a list of cgroups has one of a job
    [ -r "$1" ] || return 0 # it has ended
    while read -r group; do
        case $group in
            */user.slice/*) ;; # its user names what is below
            */job_[0-9]*) return 0 ;;
        esac
    done 2>/dev/null <"$1"
    return 1
}

free() { # PATH KIB TEXT: in the background, as nothing ends a process whose file system hangs
    [ -z "$silent" ] || return 0
    if [ -z "$watchdog" ]; then
        trap 'late=yes' USR1
        # More than once, as a signal before `wait` does not end it.
        while sleep "$PATIENCE" && kill -s USR1 $$; do :; done >/dev/null 2>&1 &
        watchdog=$!
    fi
    (
        # shellcheck disable=SC2046
        set -- "$2" $(stat -f -c '%a %S' -- "$1") || exit 2
        [ $# -eq 3 ] || exit 2
        [ $(($2 * ($3 / 512) / 2)) -ge "$1" ] || exit 1
    ) >/dev/null 2>&1 </dev/null &
    wait $!
    case $late$? in
        0) ;;
        1) bad "less than $3 free in $1" ;;
        2) bad "$1 cannot be read" ;;
        *) silent=yes; bad "$1 does not answer" ;;
    esac
}

clock_offset() { # MICROSECONDS TEXT
    if ! found=$(timeout "$PATIENCE" chronyc -c tracking 2>/dev/null); then
        bad "chronyc does not answer, so the clock is not known"
        return
    fi
    case $found in *,Normal) ;; *) bad "the clock is not synchronised"; return ;; esac
    found=${found#*,*,*,*,}
    found=${found%%,*}
    found=${found#[-+]}
    seconds=${found%.*} rest=${found#*.}000000
    micro=1${rest%"${rest#??????}"}
    case $seconds$micro in *[!0-9]*) bad "chronyc: unknown output"; return ;; esac
    [ $((seconds * 1000000 + micro - 1000000)) -le "$1" ] || bad "the clock is off by more than $2"
}

is_safe() { # whether this folder is `spool` and no link, and only this user can change it
    above=$(cd -P -- "${spool%/*}/" && pwd -P) || return 1
    [ "$(pwd -P)" = "${above%/}/${spool##*/}" ] && [ -O . ] || return 1
    case $(stat -c %a .) in '' | *[2367] | *[2367]?) return 1 ;; esac
    [ ! -L health ] && { [ ! -e health ] || { [ -f health ] && [ -O health ]; }; }
}

take_out() { # drain this node, unless it is out of service; false where Slurm does not answer
    node=${SLURMD_NODENAME:-}
    if [ -z "$node" ]; then
        get /proc/sys/kernel/hostname
        node=${value%%.*}
    fi
    now=$(timeout 5 scontrol -o show node "$node" 2>/dev/null) || return
    now=${now#* State=}
    case ${now%% *} in *DRAIN* | *DOWN* | *FAIL*) return ;; esac
    timeout 5 scontrol update NodeName="$node" State=DRAIN Reason='health check: siteproof' \
        >/dev/null 2>&1
}

note() { # append the state to the record if it is another than the last one
    [ -d "$spool" ] || mkdir "$spool" 2>/dev/null
    # In it, so that nobody can put another folder in its place meanwhile.
    if ! cd -P -- "$spool" 2>/dev/null || ! is_safe; then
        problem="$spool is not a folder that only this user can write to"
        return
    fi
    last=$(tail -n 1 health 2>/dev/null)
    [ "${last#* }" != "$state" ] || return 0
    if [ "$drain" = yes ] && [ -n "$wrong" ]; then
        take_out || { problem="not drained, as Slurm does not answer"; return; }
    fi
    if [ -e health ] && [ "$(stat -c %s health)" -ge $LARGEST ]; then
        rotate
    fi
    { printf '%s %s\n' "$(date +%s)" "$state" >>health; } 2>/dev/null ||
        problem="$record cannot be written"
}

rotate() { # of two at the same time one finds the record that the other has begun: it puts it back
    mv -f health "health.$$" 2>/dev/null || return 0
    if [ "$(stat -c %s "health.$$")" -ge $LARGEST ]; then
        mv -f "health.$$" health.old
    else
        cat "health.$$" >>health
        rm -f "health.$$"
    fi
}

report() { # for the check NodeHealth: the state, and what the record has
    printf 'now %s\n' "$state"
    if [ ! -L "$record" ] && [ -f "$record" ] && [ -r "$record" ]; then
        tail -n 200 "$record" | {
            count=0
            while IFS= read -r line; do
                printf 'record %s\n' "$line"
                count=$((count + 1))
            done
            echo "records $count"
        }
    else
        printf 'unreadable record no readable file %s\n' "$record"
        echo "records 0"
    fi
    echo "end node health"
}

stated
[ -z "$watchdog" ] || kill "$watchdog" 2>/dev/null
[ ${#wrong} -le $LONGEST ] || wrong=$(printf "%.${LONGEST}s..." "$wrong")
state=OK
[ -z "$wrong" ] || state="BAD $wrong"
record=$spool/health problem=''
if [ "${1:-}" = --report ]; then
    report
    exit 0
fi
note
printf '%s\n' "$state${problem:+; $problem}"  # echo of dash changes backslashes
[ "$state$problem" != OK ] || exit 0
case ${SLURM_SCRIPT_CONTEXT:-} in
    # Slurm drains a node whose prolog or epilog fails.
    prolog* | epilog*) [ "$drain" = yes ] || exit 0 ;;
esac
exit 1
