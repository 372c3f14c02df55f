# shellcheck shell=sh
# What other tools print of a node: LLDP, RAID, disks, BIOS, management controller, updates, GPUs, names,
# servers. Sourced by a script that
# defines field, unreadable, has and root; parsers/description.py reads what they print.
# shellcheck disable=SC2154  # the script that sources this sets root

# raw TOOL COVERS SECONDS COMMAND…: what a program prints, for parsers/description.py to read; COVERS
# names the fields that are missing if it fails. A program that hangs, even one that no signal ends,
# costs SECONDS and little more.
raw() {
    tool=$1 covers=$2 seconds=$3 out=raw.$1
    shift 3
    {
        timeout -k 1 "$seconds" "$@" 2>"$out.err" </dev/null
        echo $? >"$out.new" && mv "$out.new" "$out.rc"
    } | head -c 1000000 >"$out.txt" &
    left=$(((seconds + 3) * 10))
    while [ ! -e "$out.rc" ] && [ $left -gt 0 ]; do
        sleep .1
        left=$((left - 1))
    done
    code=$(cat "$out.rc" 2>/dev/null) || code=124
    sleep .1 # the pipe's end writes after the program's
    case $code in
        0) awk -v tool="$tool" '{ print "raw " tool " " $0 }' "$out.txt" ;;
        141) unreadable "$covers" "$1 prints more than 1 MB" ;; # SIGPIPE
        124 | 137) unreadable "$covers" "$1 gave no answer in $seconds s" ;;
        *)
            why=$(cat "$out.err" "$out.txt" | grep -v '^ *$' | head -n 1 | cut -c 1-200)
            unreadable "$covers" "$1: ${why:-failed with exit code $code}"
            ;;
    esac
    rm -f "$out".*
}

smart() {
    # shellcheck disable=SC2010
    names=$(ls /sys/block | grep -E '^(sd[a-z]+|nvme[0-9]+n[0-9]+)$')
    [ -n "$names" ] || return 0
    if ! has smartctl; then
        unreadable disk.smart "smartctl is not installed"
    elif [ "$root" != 0 ]; then
        unreadable disk.smart "needs root"
    else
        for disk in $names; do raw "smart.$disk" disk.smart 10 smartctl -i "/dev/$disk"; done
    fi
}

raid() {
    for program in perccli64 perccli storcli64 storcli; do
        has "$program" || continue
        if [ "$root" = 0 ]; then
            raw raid raid.controller 30 "$program" /call show all J nolog
        else
            unreadable raid.controller "needs root"
        fi
        return 0
    done
    set +f
    if grep -qs '^0x010[47]' /sys/bus/pci/devices/*/class; then # a RAID or SAS controller
        unreadable raid.controller "neither perccli nor storcli is installed"
    fi
    set -f
}

# The firmware of the management controller (iDRAC, iLO, XCC), by the node's own IPMI device.
bmc() {
    if [ ! -e /dev/ipmi0 ]; then
        unreadable bmc "the kernel offers no IPMI device"
    elif ! has ipmitool; then
        unreadable bmc "ipmitool is not installed"
    elif [ "$root" != 0 ]; then
        unreadable bmc "needs root"
    else
        raw bmc bmc 10 ipmitool mc info
    fi
}

# The settings of the BIOS that decide about performance, of the makers whose tool is known: Dell.
firmware_settings() {
    grep -qs '^Dell' /sys/class/dmi/id/sys_vendor || return 0
    if ! has racadm; then
        unreadable bios.setting "racadm is not installed"
    elif [ "$root" != 0 ]; then
        unreadable bios.setting "needs root"
    else
        raw racadm bios.setting 60 racadm get BIOS.SysProfileSettings
    fi
}

# pending: how many updates the node's lists of packages offer; lists that are old offer too few.
# yum prints a long name on a line of its own, and the rest of its columns, indented, on the next.
pending() {
    if has apt-get; then
        lists=/var/lib/apt/lists
        set -- apt-get -s -o Debug::NoLocking=1 dist-upgrade
    elif has yum; then
        lists='/var/cache/yum /var/cache/dnf'
        set -- yum -q -C check-update
    else
        return 0
    fi
    # shellcheck disable=SC2086  # a list of folders
    if [ -z "$(find $lists -mtime -7 2>/dev/null | head -n 1)" ]; then
        unreadable packages.pending "the lists of packages are older than a week"
        return 0
    fi
    text=$(timeout -k 1 60 "$@" 2>/dev/null </dev/null)
    case $? in
        0 | 100) # 100: yum has found some
            field packages.pending "$(printf '%s\n' "$text" | awk '
                /^Obsoleting/ { exit } $1 == "Inst" || /^[^ ]+\.[^ .]+( |$)/ { n++ } END { print n + 0 }')"
            ;;
        *) unreadable packages.pending "$1 failed" ;;
    esac
}

# gpus_of VENDOR: how many GPUs of a vendor are on the PCI bus; a BMC's screen is none of theirs.
gpus_of() {
    set +f
    grep -ls "^$1" /sys/bus/pci/devices/*/vendor | sed 's/vendor$/class/' |
        xargs cat /dev/null 2>/dev/null | grep -c '^0x\(03\|12\)'
    set -f
}

