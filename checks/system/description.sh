# shellcheck shell=sh
# What this node is: hardware, firmware, kernel, settings, software, as lines that
# parsers/description.py reads. Without root where possible; what needs root is reported as such.
# Needs sh, coreutils, grep, find and awk; what needs another tool is reported as unreadable.
echo "program=sysfs" >>facts
set -f
root=$(id -u)

field() { printf 'field %s = %s\n' "$1" "$2"; }
unreadable() {
    case $2 in *ermission* | *"not permitted"*) [ "$root" = 0 ] || set -- "$1" "needs root" ;; esac
    printf 'unreadable %s %s\n' "$1" "$2"
}
has() { command -v "$1" >/dev/null 2>&1; }

# from NAME FILE: the file's text as a field; nothing where there is no such file.
from() {
    [ -e "$2" ] || return 0
    if text=$(cat "$2" 2>&1); then
        [ -z "$text" ] || field "$1" "$(printf %s "$text" | tr '\n' ' ')"
    else
        unreadable "$1" "${text##*: }"
    fi
}
# files PREFIX FOLDER NAME…: several files of a folder, in one process; empty ones are left out.
files() {
    prefix=$1 folder=$2
    shift 2
    for name in "$@"; do
        if [ -r "$folder/$name" ]; then
            printf '%s\n' "$folder/$name"
        elif [ -e "$folder/$name" ]; then
            unreadable "$prefix.${name##*/}" "needs root" >&3
        fi
    done | { xargs grep -s '' /dev/null || :; } | awk -v prefix="$prefix" '
        { file = $0; sub(/:.*/, "", file); value = substr($0, length(file) + 2)
          sub(/.*\//, "", file); gsub(/^[ \t]+|[ \t]+$/, "", value)
          if (value != "") print "field " prefix "." file " = " value }'
}
# distinct NAME PATTERN: the values that these files hold, each once.
distinct() {
    set +f
    # shellcheck disable=SC2086
    text=$(cat $2 2>/dev/null | sort -u | tr '\n' ' ')
    set -f
    [ -z "$text" ] || field "$1" "$text"
}
# tool NAME COMMAND…: the first line that a program prints as its version.
tool() {
    name=$1
    shift
    if ! has "$1"; then
        field "tool.$name" "not on PATH"
    elif text=$(timeout 5 "$@" 2>&1); then
        field "tool.$name" "$(printf '%s\n' "$text" | head -n 1)"
    else
        unreadable "tool.$name" "$(printf '%s\n' "$text" | head -n 1)"
    fi
}
# Interfaces that come and go with virtual machines, containers and tests are no part of a node.
PASSING='^(veth|cali|docker|tap|tun|virbr|vnet|br-|qbr|qvo|qvb|qg-|qr-|cni|flannel|lxc|lxd|ifb|dummy)'
PASSING="$PASSING|^bonding_masters"

cpu() {
    awk -F '[ \t]*: ' '
        $1 == "processor" { threads++ }
        $1 == "model name" || $1 == "CPU part" { seen["model", $2]; model = $2 }
        $1 == "vendor_id" || $1 == "CPU implementer" { vendor = $2 }
        $1 == "cpu family" { family = $2 } $1 == "model" { number = $2 }
        $1 == "stepping" || $1 == "CPU revision" { stepping = $2 }
        $1 == "microcode" && !(("m", $2) in code) { code["m", $2]; micro = micro " " $2 }
        $1 == "physical id" { socket[$2] } $1 == "cpu cores" { cores = $2 }
        $1 == "siblings" { siblings = $2 }
        ($1 == "flags" || $1 == "Features") && flags == "" { flags = $2 }
        END {
            for (s in socket) sockets++
            print "field cpu.model = " model; print "field cpu.vendor = " vendor
            print "field cpu.family = " family " " number " " stepping
            print "field cpu.threads = " threads
            if (sockets) print "field cpu.sockets = " sockets
            if (sockets && cores) print "field cpu.cores = " sockets * cores
            if (cores && siblings) print "field cpu.threads_per_core = " siblings / cores
            if (micro) print "field cpu.microcode =" micro
            n = split(flags, flag, " ")
            for (i = 1; i <= n; i++) print "field cpu.flag." flag[i] " = yes"
        }' /proc/cpuinfo
    base=/sys/devices/system/cpu
    set +f
    for index in "$base"/cpu0/cache/index*; do
        [ -d "$index" ] || continue
        kind=$(cut -c 1 "$index/type" | sed 's/U//' | tr DI di)
        ways=$(cat "$index/ways_of_associativity" 2>/dev/null)
        shared=$(cat "$index/shared_cpu_list")
        field "cpu.cache.l$(cat "$index/level")$kind" \
            "$(cat "$index/size") $ways ways, shared by $shared"
    done
    for file in "$base"/vulnerabilities/*; do from "cpu.vulnerability.${file##*/}" "$file"; done
    for state in "$base"/cpu0/cpuidle/state*; do
        [ -d "$state" ] || continue
        field "cpu.idle.${state##*/}" "$(cat "$state/name") disabled=$(cat "$state/disable")"
    done
    set -f
    files cpu $base online isolated nohz_full
    files cpu.smt $base/smt control active
    files cpu.frequency $base/cpu0/cpufreq \
        scaling_driver cpuinfo_min_freq cpuinfo_max_freq base_frequency
    files cpu.turbo $base/intel_pstate status no_turbo min_perf_pct max_perf_pct
    from cpu.turbo.boost $base/cpufreq/boost
    from cpu.idle.driver $base/cpuidle/current_driver
    distinct cpu.frequency.governor "$base/cpu[0-9]*/cpufreq/scaling_governor"
    distinct cpu.frequency.limit "$base/cpu[0-9]*/cpufreq/scaling_max_freq"
    distinct cpu.frequency.preference "$base/cpu[0-9]*/cpufreq/energy_performance_preference"
    [ -e $base/cpu0/cpufreq ] || unreadable cpu.frequency "the kernel offers no cpufreq"
    external_clock
}

