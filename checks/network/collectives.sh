# shellcheck shell=sh
# Five collectives over all ranks of the point, each with all sizes up to POINT_SIZE.
# Run by siteproof's sweep.sh for a point of a sweep.
# shellcheck disable=SC2034  # messages.sh reads them
OSU="osu_allreduce osu_alltoall osu_allgather osu_bcast osu_barrier"
PROGRAMS="osu imb mpi4py" MODULE="import mpi4py"
# shellcheck source=siteproof/checks/on_node/messages.sh
. "$1/messages.sh"
MAX_BUFFER=536870912 # bytes of a rank: OSU leaves out what needs more
LARGEST=${POINT_SIZE:-$LARGEST}

collective() { # NAME
    case $program in
        osu) osu "osu_$1" "$ITERATIONS" ;;
        imb) imb "$1" -npmin "$TASKS" ;; # else it begins with two
        *) by_size python3 "$SWEEP_STAGE/mpi_together.py" collective \
            "$1" "$SMALLEST" "$LARGEST" "$ITERATIONS" ;;
    esac
}

for name in barrier bcast allreduce allgather alltoall; do
    case $name in allgather | alltoall)
        while [ $((LARGEST * TASKS)) -gt "$MAX_BUFFER" ]; do LARGEST=$((LARGEST / 2)); done
        ;;
    esac
    run -- collective "$name" || exit
done
