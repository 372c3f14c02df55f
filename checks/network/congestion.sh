# shellcheck shell=sh
# Messages between two ranks of the point, with and without load on the others.
# Run by siteproof's sweep.sh for a point of a sweep.
# shellcheck disable=SC2034  # messages.sh reads them
PROGRAMS=mpi4py MODULE="import mpi4py"
# shellcheck source=siteproof/checks/on_node/messages.sh
. "$1/messages.sh"
echo "load_size=$LOAD" >>facts
echo "large_size=$LARGE" >>facts
run -- placed python3 "$SWEEP_STAGE/mpi_together.py" congestion "$ITERATIONS" "$LARGE" "$LOAD"
