# shellcheck shell=sh
# What Lustre's own tools report of a file system on this client, as lines that
# siteproof/parsers/lustre.py reads. Run by siteproof's node.sh in the node's own folder.
# Written after the Lustre manual and the man pages of lfs and lctl (2.15); it never ran on Lustre.
set -f # patterns of packages and parameters are for the tools
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
MAX_OWNERS=1000 MAX_BYTES=1048576 PATIENCE=60 # seconds for a tool that waits for a dead server

unreadable() { printf 'unreadable %s %s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
prefixed() { sed "s/^/$1 /"; }
short() { tr '\n' ' ' <"$1" | cut -c 1-200; }

# What `lfs osts` calls ACTIVE may not answer: `lfs df` asks each target.
targets() {
    timeout "$PATIENCE" lfs osts "$top" >listed || stop "lfs osts $top failed"
    # Where some targets do not answer, its exit code is not 0, and the others are printed.
    timeout "$PATIENCE" lfs df "$top" >answers || echo "lfs df ended with $?" >&2
    timeout "$PATIENCE" lfs df -i "$top" >inodes_used || echo "lfs df -i ended with $?" >&2
    prefixed osts <listed
    prefixed df <answers
    prefixed inodes <inodes_used
}

# The flavours of the connections to its targets, and of the node's to management servers.
connections() {
    name=$(mount_of "$top" | sed -n 's/^lustre .*:\/\([A-Za-z0-9_-]*\).*/\1/p')
    if [ -z "$name" ]; then
        unreadable without_kerberos "the mount of $FS_PATH has no name of a file system"
        return
    fi
    : >flavors
    for parameter in "osc.$name-*.srpc_info" "mdc.$name-*.srpc_info" "mgc.*.srpc_info"; do
        if ! timeout "$PATIENCE" lctl get_param "$parameter" >>flavors 2>why; then
            unreadable without_kerberos "$(short why)"
            return
        fi
    done
    prefixed srpc <flavors
}

# The server of each target, as the client has connected to it.
servers() {
    if [ -n "$name" ] && timeout "$PATIENCE" lctl get_param "osc.$name-*.ost_conn_uuid" >servers 2>why; then
        prefixed server <servers
    else
        unreadable targets_of_servers "$(short why)"
    fi
}

# packages_of MANAGER: the names of the installed packages that match, with their versions.
packages_of() {
    has "$1" || return
    # shellcheck disable=SC2086  # a list of patterns
    case $1 in
    rpm) rpm -qa --qf '%{NAME}.%{ARCH} %{VERSION}-%{RELEASE}\n' $PACKAGES ;;
    *) dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package} ${Version}\n' $PACKAGES 2>/dev/null |
        sed -n 's/^ii  *//p' ;;
    esac | sort >packages
    [ -s packages ]
}

# Both managers print a line for a file that differs, and nothing for the others.
packages() {
    if packages_of rpm; then
        set -- rpm -V --nodeps --noscripts
    elif packages_of dpkg; then
        set -- dpkg --verify --verify-format rpm
    else
        unreadable altered_files "no package of $PACKAGES is installed"
        return
    fi
    # shellcheck disable=SC2046  # a list of names
    timeout "$PATIENCE" "$@" $(cut -d ' ' -f 1 packages) >verified 2>why
    code=$? # not 0 where a file differs
    if [ "$code" -ge 124 ] || [ -s why ]; then
        unreadable altered_files "$1 ended with $code: $(short why)"
        return
    fi
    if grep -q '^[.?]\{8,\} \|(Permission denied)$' verified; then
        unreadable altered_files "$1 may not read all files; needs root"
        return
    fi
    prefixed package <packages
    prefixed verify <verified
    echo "verified by $1"
}

# with_owners: each line PATH UID with the owner that the path has here, `none` without one.
with_owners() {
    while read -r line; do
        path=${line% *} uid=${line##* }
        case $uid in '' | *[!0-9]*) return 1 ;; esac
        case /$path/ in "/$uid/" | //* | */../*) return 1 ;; esac
        found=$(stat -c %u -- "$top/$path" 2>/dev/null) || found=none
        printf 'owner %s %s %s\n' "$uid" "$found" "$path"
    done
}

owners() {
    if [ -z "$OWNERS" ]; then
        unreadable wrong_owners "no list is given by 'owners' of the file system, nor by -S Lustre.owners"
        return
    fi
    if [ ! -f "$top/$OWNERS" ] || ! head -c "$MAX_BYTES" -- "$top/$OWNERS" >list; then
        unreadable wrong_owners "$FS_PATH/$OWNERS cannot be read"
        return
    fi
    grep -v '^ *\(#\|$\)' list >lines
    if [ "$(wc -c <list)" -ge "$MAX_BYTES" ] || [ "$(wc -l <lines)" -gt "$MAX_OWNERS" ]; then
        unreadable wrong_owners "$FS_PATH/$OWNERS has more than $MAX_OWNERS lines"
    elif ! with_owners <lines >owned; then
        unreadable wrong_owners "$FS_PATH/$OWNERS has a line that is not 'PATH UID'"
    else
        cat owned
        echo "owners $(wc -l <owned)"
    fi
}

find_top
for name in lfs lctl; do
    has $name || {
        echo "$name is not installed: it is a part of Lustre" >&2
        exit 127
    }
done
echo "program=lfs" >>facts
echo "kind=$kind" >>facts
targets
connections
servers
packages
owners
echo "end lustre"
