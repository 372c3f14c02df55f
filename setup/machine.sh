# shellcheck shell=sh
# What kind of machine this is: may packages be installed here? Sourced after lib.sh.
#
# SITEPROOF_ROOT is put before every path that is read: tests describe machines with it.

root=${SITEPROOF_ROOT:-}

# Prints why nothing may be installed here; false, without output, if it may.
why_not_install() {
    if [ "$(id -u)" != 0 ]; then
        echo "this is not root"
    elif why=$(why_cluster); then
        echo "this machine belongs to a cluster: $why"
    elif ! have apt-get; then
        echo "this is not a Debian machine (no apt-get)"
    else
        return 1
    fi
}

# Prints why this machine counts as part of a cluster; false, without output, if it does not.
why_cluster() {
    for name in SLURM_CONF SLURM_JOB_ID PBS_JOBID LSB_JOBID SGE_ROOT; do
        eval "value=\${$name:-}"
        if [ -n "$value" ]; then
            echo "$name is set"
            return
        fi
    done
    cluster_file || cluster_daemon || cluster_mount
}

cluster_file() {
    for path in \
        '/etc/slurm/*' '/etc/slurm-llnl/*' /run/slurm/conf /opt/slurm /usr/local/etc/slurm.conf \
        /etc/pbs.conf /etc/lsf.conf /opt/sge /etc/condor /etc/warewulf /opt/xcat /cm/local; do
        for found in "$root"$path; do
            case $found in
            */plugstack.conf | */plugstack.conf.d) continue ;; # Debian's package brings them
            esac
            if [ -e "$found" ]; then
                echo "$found is there"
                return
            fi
        done
    done
    return 1
}

# A daemon in a process namespace of its own is a test bed's or a container's.
cluster_daemon() {
    for process in "$root"/proc/[0-9]*; do
        read -r name 2>/dev/null <"$process/comm" || continue
        case $name in
        slurmd | slurmctld | slurmdbd | pbs_mom | pbs_server | lim | sge_execd | condor_master) ;;
        *) continue ;;
        esac
        if [ "$(readlink "$process/ns/pid")" = "$(readlink "$root/proc/self/ns/pid")" ]; then
            echo "$name runs"
            return
        fi
    done
    return 1
}

cluster_mount() {
    while read -r _ where kind _; do
        case $kind in
        lustre | gpfs | beegfs | ceph | panfs)
            echo "$where is a $kind file system"
            return
            ;;
        esac
    done 2>/dev/null <"$root/proc/mounts"
    return 1
}
