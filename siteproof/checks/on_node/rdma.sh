# shellcheck shell=sh
# Ports of InfiniBand and RoCE devices as the kernel shows them below /sys/class/infiniband
# (Documentation/ABI/stable/sysfs-class-infiniband; hw_counters as mlx5 and others name them).
# Sourced by scripts that read them.

# What a port counts when something is wrong, of the link and of the transport.
RDMA_ERRORS='symbol_error link_error_recovery link_downed port_rcv_errors
    port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_discards
    port_xmit_constraint_errors port_rcv_constraint_errors local_link_integrity_errors
    excessive_buffer_overrun_errors out_of_sequence packet_seq_err rnr_nak_retry_err
    local_ack_timeout_err implied_nak_seq_err out_of_buffer rx_icrc_encapsulated roce_adp_retrans_to'
# Congestion is no error: these are counted next to them.
RDMA_CONGESTION='port_xmit_wait np_cnp_sent np_ecn_marked_roce_packets rp_cnp_handled rp_cnp_ignored'

# rdma_ports: the folder of each port, one a line; nothing without a device.
rdma_ports() {
    for rdma_port in /sys/class/infiniband/*/ports/*; do
        [ ! -d "$rdma_port" ] || echo "$rdma_port"
    done
}

rdma_name() { # FOLDER: DEVICE_PORT, such as mlx5_0_1
    rdma_device=${1%/ports/*}
    echo "${rdma_device##*/}_${1##*/}"
}

# rdma_counters FOLDER: NAME VALUE of each counter above that the port has. Older kernels print
# "N/A (no PMA)" for those that a device does not keep.
rdma_counters() {
    for rdma_counter in $RDMA_ERRORS $RDMA_CONGESTION; do
        for rdma_kind in counters hw_counters; do
            if read -r rdma_value <"$1/$rdma_kind/$rdma_counter" && [ "${rdma_value#N/A}" = "$rdma_value" ]; then
                echo "$rdma_counter $rdma_value"
                break
            fi
        done 2>/dev/null
    done
}

# rdma_absent NAME...: a line for each that is neither a device, a port (mlx5_0_1) nor an interface.
rdma_absent() {
    for rdma_here in "$@"; do
        [ -d "/sys/class/infiniband/$rdma_here" ] || [ -e "/sys/class/net/$rdma_here" ] ||
            [ -d "/sys/class/infiniband/${rdma_here%_*}/ports/${rdma_here##*_}" ] ||
            echo "absent $rdma_here"
    done
}

# rdma_report: state, rate and counters of each port, as siteproof/parsers/rdma_ports.py reads them.
rdma_report() {
    rdma_ports | while read -r rdma_folder; do
        rdma_here=$(rdma_name "$rdma_folder")
        for rdma_field in state phys_state rate link_layer; do
            read -r rdma_value <"$rdma_folder/$rdma_field" || rdma_value=
            printf 'port %s %s = %s\n' "$rdma_here" "$rdma_field" "$rdma_value"
        done 2>/dev/null
        rdma_counters "$rdma_folder" | sed "s/^/count $rdma_here /; s/ \([0-9-]*\)\$/ = \1/"
    done
    echo "end rdma_ports"
}