gpus() {
    nvidia=$(gpus_of 0x10de) amd=$(gpus_of 0x1002)
    field gpu.count $((nvidia + amd))
    if has nvidia-smi; then
        raw nvidia gpu 20 nvidia-smi --format=csv,noheader --query-gpu=index,name,uuid,serial,pci.bus_id,driver_version,vbios_version,memory.total,ecc.mode.current,pcie.link.width.max
    elif [ "$nvidia" -gt 0 ]; then
        unreadable gpu "nvidia-smi is not installed"
    fi
    if has rocm-smi; then # one line of JSON, which is cut where an object ends
        raw rocm gpu 20 sh -c "rocm-smi --showproductname --showvbios --showdriverversion --showuniqueid --showserial --showbus --showmeminfo vram --json | awk '{ gsub(/}, *\"/, \"},\\n\\\"\"); print }'"
    elif [ "$amd" -gt 0 ]; then
        unreadable gpu "rocm-smi is not installed"
    fi
}

neighbours() {
    if has lldpctl; then
        raw lldp lldp 10 lldpctl -f keyvalue
    else
        unreadable lldp "lldpctl is not installed"
    fi
}

# Names and addresses both ways, in the order of /etc/nsswitch.conf; a name server that hangs costs 20 s.
look_up() {
    echo "own $1"
    addresses=$(ip -o addr show scope global | awk '{ sub(/\/.*/, "", $4); print $4, $2 }' | head -n 16)
    echo "$addresses" | sed -n 's/^\(..*\)/on \1/p'
    of_name=$(timeout 10 getent ahosts "$1" | awk '{ print $1 }' | sort -u | head -n 16)
    for address in $of_name; do echo "forward $1 $address"; done
    for address in $(echo "$addresses" "$of_name" | tr ' ' '\n' | grep '[.:]' | sort -u | head -n 16); do
        found=$(timeout 5 getent hosts "$address" | sed 's/^[^ ]* *//' | tr '\n' ' ')
        echo "reverse $address $found"
        for name in ${found%% *}; do
            [ "$name" = "$1" ] && continue
            timeout 5 getent ahosts "$name" | awk -v name="$name" '!($1 in seen) { seen[$1]; print "forward", name, $1 }'
        done
    done
    return 0
}

names() {
    if has getent && has ip; then
        look_up "$(uname -n)" 2>/dev/null | sed 's/^/raw names /'
    else
        has getent || unreadable dns "getent is not installed"
        has ip || unreadable dns "ip is not installed"
        unreadable address "names and addresses were not looked up"
    fi
}

servers() {
    ! has ceph || [ ! -e /etc/ceph/ceph.conf ] || raw ceph server.ceph 15 ceph --connect-timeout 10 versions
    ! has lctl || raw lustre server.lustre 10 lctl get_param -n version
}