external_clock() { # firmware notes the rate of a QPI or UPI there: 9600 MHz for 9.6 GT/s
    if [ "$root" != 0 ]; then
        unreadable cpu.external_clock "needs root"
    elif ! text=$(dmidecode -t processor 2>/dev/null); then
        unreadable cpu.external_clock "dmidecode is not installed, or failed"
    else
        text=$(printf '%s\n' "$text" | sed -n 's/^[ \t]*External Clock: \([0-9]\)/\1/p' | sort -u | tr '\n' ' ')
        [ -z "$text" ] || field cpu.external_clock "$text"
    fi
}

memory() {
    awk '$1 == "MemTotal:" { print "field memory.total =", $2, $3 }
        $1 == "SwapTotal:" { print "field memory.swap =", $2, $3 }
        $1 == "HugePages_Total:" { print "field memory.hugepages =", $2 }
        $1 == "Hugepagesize:" { print "field memory.hugepage_size =", $2, $3 }' /proc/meminfo
    set +f
    for node in /sys/devices/system/node/node[0-9]*; do
        [ -d "$node" ] || continue
        name=memory.numa.${node##*/}
        size=$(awk '$3 == "MemTotal:" { print $4, $5 }' "$node/meminfo")
        field "$name" "$size cpus $(cat "$node/cpulist") distance $(cat "$node/distance")"
    done
    for dimm in /sys/devices/system/edac/mc/mc*/dimm* /sys/devices/system/edac/mc/mc*/rank*; do
        [ -d "$dimm" ] || continue
        mc=${dimm%/*}
        field "memory.edac.${mc##*/}.${dimm##*/}" \
            "$(cat "$dimm/size") MiB $(cat "$dimm/dimm_mem_type") $(cat "$dimm/dimm_label")"
    done
    set -f
    files memory.thp /sys/kernel/mm/transparent_hugepage enabled defrag shmem_enabled
    from memory.ksm /sys/kernel/mm/ksm/run
    if ! has dmidecode; then
        unreadable memory.dimm "dmidecode is not installed"
    elif ! text=$(dmidecode -t memory 2>&1); then
        [ "$root" = 0 ] && why="dmidecode: $(printf %s "$text" | tail -n 1)" || why="needs root"
        unreadable memory.dimm "$why"
    else
        printf '%s\n' "$text" | awk -F ': ' '
            function print_dimm() {
                if (place == "") return
                gsub(/[^A-Za-z0-9]+/, "_", place)
                name = "field memory.dimm." ++count "_" place
                print name " = " size ", " kind " " speed ", at " set_to ", " maker " " part
                if (serial != "") print name ".serial = " serial
                place = serial = size = kind = speed = set_to = maker = part = ""
            }
            /^Handle/ { print_dimm() } { sub(/^[ \t]+/, "", $1); sub(/[ \t]+$/, "", $2) }
            $1 == "Size" { size = $2 } $1 == "Locator" { place = $2 }
            $1 == "Type" { kind = $2 } $1 == "Speed" { speed = $2 }
            $1 ~ /^Configured (Memory|Clock) Speed/ { set_to = $2 }
            $1 == "Manufacturer" { maker = $2 } $1 == "Part Number" { part = $2 }
            $1 == "Serial Number" { serial = $2 } END { print_dimm() }'
    fi
}

firmware() {
    id=/sys/class/dmi/id
    [ -d $id ] || unreadable bios "the kernel offers no DMI table"
    for name in bios_vendor bios_version bios_date bios_release ec_firmware_release; do
        from "bios.${name#bios_}" "$id/$name"
    done
    for name in sys_vendor product_name product_family product_sku product_version board_vendor \
        board_name board_version chassis_type chassis_vendor; do
        from "system.$name" "$id/$name"
    done
    for pair in product:serial board:serial chassis:serial product:uuid chassis:asset_tag; do
        from "system.${pair%:*}.${pair#*:}" "$id/${pair%:*}_${pair#*:}"
    done
    from system.clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
    if [ -d /sys/firmware/efi ]; then
        field bios.boot EFI
    else
        field bios.boot legacy
    fi
}

pci() {
    set +f
    grep -s '' /sys/bus/pci/devices/*/class /sys/bus/pci/devices/*/vendor \
        /sys/bus/pci/devices/*/device /sys/bus/pci/devices/*/subsystem_device \
        /sys/bus/pci/devices/*/revision /sys/bus/pci/devices/*/current_link_speed \
        /sys/bus/pci/devices/*/current_link_width | awk '
        { path = $0; sub(/\/sys\/bus\/pci\/devices\//, "", path); slash = index(path, "/")
          at = substr(path, 1, slash - 1); rest = substr(path, slash + 1); colon = index(rest, ":")
          held[at, substr(rest, 1, colon - 1)] = substr(rest, colon + 1); seen[at] }
        END {
            for (at in seen) {
                line = "field pci." at " = class " held[at, "class"] " id " held[at, "vendor"] ":" \
                    held[at, "device"] " subsystem " held[at, "subsystem_device"] \
                    " revision " held[at, "revision"]
                if ((at, "current_link_width") in held) line = line " x" held[at, "current_link_width"]
                # A graphics card slows its link down while it idles.
                if ((at, "current_link_speed") in held && held[at, "class"] !~ /^0x03/)
                    line = line " " held[at, "current_link_speed"]
                print line
            }
        }'
    set -f
}

slots() {
    if [ "$root" != 0 ]; then
        unreadable pci.slot "needs root"
    elif ! has dmidecode; then
        unreadable pci.slot "dmidecode is not installed"
    elif ! dmidecode -t slot >slots 2>/dev/null; then
        unreadable pci.slot "dmidecode failed"
    else
        awk -F ': ' '
            function print_slot() { if (kind != "") print "field pci.slot." ++count " = " kind ", " place ", " use; kind = "" }
            /^Handle/ { print_slot() } { sub(/^[ \t]+/, "", $1) }
            $1 == "Designation" { place = $2 } $1 == "Type" { kind = $2 }
            $1 == "Current Usage" { use = $2 } END { print_slot() }' slots
    fi
    rm -f slots
}

nics() {
    has ethtool || unreadable nic.ethtool "not installed: no firmware, flow control, offloads"
    # shellcheck disable=SC2010
    for nic in $(ls /sys/class/net | grep -Ev "$PASSING"); do
        path=/sys/class/net/$nic
        files "nic.$nic" "$path" mtu tx_queue_len operstate duplex type
        [ "$nic" != lo ] || continue
        from "nic.$nic.mac" "$path/address"
        if speed=$(cat "$path/speed" 2>/dev/null) && [ "$speed" -gt 0 ]; then
            field "nic.$nic.speed" "$speed Mb/s"
        fi
        [ -L "$path/device" ] && field "nic.$nic.pci" "$(readlink -f "$path/device" | sed 's,.*/,,')"
        from "nic.$nic.numa_node" "$path/device/numa_node"
        from "nic.$nic.virtual_functions" "$path/device/sriov_numvfs"
        from "nic.$nic.virtual_functions_most" "$path/device/sriov_totalvfs"
        [ ! -L "$path/device/physfn" ] ||
            field "nic.$nic.function_of" "$(readlink -f "$path/device/physfn" | sed 's,.*/,,')"
        from "nic.$nic.bond_mode" "$path/bonding/mode"
        from "nic.$nic.bond_members" "$path/bonding/slaves"
        has ethtool || continue
        ethtool -i "$nic" 2>/dev/null | sed -n \
            "s/^driver: /field nic.$nic.driver = /p; s/^version: /field nic.$nic.driver_version = /p
             s/^firmware-version: \(.\)/field nic.$nic.firmware = \1/p"
        ethtool -k "$nic" 2>/dev/null | awk -v nic="$nic" '
            /\[fixed\]/ || /^Features/ { next }
            { sub(/:$/, "", $1); print "field nic." nic ".offload." $1 " = " $2 }'
        for pair in a:flow_control g:rings c:coalescing l:channels; do
            text=$(ethtool "-${pair%:*}" "$nic" 2>/dev/null) || continue
            field "nic.$nic.${pair#*:}" "$(printf '%s\n' "$text" | awk '
                /^Current/ { line = ""; next }
                NR > 1 && NF { gsub(/[ \t]+/, " "); line = line (line == "" ? "" : ", ") $0 }
                END { print line }')"
        done
    done
    set +f
    for port in /sys/class/infiniband/*/ports/*; do
        [ -d "$port" ] || continue
        hca=${port%/ports/*}
        name=ib.${hca##*/}
        files "$name" "$hca" fw_ver hca_type board_id
        files "$name.port${port##*/}" "$port" rate state phys_state link_layer
        from "$name.address" "$hca/node_guid"
    done
    for host in /sys/class/fc_host/*; do
        [ -d "$host" ] && files "fc.${host##*/}" "$host" speed port_state symbolic_name
    done
    set -f
}

