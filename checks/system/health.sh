# shellcheck shell=sh
# How this node has been since it booted: counters and states, for parsers/health.py.
# Each is read without root where that is possible; what cannot be read is reported.
echo "program=sysfs" >>facts
root=$(id -u)
# shellcheck source=siteproof/checks/on_node/other_tools.sh
. "$1/other_tools.sh"
# shellcheck source=siteproof/checks/on_node/rdma.sh
. "$1/rdma.sh"

count() { printf 'count %s = %s\n' "$1" "$2"; }
unreadable() { printf 'unreadable %s %s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
# total NAME WHY FILE…: the sum of what the files hold, or why there is none.
total() {
    name=$1 why=$2
    shift 2
    [ -e "$1" ] || { unreadable "$name" "$why"; return; }
    if text=$(cat "$@" 2>/dev/null) && [ -n "$text" ]; then
        count "$name" "$(printf '%s\n' "$text" | awk '{ n += $1 } END { printf "%.0f", n }')"
    else
        unreadable "$name" "${1%/*} cannot be read"
    fi
}

# Interfaces that come and go with virtual machines, containers and tests are no part of a node.
PASSING='^(veth|cali|docker|tap|tun|virbr|vnet|br-|qbr|qvo|qvb|qg-|qr-|cni|flannel|lxc|lxd|ifb|dummy)'
PASSING="$PASSING|^bonding_masters|^lo$"

processor() {
    mc=/sys/devices/system/edac/mc
    total edac_ce "no EDAC driver counts memory errors" $mc/mc*/ce_count
    total edac_ue "no EDAC driver counts memory errors" $mc/mc*/ue_count
    awk '$1 == "MCE:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i; found = 1 }
        END { if (found) printf "count mce = %.0f\n", n
              else print "unreadable mce /proc/interrupts counts no machine checks" }' /proc/interrupts
    cpus=/sys/devices/system/cpu
    for pair in throttled:core throttled_package:package; do
        total "${pair%:*}" "the processor counts no throttling" \
            $cpus/cpu*/thermal_throttle/"${pair#*:}"_throttle_count
    done
    set -- $cpus/cpu*/cpufreq/scaling_cur_freq
    if [ -r "$1" ]; then
        cat "$@" | awk '!n || $1 < n { n = $1 } END { print "count clock_lowest =", n / 1000 }'
        count clock_most "$(awk '{ print $1 / 1000 }' $cpus/cpu0/cpufreq/cpuinfo_max_freq)"
    else
        unreadable clock_most "the kernel offers no cpufreq"
        awk -F : '$1 ~ /^cpu MHz/ { if (!n || $2 + 0 < n) n = $2 + 0 }
            END { if (n) print "count clock_lowest =", n
                  else print "unreadable clock_lowest not in /proc/cpuinfo" }' /proc/cpuinfo
    fi
}

network() {
    # shellcheck disable=SC2010
    for nic in $(ls /sys/class/net | grep -Ev "$PASSING"); do
        path=/sys/class/net/$nic
        for name in rx_errors tx_errors rx_dropped tx_dropped rx_missed_errors rx_crc_errors; do
            count "nic.$nic.$name" "$(cat "$path/statistics/$name")"
        done
        [ -r "$path/carrier_changes" ] &&
            count "nic.$nic.carrier_changes" "$(cat "$path/carrier_changes")"
        if ! has ethtool; then
            unreadable "nic.$nic.pause" "ethtool is not installed"
        else
            ethtool -S "$nic" 2>&1 | awk -v nic="$nic" '
                # Of priority flow control each class counts; of plain pause, one counter a direction.
                /duration|transition|storm/ { next }
                /^ *(rx|tx)[a-z0-9_.]*(pause|xoff)[a-z0-9_.]*:/ {
                    side = $1 ~ /^rx/ ? "rx" : "tx"; n[side] += $2; found[side] = 1 }
                END {
                    for (side in found) printf "count nic.%s.%s_pause = %.0f\n", nic, side, n[side]
                    if (!("rx" in found)) print "unreadable nic." nic ".pause the driver counts no pauses"
                }'
        fi
    done
    for port in $(rdma_ports); do
        rdma_counters "$port" | while read -r name value; do
            count "nic.$(rdma_name "$port").$name" "$value"
        done
    done
}

gpus() { # what a GPU counts since its driver was loaded; AMD's driver counts in files of its own
    if has nvidia-smi; then
        raw nvidia gpu.ecc 20 nvidia-smi --format=csv,noheader \
            --query-gpu=index,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total |
            awk '$1 != "raw" { print; next }
                { sub(/^raw nvidia /, ""); split($0, cell, / *, */); gpu = cell[1] }
                gpu !~ /^[0-9]+$/ { next }
                cell[2] cell[3] ~ /[^0-9]/ { print "unreadable gpu." gpu ".ecc the GPU counts no errors"; next }
                { print "count gpu." gpu ".ecc_corrected = " cell[2]
                  print "count gpu." gpu ".ecc_uncorrected = " cell[3] }'
    fi
    for file in /sys/class/drm/card*/device/ras/umc_err_count; do
        [ -r "$file" ] || continue
        gpu=${file#/sys/class/drm/card}
        awk -v gpu="${gpu%%/*}" '$1 == "ue:" { print "count gpu." gpu ".ecc_uncorrected = " $2 }
            $1 == "ce:" { print "count gpu." gpu ".ecc_corrected = " $2 }' "$file"
    done
}

kernel() {
    awk '$1 == "oom_kill" { print "count oom_kills =", $2; found = 1 }
        $1 == "pswpout" { print "count swapped_out =", $2 }
        END { if (!found) print "unreadable oom_kills the kernel does not count them" }' /proc/vmstat
    awk '$1 == "SwapTotal:" { total = $2 }
        $1 == "SwapFree:" { print "count swap_used =", total - $2 }' /proc/meminfo
    if text=$(dmesg --level=emerg,alert,crit,err 2>&1); then
        count kernel_errors "$(printf %s "$text" | grep -c '')"
    elif has journalctl && text=$(timeout 10 journalctl -q -k -b -p 3 -o cat 2>&1); then
        count kernel_errors "$(printf %s "$text" | grep -c '')"
    elif [ "$root" != 0 ]; then
        unreadable kernel_errors "needs root"
    else
        unreadable kernel_errors "neither dmesg nor journalctl can be read"
    fi
}

clock() {
    if has chronyc && text=$(timeout 5 chronyc -n tracking 2>&1); then
        printf '%s\n' "$text" | awk '
            /^Leap status/ && /Not synchronised/ { lost = 1 }
            /^System time/ { offset = ($6 == "slow" ? -$4 : $4) * 1000 }
            END { if (lost || offset == "") print "unreadable time_offset chrony lost its source"
                  else printf "count time_offset = %.6f\n", offset }'
    elif has ntpq && text=$(timeout 5 ntpq -c 'rv 0 offset' 2>&1) &&
        offset=$(printf '%s\n' "$text" | sed -n 's/.*offset=\(-\{0,1\}[0-9.]*\).*/\1/p') && [ -n "$offset" ]; then
        count time_offset "$offset"
    else
        unreadable time_offset "neither chrony nor ntpd answers"
    fi
}

# A node's slurmd, and so the node in Slurm's eyes, may come and go without a job that notices.
# $1: the node's age, read once for both, so that their difference is exact also at full load.
slurmd() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v up="$1" -v ticks="$(getconf CLK_TCK 2>/dev/null || echo 100)" '
        # What it has forked may bear its name, too: the oldest is the daemon.
        /^[0-9]+ \(slurmd\) / { sub(/.*\) /, ""); if (!start || $20 < start) start = $20 }
        END {
            age = up - start / ticks
            if (start) printf "count slurmd_age = %.2f\n", (age > 0 ? age : 0)
            else print "unreadable slurmd_age no slurmd runs, or none that may be seen"
        }'
}

now() {
    count time "$(date +%s)"
    up=$(cut -d ' ' -f 1 /proc/uptime)
    count uptime "$up"
    slurmd "$up"
    count load "$(cut -d ' ' -f 1 /proc/loadavg)"
    count zombies "$(cat /proc/[0-9]*/stat 2>/dev/null |
        awk '{ sub(/.*\) /, "") } $1 == "Z" { n++ } END { print n + 0 }')"
    # A disk's file system that is mounted for reading only, or was made so after an error.
    count read_only "$(awk '$1 ~ /^\/dev\// && $3 != "squashfs" && $3 != "iso9660" &&
        $4 ~ /^ro(,|$)/' /proc/mounts | grep -c '')"
    printf 'text boot = %s\n' "$(cat /proc/sys/kernel/random/boot_id)"
}

processor
network
gpus
kernel
clock
now
echo "end health"
