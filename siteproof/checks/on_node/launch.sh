# shellcheck shell=sh
# How a point of a sweep starts its ranks; sourced before the measuring script, in the point's
# folder. By srun in a step of this very job, or by mpirun where there is no Slurm.
#
#   launch COMMAND...          TASKS ranks, TASKS_PER_NODE on each of the point's nodes, in blocks
#   launch_each COMMAND...     one rank on each node of the point
#   reordered=1 launch ...     the same, each rank one node further on: it reads what another wrote
#
# What they read: NODES (names, first one first), NODE_COUNT, TASKS, TASKS_PER_NODE, POINT_FOLDER;
# LAUNCH (srun's --mpi; empty: as the library of the program has it, or of mpi_of, where COMMAND
# starts another one); SITEPROOF_SRUN_OPTIONS, the site's,
# quoted for a shell. They come first, so that those of the step itself hold.

# shellcheck source=siteproof/checks/on_node/mpi.sh
. "$1/mpi.sh"

launch() {
    start_ranks "$TASKS" "$TASKS_PER_NODE" "$@"
}

launch_each() {
    start_ranks "$NODE_COUNT" 1 "$@"
}

start_ranks() { # RANKS PER COMMAND...
    ranks=$1 per=$2
    shift 2
    know_mpi_of "${mpi_of:-$1}"
    if [ -z "$SWEEP_SRUN" ]; then
        start_here "$@"
        return
    fi
    number_of_hosts=$(((ranks + per - 1) / per))
    hosts=$POINT_FOLDER/hosts
    print_hosts >"$hosts" || return
    # A line of the file a rank, so that ranks lie in blocks however Slurm would spread them. From
    # 24.11 on srun refuses --nodes with it.
    set -- --jobid="$SITEPROOF_JOB" --overlap --job-name="siteproof-$POINT_NUMBER" \
        --kill-on-bad-exit=1 ${mpi_kind:+--mpi="$mpi_kind"} --ntasks="$ranks" \
        --distribution=arbitrary --nodelist="$hosts" "$@"
    eval "set -- ${SITEPROOF_SRUN_OPTIONS:-}"' "$@"'
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 srun "$@"
}

start_here() { # COMMAND...: without Slurm, on this machine
    if command -v mpirun >/dev/null; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 \
            PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe mpirun -np "$ranks" "$@"
    elif [ "$ranks" -eq 1 ]; then
        "$@"
    else
        echo "mpirun is not installed, and starts the ranks" >&2
        return 127
    fi
}

print_hosts() { # a node's name a rank
    left=$ranks first=${reordered:+skip}
    # shellcheck disable=SC2086  # a list of nodes
    set -- $NODES
    if [ -n "$first" ]; then # the first node goes last
        count=$number_of_hosts last=$1
        shift
        while [ "$count" -gt 1 ]; do
            host_lines "$1"
            shift
            count=$((count - 1))
        done
        host_lines "$last"
        return
    fi
    while [ "$left" -gt 0 ]; do
        host_lines "$1"
        shift
    done
}

host_lines() { # NODE: as many times as ranks go there
    here=$per
    while [ "$here" -gt 0 ] && [ "$left" -gt 0 ]; do
        echo "$1"
        here=$((here - 1)) left=$((left - 1))
    done
}

# know_mpi_of PROGRAM: its library, and how srun connects its ranks; looked up once a job.
know_mpi_of() {
    known=$SWEEP_STAGE/.mpi.${1##*/}
    if ! { read -r mpi_kind && read -r mpi_library; } 2>/dev/null <"$known"; then
        mpi_library=$(linked_to "$1")
        mpi_kind=$(kind_for "$mpi_library")
        printf '%s\n' "$mpi_kind" "$mpi_library" >"$known"
    fi
    [ -z "$mpi_library" ] || echo "mpi=$mpi_library" >>"$POINT_FOLDER/facts"
}