disks() {
    # shellcheck disable=SC2010
    for disk in $(ls /sys/block | grep -Ev '^(loop|ram|zram|dm-|md|nbd|sr|fd)'); do
        path=/sys/block/$disk
        files "disk.$disk" "$path/device" model vendor rev firmware_rev
        files "disk.$disk" "$path/queue" rotational scheduler nr_requests read_ahead_kb write_cache
        field "disk.$disk.size" "$(($(cat "$path/size") * 512)) B"
        from "disk.$disk.serial" "$path/device/serial"
    done
    awk '/^md/ { # md0 : active raid1 sdb1[1] sda1[0](F): its members in no order
        members = failed = 0; level = ""
        for (i = 4; i <= NF; i++) {
            if ($i !~ /\[/) level = level " " $i; else members++
            if ($i ~ /\(F\)/) failed++
        }
        print "field raid." $1 " = " $3 level ", " members " members, " failed " failed" }' /proc/mdstat 2>/dev/null
    smart
    raid
}

# release: what the distribution calls itself, with the minor version that os-release lacks.
release() {
    for file in /etc/redhat-release /etc/SuSE-release /etc/lsb-release /etc/debian_version; do
        [ -r $file ] || continue
        field os.release "$(sed -n 's/^DISTRIB_DESCRIPTION="\(.*\)"/\1/p; /=/!p' $file | head -n 1)"
        return 0
    done
}

