# shellcheck shell=sh
# GPUs of a node, for scripts that measure or describe them. Their indices are those of nvidia-smi and
# amd-smi, in the order of the PCI bus; that of CUDA by itself begins with the fastest.
# Setting: GPUS, how many the site states; 0: it states none.
# What hides some GPUs from a program, or gives them other indices, hides none from these tools.
CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_DEVICE_ORDER
unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL

# shellcheck source=siteproof/checks/on_node/other_tools.sh
. "$1/other_tools.sh" # gpus_of

# need_gpus: sets gpu_smi, the program of the driver. Without a GPU or a driver it ends as without a
# program; where the site states GPUs, that is an error of the node.
need_gpus() {
    gpu_smi="nvidia-smi"
    if [ "$(gpus_of 0x10de)" -eq 0 ]; then
        gpu_smi="amd-smi"
        [ "$(gpus_of 0x1002)" -gt 0 ] || no_gpus "no GPU of NVIDIA or AMD is on the PCI bus"
    fi
    need "$gpu_smi"
    case $gpu_smi in nvidia-smi) set -- -L ;; *) set -- list ;; esac
    answer=$(timeout -k 1 60 "$gpu_smi" "$@" 2>&1 </dev/null) ||
        no_gpus "the driver gives no answer: $(printf '%s\n' "$answer" | tr -cd ' -~\n' | head -n 1)"
    [ "$gpu_smi" = nvidia-smi ] || return 0
    for field in name driver_version; do
        nvidia-smi --format=csv,noheader --query-gpu=$field </dev/null | sort -u |
            tr -cd ' -~\n' | awk -v key="${field%_version}" '
                !/^WARNING/ { all = all (n++ ? ", " : "") $0 }
                END { print (key == "name" ? "model" : key) "=" all }'
    done >>facts
}

no_gpus() { # WHY
    if [ "$GPUS" -gt 0 ]; then
        echo "$1; the site states $GPUS" >&2
        exit 1
    fi
    echo "$1" >&2
    exit 127
}

no_part() { # WHY
    echo "$1" >&2
    exit 1
}

# states: a line INDEX, MHZ, WATTS, CELSIUS of each GPU. AMD's driver shows them in files.
states() {
    if [ "$gpu_smi" = nvidia-smi ]; then
        timeout -k 1 20 nvidia-smi --format=csv,noheader,nounits \
            --query-gpu=index,clocks.sm,power.draw,temperature.gpu 2>/dev/null </dev/null |
            grep -v '^WARNING' # of another matter, such as a damaged infoROM
        return
    fi
    index=0
    for card in /sys/bus/pci/drivers/amdgpu/*:*:*.*; do
        [ -d "$card" ] || continue
        set -- "$card"/hwmon/hwmon*
        echo "$index, $(scaled 1000000 "$1/freq1_input"), $(scaled 1000000 "$1/power1_average" \
            "$1/power1_input"), $(scaled 1000 "$1/temp1_input")"
        index=$((index + 1))
    done
}

scaled() { # DIVISOR FILE...: the first number that one of them has
    by=$1
    shift
    cat "$@" 2>/dev/null | awk -v by="$by" '/^[0-9]+$/ { printf "%.1f", $1 / by; found = 1; exit }
        END { if (!found) printf "N/A" }'
}

# watched COMMAND...: its code; then a run of its own has the state of the GPUs in each second of it.
# A value of a part of a GPU, or of fewer GPUs than the site states, is none of the node.
watched() {
    case $answer in *"  MIG "*) no_part "MIG is on, and a program gets an instance" ;; esac
    listed=$(printf '%s\n' "$answer" | grep -c '^GPU')
    [ "$listed" -ge "$GPUS" ] || no_part "GPUs that answer: $listed; the site states $GPUS"
    : >gpu_state
    while [ -e gpu_state ]; do
        states >>gpu_state.lines
        sleep 1
    done &
    watcher=$!
    "$@"
    set -- $?
    rm -f gpu_state
    wait "$watcher"
    echo "end gpu_state" >>gpu_state.lines
    run program=gpu_state -- cat gpu_state.lines
    rm -f gpu_state.lines
    return "$1"
}

# unless_wrong PATTERN COMMAND...: a run whose output shows wrong data ends with 0: the parser says so.
unless_wrong() {
    pattern=$1
    shift
    "$@" || set -- $?
    case $1 in
    *[!0-9]*) ;;
    *) grep -q "$pattern" "run.${runs:-0}/stdout" || return "$1" ;;
    esac
}
