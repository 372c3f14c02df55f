# shellcheck shell=sh
# MPI between one rank on this client (rank 0) and one on the server, in a step of this very job:
# OSU where it is installed, otherwise IMB, otherwise mpi4py.
# Run by siteproof's pair.sh with SIDE and PEER set.
# shellcheck disable=SC2153  # the check sets PROGRAM, LAUNCH, SMALLEST, LARGEST and ITERATIONS
[ "$SIDE" = client ] || exec sleep 86400 # srun starts the other rank; ended when the turn is over
ends=$(($(date +%s) + SECONDS_OF_TURN))
node=$(sed -n 's/^node=//p' meta)

is_there() {
    case $1 in
        osu) command -v osu_latency && command -v osu_bw ;;
        imb) command -v IMB-MPI1 ;;
        mpi4py) python3 -c 'from mpi4py.bench import pingpong' ;; # since version 4
        *) false ;;
    esac >/dev/null 2>&1
}

library() { # the MPI that the program is linked to: the library's own name and version
    case $program in
        osu) linked osu_latency ;;
        imb) linked IMB-MPI1 ;;
        mpi4py) python3 -m mpi4py --mpi-lib-version | cut -d, -f1 ;;
    esac 2>/dev/null
}

linked() { # PROGRAM
    ldd "$(command -v "$1")" | awk '/libmpi(ch)?\.so.* => \// { print $3; exit }' |
        xargs -r readlink -f | sed 's:.*/::'
}

# kind_of_mpi: how srun tells the ranks of each other. A rank that does not understand it believes
# that it is alone, which every one of the programs says.
kind_of_mpi() {
    case $LAUNCH,$SITEPROOF_MPI,$mpi in
        ?*,*,*) echo "$LAUNCH" ;;
        ,none,libmpi.so.40* | ,,libmpi.so.40* | ,none,Open* | ,,Open*) echo pmix ;;
        ,none,libmpi* | ,,libmpi* | ,none,MPICH* | ,,MPICH* | ,none,Intel* | ,,Intel*) echo pmi2 ;;
        *) echo "$SITEPROOF_MPI" ;;
    esac
}

transport() { # what the environment says of it
    env | sed -n 's/^\(OMPI_MCA_[pbm]tl\|OMPI_MCA_pml\|UCX_TLS\|UCX_NET_DEVICES\|FI_PROVIDER\|I_MPI_FABRICS\)=/\1=/p' |
        sort | tr '\n' ' ' | grep . || echo "chosen by MPI"
}

for name in osu imb mpi4py; do
    [ -n "$PROGRAM" ] || ! is_there "$name" || PROGRAM=$name
done
program=${PROGRAM:-osu}
if ! is_there "$program"; then
    echo "$program is not installed" >&2
    exit 127
elif ! command -v srun >/dev/null; then
    echo "srun is not installed, and starts the ranks" >&2
    exit 127
fi
mpi=$(library)
kind=$(kind_of_mpi)
{
    echo "program=$program"
    echo "mpi=${mpi:-unknown}"
    echo "transport=$(transport)"
    echo "iterations=$ITERATIONS"
    echo "server=$PEER"
} >>facts
printf '%s\n' "$node" "$PEER" >hosts # rank 0 and rank 1

launch() { # COMMAND...: on both nodes; each rank says where it is, and the rest of the turn is left
    echo "srun --mpi=${kind:-}: $1" >&2
    # In the foreground: what ends this turn ends srun too, and srun its ranks.
    # shellcheck disable=SC2016  # the variables are the ranks'
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        timeout --foreground -k 5 $((ends > $(date +%s) ? ends - $(date +%s) : 1)) \
        srun --jobid="$SITEPROOF_JOB" --overlap --kill-on-bad-exit=1 ${kind:+--mpi="$kind"} \
        --nodes=2 --ntasks=2 --distribution=arbitrary --nodelist=./hosts \
        sh -c 'echo "rank $SLURM_PROCID on $SLURMD_NODENAME"; exec "$@"' rank "$@"
}

by_size() { # COMMAND...
    echo "sizes $SMALLEST:$LARGEST"
    launch "$@"
}

osu() { # BENCHMARK ITERATIONS
    set -- "$1" -m "$SMALLEST:$LARGEST" -i "$2" -x 2
    # Some versions can look at what arrived.
    ! timeout 10 "$1" -h 2>&1 | grep -q -e '--validation' || set -- "$@" -c
    by_size "$@"
}

imb() {
    powers=$(awk -v a="$SMALLEST" -v b="$LARGEST" \
        'BEGIN { printf "%.0f:%.0f", log(a) / log(2), log(b) / log(2) }')
    launch IMB-MPI1 PingPong -msglog "$powers" -iter "$ITERATIONS"
}

mpi4py() { # the table does not show who has sent to whom
    launch python3 -m mpi4py.bench helloworld || return
    by_size python3 -m mpi4py.bench pingpong --array none --min-size "$SMALLEST" \
        --max-size "$LARGEST" --skip 5 --loop "$ITERATIONS" \
        --loop-large $((ITERATIONS / 10 + 1)) --loop-huge $((ITERATIONS / 100 + 2))
}

if [ "$program" = osu ]; then
    run test=latency -- osu osu_latency "$ITERATIONS"
    run test=bandwidth -- osu osu_bw $((ITERATIONS / 50 + 1)) # each sends 64 messages
else
    run -- "$program"
fi