software() {
    awk -F = '$1 == "ID" || $1 == "VERSION_ID" || $1 == "PRETTY_NAME" {
        gsub(/"/, "", $2); sub(/_ID/, "", $1); sub(/PRETTY_/, "", $1)
        print "field os." tolower($1) " = " $2 }' /etc/os-release 2>/dev/null ||
        unreadable os "there is no /etc/os-release"
    release
    field host.name "$(uname -n)"
    field kernel.release "$(uname -r)"
    field kernel.version "$(uname -v)"
    field kernel.machine "$(uname -m)"
    from kernel.cmdline /proc/cmdline
    from kernel.selinux /sys/fs/selinux/enforce
    [ ! -e /dev/vhost-net ] || field kernel.vhost_net there # its own: packets of guests
    if has systemd-detect-virt; then
        field kernel.hypervisor "$(systemd-detect-virt --vm 2>/dev/null)"
    else
        from kernel.hypervisor /sys/hypervisor/type
    fi
    from os.tuned /etc/tuned/active_profile
    set_here
    from os.timezone /etc/timezone
    awk '{ print "field module." $1 " = loaded" }' /proc/modules 2>/dev/null
    set +f
    for file in /sys/module/*/version; do
        [ -r "$file" ] || continue
        module=${file%/version}
        field "module.${module##*/}.version" "$(cat "$file")"
    done
    set -f
    for limit in l:memlock n:files s:stack u:processes; do
        # shellcheck disable=SC3045 # where the shell knows no such limit, there is no field
        text=$(ulimit "-${limit%:*}" 2>/dev/null) && field "limit.${limit#*:}" "$text"
    done
    packages
    pending
    tool gcc gcc --version
    tool gfortran gfortran --version
    tool clang clang --version
    tool icx icx --version
    tool ifx ifx --version
    tool icc icc --version
    tool nvcc nvcc --version
    tool mpirun mpirun --version
    tool mpiname mpiname -a
    mkl
    tool srun srun --version
    tool python3 python3 --version
    tool glibc getconf GNU_LIBC_VERSION
    tool spack spack --version
    tool ceph ceph --version
    tool openstack openstack --version
    tool nova nova-manage --version
    tool nuttcp nuttcp -V
    tool qemu-img qemu-img --version
    tool virsh virsh --version
    tool apptainer apptainer --version
    from tool.lustre /sys/fs/lustre/version
}

