# shellcheck shell=sh
# Pairs of ranks in rounds, all pairs of a round at once. ROUNDS_N: the rounds of N ranks.
# Run by siteproof's sweep.sh for a point of a sweep.
# shellcheck disable=SC2034,SC2154  # messages.sh reads them, and the check sets ROUNDS_N
PROGRAMS=mpi4py MODULE="import mpi4py"
# shellcheck source=siteproof/checks/on_node/messages.sh
. "$1/messages.sh"
echo "message_size=$SIZE" >>facts
eval "rounds=\$ROUNDS_$TASKS"
run -- placed python3 "$SWEEP_STAGE/mpi_together.py" rounds "$SIZE" "$ITERATIONS" "$rounds"
