# shellcheck shell=sh
# What the storage checks share: a test folder of the node's own on a file system, nodes in turn,
# and what is known of the page cache. A measuring script sources it; $1 is the stage directory.
# Settings: FS_PATH, FS_KIND, FS_SHARED, NEEDED (bytes), TEST (a name), NODES, AT_ONCE, TURN (s),
# TOGETHER (nodes of all jobs at a time).
stage=$1
node=$(sed -n 's/^node=//p' meta)
user=$(id -u)
mark='siteproof storage test'
done_mark=siteproof-collected # what siteproof/record/manifest.py calls DONE

stop() { # a reason, where nothing can be measured
    echo "$*" >&2
    exit 1
}

# find_top: `top`, where the file system is mounted, and its `kind`, which must be the site's.
find_top() {
    top=$(cd -P -- "$FS_PATH" 2>/dev/null && pwd) || stop "$FS_PATH: does not exist, or cannot be entered"
    kind=$(kind_of "$top")
    case $FS_KIND/$kind in
    any/* | "$kind/$kind") ;;
    *) case $kind in
        "$FS_KIND"[0-9]* | fuse."$FS_KIND") ;; # nfs is nfs4, and ceph may be fuse.ceph
        *) stop "$FS_PATH: a file system of kind $kind, expected $FS_KIND as in the site: is it mounted?" ;;
        esac ;;
    esac
}

# begin_test: look at the file system before anything is written; then `folder` is there.
begin_test() {
    find_top
    sweep
    free=$(df -P -k -- "$top" | awk 'END { printf "%.0f", $4 * 1024 }')
    [ "$free" -ge "$NEEDED" ] ||
        stop "$FS_PATH: $((NEEDED / 1000000)) MB are needed, $((free / 1000000)) MB are free"
    case $kind in
    tmpfs | ramfs) must_have_memory ;;
    lustre)
        # shellcheck source=siteproof/checks/on_node/lustre_state.sh
        . "$stage/lustre_state.sh"
        lustre_before
        ;;
    esac
    folder=$(folder_of "$node") || exit
    mkdir -m 700 -- "$folder" 2>/dev/null || stop "$FS_PATH: no folder can be created there"
    trap 'exit 143' HUP INT TERM
    trap end_test EXIT
    # Both the name and this file mark the folder as ours: without both nothing is ever removed.
    printf '%s\n' "$mark" "$stage" "$node" "$(($(date +%s) + SITEPROOF_LIMIT + 3600))" \
        >"$folder/marker" || stop "$FS_PATH: cannot be written to"
    [ "$kind" != lustre ] || lustre_striping "$folder"
    {
        echo "inside=$(inside /)"
        echo "kind=$kind"
        echo "at_once=$TOGETHER"
    } >>facts
}

# What is written to a file system in memory is the job's memory.
must_have_memory() {
    given=$(awk -F = '$1 == "memory_given_kib" { printf "%.0f", $2 * 1024 }' meta)
    [ -z "$given" ] || [ "$given" -ge "$NEEDED" ] ||
        stop "$FS_PATH: $((NEEDED / 1000000)) MB are needed, the job has $((given / 1000000)) MB of memory"
}

end_test() {
    [ -n "${kept:-}" ] || remove "$folder"
    turn_over
}

# folder_of NODE: a name that no other user can take first, as SITEPROOF_SECRET is this job's own;
# who sees one node's name does not know another's.
folder_of() {
    secret=$(printf '%s %s' "${SITEPROOF_SECRET:-}" "$1" | sha256sum | cut -c 1-32)
    echo "$top/siteproof-test.$TEST.$1.$SITEPROOF_ATTEMPT.$secret"
}

# The kind of the file system that holds a path, as the kernel calls it.
kind_of() {
    mount_of "$1" | cut -d ' ' -f 1
}

# mount_of PATH: kind and device of the file system that holds it.
mount_of() {
    path=$1 awk '
        {
            gsub(/\\040/, " ", $2)
            at = $2 == "/" ? "/" : $2 "/"
            if (index(ENVIRON["path"] "/", at) == 1 && length(at) >= best) {
                best = length(at)
                mount = $3 " " $1
            }
        }
        END { print mount }' /proc/self/mounts
}

# sweep: remove what a test has left whose job is over; a node that died could not do it.
sweep() {
    for old in "$top"/siteproof-test.*; do
        if is_left "$old"; then
            echo "removed ${old##*/}: its job is over"
            remove "$old"
        fi
    done
}

is_left() { # FOLDER
    [ -d "$1" ] && [ ! -L "$1" ] && [ -f "$1/marker" ] && [ ! -L "$1/marker" ] || return 1
    [ "$(stat -c %u -- "$1")" = "$user" ] || return 1
    { read -r what && read -r whose && read -r who && read -r until; } <"$1/marker" || return 1
    [ "$what" = "$mark" ] || return 1
    [ ! -e "$whose/$done_mark" ] || return 0 # a stage that is not seen may be another cluster's
    [ "$whose" != "$stage" ] || [ "$who" != "$node" ] || return 0 # this job's first attempt
    [ "$(date +%s)" -gt "$until" ]
}