packages() {
    if has dpkg-query; then
        dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package} ${Version}\n' 2>/dev/null |
            awk '/^.i/ { print $(NF - 1), $NF }' >packages
    elif has rpm; then
        rpm -qa --qf '%{NAME}.%{ARCH} %{VERSION}-%{RELEASE}\n' 2>/dev/null | sort >packages
    else
        unreadable package "neither dpkg-query nor rpm is installed"
        return
    fi
    awk '{ if ($1 in held) held[$1] = held[$1] " " $2; else held[$1] = $2 }
        END { for (name in held) print "field package." name " = " held[name] }' packages
    field packages.count "$(wc -l <packages)"
    field packages.digest "$(sha256sum <packages | cut -d ' ' -f 1)"
    rm -f packages
}

# set_here: the sysctls that files of this node set, besides those of the distribution's packages.
set_here() {
    set +f
    text=$(cat /etc/sysctl.conf /etc/sysctl.d/*.conf 2>/dev/null |
        sed -n 's/^[ \t]*-\{0,1\}\([a-zA-Z][^= \t]*\)[ \t]*=.*/\1/p' | tr / . | sort -u | tr '\n' ' ')
    set -f
    field os.sysctls_set "${text:-none}"
}

mkl() { # 10.2.6, as its own header has it
    for header in mkl_version.h mkl.h; do
        [ -r "${MKLROOT:-}/include/$header" ] || continue
        text=$(awk '$2 ~ /^__INTEL_MKL(_MINOR|_UPDATE)?__$/ { printf "%s%s", dot, $3; dot = "." }' \
            "$MKLROOT/include/$header")
        [ -n "$text" ] && field tool.mkl "$text" && return
    done
    field tool.mkl "no header below MKLROOT"
}

mounts() { # what is mounted last at a place is what is seen there
    awk '
        $2 ~ /^\/(run\/user|run\/netns|var\/lib\/(docker|containers|kubelet)|run\/(docker|containerd)|snap)\// { next }
        $2 ~ /^\/proc\/sys\/fs\/binfmt_misc/ || $3 == "autofs" || $3 == "nsfs" || $3 == "squashfs" { next }
        $2 ~ /\/(job_container|slurmd?|spool\/slurm)[^\/]*\// { next } # comes and goes with a job
        { held[$2] = $3 " " ($1 ~ /:|^\/\// ? $1 " " : "") $4 }
        END { for (path in held) print "field mount." path " = " held[path] }' /proc/mounts
}

# Sysctls that are no settings, as beginnings of names, each with the reason why it is left out.
LEFT_OUT='
kernel.random. changes with every read
kernel.ns_last_pid counts processes
kernel.pty.nr counts terminals
kernel.sched_domain. describes the scheduler, and moves with CPU hotplug
kernel.tainted_count counts
kernel.perf_event_max_sample_rate lowered by the kernel itself under load
kernel.firmware_config. triggers a firmware request
fs.dentry-state counts
fs.inode-nr counts
fs.inode-state counts
fs.file-nr counts
fs.aio-nr counts
fs.quota. counts
fs.nfs.nlm_ counts
fs.binfmt_misc. registrations of programs
dev.cdrom. describes drives
net.netfilter.nf_conntrack_count counts
net.nf_conntrack_count counts
net.ipv4.route.flush an order
net.ipv6.route.flush an order
net.ipv4.tcp_fastopen_key a secret
net.ipv4.tcp_available_congestion_control depends on which modules were loaded first
sunrpc.transports depends on mounts of the moment
vm.stat_refresh an order
vm.compact_memory an order
vm.drop_caches an order
'

sysctls() {
    find /proc/sys -type f -perm -0400 2>/dev/null | grep -Ev '/stat_refresh$|/(random|sched_domain)/' |
        xargs grep '' /dev/null 2>refused | awk -v left_out="$LEFT_OUT" -v passing="$PASSING" '
        BEGIN {
            n = split(left_out, line, "\n")
            for (i = 1; i <= n; i++) if (split(line[i], word, " ")) start[++starts] = word[1]
        }
        function setting_of(path,    name, i, part) {
            name = substr(path, 11); gsub(/\./, "\001", name); gsub(/\//, ".", name)
            gsub("\001", "/", name)
            if (name ~ /\.stable_secret$/) return ""
            for (i = 1; i <= starts; i++) if (index(name, start[i]) == 1) return ""
            if (split(name, part, ".") > 4 && part[1] == "net" && part[4] ~ passing) return ""
            return name
        }
        { colon = index($0, ":"); path = substr($0, 1, colon - 1)
          if (path != last) { print_setting(); last = path; name = setting_of(path); value = "" }
          value = value (value == "" ? "" : " | ") substr($0, colon + 1) }
        function print_setting() { if (name != "") print "field sysctl." name " = " value }
        END { print_setting() }'
    # grep prints: "grep: /proc/sys/vm/x: Permission denied"
    awk -v root="$root" -v left_out="$LEFT_OUT" -F ': ' '{
        name = substr($2, 11); gsub(/\//, ".", name)
        if (index(left_out, "\n" name " ") || name ~ /\.stable_secret$/) next
        why = $NF ~ /ermission|permitted/ && root != 0 ? "needs root" : $NF
        print "unreadable sysctl." name " " why }' refused
    rm -f refused
}

# shellcheck source=siteproof/checks/on_node/other_tools.sh
. "$1/other_tools.sh"
exec 3>&1
cpu
memory
firmware
firmware_settings
bmc
pci
slots
nics
neighbours
disks
gpus
software
servers
names
mounts
sysctls
echo "end description"
