# shellcheck shell=sh
# MPI between one rank on this client (rank 0) and one on the server, in a step of this very job.
# Run by siteproof's pair.sh with SIDE and PEER set.
[ "$SIDE" = client ] || exec sleep 86400 # srun starts the other rank; ended when the turn is over
# shellcheck source=siteproof/checks/on_node/messages.sh
. "$1/messages.sh"
ends=$(($(date +%s) + SECONDS_OF_TURN))
node=$(sed -n 's/^node=//p' meta)

start() { # COMMAND...: on both nodes, for what is left of the turn
    echo "srun --mpi=${kind:-}: ${5:-$1}" >&2
    set -- --jobid="$SITEPROOF_JOB" --overlap --kill-on-bad-exit=1 ${kind:+--mpi="$kind"} \
        --ntasks=2 --distribution=arbitrary --nodelist=./hosts "$@" # with --nodes 24.11 refuses it
    eval "set -- ${SITEPROOF_SRUN_OPTIONS:-}"' "$@"' # the site's; those of the step itself hold
    # In the foreground: what ends this turn ends srun too, and srun its ranks.
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        timeout --foreground -k 5 $((ends > $(date +%s) ? ends - $(date +%s) : 1)) srun "$@"
}

if ! command -v srun >/dev/null; then
    echo "srun, which starts the ranks, is not installed" >&2
    exit 127
fi
echo "server=$PEER" >>facts
printf '%s\n' "$node" "$PEER" >hosts # rank 0 and rank 1
run_program