remove() { # FOLDER: our own files in it by name, and it, if nothing else is there
    # From within: its name may be another's by now, where anybody may rename what is there.
    (
        cd -P -- "$1" 2>/dev/null && [ "$(stat -c %u .)" = "$user" ] &&
            rm -rf test.tree && rm -f test.* && rm -f marker
    ) && rmdir -- "$1" 2>/dev/null
}

# inside ROOT: container, vm or node.
inside() {
    for sign in .dockerenv run/.containerenv run/systemd/container; do
        if [ -e "$1/$sign" ]; then
            echo container
            return
        fi
    done
    if grep -q '^flags.* hypervisor' "$1/proc/cpuinfo" ||
        grep -qi 'kvm\|qemu\|vmware\|virtualbox\|virtual machine\|openstack\|google compute' \
            "$1/sys/class/dmi/id/sys_vendor" "$1/sys/class/dmi/id/product_name" 2>/dev/null
    then
        echo vm
    else
        echo node
    fi
}

# turn N: wait for the N-th turn (from 0) of this node. At most AT_ONCE of NODES have theirs at the
# same time: each goes when the one that is AT_ONCE places before it has been, or should have been.
turn() {
    turn_over
    number=$1
    turns=$stage/turns/$SITEPROOF_ATTEMPT
    (set -C && date +%s >"$turns.start") 2>/dev/null # only the first node's counts
    until read -r start <"$turns.start"; do sleep 1; done
    # shellcheck disable=SC2086  # a list of nodes
    set -- $NODES
    waves=$((($# + AT_ONCE - 1) / AT_ONCE))
    place=0 before=
    for other; do
        [ "$other" != "$node" ] || break
        place=$((place + 1))
    done
    latest=$((start + (number * waves + place / AT_ONCE) * TURN))
    if [ "$place" -ge "$AT_ONCE" ]; then
        eval "before=$number.\${$((place - AT_ONCE + 1))}"
    elif [ "$number" -gt 0 ]; then # the last one of the turns before
        eval "before=$((number - 1)).\${$((place + ($# - 1 - place) / AT_ONCE * AT_ONCE + 1))}"
    else
        latest=0
    fi
    while [ "$(date +%s)" -lt "$latest" ] && [ ! -e "$turns.$before" ]; do sleep 1; done
    ends=$(($(date +%s) + TURN))
}

turn_over() {
    [ -z "${number:-}" ] || : >"$turns.$number.$node"
    number=
}

# within COMMAND...: no longer than this node's turn.
within() {
    left=$((ends - $(date +%s)))
    [ "$left" -gt 0 ] || return 124
    timeout -k 10 "$left" "$@"
}

# answered COMMAND...: its exit code, but 0 for 1, by which fio and sha256sum report wrong data.
answered() {
    "$@"
    set -- $?
    [ "$1" -eq 1 ] || return "$1"
}

# plain_path: IOR and mdtest have a meaning of their own for some characters.
plain_path() {
    case $folder in *[@,]*) stop "$FS_PATH: IOR and mdtest take '@' and ',' for separators" ;; esac
}

# heard COMMAND...: for IOR and mdtest, which print errors on stdout, before MPI's long messages on
# stderr. IOR's exit code may be the number of wrong blocks: then 0, and its parser reports it.
heard() {
    code=0
    "$@" >said || code=$?
    cat said
    if grep -q 'Incorrect data' said; then
        code=0
    elif [ "$code" -ne 0 ]; then
        grep '^Error\|ERROR: \|FAILED\| failed ' said | sort -u | head -n 3 >&2
    fi
    rm -f said
    return "$code"
}

# try_direct: whether the file system takes O_DIRECT; `direct` is yes or no, `cached` the same.
try_direct() {
    direct=no cached=no
    if dd if=/dev/zero of="$folder/test.0" bs=1M count=1 oflag=direct 2>/dev/null &&
        dd if="$folder/test.0" of=/dev/null bs=1M iflag=direct 2>/dev/null; then
        direct=yes
    fi
    rm -f -- "$folder/test.0"
    case $kind in tmpfs | ramfs) cached=yes ;; esac # they are memory, and take O_DIRECT
}

# drop_cache FILE: to the storage with what is dirty, and out of the page cache.
drop_cache() {
    dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
}

# fetched: bytes that this shell and what it has waited for have read from storage.
fetched() {
    awk '$1 == "read_bytes:" { n = $2 } END { printf "%.0f\n", n }' /proc/$$/io 2>/dev/null || echo 0
}

# judge_cache BEFORE BYTES: whether these were read from the storage, since `fetched` said BEFORE.
judge_cache() {
    [ $(($(fetched) - $1)) -lt $(($2 * 99 / 100)) ] || return 0
    # Not every file system counts; ZFS takes O_DIRECT and may use its cache all the same.
    if [ "$direct" = no ] || [ "$kind" = zfs ]; then
        cached=yes
    fi
}

note_cache() {
    {
        echo "direct=$direct"
        echo "cached=$cached"
    } >>facts
}
