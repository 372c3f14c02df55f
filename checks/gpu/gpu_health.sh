# shellcheck shell=sh
# What the driver counts and states of each GPU, and the kernel's events of GPUs since the boot.
# Run by siteproof's node.sh in the node's own folder. Setting: GPUS.
# shellcheck source=siteproof/checks/on_node/gpu.sh
. "$1/gpu.sh"
root=$(id -u)
unreadable() {
    case $2 in *ermission* | *"not permitted"*) [ "$root" = 0 ] || set -- "$1" "needs root" ;; esac
    printf 'unreadable %s %s\n' "$1" "$2"
}

smi() { # COVERS OPTION...: a table with its heading
    covers=$1
    shift
    raw nvidia "$covers" 60 nvidia-smi --format=csv,nounits "$@"
}

# A program that makes mistakes all day must not hide what follows: of each kind and GPU some are kept.
events() { # PATTERN: lines of the kernel's log since the boot
    if ! text=$(dmesg 2>&1) && ! { text=$(timeout 20 journalctl -q -k -b -o cat 2>&1) && [ -n "$text" ]; }; then
        unreadable events "needs root"
        return
    fi
    echo "events since the boot"
    printf '%s\n' "$text" | grep "$1" | awk '
        { kind = match($0, /Xid [^)]*): *[0-9]+/) ? substr($0, RSTART, RLENGTH) : "" }
        seen[kind]++ < 1000 { print "event " $0 }'
}

need_gpus
echo "program=$gpu_smi" >>facts
if [ "$gpu_smi" = nvidia-smi ]; then
    # Tables of their own: where a driver does not know a field, it prints nothing else.
    smi identity --query-gpu=index,pci.bus_id,vbios_version,persistence_mode
    smi mig --query-gpu=index,mig.mode.current
    smi link --query-gpu=index,pcie.link.gen.max,pcie.link.width.current
    smi ecc --query-gpu=index,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.aggregate.total,ecc.errors.uncorrected.aggregate.total
    smi retired_pages --query-gpu=index,retired_pages.sbe,retired_pages.dbe,retired_pages.pending
    smi remapped_rows --query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure
    smi throttling --query-gpu=index,clocks_throttle_reasons.active
    events 'NVRM: Xid\|NVRM:.*fallen off the bus'
else
    raw amd metrics 60 amd-smi metric --ecc --pcie --json
    events 'amdgpu.*\(GPU reset begin\|uncorrectable hardware error\|ring .* timeout\)'
fi
echo "end gpu_health"
