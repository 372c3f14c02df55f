# shellcheck shell=sh
# MPI benchmarks: OSU where it is installed, otherwise IMB, otherwise mpi4py; sourced by a measuring
# script, after which the program is chosen and noted. Of two ranks, unless the script has set
# PROGRAMS, OSU (its benchmarks, the first of which shows the library) and MODULE (of Python).
# A script that runs in no sweep defines how ranks start: `start COMMAND...`.
# Settings: PROGRAM, LAUNCH, SMALLEST and LARGEST (bytes), ITERATIONS; SITEPROOF_MPI as account.sh
# leaves it.
# shellcheck disable=SC2153,SC2034  # settings are set elsewhere, and kind is read elsewhere

# shellcheck source=siteproof/checks/on_node/mpi.sh
. "$1/mpi.sh"

# choose_program: `program` and its library `mpi`, and `kind`, which is srun's --mpi.
choose_program() {
    for name in ${PROGRAMS:=osu imb mpi4py}; do
        [ -n "$PROGRAM" ] || ! is_there "$name" || PROGRAM=$name
    done
    program=${PROGRAM:-osu}
    if ! is_there "$program"; then
        echo "$program is not installed" >&2
        exit 127
    fi
    mpi=$(library_of_program)
    kind=$(kind_for "$mpi")
    LAUNCH=$kind # launch would look for the library of the shell that prints where a rank is
}

start() { # COMMAND...
    launch "$@"
}

is_there() {
    case $1 in
        osu) for benchmark in ${OSU:=osu_latency osu_bw}; do
            command -v "$benchmark" || return
        done ;;
        imb) command -v IMB-MPI1 ;;
        mpi4py) python3 -c "${MODULE:-from mpi4py.bench import pingpong}" ;; # since version 4
        *) false ;;
    esac >/dev/null 2>&1
}

library_of_program() { # the MPI that the program is linked to: the library's own name and version
    case $program in
        osu) linked_to "${OSU%% *}" ;;
        imb) linked_to IMB-MPI1 ;;
        mpi4py) python3 -m mpi4py --mpi-lib-version | cut -d, -f1 ;;
    esac 2>/dev/null
}

transport() { # as the environment sets it
    env | sed -n 's/^\(OMPI_MCA_[pbm]tl\|OMPI_MCA_pml\|UCX_TLS\|UCX_NET_DEVICES\|FI_PROVIDER\|I_MPI_FABRICS\)=/\1=/p' |
        sort | tr '\n' ' ' | grep . || echo "chosen by MPI"
}

note_program() { # into the facts
    {
        echo "program=$program"
        echo "mpi=${mpi:-unknown}"
        echo "transport=$(transport)"
        echo "iterations=$ITERATIONS"
    } >>facts
}

# run_program: all sizes; each run's output begins with where the ranks are.
run_program() {
    if [ "$program" = osu ]; then
        run test=latency -- osu osu_latency "$ITERATIONS" || return
        run test=bandwidth -- osu osu_bw $((ITERATIONS / 50 + 1)) # each sends 64 messages
    else
        run -- "$program"
    fi
}

# placed COMMAND...: what a rank does: it prints where it is, and becomes the benchmark.
placed() {
    # shellcheck disable=SC2016  # the variables are the ranks'
    start sh -c 'echo "rank ${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-?}}} on ${SLURMD_NODENAME:-$SITEPROOF_NODE}"
        exec "$@"' rank "$@"
}

by_size() { # COMMAND...
    echo "sizes $SMALLEST:$LARGEST"
    placed "$@"
}

osu() { # BENCHMARK ITERATIONS
    set -- "$1" -m "$SMALLEST:$LARGEST" -i "$2" -x 2
    # Some versions can look at what arrived. Sums of MPI_CHAR do not fit: OSU refuses those of Open
    # MPI (https://github.com/open-mpi/ompi/issues/12717).
    help=$(timeout 10 "$1" -h 2>&1)
    case $help in *"--validation "*) set -- "$@" -c ;; esac
    case $1,$help in osu_allreduce,*mpi_int*) set -- "$@" -T mpi_int ;; esac
    by_size "$@"
}

imb() { # [BENCHMARK [OPTION...]]
    powers=$(awk -v a="$SMALLEST" -v b="$LARGEST" \
        'BEGIN { printf "%.0f:%.0f", log(a) / log(2), log(b) / log(2) }')
    [ $# -gt 0 ] || set -- PingPong
    placed IMB-MPI1 "$@" -msglog "$powers" -iter "$ITERATIONS"
}

mpi4py() { # the table does not show who has sent to whom
    placed python3 -m mpi4py.bench helloworld || return
    by_size python3 -m mpi4py.bench pingpong --array none --min-size "$SMALLEST" \
        --max-size "$LARGEST" --skip 5 --loop "$ITERATIONS" \
        --loop-large $((ITERATIONS / 10 + 1)) --loop-huge $((ITERATIONS / 100 + 2))
}

choose_program
note_program
