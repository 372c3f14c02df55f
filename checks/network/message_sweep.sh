# shellcheck shell=sh
# MPI messages of all sizes up to POINT_SIZE between two ranks: on two nodes, or on one.
# Run by siteproof's sweep.sh for a point of a sweep.
# shellcheck source=siteproof/checks/on_node/messages.sh
. "$1/messages.sh"
# shellcheck disable=SC2153
if [ "$TASKS" -ne 2 ]; then
    echo "messages need two ranks (tasks: 2), and the point has $TASKS" >&2
    exit 1
fi
LARGEST=${POINT_SIZE:-$LARGEST}

if [ -n "$SWEEP_SRUN" ]; then
    echo "nodes=$NODES" >>facts
else
    echo "nodes=$SITEPROOF_NODE" >>facts
fi
run_program
